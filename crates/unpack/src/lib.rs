//! File types by content, decompressors and archive readers, all of them [`Stage`]s that read forward.
//!
//! [`recognise`] says what a stream is from its first [`HEAD_BYTES`]; [`opener`] gives the stage that opens it. A new
//! format is one module and one line in `opener`.
//!
//! The modules stand in rooms by their kind: `frame` and `bits` are what all others stand on, `codec` has decoders and
//! `stream` the files made with one; `archive`, `disk`, `document` and `program` have readers, `recognise` what searches.
//!
//! This crate knows nothing of mail, transfer codings or signatures. It does not count depth, ratio or objects: the
//! driver does. What it promises is bounded memory (fields of [`Limits`], named in each module) and honest fuel.
#![forbid(unsafe_code)]

mod archive;
mod bits;
mod codec;
mod disk;
mod document;
pub mod formats;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod program;
mod recognise;
mod stream;

use ::stream::{FileType, Limits, Stage};

pub use frame::password::Passwords;
pub use recognise::head::{HEAD_BYTES, HEAD_BYTES_MAX, head_bytes, recognise, recognise_second};

use frame::archive::Archive;
use frame::compressed::Compressed;
use frame::reader::Reading;

/// The stage that opens a stream of type `file_type` without any password; as [`keyed_opener`].
pub fn opener(file_type: FileType, limits: &Limits) -> Option<Box<dyn Stage>> {
    keyed_opener(file_type, limits, &Passwords::default())
}

/// The stage that opens a stream of type `file_type`, or `None` where there is nothing to open. What is encrypted is opened
/// with the one of `passwords` that fits.
///
/// Types without a reader of their own are searched for zip archives inside of them or behind them.
pub fn keyed_opener(file_type: FileType, limits: &Limits, passwords: &Passwords) -> Option<Box<dyn Stage>> {
    Some(match file_type {
        FileType::Empty | FileType::Mail => return None,
        FileType::Gzip => Box::new(Compressed::new(stream::gzip::Gzip::new(limits))),
        FileType::Zlib => Box::new(Compressed::new(stream::zlib::Zlib::new())),
        FileType::Bzip2 => Box::new(Compressed::new(stream::bzip2::Bzip2::new(limits))),
        FileType::Xz => Box::new(Compressed::new(stream::xz::Xz::new(limits))),
        FileType::Lzma => Box::new(Compressed::new(stream::lzma_alone::LzmaAlone::new(limits))),
        FileType::Lzip => Box::new(Compressed::new(stream::lzip::Lzip::new(limits))),
        FileType::Compress => Box::new(Compressed::new(stream::lzw::Compress::new())),
        FileType::Zstd => Box::new(Compressed::new(stream::zstd::Zstd::new(limits))),
        FileType::Lz4 => Box::new(Compressed::new(stream::lz4::Lz4::new())),
        FileType::Snappy => Box::new(Compressed::new(stream::snappy::Snappy::new())),
        FileType::Lzop => Box::new(Compressed::new(stream::lzop::Lzop::new(limits))),
        FileType::Szdd => Box::new(Compressed::new(stream::szdd::Szdd::new())),
        FileType::ActiveMime => Box::new(Compressed::new(stream::activemime::ActiveMime::new())),
        FileType::FlashPacked => Box::new(Compressed::new(stream::swf::Swf::new(limits))),
        FileType::Tar => Box::new(archive::tar::Tar::new(limits)),
        FileType::SevenZip => Box::new(Reading::new(archive::sevenz::SevenZip::new(limits, passwords))),
        FileType::Ar => Box::new(Archive::new(archive::ar::Ar::new(limits), limits)),
        FileType::Arj => Box::new(Archive::new(archive::arj::Arj::new(limits), limits)),
        FileType::Cab => Box::new(Archive::new(archive::cab::Cab::new(limits), limits)),
        FileType::Cpio => Box::new(Archive::new(archive::cpio::Cpio::new(limits), limits)),
        FileType::Rar => Box::new(Archive::new(archive::rar::Rar::new(limits, passwords), limits)),
        FileType::Lha => Box::new(Archive::new(archive::lha::Lha::new(limits), limits)),
        FileType::Rpm => Box::new(Archive::new(archive::rpm::Rpm::new(), limits)),
        FileType::Xar => Box::new(Archive::new(archive::xar::Xar::new(limits), limits)),
        FileType::Alz => Box::new(Archive::new(archive::alz::Alz::new(limits), limits)),
        FileType::Nsis => Box::new(Archive::new(program::nsis::Nsis::new(limits), limits)),
        FileType::Sis => Box::new(Archive::new(program::sis::Sis::new(limits), limits)),
        FileType::InstallShield => Box::new(Archive::new(program::installshield::InstallShield::new(limits), limits)),
        FileType::InstallShieldCab => Box::new(Archive::new(program::installshield::Cabinet::new(), limits)),
        FileType::AppleDouble => Box::new(Archive::new(archive::appledouble::AppleDouble::new(limits), limits)),
        FileType::MacBinary => Box::new(Archive::new(archive::macbinary::MacBinary::new(limits), limits)),
        FileType::Chm => Box::new(Reading::new(document::chm::Chm::new(limits))),
        FileType::Lnk => Box::new(Reading::new(document::lnk::Lnk::new())),
        FileType::Hfs => Box::new(Reading::new(disk::hfs::Hfs::new(limits))),
        FileType::Disk => Box::new(Reading::new(disk::image::DiskImage::new(limits))),
        FileType::Iso => Box::new(Reading::new(disk::iso::Iso::new(limits))),
        FileType::Zip => Box::new(archive::zip::Zip::new(limits, passwords)),
        FileType::Ole2 => Box::new(Reading::new(document::ole2::Ole2::new(limits, passwords))),
        FileType::Pdf => Box::new(Reading::new(document::pdf::Pdf::new(limits, passwords))),
        FileType::Pe => Box::new(Reading::new(program::executable::Executable::new(limits))),
        FileType::OneNote => Box::new(Reading::new(document::onenote::OneNote::new())),
        FileType::Cms => Box::new(Reading::new(document::cms::Cms::new())),
        FileType::Html | FileType::Xml | FileType::Text => Box::new(Reading::new(document::html::Html::new())),
        FileType::Rtf => Box::new(Reading::new(document::rtf::Rtf::new())),
        FileType::Tnef => Box::new(Reading::new(document::tnef::Tnef::new(limits))),
        _ => Box::new(archive::zip::Zip::searching(limits, passwords)),
    })
}

