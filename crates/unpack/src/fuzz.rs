//! The bodies of the fuzz targets: each reader over hostile bytes, told the same however it is cut.
//!
//! The first byte of the data varies the cut; the rest is the stream.

mod documents;

use stream::{Event, Finding, Fuel, Limits, Note, Spool, Stage, Window};

use crate::archive::{tar, zip};
use crate::codec::ppmd::{Ending, ModelH, ModelI, OfSevenZip, OfZip, Ppmd, Restore};
use crate::frame::codec::Decoder;
use crate::frame::compressed::Compressed;
use crate::frame::trial;
use crate::recognise::head::recognise;
use crate::stream::{brotli, bzip2, gzip, lz4, lzip, lzma_alone, lzop, lzw, snappy, swf, szdd, xz, zstd};
use crate::{HEAD_BYTES, Passwords};

pub use crate::archive::alz::fuzz_alz;
pub use crate::archive::appledouble::fuzz_appledouble;
pub use crate::archive::ar::fuzz_ar;
pub use crate::archive::arj::fuzz_arj;
pub use crate::archive::cab::fuzz_cab;
pub use crate::archive::cpio::fuzz_cpio;
pub use crate::archive::lha::fuzz_lha;
pub use crate::archive::macbinary::fuzz_macbinary;
pub use crate::archive::mbox::fuzz_mbox;
pub use crate::archive::rar::fuzz_rar;
pub use crate::archive::rpm::fuzz_rpm;
pub use crate::archive::sevenz::fuzz_7z;
pub use crate::archive::xar::fuzz_xar;
pub use crate::disk::dmg::fuzz_dmg;
pub use crate::disk::hfs::fuzz_hfs;
pub use crate::disk::image::fuzz_disk;
pub use crate::disk::iso::fuzz_iso;
pub use crate::document::chm::fuzz_chm;
pub use crate::document::lnk::fuzz_lnk;
pub use crate::document::relationships::fuzz_relationships;
pub use crate::document::runs::fuzz_runs;
pub use crate::program::autoit::fuzz_autoit;
pub use crate::program::executable::fuzz_executable;
pub use crate::program::installshield::fuzz_installshield;
pub use crate::program::nsis::fuzz_nsis;
pub use crate::program::packed::fuzz_packed;
pub use crate::program::sis::fuzz_sis;
pub use crate::recognise::stowaway::fuzz_stowaway;
pub use crate::stream::activemime::fuzz_activemime;
pub use documents::{fuzz_cms, fuzz_html, fuzz_ole2, fuzz_onenote, fuzz_pdf, fuzz_rtf, fuzz_tnef};

/// The most content that is looked at; bombs are the driver's business.
const CONTENT_BYTES_MAX: u64 = 4 << 20;

/// A stream from which on its pieces grow with its length.
const LONG_BYTES: usize = 64 << 10;

/// Calls in a row that may neither take nor write: more than what stands still may do before it is ended.
const STANDING_MAX: u32 = 200_000;

/// The most that is kept for a stage.
const SPOOL_BYTES_MAX: u64 = 4 << 20;

/// Fuzz body: recognises `data` and every head of it that a driver could offer, and opens what was recognised.
pub fn fuzz_recognise(data: &[u8]) {
    let limits = Limits::default();
    for end in [data.len(), HEAD_BYTES, data.len() / 2, 3] {
        let head = &data[..end.min(data.len())];
        let found = recognise(head);
        assert_eq!(head.is_empty(), found == stream::FileType::Empty);
        if let Some(mut stage) = crate::opener(found, &limits) {
            tell(stage.as_mut(), head, usize::MAX, 8192);
        }
    }
}

/// Fuzz body: reads a gzip file.
pub fn fuzz_gzip(data: &[u8]) {
    compare(data, |limits| Box::new(Compressed::new(gzip::Gzip::new(limits))));
}

/// Fuzz body: reads a bzip2 file.
pub fn fuzz_bzip2(data: &[u8]) {
    compare(data, |limits| Box::new(Compressed::new(bzip2::Bzip2::new(limits))));
}

/// Fuzz body: reads an xz file.
pub fn fuzz_xz(data: &[u8]) {
    compare(data, |limits| Box::new(Compressed::new(xz::Xz::new(limits))));
}

/// Fuzz body: reads a `.lzma` file, and an lzip file.
pub fn fuzz_lzma(data: &[u8]) {
    compare(data, |limits| Box::new(Compressed::new(lzma_alone::LzmaAlone::new(limits))));
    compare(data, |limits| Box::new(Compressed::new(lzip::Lzip::new(limits))));
}

