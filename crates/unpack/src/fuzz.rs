//! The bodies of the fuzz targets, here or beside the reader: each over hostile bytes, told the same however it is cut.
//!
//! The first byte of the data varies the cut; the rest is the stream.

mod documents;

use stream::Limits;

use crate::archive::{tar, zip};
use crate::codec::ppmd::{Ending, ModelH, ModelI, OfSevenZip, OfZip, Ppmd, Restore};
use crate::frame::codec::Decoder;
use crate::frame::compressed::Compressed;
use crate::frame::cuts::{compare, passwords, tell};
use crate::frame::trial;
use crate::recognise::head::recognise;
use crate::stream::{brotli, bzip2, gzip, lz4, lzip, lzma_alone, lzop, lzw, snappy, swf, szdd, xz, zisofs, zstd};
use crate::{HEAD_BYTES, Passwords};

pub use crate::archive::alz::fuzz_alz;
pub use crate::archive::appledouble::fuzz_appledouble;
pub use crate::archive::ar::fuzz_ar;
pub use crate::archive::arc::fuzz_arc;
pub use crate::archive::arj::fuzz_arj;
pub use crate::archive::cab::fuzz_cab;
pub use crate::archive::cpio::fuzz_cpio;
pub use crate::archive::dar::fuzz_dar;
pub use crate::archive::lha::fuzz_lha;
pub use crate::archive::macbinary::fuzz_macbinary;
pub use crate::archive::mbox::fuzz_mbox;
pub use crate::archive::rar::fuzz_rar;
pub use crate::archive::rpm::fuzz_rpm;
pub use crate::archive::sevenz::fuzz_7z;
pub use crate::archive::xar::fuzz_xar;
pub use crate::disk::cramfs::fuzz_cramfs;
pub use crate::disk::dmg::fuzz_dmg;
pub use crate::disk::hfs::fuzz_hfs;
pub use crate::disk::image::fuzz_disk;
pub use crate::disk::iso::fuzz_iso;
pub use crate::disk::jffs2::fuzz_jffs2;
pub use crate::disk::squashfs::fuzz_squashfs;
pub use crate::disk::wim::fuzz_wim;
pub use crate::document::chm::fuzz_chm;
pub use crate::document::lnk::fuzz_lnk;
pub use crate::document::openpgp::fuzz_openpgp;
pub use crate::document::relationships::fuzz_relationships;
pub use crate::document::shar::fuzz_shar;
pub use crate::frame::cuts::blocks;
pub use crate::program::autoit::fuzz_autoit;
pub use crate::program::executable::fuzz_executable;
pub use crate::program::installshield::fuzz_installshield;
pub use crate::program::nsis::fuzz_nsis;
pub use crate::program::packed::fuzz_packed;
pub use crate::program::pyinstaller::fuzz_pyinstaller;
pub use crate::program::sis::fuzz_sis;
pub use crate::stream::activemime::fuzz_activemime;
pub use crate::stream::coded::fuzz_coded;
pub use documents::{fuzz_cms, fuzz_html, fuzz_ole2, fuzz_onenote, fuzz_pdf, fuzz_rtf, fuzz_runs, fuzz_tnef};

/// Fuzz body: looks for archives, and for executables.
pub fn fuzz_stowaway(data: &[u8]) {
    crate::recognise::stowaway::fuzz_stowaway(data, crate::reader);
}

/// Fuzz body: recognises `data` and every head of it that a driver could offer, and opens it as that type.
pub fn fuzz_recognise(data: &[u8]) {
    let limits = Limits::default();
    for end in [data.len(), HEAD_BYTES, data.len() / 2, 3] {
        let head = &data[..end.min(data.len())];
        let found = recognise(head);
        assert_eq!(head.is_empty(), found == stream::FileType::Empty);
        if let Some(mut stage) = crate::reader(found, &limits, &Passwords::default()) {
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

/// Fuzz body: reads a file of zisofs.
pub fn fuzz_zisofs(data: &[u8]) {
    compare(data, |limits| Box::new(Compressed::new(zisofs::Zisofs::new(limits))));
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
