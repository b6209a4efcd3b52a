//! The layout of an executable: where its entry point and its sections are in the file.
//!
//! Read from the head of the stream, [`HEAD_BYTES`] of it or as many more as the head itself asks for, up to
//! [`HEAD_BYTES_MAX`]: PE, ELF and thin Mach-O. An ELF file's section table mostly lies at its end; it is caught when
//! it passes ([`Table`]), and until then where the sections are is not known. A head that lies farther back, a fat
//! Mach-O file and every other format has no layout, and bodies that are placed by it do not match. Nothing is checked
//! beyond what the offsets need.

mod elf;
pub(crate) mod exports;
pub(crate) mod imports;
mod macho;
pub(crate) mod passing;
mod pe;
pub(crate) mod version;

use std::ops::Range;

use stream::FileType;

pub(crate) use elf::{ElfHead, Table};
pub(crate) use pe::{Imports, PeHead, Places, SectionHead};

/// How much of the head is looked at first.
pub(crate) const HEAD_BYTES: usize = 4096;
/// Bytes of the head that are read at most for a layout.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;

/// Offsets in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) entry: Option<u64>,
    pub(crate) sections: Sections,
    /// Where in the file its list of imports, and what that speaks of, is.
    pub(crate) imports: Option<Imports>,
    /// Further facts in the head of a PE file.
    pub(crate) pe: Option<Box<PeHead>>,
    /// Numbers in the head of an ELF file.
    pub(crate) elf: Option<Box<ElfHead>>,
    /// Where the texts of its version information begin, once that is known.
    pub(crate) version: Vec<u64>,
}

/// Where the sections of an executable are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sections {
    Known(Vec<Section>),
    /// In this table, which has not passed yet.
    In(Table),
}

impl Default for Sections {
    fn default() -> Sections {
        Sections::Known(Vec::new())
    }
}

/// A section: its bytes in the file and its place in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) raw: Range<u64>,
    /// The length in the file before it was rounded up.
    pub(crate) declared: u64,
    pub(crate) address: u64,
    pub(crate) address_length: u64,
}

impl Section {
    /// Whether an address lies in it.
    pub(crate) fn holds(&self, address: u64) -> bool {
        let length = self.address_length.max(self.raw.end - self.raw.start);
        address.checked_sub(self.address).is_some_and(|distance| distance < length)
    }
}

/// Result of reading a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading {
    Layout(Box<Layout>),
    /// So many bytes of the head are needed to say.
    More(usize),
    None,
}

impl Layout {
    /// Reads the layout from the first bytes of a file.
    pub(crate) fn read(file_type: FileType, head: &[u8]) -> Reading {
        let head = Head(head);
        let layout = match file_type {
            FileType::Pe => pe::read(head),
            FileType::Elf => elf::read(head),
            FileType::MachO => macho::read(head),
            _ => Err(Missing::Nothing),
        };
        match layout {
            Ok(layout) => Reading::Layout(Box::new(layout)),
            Err(Missing::Until(end)) if end <= HEAD_BYTES_MAX => Reading::More(end),
            Err(_) => Reading::None,
        }
    }

    /// Reads that of a PE file which has none by the other rules, because it is damaged.
    pub(crate) fn of_damaged(head: &[u8]) -> Option<Layout> {
        pe::read_damaged(head)
    }

    /// The sections, as far as they are known.
    pub(crate) fn sections(&self) -> &[Section] {
        match &self.sections {
            Sections::Known(sections) => sections,
            Sections::In(_) => &[],
        }
    }

    /// Whether it is not known yet where the sections are.
    pub(crate) fn awaits_sections(&self) -> bool {
        matches!(self.sections, Sections::In(_))
    }
}

/// Where an address lies in the file.
pub(crate) fn raw_of(sections: &[Section], address: u64) -> Option<u64> {
    let section = sections.iter().find(|section| section.holds(address))?;
    Some(section.raw.start.saturating_add(address - section.address))
}

/// Why a head cannot be read.
enum Missing {
    /// It ends too early: it is needed up to there.
    Until(usize),
    /// The file has no layout.
    Nothing,
}

/// The first bytes of a file.
#[derive(Clone, Copy)]
struct Head<'a>(&'a [u8]);

impl<'a> Head<'a> {
    fn bytes(self, at: usize, length: usize) -> Result<&'a [u8], Missing> {
        let end = at.checked_add(length).ok_or(Missing::Nothing)?;
        self.0.get(at..end).ok_or(Missing::Until(end))
    }

    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], Missing> {
        self.bytes(at, N)?.try_into().map_err(|_| Missing::Nothing)
    }

    fn u16_le(self, at: usize) -> Result<u16, Missing> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32_le(self, at: usize) -> Result<u32, Missing> {
        self.array(at).map(u32::from_le_bytes)
    }
}

/// Numbers in the byte order that a head announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    big: bool,
}

impl Order {
    fn u16(self, head: Head<'_>, at: usize) -> Result<u16, Missing> {
        head.array(at).map(if self.big { u16::from_be_bytes } else { u16::from_le_bytes })
    }

    fn u32(self, head: Head<'_>, at: usize) -> Result<u32, Missing> {
        head.array(at).map(if self.big { u32::from_be_bytes } else { u32::from_le_bytes })
    }

    fn u64(self, head: Head<'_>, at: usize) -> Result<u64, Missing> {
        head.array(at).map(if self.big { u64::from_be_bytes } else { u64::from_le_bytes })
    }

    /// A word of 64 or of 32 bits.
    fn word(self, head: Head<'_>, wide: bool, at: usize) -> Result<u64, Missing> {
        if wide { self.u64(head, at) } else { self.u32(head, at).map(u64::from) }
    }
}

/// Fuzz body: the first byte names a format, the rest is the head of a file, and what passes after it.
pub fn fuzz_layout(data: &[u8]) {
    let Some((&choice, file)) = data.split_first() else {
        return;
    };
    const TYPES: [FileType; 4] = [FileType::Pe, FileType::Elf, FileType::MachO, FileType::Binary];
    let file_type = TYPES[usize::from(choice) % TYPES.len()];
    let mut length = HEAD_BYTES.min(file.len());
    loop {
        match Layout::read(file_type, &file[..length]) {
            Reading::More(more) if more <= file.len() => {
                assert!(more > length && more <= HEAD_BYTES_MAX);
                length = more;
            }
            Reading::Layout(layout) => return pass(*layout, file),
            _ => return,
        }
    }
}

/// Checks that a file passes in small pieces as in one.
fn pass(layout: Layout, file: &[u8]) {
    let Sections::In(table) = layout.sections else {
        return;
    };
    let (mut whole, mut pieces) = (table.clone(), table);
    let at_once = whole.pass(0, file);
    let mut at = 0;
    let mut found = None;
    for piece in file.chunks(7) {
        found = found.or(pieces.pass(at, piece));
        at += piece.len() as u64;
    }
    assert_eq!(at_once, found);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_lies_far_back_is_asked_for_and_one_too_far_is_given_up() {
        let mut head = vec![0; HEAD_BYTES];
        head[..2].copy_from_slice(b"MZ");
        head[0x3c..0x40].copy_from_slice(&9000u32.to_le_bytes());
        assert!(matches!(Layout::read(FileType::Pe, &head), Reading::More(end) if end > 9000));
        head[0x3c..0x40].copy_from_slice(&900_000u32.to_le_bytes());
        assert_eq!(Layout::read(FileType::Pe, &head), Reading::None);
        assert_eq!(Layout::read(FileType::Zip, &head), Reading::None);
    }
}
