//! "Tool Interface Standard: ELF", both widths and byte orders: the entry point is an address that the program headers
//! place in the file; the sections are in a table that the head tells the place of.

use super::{HEAD_BYTES_MAX, Head, Layout, Missing, Order, Section, Sections, raw_of};

/// The most program headers that are read.
const SEGMENTS_MAX: usize = 128;
/// The most sections that are read.
const SECTIONS_MAX: usize = 256;
/// The longest entry of a section table.
const ENTRY_BYTES_MAX: usize = 128;

pub(super) fn read(head: Head<'_>) -> Result<Layout, Missing> {
    if head.bytes(0, 4)? != b"\x7fELF" {
        return Err(Missing::Nothing);
    }
    let [class, data] = head.array(4)?;
    let (wide, order) = match (class, data) {
        (1 | 2, 1 | 2) => (class == 2, Order { big: data == 2 }),
        _ => return Err(Missing::Nothing),
    };
    let word = |at: usize| order.word(head, wide, at);
    let entry = word(24)?;
    let segments = match segments(head, order, wide) {
        Err(Missing::Until(end)) if end <= HEAD_BYTES_MAX => return Err(Missing::Until(end)),
        segments => segments.unwrap_or_default(),
    };
    let at = word(if wide { 40 } else { 32 })?;
    let half = |wide_at: usize, narrow_at: usize| order.u16(head, if wide { wide_at } else { narrow_at });
    let (entry_bytes, sections) = (half(58, 46)?, half(60, 48)?);
    let elf = ElfHead {
        wide,
        big: data == 2,
        names: half(62, 50)?,
        kind: order.u16(head, 16)?,
        machine: order.u16(head, 18)?,
        entry,
        sections: (at, entry_bytes, sections),
        segments: (word(if wide { 32 } else { 28 })?, half(54, 42)?, half(56, 44)?),
    };
    let (size, count) = (usize::from(entry_bytes), usize::from(sections));
    let table = Table { at, size, count, wide, order, bytes: Vec::new() };
    let sections = if table.is_sane() { Sections::In(table) } else { Sections::default() };
    Ok(Layout { entry: raw_of(&segments, entry), sections, elf: Some(Box::new(elf)), ..Layout::default() })
}

/// Numbers in the head of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ElfHead {
    /// Whether it is a file of 64 bits.
    pub(crate) wide: bool,
    /// Whether its numbers have the highest byte first.
    pub(crate) big: bool,
    /// The number of the section that has the names of sections.
    pub(crate) names: u16,
    /// `e_type`.
    pub(crate) kind: u16,
    pub(crate) machine: u16,
    /// The address of its entry point.
    pub(crate) entry: u64,
    /// Offset, bytes of an entry and number of entries of the table of sections, and of that of segments.
    pub(crate) sections: (u64, u16, u16),
    pub(crate) segments: (u64, u16, u16),
}

impl ElfHead {
    /// Whether it is a program that is loaded where its segments say.
    pub(crate) const fn is_executable(&self) -> bool {
        self.kind == 2
    }
}

fn segments(head: Head<'_>, order: Order, wide: bool) -> Result<Vec<Section>, Missing> {
    let word = |at: usize| order.word(head, wide, at);
    let table = usize::try_from(word(if wide { 32 } else { 28 })?).map_err(|_| Missing::Nothing)?;
    let size = usize::from(order.u16(head, if wide { 54 } else { 42 })?);
    let count = usize::from(order.u16(head, if wide { 56 } else { 44 })?);
    (0..count.min(SEGMENTS_MAX))
        .map(|index| {
            let at = table.checked_add(index * size).ok_or(Missing::Nothing)?;
            let field = |wide_at: usize, narrow_at: usize| {
                let at = at.checked_add(if wide { wide_at } else { narrow_at }).ok_or(Missing::Nothing)?;
                word(at)
            };
            let (start, length) = (field(8, 4)?, field(32, 16)?);
            Ok(Section {
                raw: start..start.saturating_add(length),
                declared: length,
                address: field(16, 8)?,
                address_length: length,
            })
        })
        .collect()
}

/// A section table that lies somewhere in the file: it is copied as it passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    at: u64,
    /// Bytes of one entry.
    size: usize,
    count: usize,
    wide: bool,
    order: Order,
    bytes: Vec<u8>,
}

impl Table {
    fn is_sane(&self) -> bool {
        let least = if self.wide { 64 } else { 40 };
        (1..=SECTIONS_MAX).contains(&self.count) && (least..=ENTRY_BYTES_MAX).contains(&self.size)
    }

    /// Copies what there is of the table in `bytes`, which stand at `offset` of the file; the sections once it is
    /// complete.
    pub(crate) fn pass(&mut self, offset: u64, bytes: &[u8]) -> Option<Vec<Section>> {
        let wanted = self.size * self.count;
        let next = self.at.checked_add(self.bytes.len() as u64)?;
        let skip = usize::try_from(next.checked_sub(offset)?).ok()?;
        let rest = bytes.get(skip..).unwrap_or(&[]);
        self.bytes.extend_from_slice(&rest[..rest.len().min(wanted - self.bytes.len())]);
        if self.bytes.len() < wanted {
            return None;
        }
        let entries = self.bytes.chunks(self.size).map(|entry| self.section(Head(entry)));
        entries.collect::<Result<Vec<_>, Missing>>().ok()
    }

    fn section(&self, entry: Head<'_>) -> Result<Section, Missing> {
        let field = |wide_at: usize, narrow_at: usize| {
            self.order.word(entry, self.wide, if self.wide { wide_at } else { narrow_at })
        };
        let (start, length) = (field(24, 16)?, field(32, 20)?);
        Ok(Section {
            raw: start..start.saturating_add(length),
            declared: length,
            address: field(16, 12)?,
            address_length: length,
        })
    }
}
