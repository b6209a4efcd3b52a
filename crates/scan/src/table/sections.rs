//! Digests of the sections of a PE file, computed as the sections pass.
//!
//! A section is hashed if its length is that of some signature; a last section that the end of the file cuts short has
//! its declared length, if that is the one that is left. Sections may lie over each other: [`OVERLAPS_MAX`] at most are
//! hashed at one place, and the surplus is counted as lost.

use std::io;
use std::ops::Range;

use digest::{Batch, Sums};
use pattern::flat::{Reader, Unfit, Writer};

use crate::digests::Running;
use crate::hashes::{HashEntry, HashTable};
use crate::layout::Section;

/// The most sections that are hashed at one place of the file.
const OVERLAPS_MAX: usize = 8;

/// Signatures of sections.
#[derive(Debug, Clone, Default)]
pub(crate) struct SectionTable {
    pub(crate) digests: HashTable,
}

impl SectionTable {
    pub(crate) fn new(entries: Vec<HashEntry>) -> SectionTable {
        SectionTable { digests: HashTable::new(entries) }
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        self.digests.store(writer)
    }

    /// A stored table, whose names are numbered below `names`.
    pub(crate) fn load(reader: &mut Reader, names: u32) -> Result<SectionTable, Unfit> {
        Ok(SectionTable { digests: HashTable::load(reader, names)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    fn wants(&self, size: u64) -> bool {
        size > 0 && self.digests.has_size(size)
    }
}

/// The sections of one file that are being hashed.
#[derive(Debug, Default)]
pub(crate) struct SectionSums {
    sections: Vec<Hashed>,
    lost: u64,
}

#[derive(Debug)]
struct Hashed {
    raw: Range<u64>,
    /// How much of it has passed.
    bytes: u64,
    running: Running,
}

impl SectionSums {
    pub(crate) fn new<'t>(tables: impl Iterator<Item = &'t SectionTable> + Clone, sections: &[Section]) -> SectionSums {
        let wanted = |size: u64| tables.clone().any(|table| table.wants(size));
        let mut all = SectionSums::default();
        for section in sections {
            let length = section.raw.end - section.raw.start;
            if !wanted(length) && !wanted(section.declared) {
                continue;
            }
            let over = |other: &&Hashed| other.raw.start < section.raw.end && section.raw.start < other.raw.end;
            if all.sections.iter().filter(over).count() >= OVERLAPS_MAX {
                all.lost += 1;
                continue;
            }
            let tables = tables.clone().map(|table| &table.digests);
            let running = Running::of_sizes(tables, [length, section.declared]);
            all.sections.push(Hashed { raw: section.raw.clone(), bytes: 0, running });
        }
        all
    }

    /// How many sections were not hashed because too many lie over each other.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Sections that have passed as far as these and go their own way from here on.
    pub(crate) fn copy(&self, batch: &mut Batch) -> SectionSums {
        let mut copy = |section: &Hashed| Hashed {
            raw: section.raw.clone(),
            bytes: section.bytes,
            running: section.running.copy(batch),
        };
        SectionSums { sections: self.sections.iter().map(&mut copy).collect(), lost: self.lost }
    }

    /// Takes in bytes that stand at `offset` of the file.
    pub(crate) fn update(&mut self, batch: &mut Batch, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        for section in &mut self.sections {
            let (from, to) = (section.raw.start.max(offset), section.raw.end.min(end));
            if from < to {
                section.bytes += to - from;
                let bytes = &bytes[(from - offset) as usize..(to - offset) as usize];
                section.running.update(batch, bytes, section.bytes);
            }
        }
    }

    /// The file has ended: no more will come of any.
    pub(crate) fn close(&self, batch: &mut Batch) {
        self.sections.iter().for_each(|section| section.running.close(batch));
    }

    /// Whether [`finish`](SectionSums::finish) has nothing left to hash.
    pub(crate) fn is_hashed(&self, batch: &Batch) -> bool {
        self.sections.iter().all(|section| section.running.is_hashed(batch))
    }

    /// The digests, in the order of the sections, each with where its section starts; none in place of one that is lost.
    pub(crate) fn finish(&mut self, batch: &mut Batch) -> impl Iterator<Item = (u64, Option<Sums>)> {
        let passed = self.sections.drain(..).filter(|section| section.bytes > 0);
        passed.map(|mut section| (section.raw.start, section.running.finish(batch, section.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashes::AnyDigest;

    #[test]
    fn sections_over_each_other_are_hashed_up_to_a_bound() {
        let digest = AnyDigest::parse("900150983cd24fb0d6963f7d28e17f72").expect("the MD5 of abc");
        let table = SectionTable::new(vec![HashEntry { digest, size: 3, name: 7 }]);
        let section = |start: u64| Section { raw: start..start + 3, declared: 3, address: 0, address_length: 0 };
        let sections: Vec<Section> = (0..9).map(|_| section(1)).chain([section(9), section(20)]).collect();
        let (mut batch, mut sums) = (Batch::default(), SectionSums::new([&table].into_iter(), &sections));
        assert_eq!(sums.lost(), 1);
        for (byte, offset) in b".abc.....abc".chunks(1).zip(0..) {
            sums.update(&mut batch, offset, byte);
        }
        let found = sums.finish(&mut batch).filter_map(|(_, sums)| Some(table.digests.matching(&sums?)));
        let found: Vec<u32> = found.flatten().collect();
        assert_eq!(found, [7; 9]);
    }
}
