//! Tagged buckets: from the hash of a q-gram to the anchors that are registered under it.
//!
//! A bucket is one cache line of ten tags of 16 bits and ten values. What does not fit is chained; nothing is dropped.

use std::io;

use bytemuck::{Pod, Zeroable};

use crate::flat::{Flat, Reader, Unfit, Writer};
use crate::sweep::prefetch;

/// Entries of one bucket.
const SLOTS: usize = 10;

/// One cache line.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Bucket {
    values: [u32; SLOTS],
    tags: [u16; SLOTS],
    /// How many slots are used, in the low four bits; above them the bucket that goes on, or 0.
    next: u32,
}

const EMPTY: Bucket = Bucket { values: [0; SLOTS], tags: [0; SLOTS], next: 0 };

/// A hash table that is built once.
#[derive(Debug, Clone)]
pub(crate) struct Buckets {
    buckets: Flat<Bucket>,
    /// Buckets that a hash may lead to; behind them are those that go on, each behind the one that it goes on from.
    homes: u64,
}

impl Buckets {
    /// A table of `(hash, value)` entries.
    pub(crate) fn new(entries: &[(u64, u32)]) -> Buckets {
        // Two thirds full on average, so that few buckets are chained.
        let count = entries.len() * 3 / (2 * SLOTS) + 1;
        let mut buckets = vec![EMPTY; count];
        for &(hash, value) in entries {
            insert(&mut buckets, count as u64, hash, value);
        }
        Buckets { buckets: buckets.into(), homes: count as u64 }
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&[self.homes])?;
        writer.array(&self.buckets)
    }

    /// A stored table, all of whose values are below `values`.
    pub(crate) fn load(reader: &mut Reader, values: u64) -> Result<Buckets, Unfit> {
        let [homes] = reader.values()?;
        let buckets: Flat<Bucket> = reader.array()?;
        let fits = |(at, bucket): (usize, &Bucket)| {
            let next = (bucket.next >> 4) as usize;
            (next == 0 || (at + 1..buckets.len()).contains(&next))
                && bucket.values.iter().all(|&value| u64::from(value) < values)
        };
        let homes_fit = (1..=buckets.len() as u64).contains(&homes) && homes <= u64::from(u32::MAX);
        if homes_fit && buckets.iter().enumerate().all(fits) {
            Ok(Buckets { buckets, homes })
        } else {
            Err(Unfit::Malformed)
        }
    }

    /// Brings the bucket of `hash` nearer.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.buckets[home(self.homes, hash)]);
    }

    /// Calls `hit` with each value whose tag is that of `hash`, until it says no.
    #[inline]
    pub(crate) fn look_up(&self, hash: u64, mut hit: impl FnMut(u32) -> bool) {
        let wanted = tag(hash);
        let mut at = home(self.homes, hash);
        loop {
            let bucket = &self.buckets[at];
            let used = (bucket.next & 15) as usize;
            let mut hits = 0u32;
            for (slot, &tag) in bucket.tags.iter().enumerate() {
                hits |= u32::from(tag == wanted) << slot;
            }
            hits &= (1 << used) - 1;
            while hits != 0 {
                if !hit(bucket.values[hits.trailing_zeros() as usize]) {
                    return;
                }
                hits &= hits - 1;
            }
            at = (bucket.next >> 4) as usize;
            if at == 0 {
                return;
            }
        }
    }

    /// The bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<Bucket>()
    }
}

fn insert(buckets: &mut Vec<Bucket>, homes: u64, hash: u64, value: u32) {
    let mut at = home(homes, hash);
    loop {
        let used = (buckets[at].next & 15) as usize;
        if used < SLOTS {
            let bucket = &mut buckets[at];
            bucket.values[used] = value;
            bucket.tags[used] = tag(hash);
            bucket.next += 1;
            return;
        }
        let next = (buckets[at].next >> 4) as usize;
        if next != 0 {
            at = next;
            continue;
        }
        let fresh = buckets.len();
        buckets.push(EMPTY);
        buckets[at].next |= (fresh as u32) << 4;
        at = fresh;
    }
}

fn home(homes: u64, hash: u64) -> usize {
    (((hash >> 32) * homes) >> 32) as usize
}

fn tag(hash: u64) -> u16 {
    hash as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_dropped_when_a_bucket_overflows() {
        let entries: Vec<(u64, u32)> = (0..1000).map(|value| (0xabcd_1234, value)).collect();
        let table = Buckets::new(&entries);
        let mut got = Vec::new();
        table.look_up(0xabcd_1234, |value| {
            got.push(value);
            true
        });
        assert_eq!(got, (0..1000).collect::<Vec<_>>());
        table.look_up(0xabcd_1235, |_| panic!("another tag"));
        let mut count = 0;
        table.look_up(0xabcd_1234, |_| {
            count += 1;
            count < 25
        });
        assert_eq!(count, 25);
    }
}