/// Fuzz body: reads a zstd file.
pub fn fuzz_zstd(data: &[u8]) {
    compare(data, |limits| Box::new(Compressed::new(zstd::Zstd::new(limits))));
}

/// Fuzz body: reads a `.Z` file.
pub fn fuzz_compress(data: &[u8]) {
    compare(data, |_| Box::new(Compressed::new(lzw::Compress::new())));
}

/// Fuzz body: reads an lz4 file.
pub fn fuzz_lz4(data: &[u8]) {
    compare(data, |_| Box::new(Compressed::new(lz4::Lz4::new())));
}

/// Fuzz body: reads a brotli stream.
pub fn fuzz_brotli(data: &[u8]) {
    compare(data, |limits| {
        let limits = Limits { codec_bytes_max: 16 << 20, ..limits.clone() };
        Box::new(Compressed::new(brotli::Brotli::new(&limits)))
    });
}

/// Fuzz body: reads a snappy file.
pub fn fuzz_snappy(data: &[u8]) {
    compare(data, |_| Box::new(Compressed::new(snappy::Snappy::new())));
}

/// Fuzz body: reads an lzop file.
pub fn fuzz_lzop(data: &[u8]) {
    compare(data, |limits| Box::new(Compressed::new(lzop::Lzop::new(limits))));
}

/// Fuzz body: reads an SZDD or KWAJ file.
pub fn fuzz_szdd(data: &[u8]) {
    compare(data, |_| Box::new(Compressed::new(szdd::Szdd::new())));
}

/// Fuzz body: reads a compressed Flash film.
pub fn fuzz_swf(data: &[u8]) {
    compare(data, |limits| Box::new(Compressed::new(swf::Swf::new(limits))));
}

/// Fuzz body: reads a zip archive, and searches for one.
pub fn fuzz_zip(data: &[u8]) {
    compare(data, |limits| Box::new(zip::Zip::new(limits, &passwords(limits))));
    compare(data, |limits| Box::new(zip::Zip::searching(limits, &passwords(limits))));
}

/// Fuzz body: reads a tar archive.
pub fn fuzz_tar(data: &[u8]) {
    compare(data, |limits| Box::new(tar::Tar::new(limits)));
}

/// Fuzz body: decodes PPMd. The second byte tells the order and the flavour, the third the memory.
pub fn fuzz_ppmd(data: &[u8]) {
    let [cut, order, memory, stream @ ..] = data else {
        return;
    };
    let (orders, bytes) = (2 + u32::from(order % 63), (1 << 11) + (u32::from(*memory) << 9));
    let restore = if memory % 2 == 0 { Restore::Restart } else { Restore::CutOff };
    match order >> 7 {
        0 => compare_decoder(*cut, stream, || {
            let model = ModelH::new(orders, bytes, 64 << 10)?;
            Some(Ppmd::<_, OfSevenZip>::new(model, Ending::After(1 << 16), "data", "truncated"))
        }),
        _ => compare_decoder(*cut, stream, || {
            let model = ModelI::new(orders, bytes, restore, 64 << 10)?;
            Some(Ppmd::<_, OfZip>::new(model, Ending::EndSymbol(None), "data", "truncated"))
        }),
    }
}

fn compare_decoder<D: Decoder>(cut: u8, stream: &[u8], make: impl Fn() -> Option<D>) {
    let (Some(mut first), Some(mut second)) = (make(), make()) else {
        return;
    };
    let whole = trial::run(&mut first, stream, usize::MAX, 65536);
    let piece = 1 + usize::from(cut) % 61;
    let pieces = trial::run(&mut second, stream, piece, 1 + usize::from(cut) * 7);
    assert!(whole == pieces, "pieces of {piece}");
}

/// The candidates that open the encrypted seeds, and what they may cost.
pub(crate) fn passwords(limits: &Limits) -> Passwords {
    let words = ["wrong", "sluice"].map(|word| word.as_bytes().into());
    Passwords::new(words, &Limits { key_bytes_max: 64 << 20, ..limits.clone() })
}

pub(crate) fn compare(data: &[u8], make: impl Fn(&Limits) -> Box<dyn Stage>) {
    let Some((&cut, stream)) = data.split_first() else {
        return;
    };
    let limits =
        Limits { codec_bytes_max: 1 << 20, directory_entries_max: 20, name_bytes_max: 64, ..Limits::default() };
    let whole = tell(make(&limits).as_mut(), stream, usize::MAX, 65536);
    // A disc image is mostly kept as it stands: its pieces may be longer, and its windows.
    let piece = (1 + usize::from(cut) % 61) * (1 + stream.len() / LONG_BYTES);
    let window = (1 + usize::from(cut) * 7) * (1 + stream.len() / LONG_BYTES);
    let pieces = tell(make(&limits).as_mut(), stream, piece, window);
    assert_eq!(whole, pieces, "pieces of {piece}");
}

