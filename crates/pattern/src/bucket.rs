//! From the hash of a q-gram to the anchors that are registered under it.
//!
//! Slots of one home lie together, six bytes each: none is free, none is dropped. A slot has a tag of its gram and a check
//! of the whole window that the gram is in, so that nearly nothing is looked at behind it that does not stand in the stream.

use std::io;

use bytemuck::{Pod, Zeroable};

use crate::entry::{halves, whole};
use crate::flat::{Flat, Reader, Unfit, Writer};
use crate::sweep::prefetch;

/// Slots of one home, on average: most of a cache line.
const SLOTS: usize = 8;

/// An anchor under one of its grams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Slot {
    value: [u16; 2],
    tag: u8,
    /// Of the whole window.
    pub(crate) check: u8,
}

impl Slot {
    /// An anchor whose gram has that hash.
    pub(crate) fn new(hash: u64, value: u32, check: u8) -> Slot {
        Slot { value: halves(value), tag: tag(hash), check }
    }

    #[inline(always)]
    pub(crate) fn value(&self) -> u32 {
        whole(self.value)
    }
}

/// A hash table that is built once.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    /// Where the slots of each home begin, and behind the last of them where they end.
    starts: Flat<u32>,
    slots: Flat<Slot>,
}

impl Buckets {
    /// A table of slots, each with the hash of its gram.
    pub(crate) fn new(mut entries: Vec<(u64, Slot)>) -> Buckets {
        let homes = entries.len() / SLOTS + 1;
        entries.sort_by_key(|(hash, slot)| (home(homes, *hash), slot.tag, slot.value()));
        let mut starts = vec![0; homes + 1];
        for (hash, _) in &entries {
            starts[home(homes, *hash) + 1] += 1;
        }
        for home in 0..homes {
            starts[home + 1] += starts[home];
        }
        Buckets { starts: starts.into(), slots: entries.into_iter().map(|(_, slot)| slot).collect::<Vec<_>>().into() }
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&self.starts)?;
        writer.array(&self.slots)
    }

    /// A stored table, all of whose values are below `values`.
    pub(crate) fn load(reader: &mut Reader, values: u64) -> Result<Buckets, Unfit> {
        let (starts, slots): (Flat<u32>, Flat<Slot>) = (reader.array()?, reader.array()?);
        let starts_fit = starts.len() > 1
            && u32::try_from(starts.len()).is_ok()
            && starts.is_sorted()
            && starts.last().is_some_and(|&end| end as usize <= slots.len());
        if starts_fit && slots.iter().all(|slot| u64::from(slot.value()) < values) {
            Ok(Buckets { starts, slots })
        } else {
            Err(Unfit::Malformed)
        }
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

    /// The slots whose tag is that of `hash`.
    #[inline]
    pub(crate) fn look_up(&self, hash: u64) -> impl Iterator<Item = &Slot> {
        let (home, wanted) = (self.home(hash), tag(hash));
        let slots = &self.slots[self.starts[home] as usize..self.starts[home + 1] as usize];
        slots.iter().filter(move |slot| slot.tag == wanted)
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.starts.len() * 4 + self.slots.len() * size_of::<Slot>()
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
        let all = (0..1000).map(|value| (shared, Slot::new(shared, value, 7)));
        let others = (1000..3000).map(|value| {
            let hash = u64::from(value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (hash, Slot::new(hash, value, 8))
        });
        let others: Vec<_> = others.collect();
        let table = Buckets::new(all.chain(others.iter().copied()).collect());
        let values: Vec<u32> = table.look_up(shared).map(Slot::value).collect();
        assert_eq!(values, (0..1000).collect::<Vec<_>>());
        for (hash, slot) in others {
            assert!(table.look_up(hash).any(|found| *found == slot));
        }
        assert_eq!(table.look_up(shared + 1).next(), None, "another tag");
    }
}
