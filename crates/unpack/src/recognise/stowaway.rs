//! Archives that stand in a file of another type: self-extracting ones behind their executable, those behind pictures.
//!
//! 7z, RAR, CAB, LHA and ARJ archives, and what Nullsoft installers carry, are found by their signature and by what follows it, which has to make sense as a
//! header: its checksum has to be right where there is one. The first that is found is told to the end of the file, for its
//! reader to read. Zip archives have a search of their own, which follows them from record to record.
//!
//! RAR and ARJ archives are looked for in the first [`REACH`] bytes of anything, as their readers do, who take what stands in
//! front for a program that extracts.
//!
//! Bounds: a header of [`LOOK`] bytes.

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
const PIECE_BYTES: usize = 512;
/// Bytes that a header is judged by.
const LOOK: usize = 128;

/// Whether a header makes sense.
type Makes = fn(&[u8]) -> bool;

/// A signature, how far behind the archive's beginning it stands, and the look at the header.
const SIGNATURES: [(&[u8], usize, Makes); 6] = [
    (b"7z\xbc\xaf\x27\x1c", 0, is_7z),
    (b"Rar!\x1a\x07", 0, is_rar),
    (b"MSCF\0\0\0\0", 0, is_cab),
    (b"-lh", 2, is_lha),
    (b"\x60\xea", 0, is_arj),
    (nsis::MAGIC, 4, is_nsis),
];

/// How far the readers of archives look for them.
const REACH: u64 = 4 << 20;

/// What is looked for in anything: signatures whose headers have checksums, and whose readers take what stands in front for a
/// program.
const ANYWHERE: [usize; 2] = [1, 4];

/// The longest signature, with what stands in front of it.
const SIGNATURE_BYTES_MAX: usize = 20;

/// Looks for all signatures at once.
static SEARCHER: LazyLock<Searcher> = LazyLock::new(|| {
    Searcher::new(SIGNATURES.map(|(signature, ..)| signature)).expect("a few patterns, none of them empty")
});

/// Looks for what may stand in anything.
static ANYWHERE_SEARCHER: LazyLock<Searcher> = LazyLock::new(|| {
    Searcher::new(ANYWHERE.map(|which| SIGNATURES[which].0)).expect("two patterns, neither of them empty")
});

/// A reader that looks for archives.
pub(crate) struct Stowaway {
    /// Where the bytes held stand.
    at: u64,
    held: Vec<u8>,
    found: bool,
    /// Whether it looks at a file of any type, for what is found there only.
    anywhere: bool,
}

impl Stowaway {
    pub fn new() -> Stowaway {
        Stowaway { at: 0, held: Vec::new(), found: false, anywhere: false }
    }

    /// A reader that looks for archives that are opened behind anything, as far as their readers look.
    pub fn anywhere() -> Stowaway {
        Stowaway { anywhere: true, ..Stowaway::new() }
    }

    /// Where a signature stands in what is held, from `from` on, and which.
    fn signature(&self, from: usize) -> Option<(usize, usize)> {
        let searcher = if self.anywhere { &ANYWHERE_SEARCHER } else { &SEARCHER };
        let found = searcher.find_in(&self.held, (from..self.held.len()).into())?;
        let which = found.pattern().as_usize();
        Some((found.start(), if self.anywhere { ANYWHERE[which] } else { which }))
    }

    /// Looks at what is held; `last` says that no more will come.
    fn search(&mut self, last: bool, outbox: &mut Outbox) {
        let mut from = 0;
        while let Some((place, which)) = self.signature(from) {
            let (_, behind, makes) = SIGNATURES[which];
            from = place + 1;
            let Some(start) = place.checked_sub(behind) else { continue };
            let head = &self.held[start..];
            if head.len() < LOOK && !last {
                return self.pass(start);
            }
            // What the file itself is, its own reader opens.
            if self.at + start as u64 > 0 && makes(&head[..head.len().min(LOOK)]) {
                let raw_offset = Some(self.at + start as u64);
                outbox.open(Object { kind: Kind::Member, raw_offset, ..Object::default() });
                outbox.content(head);
                self.held.clear();
                self.found = true;
                return;
            }
        }
        self.pass(self.held.len().saturating_sub(SIGNATURE_BYTES_MAX - 1));
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
        outbox.worked(if self.anywhere { 0 } else { input.len() / 2 });
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
        self.anywhere && !self.found && self.at >= REACH
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

/// Fuzz body: looks for archives, and for executables.
pub fn fuzz_stowaway(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(Carried::default())));
    cuts::compare(data, |_| Box::new(Reading::new(Stowaway::new())));
    cuts::compare(data, |_| Box::new(Reading::new(Stowaway::anywhere())));
}
