//! The layout of an executable: where its entry point and its sections are in the file.
//!
//! Read from the head of the stream alone, [`HEAD_BYTES`] of it: PE and ELF. A header that lies farther back, and every
//! other format, has no layout, and bodies that are placed by it do not match. Nothing is checked beyond what the
//! offsets need.

use std::ops::Range;

use stream::FileType;

/// How much of the head is looked at.
pub(crate) const HEAD_BYTES: usize = 4096;
/// The most sections that are read.
const SECTIONS_MAX: usize = 96;

/// Offsets in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) entry: Option<u64>,
    pub(crate) sections: Vec<Range<u64>>,
}

impl Layout {
    /// Reads the layout from the first bytes of a file.
    pub(crate) fn read(file_type: FileType, head: &[u8]) -> Option<Layout> {
        match file_type {
            FileType::Pe => portable_executable(head),
            FileType::Elf => elf(head),
            _ => None,
        }
    }
}

struct Section {
    address: u64,
    address_length: u64,
    raw: Range<u64>,
}

fn layout(sections: Vec<Section>, entry: u64, flat_below: u64) -> Layout {
    let inside = |section: &Section| {
        let distance = entry.checked_sub(section.address)?;
        let length = section.address_length.max(section.raw.end - section.raw.start);
        (distance < length).then_some(section.raw.start.saturating_add(distance))
    };
    let mapped = sections.iter().find_map(inside);
    Layout {
        entry: mapped.or((entry < flat_below).then_some(entry)),
        sections: sections.into_iter().map(|section| section.raw).collect(),
    }
}

/// "PE Format", Microsoft: DOS header, COFF header, optional header, section table.
fn portable_executable(head: &[u8]) -> Option<Layout> {
    let coff = u32_at(head, 0x3c)? as usize;
    if head.get(coff..coff.checked_add(4)?)? != b"PE\0\0" {
        return None;
    }
    let count = usize::from(u16_at(head, coff + 6)?).min(SECTIONS_MAX);
    let optional = coff + 24;
    let table = optional + usize::from(u16_at(head, coff + 20)?);
    let entry = u32_at(head, optional + 16)?;
    let headers = u32_at(head, optional + 60)?;
    let sections = (0..count).map_while(|index| {
        let at = table + index * 40;
        // The loader rounds the raw offset down to a sector.
        let start = u64::from(u32_at(head, at + 20)? & !0x1ff);
        let length = u64::from(u32_at(head, at + 16)?);
        Some(Section {
            address: u64::from(u32_at(head, at + 12)?),
            address_length: u64::from(u32_at(head, at + 8)?),
            raw: start..start + length,
        })
    });
    Some(layout(sections.collect(), u64::from(entry), u64::from(headers)))
}

/// "Tool Interface Standard: ELF": the entry point is an address that the program headers place in the file; sections
/// are read where the section table lies in the head, which it rarely does.
fn elf(head: &[u8]) -> Option<Layout> {
    let wide = match head.get(4)? {
        1 => false,
        2 => true,
        _ => return None,
    };
    if head.get(5)? != &1 {
        return None;
    }
    let word = |at: usize| {
        if wide { u64_at(head, at) } else { u32_at(head, at).map(u64::from) }
    };
    let entry = word(24)?;
    let table = usize::try_from(word(if wide { 32 } else { 28 })?).ok()?;
    let size = usize::from(u16_at(head, if wide { 54 } else { 42 })?);
    let count = usize::from(u16_at(head, if wide { 56 } else { 44 })?).min(SECTIONS_MAX);
    let segments = (0..count).map_while(|index| {
        let at = table.checked_add(index.checked_mul(size)?)?;
        let field = |wide_at: usize, narrow_at: usize| word(at.checked_add(if wide { wide_at } else { narrow_at })?);
        let start = field(8, 4)?;
        let length = field(32, 16)?;
        Some(Section { address: field(16, 8)?, address_length: length, raw: start..start.saturating_add(length) })
    });
    let found = layout(segments.collect(), entry, 0);
    Some(Layout { entry: found.entry, sections: Vec::new() })
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes_at(bytes, at).map(u64::from_le_bytes)
}
