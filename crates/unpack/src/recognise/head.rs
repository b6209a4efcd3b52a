//! Type of a stream by its first bytes.
//!
//! Magic numbers first (`magic`), then structures that need a look at their fields (tar, zlib, executables), then text
//! against binary (`text`). Names and declared types play no role. Mail is not told from text here. A PDF header counts
//! anywhere in the head, as PDF readers have it. A disc image begins with 32 KiB of system area: where that looks unused, or
//! like a boot sector, a longer head is wanted ([`head_bytes`]); behind other heads images are found, not recognised.

mod magic;
mod text;

use stream::FileType;
use zlib_rs::{Inflate, InflateFlush};

use crate::archive::tar;
use crate::disk::iso;
use crate::stream::zlib;

/// How many bytes of a stream [`recognise`] wants to see: two empty tar blocks and a header.
pub const HEAD_BYTES: usize = 1536;

/// How many bytes of a stream [`recognise`] ever wants to see: the system area of a disc image and the magic behind it.
pub const HEAD_BYTES_MAX: usize = iso::AREA_BYTES as usize + 6;

/// How many bytes of a stream that begins with `head` [`recognise`] wants to see.
pub fn head_bytes(head: &[u8]) -> usize {
    const BOOT_SECTOR: std::ops::Range<usize> = 510..512;
    let is_boot_sector =
        || head.get(BOOT_SECTOR) == Some(b"\x55\xaa") && matches!(recognise(head), FileType::Binary | FileType::Disk);
    let is_unused = || head.iter().all(|&byte| byte == 0);
    let has_more = head.len() >= HEAD_BYTES && (is_unused() || is_boot_sector());
    if has_more { HEAD_BYTES_MAX } else { HEAD_BYTES }
}

/// The type of a stream that begins with `head`.
///
/// `head` is the first [`head_bytes`] of the stream, or all of it if it is shorter. A longer head does no harm.
pub fn recognise(head: &[u8]) -> FileType {
    if head.is_empty() {
        return FileType::Empty;
    }
    if let Some(found) = magic::find(head) {
        return found;
    }
    if is_tar(head) {
        return FileType::Tar;
    }
    if is_zlib(head) {
        return FileType::Zlib;
    }
    if is_pdf(head) {
        return FileType::Pdf;
    }
    text::recognise(head).unwrap_or(FileType::Binary)
}

/// A tar header, or such a header behind blocks of NULs.
fn is_tar(head: &[u8]) -> bool {
    let first = head.chunks_exact(tar::BLOCK).find(|block| block.iter().any(|&byte| byte != 0));
    first.is_some_and(tar::looks_like_header)
}

/// A zlib header says little: the deflated data behind it must make sense too.
fn is_zlib(head: &[u8]) -> bool {
    const BYTES_MIN: usize = 8;
    let Some((&[cmf, flags], deflated)) = head.split_first_chunk() else {
        return false;
    };
    if head.len() < BYTES_MIN || !zlib::is_header([cmf, flags]) || flags & 0x20 != 0 {
        return false;
    }
    let mut inflate = Inflate::new(false, 15);
    let mut output = [0; 4096];
    let result = inflate.decompress(deflated, &mut output, InflateFlush::NoFlush);
    result.is_ok() && inflate.total_out() > 0
}

/// The header of a PDF within the reach of its readers; without a version, an object too.
fn is_pdf(head: &[u8]) -> bool {
    const REACH: usize = 1024;
    let reach = &head[..head.len().min(REACH)];
    memchr::memmem::find_iter(reach, b"%PDF-").any(|at| {
        let version = &head[at + 5..];
        let has_version = version.first().is_some_and(u8::is_ascii_digit) && version.get(1) == Some(&b'.');
        has_version || memchr::memmem::find(version, b" obj").is_some()
    })
}

/// Second type of a stream that begins with `head`, besides that of [`recognise`]: a PDF may stand after anything, and
/// a disk begins with a program.
pub fn recognise_second(head: &[u8], first: FileType) -> Option<FileType> {
    if first != FileType::Pdf && is_pdf(head) {
        return Some(FileType::Pdf);
    }
    (first != FileType::Disk && crate::disk::image::is_image(head)).then_some(FileType::Disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_begins_like_a_zlib_header_is_text() {
        assert_eq!(recognise(b"x^2 + y^2 = z^2 has many solutions"), FileType::Text);
        assert_eq!(recognise(b"HK is a place, and so is MZ"), FileType::Text);
    }

    #[test]
    fn a_zlib_stream_of_every_level_is_recognised() {
        for level in 1..=9 {
            let mut packed = [0; 256];
            let config = zlib_rs::DeflateConfig::new(level);
            let (packed, _) = zlib_rs::compress_slice(&mut packed, b"hello hello hello", config);
            assert_eq!(recognise(packed), FileType::Zlib, "{level}");
        }
    }

    #[test]
    fn a_zlib_header_without_content_behind_it_is_not_enough() {
        assert_eq!(recognise(b"\x78\x9c\x05\xc1\x01\x01\0\0\x10"), FileType::Binary);
    }

    #[test]
    fn a_pdf_may_begin_behind_junk() {
        assert_eq!(recognise(b"\x00junk\n%PDF-1.7\n"), FileType::Pdf);
        assert_eq!(recognise(b"see %PDF- in the manual"), FileType::Text);
        assert_eq!(recognise(b"%PDX %PDF-x\n1 0 obj"), FileType::Pdf);
    }

    #[test]
    fn a_picture_may_be_a_pdf_too() {
        let picture = b"GIF89a.. %PDF-1.7\n";
        assert_eq!(recognise_second(picture, recognise(picture)), Some(FileType::Pdf));
        assert_eq!(recognise_second(b"GIF89a.. %PDX-1.7\n", FileType::Image), None);
        assert_eq!(recognise_second(b"%PDF-1.7\n", FileType::Pdf), None);
    }

    #[test]
    fn a_disc_image_is_seen_behind_an_unused_area_or_a_boot_sector() {
        let mut image = vec![0; HEAD_BYTES_MAX];
        image[HEAD_BYTES_MAX - 6..].copy_from_slice(b"\x01CD001");
        assert_eq!(head_bytes(&image[..HEAD_BYTES - 1]), HEAD_BYTES);
        assert_eq!(head_bytes(&image[..HEAD_BYTES]), HEAD_BYTES_MAX);
        assert_eq!(recognise(&image), FileType::Iso);
        image[..2].copy_from_slice(b"\x33\xed");
        assert_eq!(head_bytes(&image[..HEAD_BYTES]), HEAD_BYTES);
        image[510..512].copy_from_slice(b"\x55\xaa");
        assert_eq!(head_bytes(&image[..HEAD_BYTES]), HEAD_BYTES_MAX);
        assert_eq!(recognise(&image), FileType::Iso);
        image[..2].copy_from_slice(b"MZ");
        assert_eq!(head_bytes(&image[..HEAD_BYTES]), HEAD_BYTES);
    }

    #[test]
    fn a_head_of_nothing_but_nul_is_binary() {
        assert_eq!(recognise(&[0; HEAD_BYTES]), FileType::Binary);
        assert_eq!(recognise(b""), FileType::Empty);
    }

    #[test]
    fn no_prefix_of_anything_makes_it_panic() {
        for magic in magic::EXAMPLES {
            for end in 0..=magic.len() {
                recognise(&magic[..end]);
            }
        }
    }
}
