//! From the hash of a q-gram to the anchors that are registered under it.
//!
//! Slots of one home lie together, five bytes each: none is free, none is dropped. A slot has a tag of its gram and a check
//! of the whole window that the gram is in, so that nearly nothing is looked at behind it that does not stand in the stream.

use std::io;

use bytemuck::{Pod, Zeroable};

use crate::flat::{Flat, Reader, Unfit, Writer};
use crate::sweep::prefetch;

/// Slots of one home, on average: most of a cache line.
const SLOTS: usize = 8;

/// An anchor under one of its grams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registered {
    pub(crate) value: u32,
    /// Check of the whole window.
    pub(crate) check: u8,
}

/// The same where it lies.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    /// The low three bytes of the value.
    value: [u8; 3],
    tag: u8,
    check: u8,
}

/// A hash table that is built once.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    /// Where the slots of each home begin, and behind the last of them where they end.
    starts: Flat<u32>,
    slots: Flat<Slot>,
    /// The highest byte of the value of each slot; nothing if all are 0, as with up to two million parts.
    high: Flat<u8>,
}

impl Buckets {
    /// A table of anchors, each with the hash of its gram.
    pub(crate) fn new(entries: Vec<(u64, Registered)>) -> Buckets {
        let homes = entries.len() / SLOTS + 1;
        let mut starts = vec![0; homes + 1];
        for (hash, _) in &entries {
            starts[home(homes, *hash) + 1] += 1;
        }
        for home in 0..homes {
            starts[home + 1] += starts[home];
        }
        // Each to its home, and only those of one home are sorted.
        let mut sorted = vec![(0, Registered { value: 0, check: 0 }); entries.len()];
        let mut ends = starts.clone();
        for (hash, one) in entries {
            let end: &mut u32 = &mut ends[home(homes, hash)];
            sorted[*end as usize] = (tag(hash), one);
            *end += 1;
        }
        for places in starts.windows(2) {
            sorted[places[0] as usize..places[1] as usize].sort_by_key(|(tag, one)| (*tag, one.value));
        }
        let slots = sorted.iter().map(|(tag, one)| {
            let [a, b, c, _] = one.value.to_le_bytes();
            Slot { value: [a, b, c], tag: *tag, check: one.check }
        });
        let mut high: Vec<u8> = sorted.iter().map(|(_, one)| (one.value >> 24) as u8).collect();
        if high.iter().all(|&byte| byte == 0) {
            high.clear();
        }
        Buckets { starts: starts.into(), slots: slots.collect::<Vec<_>>().into(), high: high.into() }
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&self.starts)?;
        writer.array(&self.slots)?;
        writer.array(&self.high)
    }

    /// A stored table, all of whose values are below `values`.
    pub(crate) fn load(reader: &mut Reader, values: u64) -> Result<Buckets, Unfit> {
        let table = Buckets { starts: reader.array()?, slots: reader.array()?, high: reader.array()? };
        let Buckets { starts, slots, high } = &table;
        let starts_fit = starts.len() > 1
            && u32::try_from(starts.len()).is_ok()
            && starts.is_sorted()
            && starts.last().is_some_and(|&end| end as usize <= slots.len());
        let high_fits = high.is_empty() || high.len() == slots.len();
        let values_fit = (0..slots.len()).all(|number| u64::from(table.value(number)) < values);
        if starts_fit && high_fits && values_fit { Ok(table) } else { Err(Unfit::Malformed) }
    }

    /// Brings nearer where the slots of `hash` are told.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.starts[self.home(hash)]);
    }

    /// Brings the slots of `hash` nearer.
    #[inline]
    pub(crate) fn prefetch_slots(&self, hash: u64) {
        let start = self.starts[self.home(hash)] as usize;
        if let Some(slot) = self.slots.get(start) {
            prefetch(slot);
        }
    }

    /// The anchors whose tag is that of `hash`.
    #[inline]
    pub(crate) fn look_up(&self, hash: u64) -> impl Iterator<Item = Registered> {
        let (home, wanted) = (self.home(hash), tag(hash));
        let (start, end) = (self.starts[home] as usize, self.starts[home + 1] as usize);
        let tagged = self.slots[start..end].iter().zip(start..).filter(move |(slot, _)| slot.tag == wanted);
        tagged.map(|(slot, number)| Registered { value: self.value(number), check: slot.check })
    }

    #[inline]
    fn value(&self, number: usize) -> u32 {
        let [a, b, c] = self.slots[number].value;
        u32::from_le_bytes([a, b, c, self.high.get(number).copied().unwrap_or(0)])
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.starts.len() * 4 + self.slots.len() * size_of::<Slot>() + self.high.len()
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        home(self.starts.len() - 1, hash)
    }
}

#[inline]
fn home(homes: usize, hash: u64) -> usize {
    (((hash >> 32) * homes as u64) >> 32) as usize
}

fn tag(hash: u64) -> u8 {
    hash as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_by_their_hash_however_many_share_it() {
        let shared = 0xabcd_1234;
        for far in [0, 1 << 24, 0xf000_0000] {
            let all = (0..1000).map(|value| (shared, Registered { value, check: 7 }));
            let others = (1000..3000).map(|value| {
                let hash = u64::from(value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (hash, Registered { value: far + value, check: 8 })
            });
            let others: Vec<_> = others.collect();
            let table = Buckets::new(all.chain(others.iter().copied()).collect());
            assert_eq!(table.high.is_empty(), far == 0);
            let values: Vec<u32> = table.look_up(shared).map(|one| one.value).collect();
            assert_eq!(values, (0..1000).collect::<Vec<_>>());
            for (hash, one) in others {
                assert!(table.look_up(hash).any(|found| found == one));
            }
            assert_eq!(table.look_up(shared + 1).next(), None, "another tag");
        }
    }
}
