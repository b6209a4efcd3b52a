//! Archives and compressed streams that stand in a file of another type: self-extracting ones behind their executable, those
//! behind pictures, and those behind anything that the common archivers open all the same.
//!
//! They are found by their signature and by what follows it, which has to make sense as a header: its checksum has to be right
//! where there is one. The first that is found is told to the end of the file, for its reader to read. Zip archives have a
//! search of their own, which follows them from record to record.
//!
//! In files that are no executables and no pictures they are looked for in the first [`REACH`] bytes, as far as 7-Zip does. It
//! takes `.Z`, `.lzma`, ar and compound files for such at the very beginning only; so they are not looked for.
//!
//! The descriptors of a disc image stand behind 32 KiB that nobody reads. They are told as NULs, not as they were.
//!
//! Bounds: a header of [`LOOK`] bytes, and [`BEHIND_MAX`] in front of it.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use stream::{Kind, Object, ReadAt};
use zlib_rs::crc32::crc32;

use crate::frame::codec::{le16, le32};
use crate::frame::cuts;
use crate::frame::reader::{Ended, Outbox, Reader, Reading};
use crate::program::nsis;
use crate::recognise::carried::Carried;

/// Bytes that are looked at together, and held that long.
const PIECE_BYTES: usize = 4096;
/// Bytes that a header is judged by.
const LOOK: usize = 512;
/// Bytes in front of a signature that belong to a header.
const BEHIND_MAX: usize = 320;

/// Whether a header makes sense.
type Makes = fn(&[u8]) -> bool;

/// A signature, how far behind the archive's beginning it stands, and the look at the header.
const SIGNATURES: [(&[u8], usize, Makes); 16] = [
    (b"7z\xbc\xaf\x27\x1c", 0, is_7z),
    (b"Rar!\x1a\x07", 0, is_rar),
    (b"MSCF\0\0\0\0", 0, is_cab),
    (b"-lh", 2, is_lha),
    (b"\x60\xea", 0, is_arj),
    (nsis::MAGIC, 4, is_nsis),
    (b"\x1f\x8b\x08", 0, is_gzip),
    (b"1AY&SY", 4, is_bzip2),
    (b"\xfd7zXZ\0", 0, is_xz),
    (b"\x28\xb5\x2f\xfd", 0, is_zstd),
    (b"\x2a\x4d\x18", 1, is_zstd_skippable),
    (b"ITSF\x03\0\0\0", 0, is_chm),
    (b"xar!\0\x1c\0\x01", 0, is_xar),
    (b"ustar", USTAR_AT, is_tar),
    (b"07070", 0, is_cpio),
    (CD, 1, is_disc),
];

/// Where tar has its signature.
const USTAR_AT: usize = 257;

/// What all descriptors of a disc image have, and where the first of them stands.
const CD: &[u8] = b"CD001";
const DESCRIPTORS_AT: usize = 32 << 10;
const SECTOR_BYTES: u64 = 2048;

/// How far the readers of archives look for them.
const REACH: u64 = 8 << 20;

/// Signatures that are looked for at once, by their places among all.
struct Set {
    places: Vec<usize>,
    searcher: Searcher,
}

impl Set {
    fn of(belongs: impl Fn(usize) -> bool) -> Set {
        let places: Vec<usize> = (0..SIGNATURES.len()).filter(|&place| belongs(place)).collect();
        let signatures = places.iter().map(|&place| SIGNATURES[place].0);
        Set { searcher: Searcher::new(signatures).expect("a few patterns, none of them empty"), places }
    }
}

/// RAR and ARJ: their own programs look for them, whatever else stands in front.
const OF_PROGRAMS: [usize; 2] = [1, 4];

/// How many extract themselves; they come first.
const SELF_EXTRACTING_COUNT: usize = 6;

static SELF_EXTRACTING: LazyLock<Set> = LazyLock::new(|| Set::of(|place| place < SELF_EXTRACTING_COUNT));
static NOT_SELF_EXTRACTING: LazyLock<Set> = LazyLock::new(|| Set::of(|place| place >= SELF_EXTRACTING_COUNT));
static RAR_AND_ARJ: LazyLock<Set> = LazyLock::new(|| Set::of(|place| OF_PROGRAMS.contains(&place)));
static OTHERS: LazyLock<Set> = LazyLock::new(|| Set::of(|place| !OF_PROGRAMS.contains(&place)));

