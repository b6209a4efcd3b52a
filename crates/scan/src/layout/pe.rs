//! "PE Format", Microsoft: DOS header, COFF header, optional header, section table.
//!
//! As ClamAV has it, sections begin at multiples of the file alignment and their lengths are rounded up to it; if one of
//! them does not lie at such a multiple, the alignment is 512 bytes. Beyond that many sections none is read.

use super::{Head, Layout, Missing, Section, Sections, raw_of};

/// Bytes of the headers up to the last of sixteen data directories.
const HEADER_BYTES: usize = 264;
/// The most sections that are read.
const SECTIONS_MAX: u16 = 96;
/// Alignment to which the loader rounds, whatever the file's own says.
const SECTOR: u64 = 512;

/// Where the parts of a file are that its signature does not cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The checksum, of four bytes.
    pub(crate) checksum: u64,
    /// Where the head says where the signature is, of eight bytes.
    pub(crate) entry: u64,
    /// The declared length of the head.
    pub(crate) head_bytes: u64,
    /// Where the signature is, and how long, if there is one.
    pub(crate) signature: Option<(u64, u64)>,
}

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

/// Facts in the head of a file.
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
    /// The headers from `PE\0\0` on, as many of them as there are.
    pub(crate) headers: Box<[u8]>,
    /// The address of the table of exports.
    pub(crate) exports: Option<u32>,
    /// The address of the directory of resources.
    pub(crate) resources: Option<u32>,
    /// How many sections it says that it has.
    pub(crate) count: u16,
    /// Headers of the sections.
    pub(crate) sections: Vec<SectionHead>,
    /// Places that its signature does not cover.
    pub(crate) signed: Places,
}

/// Header of a section, as it stands in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SectionHead {
    pub(crate) name: [u8; 8],
    pub(crate) address: u32,
    pub(crate) address_length: u32,
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) characteristics: u32,
}

impl SectionHead {
    /// Its name, up to the first NUL.
    pub(crate) fn name(&self) -> &[u8] {
        self.name.split(|byte| *byte == 0).next().unwrap_or(&[])
    }

    fn read(head: Head<'_>, at: usize) -> Result<SectionHead, Missing> {
        Ok(SectionHead {
            name: head.array(at)?,
            address_length: head.u32_le(at + 8)?,
            address: head.u32_le(at + 12)?,
            length: head.u32_le(at + 16)?,
            offset: head.u32_le(at + 20)?,
            characteristics: head.u32_le(at + 36)?,
        })
    }
}

/// The layout of a file that ClamAV finds none in, because it is damaged or cut off: what YARA takes for a PE file.
pub(super) fn read_damaged(head: &[u8]) -> Option<Layout> {
    /// The optional header of 32 bits with all directories.
    const OPTIONAL_BYTES: usize = 224;
    let head = Head(head);
    let coff = head.u32_le(0x3c).ok()? as usize;
    let optional = coff.checked_add(24)?;
    let is_whole = head.0.len() > optional.checked_add(OPTIONAL_BYTES)?;
    if !is_whole || !head.0.starts_with(b"MZ") || head.bytes(coff, 4).ok()? != b"PE\0\0" {
        return None;
    }
    let table = optional + usize::from(head.u16_le(coff + 20).ok()?);
    let count = usize::from(head.u16_le(coff + 6).ok()?.min(SECTIONS_MAX));
    let heads: Vec<SectionHead> =
        (0..count).map_while(|index| SectionHead::read(head, table + index * 40).ok()).collect();
    let alignment = head.u32_le(optional + 36).ok()?.into();
    let mut sections = sections(&heads, alignment);
    if sections.is_empty() {
        // Addresses are places in the file then.
        let all = crate::layout::passing::COPIED_BYTES_MAX;
        sections.push(Section { raw: 0..all, declared: all, address: 0, address_length: all });
    }
    let pe = of_itself(head, coff, optional, heads).ok()?;
    Some(Layout {
        entry: raw_of(&sections, head.u32_le(optional + 16).ok()?.into()),
        imports: imports(head, optional).ok()?,
        pe: Some(Box::new(pe)),
        sections: Sections::Known(sections),
        ..Layout::default()
    })
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
    let heads = (0..usize::from(count)).map(|index| SectionHead::read(head, table + index * 40));
    let heads = heads.collect::<Result<Vec<_>, _>>()?;
    let sections = sections(&heads, u64::from(head.u32_le(optional + 36)?));
    let entry = u64::from(head.u32_le(optional + 16)?);
    let headers = u64::from(head.u32_le(optional + 60)?);
    Ok(Layout {
        entry: raw_of(&sections, entry).or((entry < headers).then_some(entry)),
        imports: imports(head, optional)?,
        pe: Some(Box::new(of_itself(head, coff, optional, heads)?)),
        sections: Sections::Known(sections),
        ..Layout::default()
    })
}

fn of_itself(head: Head<'_>, coff: usize, optional: usize, sections: Vec<SectionHead>) -> Result<PeHead, Missing> {
    let wide = head.u16_le(optional)? == 0x20b;
    let base =
        if wide { head.array(optional + 24).map(u64::from_le_bytes)? } else { head.u32_le(optional + 28)?.into() };
    Ok(PeHead {
        wide,
        machine: head.u16_le(coff + 4)?,
        timestamp: head.u32_le(coff + 8)?,
        characteristics: head.u16_le(coff + 22)?,
        image_base: base,
        checksum: head.u32_le(optional + 64)?,
        subsystem: head.u16_le(optional + 68)?,
        headers: head.0.get(coff..).map_or(&[][..], |rest| &rest[..rest.len().min(HEADER_BYTES)]).into(),
        exports: directory(head, optional, 0)?.map(|(address, _)| address),
        resources: directory(head, optional, 2)?.map(|(address, _)| address),
        count: head.u16_le(coff + 6)?,
        sections,
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

fn sections(heads: &[SectionHead], alignment: u64) -> Vec<Section> {
    let mut alignment = alignment;
    for SectionHead { length, offset, .. } in heads {
        let offset = u64::from(*offset);
        if alignment != SECTOR && alignment != 0 && *length > 0 && offset % alignment != 0 && offset % SECTOR == 0 {
            alignment = SECTOR;
        }
    }
    let section = |head: &SectionHead| {
        let (start, declared) = (u64::from(head.offset), u64::from(head.length));
        let (start, length) = match alignment {
            0 => (start, declared),
            _ => (start - start % alignment, declared.next_multiple_of(alignment)),
        };
        Section {
            raw: start..start + length,
            declared,
            address: head.address.into(),
            address_length: head.address_length.into(),
        }
    };
    heads.iter().map(section).collect()
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