/// The stage that reads a part of a document that its own reader has told with this media type: what the type of its
/// content does not show.
pub fn part_opener(media_type: &str, limits: &Limits) -> Option<Box<dyn Stage>> {
    match media_type {
        stream::brotli::MEDIA_TYPE => Some(Box::new(Compressed::new(stream::brotli::Brotli::new(limits)))),
        document::pdf::OBJECTS => Some(Box::new(Reading::new(document::pdf::Pdf::objects(limits)))),
        program::nsis::SOLID => Some(Box::new(Archive::new(program::nsis::Solid::new(limits), limits))),
        program::autoit::SCRIPT => Some(Box::new(Reading::new(program::autoit::AutoIt::new()))),
        document::rtf::OLE1 => Some(Box::new(Reading::new(document::rtf::ole1::Ole1::new(limits)))),
        _ => None,
    }
}

/// The stage that searches for archives where the type's own reader passes over what is none of its content: between
/// the objects of a document, in the header of a compressed stream, in its compressed bytes, in a cabinet's reserved areas.
pub fn searcher(file_type: FileType, limits: &Limits, passwords: &Passwords) -> Option<Box<dyn Stage>> {
    use FileType::{
        ActiveMime, Alz, Arj, Bzip2, Cab, Chm, Cms, Compress, FlashPacked, Gzip, Html, Lha, Lnk, Lz4, Lzip, Lzma, Lzop,
        Ole2, OneNote, Pdf, Pe, Rar, Rtf, SevenZip, Snappy, Szdd, Text, Tnef, Xar, Xml, Xz, Zlib, Zstd,
    };
    let is_stream = matches!(
        file_type,
        Gzip | Zlib
            | ActiveMime
            | FlashPacked
            | Bzip2
            | Xz
            | Lzma
            | Lzip
            | Zstd
            | Szdd
            | Compress
            | Lz4
            | Snappy
            | Lzop
    );
    let is_document = matches!(file_type, Pdf | Ole2 | Rtf | Tnef | OneNote | Cms | Html | Xml | Text | Lnk | Chm);
    let is_searched =
        is_stream || is_document || matches!(file_type, Pe | Cab | Arj | Rar | SevenZip | Lha | Alz | Xar);
    is_searched.then(|| Box::new(archive::zip::Zip::searching(limits, passwords)) as Box<dyn Stage>)
}

