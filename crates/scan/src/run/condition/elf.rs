//! Numbers and names in the tables of ELF files, as the module `elf` of YARA 4.2 has them.

use super::{Evaluator, Value};
use crate::layout::{ElfHead, raw_of};
use crate::yara::header::{Entry, OfElf};

/// Sections from here on have another meaning (`SHN_LORESERVE`).
const SECTIONS_END: u16 = 0xff00;

/// Segments whose number stands elsewhere (`PN_XNUM`).
const SEGMENTS_ELSEWHERE: u16 = 0xffff;

/// Bytes of a section's name.
const NAME_BYTES_MAX: u64 = 256;

impl Evaluator<'_, '_, '_> {
    fn elf_head(&self) -> Option<&ElfHead> {
        self.facts.layout?.elf.as_deref()
    }

    pub(super) fn elf(&self, of: OfElf) -> Value {
        let (layout, elf) = (self.facts.layout?, self.elf_head()?);
        Some(match of {
            OfElf::Type => elf.kind.into(),
            OfElf::Machine => elf.machine.into(),
            OfElf::EntryPoint => {
                let of_section = raw_of(layout.sections(), elf.entry);
                let entry = if elf.is_executable() { layout.entry } else { of_section };
                i64::try_from(entry.filter(|_| elf.entry != 0)?).ok()?
            }
            OfElf::Sections => elf.sections.2.into(),
            OfElf::Segments => elf.segments.2.into(),
            OfElf::SectionTable => elf.sections.0.cast_signed(),
            OfElf::SectionEntryBytes => elf.sections.1.into(),
            OfElf::SegmentTable => elf.segments.0.cast_signed(),
            OfElf::SegmentEntryBytes => elf.segments.1.into(),
        })
    }

    /// A number in the entry of a section or a segment.
    pub(super) fn elf_entry(&self, of: Entry, index: i64) -> Value {
        let elf = self.elf_head()?;
        let at = self.elf_entry_at(elf, of.is_of_segment(), index)?;
        let (place, length) = of.place(elf.wide);
        self.elf_number(elf, at.checked_add(place)?, length).map(u64::cast_signed)
    }

    /// The name of a section.
    pub(super) fn elf_section_name(&self, index: i64) -> Option<Vec<u8>> {
        let elf = self.elf_head()?;
        let at = self.elf_entry_at(elf, false, index)?;
        let names = self.elf_entry(Entry::SectionOffset, elf.names.into())?;
        let name = self.elf_number(elf, at, 4)?.checked_add(names.cast_unsigned())?;
        let mut bytes = vec![0; usize::try_from(self.facts.size.checked_sub(name)?.min(NAME_BYTES_MAX)).ok()?];
        self.fetch(name, &mut bytes)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        bytes.truncate(end);
        Some(bytes)
    }

    /// Where the entry of a section or a segment stands, if its table is whole.
    fn elf_entry_at(&self, elf: &ElfHead, is_segment: bool, index: i64) -> Option<u64> {
        let (table, count, bytes) = match is_segment {
            true => (elf.segments.0, elf.segments.2, if elf.wide { 56 } else { 32 }),
            false => (elf.sections.0, elf.sections.2, if elf.wide { 64 } else { 40 }),
        };
        let is_read = match is_segment {
            true => count < SEGMENTS_ELSEWHERE,
            false => count < SECTIONS_END && elf.names < count,
        };
        let is_whole = table < self.facts.size && table.checked_add(u64::from(count) * bytes)? <= self.facts.size;
        let index = u64::try_from(index).ok().filter(|index| is_read && is_whole && *index < count.into())?;
        table.checked_add(index * bytes)
    }

    fn elf_number(&self, elf: &ElfHead, at: u64, length: usize) -> Option<u64> {
        let mut number = [0; 8];
        let bytes = number.get_mut(..length)?;
        self.fetch(at, bytes)?;
        if !elf.big {
            bytes.reverse();
        }
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}