/// What stands for a disc image in seeds, told at length: blocks of 512 bytes, in front of each the number of blocks of
/// NULs that come first, in two bytes. The first byte, of the cut, stays.
#[doc(hidden)]
pub fn blocks(data: &[u8]) -> Vec<u8> {
    const IMAGE_BYTES_MAX: usize = 2 << 20;
    let (cut, mut left) = data.split_at(data.len().min(1));
    let mut image = cut.to_vec();
    while let Some((&gap, rest)) = left.split_first_chunk() {
        let (block, rest) = rest.split_at(rest.len().min(512));
        left = rest;
        let end = image.len() + 512 * usize::from(u16::from_le_bytes(gap));
        image.resize(end.min(IMAGE_BYTES_MAX), 0);
        image.extend_from_slice(block);
        if end > IMAGE_BYTES_MAX {
            break;
        }
    }
    image
}

/// What a stage tells, content reduced to its length and a sum.
#[derive(Debug, PartialEq)]
enum Told {
    Content(u64, u64),
    Open(stream::Object),
    Close,
    Finding(Finding),
    /// A second reading, and what it told where one is run.
    Fork(Finding, Vec<Told>),
    End(usize),
    /// More content than is looked at.
    Enough,
}

/// Runs a stage, and the second reading that it offers first.
fn tell(stage: &mut dyn Stage, input: &[u8], piece: usize, window: usize) -> Vec<Told> {
    read(stage, input, piece, window, &mut 1)
}

fn read(stage: &mut dyn Stage, input: &[u8], piece: usize, window: usize, forks_left: &mut u32) -> Vec<Told> {
    let mut told = Vec::new();
    let mut spool = Spool::default();
    let (mut at, mut depth, mut standing) = (0, 0u32, 0u32);
    let mut output = Window::with_capacity(window);
    loop {
        output.clear();
        let mut fuel = Fuel::new(1 << 16);
        let offered = &input[at..at + piece.min(input.len() - at)];
        let (taken, event) = if offered.is_empty() {
            (0, stage.finish(&spool, &mut output, &mut fuel))
        } else {
            let step = stage.step(offered, &mut output, &mut fuel);
            assert!(step.taken > 0 || step.event != Event::Idle || fuel.is_empty(), "no progress");
            (step.taken, step.event)
        };
        spool.pass(at as u64, &offered[..taken], SPOOL_BYTES_MAX.saturating_sub(spool.len()));
        at += taken;
        standing = if taken > 0 || !output.is_empty() { 0 } else { standing + 1 };
        assert!(standing <= STANDING_MAX, "stands still at {at}");
        let content = match event {
            Event::Verbatim => &offered[..taken],
            _ => output.filled(),
        };
        match event {
            Event::Idle => {}
            Event::Verbatim | Event::Wrote => {
                assert!(depth > 0, "content outside of an object");
                if add(&mut told, content) {
                    return told;
                }
            }
            Event::Open(object) => {
                depth += 1;
                told.push(Told::Open(object));
            }
            Event::Close => {
                depth = depth.checked_sub(1).expect("each close has its open");
                told.push(Told::Close);
            }
            Event::Note(Note::Finding(finding)) => told.push(Told::Finding(finding)),
            Event::Note(Note::Fork(finding)) => {
                let second = forks_left.checked_sub(1).and_then(|left| {
                    *forks_left = left;
                    stage.alternative()
                });
                let other = second.map(|mut second| read(second.as_mut(), &input[at..], piece, window, forks_left));
                told.push(Told::Fork(finding, other.unwrap_or_default()));
            }
            Event::Keep(range) => assert!(spool.ask(range, at as u64), "ranges are asked for in order"),
            Event::End => {
                assert_eq!(depth, 0, "ended with an object open");
                told.push(Told::End(at));
                return told;
            }
        }
    }
}

/// Adds content to what was told; whether it is enough.
fn add(told: &mut Vec<Told>, content: &[u8]) -> bool {
    if !matches!(told.last(), Some(Told::Content(..))) {
        told.push(Told::Content(0, 0));
    }
    let Some(Told::Content(length, sum)) = told.last_mut() else {
        return true;
    };
    for &byte in content {
        *sum = sum.wrapping_mul(31).wrapping_add(u64::from(byte));
        *length += 1;
        if *length >= CONTENT_BYTES_MAX {
            told.push(Told::Enough);
            return true;
        }
    }
    false
}
