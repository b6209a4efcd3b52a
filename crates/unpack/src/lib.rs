//! File types by content, decompressors and archive readers, all of them [`Stage`]s that read forward.
//!
//! [`recognise`] says what a stream is from its first [`HEAD_BYTES`]; [`opener`] gives the stage that opens it. A new
//! format is one module and one line in `opener`.
//!
//! This crate knows nothing of mail, transfer codings or signatures. It does not count depth, ratio or objects: the
//! driver does. What it promises is bounded memory (fields of [`Limits`], named in each module) and honest fuel.
#![forbid(unsafe_code)]

mod ar;
mod archive;
mod arj;
mod bits;
mod bzip2;
mod cab;
mod cms;
mod codec;
mod compressed;
mod cpio;
mod crc;
mod deflate;
mod deflate64;
pub mod formats;
mod fuzz;
mod gzip;
mod history;
mod html;
mod huffman;
mod implode;
mod lha;
mod lz4;
mod lzfu;
mod lzip;
mod lzma;
mod lzma_alone;
mod lzw;
mod name;
mod ole2;
mod onenote;
mod pdf;
mod ppmd;
mod rar;
mod reader;
mod recognise;
mod reduce;
mod rtf;
mod sevenz;
mod shrink;
mod swf;
mod szdd;
mod tar;
mod tnef;
mod tokens;
mod trial;
mod xz;
mod zip;
mod zlib;
mod zstd;

use stream::{FileType, Limits, Stage};

pub use ar::fuzz_ar;
pub use arj::fuzz_arj;
pub use cab::fuzz_cab;
pub use cpio::fuzz_cpio;
pub use fuzz::documents::{fuzz_cms, fuzz_html, fuzz_ole2, fuzz_onenote, fuzz_pdf, fuzz_rtf, fuzz_tnef};
pub use fuzz::{
    fuzz_bzip2, fuzz_compress, fuzz_gzip, fuzz_lz4, fuzz_lzma, fuzz_ppmd, fuzz_recognise, fuzz_swf, fuzz_szdd,
    fuzz_tar, fuzz_xz, fuzz_zip, fuzz_zstd,
};
pub use lha::fuzz_lha;
pub use rar::fuzz_rar;
pub use recognise::{HEAD_BYTES, recognise, recognise_second};
pub use sevenz::fuzz_7z;

use archive::Archive;
use compressed::Compressed;
use reader::Reading;

/// The stage that opens a stream of type `file_type`, or `None` where there is nothing to open.
///
/// Types without a reader of their own are searched for zip archives inside of them or behind them.
pub fn opener(file_type: FileType, limits: &Limits) -> Option<Box<dyn Stage>> {
    Some(match file_type {
        FileType::Empty | FileType::Mail => return None,
        FileType::Gzip => Box::new(Compressed::new(gzip::Gzip::new(limits))),
        FileType::Zlib => Box::new(Compressed::new(zlib::Zlib::new())),
        FileType::Bzip2 => Box::new(Compressed::new(bzip2::Bzip2::new(limits))),
        FileType::Xz => Box::new(Compressed::new(xz::Xz::new(limits))),
        FileType::Lzma => Box::new(Compressed::new(lzma_alone::LzmaAlone::new(limits))),
        FileType::Lzip => Box::new(Compressed::new(lzip::Lzip::new(limits))),
        FileType::Compress => Box::new(Compressed::new(lzw::Compress::new())),
        FileType::Zstd => Box::new(Compressed::new(zstd::Zstd::new(limits))),
        FileType::Lz4 => Box::new(Compressed::new(lz4::Lz4::new())),
        FileType::Szdd => Box::new(Compressed::new(szdd::Szdd::new())),
        FileType::FlashPacked => Box::new(Compressed::new(swf::Swf::new(limits))),
        FileType::Tar => Box::new(tar::Tar::new(limits)),
        FileType::SevenZip => Box::new(Reading::new(sevenz::SevenZip::new(limits))),
        FileType::Ar => Box::new(Archive::new(ar::Ar::new(limits), limits)),
        FileType::Arj => Box::new(Archive::new(arj::Arj::new(limits), limits)),
        FileType::Cab => Box::new(Archive::new(cab::Cab::new(limits), limits)),
        FileType::Cpio => Box::new(Archive::new(cpio::Cpio::new(limits), limits)),
        FileType::Rar => Box::new(Archive::new(rar::Rar::new(limits), limits)),
        FileType::Lha => Box::new(Archive::new(lha::Lha::new(limits), limits)),
        FileType::Zip => Box::new(zip::Zip::new(limits)),
        FileType::Ole2 => Box::new(Reading::new(ole2::Ole2::new(limits))),
        FileType::Pdf => Box::new(Reading::new(pdf::Pdf::new(limits))),
        FileType::OneNote => Box::new(Reading::new(onenote::OneNote::new())),
        FileType::Cms => Box::new(Reading::new(cms::Cms::new())),
        FileType::Html | FileType::Xml | FileType::Text => Box::new(Reading::new(html::Html::new())),
        FileType::Rtf => Box::new(Reading::new(rtf::Rtf::new())),
        FileType::Tnef => Box::new(Reading::new(tnef::Tnef::new(limits))),
        _ => Box::new(zip::Zip::searching(limits)),
    })
}

/// The stage that reads a part of a document that its own reader has told with this media type: what the type of its
/// content does not show.
pub fn part_opener(media_type: &str, limits: &Limits) -> Option<Box<dyn Stage>> {
    match media_type {
        pdf::OBJECTS => Some(Box::new(Reading::new(pdf::Pdf::objects(limits)))),
        rtf::OLE1 => Some(Box::new(Reading::new(rtf::ole1::Ole1::new(limits)))),
        _ => None,
    }
}

/// The stage that searches for archives where the type's own reader passes over what is none of its content: between
/// the objects of a document, in the header of a compressed stream, in its compressed bytes, in a cabinet's reserved areas.
pub fn searcher(file_type: FileType, limits: &Limits) -> Option<Box<dyn Stage>> {
    use FileType::{
        Bzip2, Cms, Compress, FlashPacked, Gzip, Html, Lz4, Lzip, Lzma, Ole2, OneNote, Pdf, Rtf, Szdd, Text, Tnef, Xml,
        Xz, Zlib, Zstd,
    };
    let is_stream =
        matches!(file_type, Gzip | Zlib | FlashPacked | Bzip2 | Xz | Lzma | Lzip | Zstd | Szdd | Compress | Lz4);
    let is_document = matches!(file_type, Pdf | Ole2 | Rtf | Tnef | OneNote | Cms | Html | Xml | Text);
    let is_searched = is_stream
        || is_document
        || matches!(file_type, FileType::Cab | FileType::Arj | FileType::Rar | FileType::SevenZip | FileType::Lha);
    is_searched.then(|| Box::new(zip::Zip::searching(limits)) as Box<dyn Stage>)
}