/// A reader that looks for archives.
pub(crate) struct Stowaway {
    /// Where the bytes held stand.
    at: u64,
    held: Vec<u8>,
    found: bool,
    set: &'static Set,
    /// Whether it looks no further than `REACH`.
    is_bounded: bool,
    /// Where the first descriptor of a disc image was seen.
    descriptors_at: Option<u64>,
}

impl Stowaway {
    /// A reader that looks for archives that extract themselves, and for those behind pictures.
    pub fn new() -> Stowaway {
        Stowaway {
            at: 0,
            held: Vec::new(),
            found: false,
            set: &SELF_EXTRACTING,
            is_bounded: false,
            descriptors_at: None,
        }
    }

    /// A reader that looks for RAR and ARJ archives in anything, as far as their readers look.
    pub fn anywhere() -> Stowaway {
        Stowaway { set: &RAR_AND_ARJ, is_bounded: true, ..Stowaway::new() }
    }

    /// A reader that looks for all others that 7-Zip opens behind anything; behind a picture, for those that [`Stowaway::new`]
    /// does not look for.
    pub fn others(is_picture: bool) -> Stowaway {
        let set = if is_picture { &NOT_SELF_EXTRACTING } else { &OTHERS };
        Stowaway { set, is_bounded: true, ..Stowaway::new() }
    }

    /// Looks at what is held; `last` says that no more will come.
    fn search(&mut self, last: bool, outbox: &mut Outbox) {
        let mut from = 0;
        while let Some(found) = self.set.searcher.find_in(&self.held, (from..self.held.len()).into()) {
            let (signature, behind, makes) = SIGNATURES[self.set.places[found.pattern().as_usize()]];
            from = found.start() + 1;
            let Some(start) = found.start().checked_sub(behind) else { continue };
            let head = &self.held[start..];
            if head.len() < LOOK && !last {
                return self.pass(start.saturating_sub(BEHIND_MAX));
            }
            if !makes(&head[..head.len().min(LOOK)]) {
                continue;
            }
            let at = self.at + start as u64;
            if signature == CD && self.is_further_descriptor(at) {
                continue;
            }
            let in_front = if signature == CD { DESCRIPTORS_AT } else { 0 };
            // What the file itself is, its own reader opens.
            if at > in_front as u64 {
                return self.tell(start, in_front, outbox);
            }
        }
        self.pass(self.held.len().saturating_sub(BEHIND_MAX));
    }

    /// Tells what is held from `start` on, behind so many NULs.
    fn tell(&mut self, start: usize, in_front: usize, outbox: &mut Outbox) {
        let raw_offset = (in_front == 0).then_some(self.at + start as u64);
        outbox.open(Object { kind: Kind::Member, raw_offset, ..Object::default() });
        outbox.content(&vec![0; in_front]);
        outbox.content(&self.held[start..]);
        self.held.clear();
        self.found = true;
    }

    /// Whether a descriptor is not the first one of its disc image.
    fn is_further_descriptor(&mut self, at: u64) -> bool {
        const DESCRIPTORS_MAX: u64 = 64;
        let first = *self.descriptors_at.get_or_insert(at);
        let behind = at.saturating_sub(first);
        let is_further = behind > 0 && behind.is_multiple_of(SECTOR_BYTES) && behind < DESCRIPTORS_MAX * SECTOR_BYTES;
        if !is_further {
            self.descriptors_at = Some(at);
        }
        is_further
    }

    /// The first bytes are looked at no more.
    fn pass(&mut self, count: usize) {
        self.at += count as u64;
        self.held.drain(..count);
    }
}

impl Reader for Stowaway {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.found {
            outbox.content(input);
            return input.len();
        }
        outbox.worked(if self.is_bounded { 0 } else { input.len() / 2 });
        for piece in input.chunks(PIECE_BYTES) {
            if self.found {
                outbox.content(piece);
            } else {
                self.held.extend_from_slice(piece);
                self.search(false, outbox);
            }
        }
        input.len()
    }

    fn is_over(&self) -> bool {
        self.is_bounded && !self.found && self.at >= REACH
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if !self.found {
            self.search(true, outbox);
        }
        Ended::Done
    }
}

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

/// Fuzz body: looks for archives, and for executables.
pub fn fuzz_stowaway(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(Carried::default())));
    cuts::compare(data, |_| Box::new(Reading::new(Stowaway::new())));
    cuts::compare(data, |_| Box::new(Reading::new(Stowaway::anywhere())));
    cuts::compare(data, |_| Box::new(Reading::new(Stowaway::others(false))));
    cuts::compare(data, |_| Box::new(Reading::new(Stowaway::others(true))));
}
