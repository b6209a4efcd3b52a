//! Signatures of archives that stand within other files, and the checks of the bytes behind each.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use stream::FileType;
use zlib_rs::crc32::crc32;

use super::{CD, LOOK};
use crate::disk::{squashfs, wim};
use crate::frame::codec::{le16, le32};
use crate::program::nsis;

/// Whether a header makes sense.
type Makes = fn(&[u8]) -> bool;

/// Signature to search for.
pub(super) struct Signature {
    pub(super) bytes: &'static [u8],
    /// How far behind the archive's beginning it stands.
    pub(super) behind: usize,
    pub(super) makes: Makes,
    /// Type of the reader; `None` if that needs all that follows.
    pub(super) read_as: Option<FileType>,
}

const fn sig(bytes: &'static [u8], behind: usize, makes: Makes, read_as: FileType) -> Signature {
    Signature { bytes, behind, makes, read_as: Some(read_as) }
}

pub(super) static SIGNATURES: [Signature; 18] = [
    sig(b"7z\xbc\xaf\x27\x1c", 0, is_7z, FileType::SevenZip),
    sig(b"Rar!\x1a\x07", 0, is_rar, FileType::Rar),
    sig(b"MSCF\0\0\0\0", 0, is_cab, FileType::Cab),
    sig(b"-lh", 2, is_lha, FileType::Lha),
    sig(b"\x60\xea", 0, is_arj, FileType::Arj),
    sig(nsis::MAGIC, 4, is_nsis, FileType::Nsis),
    Signature { read_as: None, ..sig(b"hsqs", 0, squashfs::is_plausible, FileType::Squashfs) },
    sig(b"\x1f\x8b\x08", 0, is_gzip, FileType::Gzip),
    sig(b"1AY&SY", 4, is_bzip2, FileType::Bzip2),
    sig(b"\xfd7zXZ\0", 0, is_xz, FileType::Xz),
    sig(b"\x28\xb5\x2f\xfd", 0, is_zstd, FileType::Zstd),
    sig(b"\x2a\x4d\x18", 1, is_zstd_skippable, FileType::Zstd),
    sig(b"xar!\0\x1c\0\x01", 0, is_xar, FileType::Xar),
    sig(b"ustar", USTAR_AT, is_tar, FileType::Tar),
    sig(b"07070", 0, is_cpio, FileType::Cpio),
    Signature { read_as: None, ..sig(b"ITSF\x03\0\0\0", 0, is_chm, FileType::Chm) },
    Signature { read_as: None, ..sig(CD, 1, is_disc, FileType::Iso) },
    Signature { read_as: None, ..sig(wim::MAGIC, 0, wim::is_plausible, FileType::Wim) },
];

/// Where tar has its signature.
const USTAR_AT: usize = 257;

/// Signatures that are looked for at once, by their places among all.
pub(super) struct Set {
    pub(super) places: Vec<usize>,
    pub(super) searcher: Searcher,
}

impl Set {
    fn of(belongs: impl Fn(usize) -> bool) -> Set {
        let places: Vec<usize> = (0..SIGNATURES.len()).filter(|&place| belongs(place)).collect();
        let signatures = places.iter().map(|&place| SIGNATURES[place].bytes);
        Set { searcher: Searcher::new(signatures).expect("a few patterns, none of them empty"), places }
    }
}

/// RAR and ARJ: their own programs look for them, whatever else stands in front.
const OF_PROGRAMS: [usize; 2] = [1, 4];

/// How many extract themselves; they come first.
const SELF_EXTRACTING_COUNT: usize = 7;

pub(super) static ALL: LazyLock<Set> = LazyLock::new(|| Set::of(|_| true));

pub(super) static SELF_EXTRACTING: LazyLock<Set> = LazyLock::new(|| Set::of(|place| place < SELF_EXTRACTING_COUNT));

pub(super) static NOT_SELF_EXTRACTING: LazyLock<Set> =
    LazyLock::new(|| Set::of(|place| place >= SELF_EXTRACTING_COUNT));

pub(super) static RAR_AND_ARJ: LazyLock<Set> = LazyLock::new(|| Set::of(|place| OF_PROGRAMS.contains(&place)));

pub(super) static OTHERS: LazyLock<Set> = LazyLock::new(|| Set::of(|place| !OF_PROGRAMS.contains(&place)));

/// The checksum of the start header.
fn is_7z(head: &[u8]) -> bool {
    head.get(12..32).is_some_and(|start| crc32(0, start) == le32(head, 8))
}

/// The checksum of the first header, and its type: main, or encryption.
fn is_rar(head: &[u8]) -> bool {
    const OLD: u8 = 0;
    const MAIN_BYTES: usize = 13;
    if head.get(6) == Some(&OLD) {
        let main = head.get(7..7 + MAIN_BYTES);
        return main.is_some_and(|main| main[2] == 0x73 && crc32(0, &main[2..]) as u16 == le16(main, 0));
    }
    let Some((&length, _)) = head.get(12..).and_then(<[u8]>::split_first) else { return false };
    let header = head.get(12..13 + usize::from(length));
    header.is_some_and(|header| matches!(header.get(1), Some(1 | 4)) && crc32(0, header) == le32(head, 8))
}

