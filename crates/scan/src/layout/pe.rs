//! "PE Format", Microsoft: DOS header, COFF header, optional header, section table.
//!
//! As ClamAV has it, sections begin at multiples of the file alignment and their lengths are rounded up to it; if one of
//! them does not lie at such a multiple, the alignment is 512 bytes. Beyond that many sections none is read.

use super::{Head, Layout, Missing, Section, Sections, raw_of};
use crate::signed::program::Places;

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

/// What the head of a file says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeHead {
    /// Whether it is one of 64 bits.
    pub(crate) wide: bool,
    pub(crate) machine: u16,
    pub(crate) timestamp: u32,
    pub(crate) characteristics: u16,
    pub(crate) image_base: u64,
    pub(crate) checksum: u32,
    pub(crate) subsystem: u16,
    /// The address of the table of exports.
    pub(crate) exports: Option<u32>,
    /// The address of the directory of resources.
    pub(crate) resources: Option<u32>,
    /// The names of the sections, and what they are.
    pub(crate) sections: Vec<([u8; 8], u32)>,
    /// What its signature does not cover.
    pub(crate) signed: Places,
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
        pe: Some(Box::new(of_itself(head, coff, optional, table, usize::from(count))?)),
        sections: Sections::Known(sections),
        version: Vec::new(),
    })
}

fn of_itself(head: Head<'_>, coff: usize, optional: usize, table: usize, count: usize) -> Result<PeHead, Missing> {
    let wide = head.u16_le(optional)? == 0x20b;
    let base =
        if wide { head.array(optional + 24).map(u64::from_le_bytes)? } else { head.u32_le(optional + 28)?.into() };
    let section = |index: usize| Ok((head.array(table + index * 40)?, head.u32_le(table + index * 40 + 36)?));
    Ok(PeHead {
        wide,
        machine: head.u16_le(coff + 4)?,
        timestamp: head.u32_le(coff + 8)?,
        characteristics: head.u16_le(coff + 22)?,
        image_base: base,
        checksum: head.u32_le(optional + 64)?,
        subsystem: head.u16_le(optional + 68)?,
        exports: directory(head, optional, 0)?.map(|(address, _)| address),
        resources: directory(head, optional, 2)?.map(|(address, _)| address),
        sections: (0..count).map(section).collect::<Result<_, _>>()?,
        signed: signed(head, optional)?,
    })
}

fn signed(head: Head<'_>, optional: usize) -> Result<Places, Missing> {
    let first = optional + if head.u16_le(optional)? == 0x20b { 112 } else { 96 };
    // The one directory whose address is an offset in the file.
    let signature = directory(head, optional, 4)?.map(|(offset, length)| (offset.into(), length.into()));
    Ok(Places {
        checksum: optional as u64 + 64,
        entry: first as u64 + 32,
        head_bytes: head.u32_le(optional + 60)?.into(),
        signature,
    })
}

/// Address and length of what a data directory speaks of.
fn directory(head: Head<'_>, optional: usize, index: u32) -> Result<Option<(u32, u32)>, Missing> {
    let first = optional + if head.u16_le(optional)? == 0x20b { 112 } else { 96 };
    if head.u32_le(first - 4)? <= index {
        return Ok(None);
    }
    let at = first + index as usize * 8;
    let (address, length) = (head.u32_le(at)?, head.u32_le(at + 4)?);
    Ok((address != 0).then_some((address, length)))
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
    let found = directory(head, optional, 1)?;
    Ok(found.map(|(address, length)| Imports { address, length, wide }))
}
