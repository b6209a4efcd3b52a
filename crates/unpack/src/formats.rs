//! What is read, in one table: `docs/formats.md` is made from it.
//!
//! Each format has its row, a `const FORMAT`, in its own module, beside the bounds that it speaks of; the lists here put
//! the rows in order. `tests/formats.rs` compares the page with the lists.

use crate::{archive, disk, document, program, stream};

/// One format that is opened: a row of `docs/formats.md`.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The format's usual name.
    pub name: &'static str,
    /// Its variants, methods and filters that are read.
    pub methods: &'static str,
    /// What is recognised and told raw, with a finding; empty where nothing is.
    pub not_read: &'static str,
    /// Whether its content is told while it arrives.
    pub reads: Reads,
    /// The most memory taken, and the field of [`Limits`](::stream::Limits) that bounds it.
    pub memory: &'static str,
    /// Whose decoder it is: a library, or our own.
    pub decoder: &'static str,
    /// The fuzz target, whose corpus plain tests replay.
    pub fuzz: &'static str,
    /// With what other reader it is compared, over what material.
    pub compared_with: &'static str,
}

/// How the input of a format has to be at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Forward: content is told while it arrives, and nothing of the input is kept for the end.
    Stream,
    /// Forward as far as the format allows; so much of the input may be kept for the end.
    Spool(&'static str),
}

/// One compressed stream.
pub const STREAMS: &[Format] = &[
    stream::gzip::FORMAT,
    stream::zlib::FORMAT,
    stream::bzip2::FORMAT,
    stream::xz::FORMAT,
    stream::lzma_alone::FORMAT,
    stream::lzip::FORMAT,
    stream::zstd::FORMAT,
    stream::lzw::FORMAT,
    stream::activemime::FORMAT,
    stream::swf::FORMAT,
    stream::szdd::FORMAT,
    stream::lz4::FORMAT,
    stream::brotli::FORMAT,
    stream::snappy::FORMAT,
    stream::lzop::FORMAT,
];

/// Archives: containers of named members.
pub const ARCHIVES: &[Format] = &[
    archive::zip::FORMAT,
    archive::rar::FORMAT,
    archive::sevenz::FORMAT,
    archive::lha::FORMAT,
    archive::cab::FORMAT,
    archive::arj::FORMAT,
    archive::tar::FORMAT,
    archive::cpio::FORMAT,
    archive::ar::FORMAT,
    disk::iso::FORMAT,
    disk::image::FORMAT,
    disk::dmg::FORMAT,
    disk::hfs::FORMAT,
    archive::rpm::FORMAT,
    archive::xar::FORMAT,
    archive::alz::FORMAT,
    program::nsis::FORMAT,
    program::installshield::FORMAT,
    program::sis::FORMAT,
    archive::appledouble::FORMAT,
    archive::macbinary::FORMAT,
    archive::mbox::FORMAT,
];

/// Documents that hold objects.
pub const DOCUMENTS: &[Format] = &[
    document::pdf::FORMAT,
    document::ole2::FORMAT,
    document::rtf::FORMAT,
    document::tnef::FORMAT,
    document::html::FORMAT,
    document::onenote::FORMAT,
    document::cms::FORMAT,
    document::relationships::FORMAT,
    document::lnk::FORMAT,
    document::chm::FORMAT,
    program::executable::FORMAT,
    program::packed::UPX,
    program::packed::OTHERS,
    program::packed::EMULATED,
    program::autoit::FORMAT,
];

impl Reads {
    /// As it stands in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Reads::Stream => "streams",
            Reads::Spool(bound) => bound,
        }
    }
}
