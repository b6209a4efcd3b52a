//! Table of all formats: `docs/engine/formats.md` is made from it.
//!
//! Each format has its row, a `const FORMAT`, in its own module, beside the bounds that it speaks of; the lists here put
//! the rows in order. `tests/formats.rs` compares the page with the lists.

pub use crate::frame::format::{Format, Reads};
use crate::{archive, disk, document, program, stream};

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
    stream::zisofs::FORMAT,
    stream::coded::FORMAT,
];

/// Archives: containers of named members.
pub const ARCHIVES: &[Format] = &[
    archive::zip::FORMAT,
    archive::rar::FORMAT,
    archive::sevenz::FORMAT,
    archive::lha::FORMAT,
    archive::cab::FORMAT,
    archive::arj::FORMAT,
    archive::arc::FORMAT,
    archive::tar::FORMAT,
    archive::cpio::FORMAT,
    archive::ar::FORMAT,
    archive::dar::FORMAT,
    document::shar::FORMAT,
    document::makeself::FORMAT,
    disk::iso::FORMAT,
    disk::image::FORMAT,
    disk::dmg::FORMAT,
    disk::hfs::FORMAT,
    disk::squashfs::FORMAT,
    disk::cramfs::FORMAT,
    disk::jffs2::FORMAT,
    disk::wim::FORMAT,
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
    document::openpgp::FORMAT,
    document::relationships::FORMAT,
    document::lnk::FORMAT,
    document::chm::FORMAT,
    program::executable::FORMAT,
    program::packed::UPX,
    program::packed::OTHERS,
    program::packed::EMULATED,
    program::autoit::FORMAT,
    program::pyinstaller::FORMAT,
];
