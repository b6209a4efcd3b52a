//! What is read, in one table: `docs/formats.md` is made from it.
//!
//! Each format has its row, a `const FORMAT`, in its own module, beside the bounds that it speaks of; the lists here put
//! the rows in order. `tests/formats.rs` compares the page with the lists.

use crate::{
    activemime, alz, appledouble, ar, arj, autoit, brotli, bzip2, cab, chm, cms, cpio, disk, dmg, executable, gzip,
    hfs, html, installshield, iso, lha, lnk, lz4, lzip, lzma_alone, lzop, lzw, macbinary, mbox, nsis, ole2, onenote,
    packed, pdf, rar, relationships, rpm, rtf, sevenz, sis, snappy, swf, szdd, tar, tnef, xar, xz, zip, zlib, zstd,
};

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
    /// The most memory taken, and the field of [`Limits`](stream::Limits) that bounds it.
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
    gzip::FORMAT,
    zlib::FORMAT,
    bzip2::FORMAT,
    xz::FORMAT,
    lzma_alone::FORMAT,
    lzip::FORMAT,
    zstd::FORMAT,
    lzw::FORMAT,
    activemime::FORMAT,
    swf::FORMAT,
    szdd::FORMAT,
    lz4::FORMAT,
    brotli::FORMAT,
    snappy::FORMAT,
    lzop::FORMAT,
];

/// Archives: containers of named members.
pub const ARCHIVES: &[Format] = &[
    zip::FORMAT,
    rar::FORMAT,
    sevenz::FORMAT,
    lha::FORMAT,
    cab::FORMAT,
    arj::FORMAT,
    tar::FORMAT,
    cpio::FORMAT,
    ar::FORMAT,
    iso::FORMAT,
    disk::FORMAT,
    dmg::FORMAT,
    hfs::FORMAT,
    rpm::FORMAT,
    xar::FORMAT,
    alz::FORMAT,
    nsis::FORMAT,
    installshield::FORMAT,
    sis::FORMAT,
    appledouble::FORMAT,
    macbinary::FORMAT,
    mbox::FORMAT,
];

/// Documents that hold objects.
pub const DOCUMENTS: &[Format] = &[
    pdf::FORMAT,
    ole2::FORMAT,
    rtf::FORMAT,
    tnef::FORMAT,
    html::FORMAT,
    onenote::FORMAT,
    cms::FORMAT,
    relationships::FORMAT,
    lnk::FORMAT,
    chm::FORMAT,
    executable::FORMAT,
    packed::UPX,
    packed::OTHERS,
    packed::EMULATED,
    autoit::FORMAT,
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