/// Reserved fields, the version, and counts that are not nothing.
fn is_cab(head: &[u8]) -> bool {
    const HEADER: u32 = 36;
    let is_whole = head.len() >= HEADER as usize;
    let reserved = le32(head, 12) == 0 && le32(head, 20) == 0;
    let version = le16(head, 24) == 0x0103;
    is_whole && reserved && version && le32(head, 8) > HEADER && le32(head, 16) >= HEADER && le16(head, 26) > 0
}

/// The sum of a header of level 0 or 1; of level 2, fields that make sense.
fn is_lha(head: &[u8]) -> bool {
    let method = head.get(5).is_some_and(|method| matches!(method, b'0'..=b'7' | b'd'));
    if !method || head.get(6) != Some(&b'-') {
        return false;
    }
    match head.get(20) {
        Some(0 | 1) => {
            let header = head.get(2..2 + usize::from(head[0]));
            header.is_some_and(|header| {
                header.len() > 20 && header.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)) == head[1]
            })
        }
        Some(2) => (26..4096).contains(&le16(head, 0)) && le32(head, 7) > 0,
        _ => false,
    }
}

/// The checksum of the main header.
fn is_arj(head: &[u8]) -> bool {
    const HEADER_MIN: usize = 30;
    let length = usize::from(le16(head, 2));
    let header = head.get(4..4 + length).filter(|_| length >= HEADER_MIN);
    header.is_some_and(|header| head.len() >= 8 + length && crc32(0, header) == le32(head, 4 + length))
}

/// Lengths of the header and of all that can be.
fn is_nsis(head: &[u8]) -> bool {
    const FIRST: u32 = 28;
    (1..1 << 26).contains(&le32(head, 20)) && le32(head, 24) > FIRST
}

/// The method, no reserved flags, and extra flags that some compressor writes.
fn is_gzip(head: &[u8]) -> bool {
    const FLAGS_MAX: u8 = 0x1f;
    head.get(3).is_some_and(|&flags| flags <= FLAGS_MAX) && matches!(head.get(8), Some(0 | 2 | 4))
}

/// The mark of the stream and its level in front of the first block.
fn is_bzip2(head: &[u8]) -> bool {
    head.starts_with(b"BZh") && matches!(head.get(3), Some(b'1'..=b'9'))
}

/// The checksum of the flags.
fn is_xz(head: &[u8]) -> bool {
    head.get(6..8).is_some_and(|flags| flags[0] == 0 && crc32(0, flags) == le32(head, 8))
}

/// The reserved bit.
fn is_zstd(head: &[u8]) -> bool {
    const RESERVED: u8 = 8;
    head.get(4).is_some_and(|descriptor| descriptor & RESERVED == 0)
}

/// A frame that is skipped, and a length that leads to another frame within what is looked at, or not far beyond.
fn is_zstd_skippable(head: &[u8]) -> bool {
    const FAR: usize = 1 << 20;
    let next = 8 + le32(head, 4) as usize;
    let follows = match head.get(next..) {
        Some(next) if next.len() >= 4 => {
            next.starts_with(b"\x28\xb5\x2f\xfd") || next[1..].starts_with(b"\x2a\x4d\x18")
        }
        _ => head.len() == LOOK && next < FAR,
    };
    head.first().is_some_and(|first| first & 0xf0 == 0x50) && follows
}

/// The length of the header.
fn is_chm(head: &[u8]) -> bool {
    matches!(le32(head, 8), 0x58 | 0x60)
}

/// A table that is not empty.
fn is_xar(head: &[u8]) -> bool {
    head.get(8..24).is_some_and(|lengths| lengths[..8] != [0; 8] && lengths[8..] != [0; 8])
}

/// The checksum of the header, its own field counted as blanks.
fn is_tar(head: &[u8]) -> bool {
    const HEADER_BYTES: usize = 512;
    const SUM: std::ops::Range<usize> = 148..156;
    let Some(header) = head.get(..HEADER_BYTES) else { return false };
    let digits = header[SUM].trim_ascii_start();
    let digits = digits.split(|byte| matches!(byte, 0 | b' ')).next().unwrap_or_default();
    let Some(told) = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 8).ok()) else {
        return false;
    };
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    sum(header) - sum(&header[SUM]) + 8 * u32::from(b' ') == told
}

/// The kind of header, and its numbers.
fn is_cpio(head: &[u8]) -> bool {
    let (length, radix) = match head.get(5) {
        Some(b'1' | b'2') => (110, 16),
        Some(b'7') => (76, 8),
        _ => return false,
    };
    head.get(6..length).is_some_and(|numbers| numbers.iter().all(|&byte| char::from(byte).is_digit(radix)))
}

/// The type of a descriptor, and its version.
fn is_disc(head: &[u8]) -> bool {
    matches!(head.first(), Some(0..=3 | 255)) && matches!(head.get(6), Some(1 | 2))
}