/// The stage that reads a disc image behind a head of this type, if there is one: such images may begin with anything.
pub fn image_watcher(file_type: FileType, limits: &Limits) -> Option<Box<dyn Stage>> {
    let is_watched = !matches!(file_type, FileType::Empty | FileType::Mail | FileType::Iso);
    is_watched.then(|| Box::new(Reading::new(disk::iso::Iso::new(limits))) as Box<dyn Stage>)
}

/// The stage for what only its name tells: brotli has no magic, and disk images of macOS have theirs at the end.
pub fn named_opener(name: &str, file_type: FileType, limits: &Limits) -> Option<Box<dyn Stage>> {
    const EXTENSION: &str = ".br";
    if disk::dmg::may_be(name, file_type) {
        return Some(Box::new(Reading::new(disk::dmg::Dmg::new(limits))));
    }
    let end = name.len().checked_sub(EXTENSION.len()).and_then(|at| name.get(at..));
    let is_brotli = file_type == FileType::Binary && end.is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION));
    is_brotli.then(|| Box::new(Compressed::new(stream::brotli::Brotli::new(limits))) as Box<dyn Stage>)
}

/// The stage that reads the mails behind the first one, where a mail with this head begins a mailbox.
pub fn mailbox_opener(head: &[u8]) -> Option<Box<dyn Stage>> {
    head.starts_with(archive::mbox::MARK).then(|| Box::new(Reading::new(archive::mbox::Mbox::new())) as Box<dyn Stage>)
}

/// The stage that reads what a part of a document says of the document, where this may be one: XML, and whatever text a part
/// is that has the name of relationships.
pub fn relationships(name: &str, file_type: FileType) -> Option<Box<dyn Stage>> {
    use FileType::{Binary, Html, Text, Xml};
    const EXTENSION: &str = ".rels";
    let end = name.len().checked_sub(EXTENSION.len()).and_then(|at| name.get(at..));
    let is_named = end.is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION));
    (file_type == Xml || is_named && matches!(file_type, Html | Text | Binary))
        .then(|| Box::new(Reading::new(document::relationships::Relationships::new())) as Box<dyn Stage>)
}

/// The stage that searches for other archives than zip where they are carried: in executables, and behind pictures; RAR
/// and ARJ archives in anything that has no members of its own.
pub fn stowaway_searcher(file_type: FileType) -> Option<Box<dyn Stage>> {
    use FileType::{
        Binary, Chm, Cms, Elf, Flash, Html, Image, JavaClass, Lnk, MachO, Ole2, OneNote, Pdf, Pe, Rtf, Text, Tnef, Xml,
    };
    Some(match file_type {
        Pe | Elf | MachO | Image => Box::new(Reading::new(recognise::stowaway::Stowaway::new())),
        Binary | Text | Html | Xml | Pdf | Rtf | Ole2 | Tnef | OneNote | Cms | Flash | JavaClass | Lnk | Chm => {
            Box::new(Reading::new(recognise::stowaway::Stowaway::anywhere()))
        }
        _ => return None,
    })
}

/// The stage that unpacks an executable, where its head says that it may be packed, and finds the compiled script that is in
/// it or that a file is; or puts strings of a script together.
pub fn unpacker(file_type: FileType, limits: &Limits) -> Option<Box<dyn Stage>> {
    Some(match file_type {
        FileType::Pe | FileType::Elf | FileType::Binary => Box::new(Reading::new(program::packed::Packed::new(limits))),
        FileType::Text | FileType::Html | FileType::Xml => Box::new(Reading::new(document::script::Script::new())),
        _ => return None,
    })
}

/// The stage that searches for what others carry: executables as they are, encoded files in text.
pub fn carried_searcher(file_type: FileType) -> Option<Box<dyn Stage>> {
    use FileType::{Binary, Elf, Html, Image, MachO, Pe, Text, Xml};
    Some(match file_type {
        Binary | Pe | Elf | MachO | Image => Box::new(Reading::new(recognise::carried::Carried::default())),
        Text | Html | Xml => Box::new(Reading::new(document::runs::Runs::new())),
        _ => return None,
    })
}
