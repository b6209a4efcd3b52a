//! "PE Format", Microsoft: DOS header, COFF header, optional header, section table.
//!
//! As ClamAV has it, sections begin at multiples of the file alignment and their lengths are rounded up to it; if one of
//! them does not lie at such a multiple, the alignment is 512 bytes. Beyond that many sections none is read.

use super::{Head, Layout, Missing, Section, Sections, raw_of};

/// The most sections that are read.
const SECTIONS_MAX: u16 = 96;
/// What the loader rounds to, whatever the alignment says.
const SECTOR: u64 = 512;

/// Where the list of imports is, and the sections by which its addresses are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Imports {
    /// The address of the list.
    pub(crate) address: u32,
    /// Its declared length.
    pub(crate) length: u32,
    /// Whether names and ordinals are told by words of 64 bits.
    pub(crate) wide: bool,
}

pub(super) fn read(head: Head<'_>) -> Result<Layout, Missing> {
    if head.bytes(0, 2)? != b"MZ" {
        return Err(Missing::Nothing);
    }
    let coff = head.u32_le(0x3c)? as usize;
    if head.bytes(coff, 4)? != b"PE\0\0" {
        return Err(Missing::Nothing);
    }
    let count = head.u16_le(coff + 6)?;
    if count == 0 || count > SECTIONS_MAX {
        return Err(Missing::Nothing);
    }
    let optional = coff + 24;
    let table = optional + usize::from(head.u16_le(coff + 20)?);
    let sections = sections(head, table, usize::from(count), u64::from(head.u32_le(optional + 36)?))?;
    let entry = u64::from(head.u32_le(optional + 16)?);
    let headers = u64::from(head.u32_le(optional + 60)?);
    Ok(Layout {
        entry: raw_of(&sections, entry).or((entry < headers).then_some(entry)),
        imports: imports(head, optional)?,
        sections: Sections::Known(sections),
    })
}

fn sections(head: Head<'_>, table: usize, count: usize, alignment: u64) -> Result<Vec<Section>, Missing> {
    let field = |index: usize, at: usize| head.u32_le(table + index * 40 + at).map(u64::from);
    let mut alignment = alignment;
    for index in 0..count {
        let (size, offset) = (field(index, 16)?, field(index, 20)?);
        if alignment != SECTOR && alignment != 0 && size > 0 && offset % alignment != 0 && offset % SECTOR == 0 {
            alignment = SECTOR;
        }
    }
    (0..count)
        .map(|index| {
            let (start, declared) = (field(index, 20)?, field(index, 16)?);
            let (start, length) = match alignment {
                0 => (start, declared),
                _ => (start - start % alignment, declared.next_multiple_of(alignment)),
            };
            Ok(Section {
                raw: start..start + length,
                declared,
                address: field(index, 12)?,
                address_length: field(index, 8)?,
            })
        })
        .collect()
}

fn imports(head: Head<'_>, optional: usize) -> Result<Option<Imports>, Missing> {
    let wide = match head.u16_le(optional)? {
        0x10b => false,
        0x20b => true,
        _ => return Ok(None),
    };
    let directories = optional + if wide { 112 } else { 96 };
    if head.u32_le(directories - 4)? < 2 {
        return Ok(None);
    }
    let (address, length) = (head.u32_le(directories + 8)?, head.u32_le(directories + 12)?);
    Ok((address != 0).then_some(Imports { address, length, wide }))
}
