//! The IPv4 networks of one prefix length, sorted, in whichever of two forms takes less.
//!
//! The plain form of both is a sorted list of keys (addresses shifted right) beside a list of values, and a binary search.
//! [`Keys::Pairs`] takes the upper 16 bits out: an index of 65,536 buckets, or a second column where there are few, and two
//! bytes for each key. [`Keys::Groups`] takes all but the last octet out: a group for each /24 that has any, of three bytes
//! and a sixteenth of four, and one byte for each key. Lists are clustered, so this is the smaller one as a rule: it is the
//! list that is in the processor's cache and not its first tenth. What keys are worth takes no byte where it is the same for
//! all, and one or two where few values occur.

use core::ops::Range;

use super::ids::Ids;
use super::value::ValueId;

/// From how many keys on pairs have an index of buckets.
const INDEXED_MIN: usize = 4_096;

/// How many keys a group has at most; a network with more values than that is in several.
const GROUP_MAX: usize = 256;

/// How many upper twelve bits there are.
const TOPS: usize = 1 << 12;

/// From how many keys on they are sorted by bytes first; fewer are in the processor's cache.
const SORTED_BY_BYTES_MIN: usize = 4_096;

/// For each so many groups it is written where their keys begin.
const GROUPS_A_START: usize = 64;

/// The networks of one prefix length.
#[derive(Debug)]
pub struct Level {
    /// How long the prefixes are.
    pub bits: u8,
    keys: Keys,
    values: Ids,
}

#[derive(Debug)]
enum Keys {
    Pairs {
        /// Where the bucket of an upper half begins, with one more at the end; or nothing: then `highs` has the upper halves.
        index: Vec<u32>,
        highs: Vec<u16>,
        lows: Vec<u16>,
    },
    Groups(Groups),
}

/// Keys by all but their last eight bits.
#[derive(Debug, Default)]
struct Groups {
    /// Where the groups with these upper twelve bits begin, with one more at the end.
    tops: Vec<u32>,
    /// The sixteen bits before the last eight.
    mids: Vec<u16>,
    /// How many keys each has, less one.
    counts: Vec<u8>,
    /// Where the keys of every so many groups begin.
    starts: Vec<u32>,
    /// The last eight bits of each key.
    lasts: Vec<u8>,
}

impl Level {
    /// Sorts keys with their values. `all` keeps every value of a key, in the order given; otherwise the first one counts.
    pub fn new(bits: u8, mut entries: Vec<(u32, u32)>, all: bool) -> Level {
        // Stable: values stay in the order of the file.
        entries.sort_by_key(|&(key, _)| key);
        if all {
            drop_repeated(&mut entries);
        } else {
            entries.dedup_by_key(|&mut (key, _)| key);
        }
        let values = Ids::new(entries.iter().map(|&(_, value)| value));
        Level { bits, keys: Keys::new(bits, entries.iter().map(|&(key, _)| key)), values }
    }

    /// Sorts keys that are all worth the same.
    pub fn of_one_value(bits: u8, mut keys: Vec<u32>, value: u32) -> Level {
        sort(&mut keys, 24);
        keys.dedup();
        Level { bits, keys: Keys::new(bits, keys.iter().copied()), values: Ids::Same(value) }
    }

    /// The key of an address.
    pub const fn key(&self, address: u32) -> u32 {
        if self.bits == 0 { 0 } else { address >> (32 - self.bits) }
    }

    /// The first address of a key.
    pub const fn address(&self, key: u32) -> u32 {
        if self.bits == 0 { 0 } else { key << (32 - self.bits) }
    }

    /// Range of the entries of a key.
    pub fn find(&self, key: u32) -> Range<usize> {
        let (start, slots) = match &self.keys {
            Keys::Groups(groups) => return groups.find(key),
            Keys::Pairs { lows, .. } => {
                let bucket = self.bucket(key);
                (bucket.start, &lows[bucket])
            }
        };
        let before = slots.partition_point(|&each| each < low(key));
        let same = slots[before..].iter().take_while(|&&each| each == low(key)).count();
        start + before..start + before + same
    }

    /// Value of an entry.
    pub fn value(&self, entry: usize) -> ValueId {
        ValueId(self.values.get(entry))
    }

    /// The first key that is not below this one.
    pub fn next(&self, key: u32) -> Option<u32> {
        let lows = match &self.keys {
            Keys::Groups(groups) => return groups.next(key),
            Keys::Pairs { lows, .. } => lows,
        };
        let bucket = self.bucket(key);
        let at = bucket.start + lows[bucket].partition_point(|&each| each < low(key));
        (at < lows.len()).then(|| self.key_at(at))
    }

    /// Calls `each` with key and value of every entry.
    pub fn for_each(&self, mut each: impl FnMut(u32, ValueId)) {
        match &self.keys {
            Keys::Groups(groups) => groups.for_each(|at, key| each(key, self.value(at))),
            Keys::Pairs { lows, .. } => (0..lows.len()).for_each(|at| each(self.key_at(at), self.value(at))),
        }
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        match &self.keys {
            Keys::Pairs { lows, .. } => lows.len(),
            Keys::Groups(groups) => groups.lasts.len(),
        }
    }

    /// How many bytes they take.
    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.values.memory_bytes()
    }

    fn key_at(&self, at: usize) -> u32 {
        let Keys::Pairs { index, highs, lows } = &self.keys else { return 0 };
        let high = match index.is_empty() {
            true => u32::from(highs[at]),
            false => {
                let position = u32::try_from(at).unwrap_or(u32::MAX);
                u32::try_from(index.partition_point(|&start| start <= position) - 1).unwrap_or(0)
            }
        };
        high << 16 | u32::from(lows[at])
    }

    /// The entries whose upper half is that of `key`.
    fn bucket(&self, key: u32) -> Range<usize> {
        let Keys::Pairs { index, highs, lows } = &self.keys else { return 0..0 };
        if index.is_empty() {
            let start = highs.partition_point(|&each| each < high(key));
            let same = highs[start..].partition_point(|&each| each == high(key));
            return start..start + same;
        }
        let at = usize::from(high(key));
        match (index.get(at), index.get(at + 1)) {
            (Some(&start), Some(&end)) => place(start)..place(end),
            _ => lows.len()..lows.len(),
        }
    }
}

impl Keys {
    /// Builds the level from sorted keys.
    fn new(bits: u8, keys: impl ExactSizeIterator<Item = u32> + Clone) -> Keys {
        let count = keys.len();
        let indexed = count >= INDEXED_MIN && bits > 16;
        let index_bytes = if indexed { 4 << (bits - 16) } else { 2 * count };
        let groups = group_count(keys.clone());
        if count >= INDEXED_MIN && bits > 24 && count + 3 * groups + groups / 16 < 2 * count + index_bytes {
            return Keys::Groups(Groups::new(keys, groups));
        }
        let lows = keys.clone().map(low).collect();
        match indexed {
            true => Keys::Pairs { index: index(keys, bits), highs: Vec::new(), lows },
            false => Keys::Pairs { index: Vec::new(), highs: keys.map(high).collect(), lows },
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Keys::Pairs { index, highs, lows } => index.capacity() * 4 + (highs.capacity() + lows.capacity()) * 2,
            Keys::Groups(groups) => {
                let words = groups.tops.capacity() + groups.starts.capacity();
                words * 4 + groups.mids.capacity() * 2 + groups.counts.capacity() + groups.lasts.capacity()
            }
        }
    }
}

impl Groups {
    fn new(keys: impl ExactSizeIterator<Item = u32>, count: usize) -> Groups {
        let mut groups = Groups {
            tops: Vec::with_capacity(TOPS + 1),
            mids: Vec::with_capacity(count),
            counts: Vec::with_capacity(count),
            starts: Vec::with_capacity(count / GROUPS_A_START + 1),
            lasts: Vec::with_capacity(keys.len()),
        };
        let mut last = None;
        for key in keys {
            let full = groups.counts.last().is_some_and(|&count| usize::from(count) + 1 == GROUP_MAX);
            if last != Some(key >> 8) || full {
                groups.begin(key);
            } else if let Some(count) = groups.counts.last_mut() {
                *count += 1;
            }
            last = Some(key >> 8);
            groups.lasts.push((key & 0xff) as u8);
        }
        groups.close_tops(TOPS);
        groups
    }

    fn begin(&mut self, key: u32) {
        self.close_tops(top(key));
        if self.mids.len().is_multiple_of(GROUPS_A_START) {
            self.starts.push(u32::try_from(self.lasts.len()).unwrap_or(u32::MAX));
        }
        self.mids.push((key >> 8 & 0xffff) as u16);
        self.counts.push(0);
    }

    /// Records where the groups of all tops up to this one begin.
    fn close_tops(&mut self, top: usize) {
        let at = u32::try_from(self.mids.len()).unwrap_or(u32::MAX);
        while self.tops.len() <= top {
            self.tops.push(at);
        }
    }

    fn find(&self, key: u32) -> Range<usize> {
        let (first, end) = self.run(key);
        if first == end {
            return 0..0;
        }
        let start = self.start(first);
        let len: usize = self.counts[first..end].iter().map(|&count| usize::from(count) + 1).sum();
        let last = (key & 0xff) as u8;
        let lasts = &self.lasts[start..start + len];
        let before = lasts.partition_point(|&each| each < last);
        let same = lasts[before..].iter().take_while(|&&each| each == last).count();
        start + before..start + before + same
    }

    /// The groups of the /24 of a key: one, or several if it has very many values; none, where it would be.
    fn run(&self, key: u32) -> (usize, usize) {
        let top = top(key);
        let (Some(&from), Some(&to)) = (self.tops.get(top), self.tops.get(top + 1)) else { return (0, 0) };
        let mids = &self.mids[place(from)..place(to)];
        let mid = (key >> 8 & 0xffff) as u16;
        let first = mids.partition_point(|&each| each < mid);
        let same = mids[first..].iter().take_while(|&&each| each == mid).count();
        (place(from) + first, place(from) + first + same)
    }

    /// Where the keys of a group begin.
    fn start(&self, group: usize) -> usize {
        let block = group / GROUPS_A_START;
        let start = self.starts.get(block).map_or(self.lasts.len(), |&start| place(start));
        let between = &self.counts[block * GROUPS_A_START..group];
        start + between.iter().map(|&count| usize::from(count) + 1).sum::<usize>()
    }

    fn next(&self, key: u32) -> Option<u32> {
        let (first, end) = self.run(key);
        let (start, behind) = (self.start(first), self.start(end));
        let last = (key & 0xff) as u8;
        let at = start + self.lasts[start..behind].partition_point(|&each| each < last);
        let group = if at < behind { first } else { end };
        let &mid = self.mids.get(group)?;
        let position = u32::try_from(group).unwrap_or(u32::MAX);
        let top = self.tops.partition_point(|&first| first <= position).checked_sub(1)?;
        Some(u32::try_from(top).ok()? >> 4 << 24 | u32::from(mid) << 8 | u32::from(*self.lasts.get(at)?))
    }

    fn for_each(&self, mut each: impl FnMut(usize, u32)) {
        let mut at = 0;
        for (top, bounds) in self.tops.windows(2).enumerate() {
            let top = u32::try_from(top).unwrap_or(0) >> 4 << 24;
            for group in place(bounds[0])..place(bounds[1]) {
                for _ in 0..=self.counts[group] {
                    each(at, top | u32::from(self.mids[group]) << 8 | u32::from(self.lasts[at]));
                    at += 1;
                }
            }
        }
    }
}

/// Sorts keys in place: by the byte that begins at bit `shift`, then each group by the next byte; small groups, and
/// those that differ in the last byte only, by comparison. Each key moves once per byte, to the next place of its
/// value.
fn sort(keys: &mut [u32], shift: u32) {
    if keys.len() < SORTED_BY_BYTES_MIN || shift == 0 {
        return keys.sort_unstable();
    }
    if keys.is_sorted() {
        return;
    }
    let value = |key: u32| usize::from((key >> shift & 0xff) as u8);
    let mut counts = [0_usize; 256];
    keys.iter().for_each(|&key| counts[value(key)] += 1);
    let (mut next, mut ends, mut sum) = ([0_usize; 256], [0_usize; 256], 0);
    for each in 0..256 {
        next[each] = sum;
        sum += counts[each];
        ends[each] = sum;
    }
    for each in 0..256 {
        while next[each] < ends[each] {
            let mut key = keys[next[each]];
            while value(key) != each {
                let place = &mut next[value(key)];
                core::mem::swap(&mut key, &mut keys[*place]);
                *place += 1;
            }
            keys[next[each]] = key;
            next[each] += 1;
        }
    }
    let mut rest = keys;
    for count in counts {
        let (same, behind) = rest.split_at_mut(count);
        sort(same, shift - 8);
        rest = behind;
    }
}

/// How many groups sorted keys make.
fn group_count(keys: impl Iterator<Item = u32>) -> usize {
    let (mut count, mut last, mut len) = (0, None, 0);
    for key in keys {
        if last != Some(key >> 8) || len == GROUP_MAX {
            (count, len) = (count + 1, 0);
        }
        last = Some(key >> 8);
        len += 1;
    }
    count
}

/// Removes repeated values of a network, and all values beside an exclusion.
fn drop_repeated(entries: &mut Vec<(u32, u32)>) {
    let mut kept: usize = 0;
    let mut run = 0;
    for at in 0..entries.len() {
        let entry = entries[at];
        if kept == 0 || entries[run].0 != entry.0 {
            run = kept;
        } else if entry.1 == ValueId::EXCLUDED.0 || entries[run].1 == ValueId::EXCLUDED.0 {
            entries[run].1 = ValueId::EXCLUDED.0;
            kept = run + 1;
            continue;
        } else if entries[run..kept].iter().rev().take(64).any(|&kept| kept == entry) {
            continue;
        }
        entries[kept] = entry;
        kept += 1;
    }
    entries.truncate(kept);
}

/// Where the bucket of each upper half begins.
fn index(keys: impl Iterator<Item = u32>, bits: u8) -> Vec<u32> {
    let buckets = 1_usize << (bits - 16);
    let mut index = Vec::with_capacity(buckets + 1);
    let mut count: u32 = 0;
    for key in keys {
        while index.len() <= usize::from(high(key)) {
            index.push(count);
        }
        count = count.saturating_add(1);
    }
    index.resize(buckets + 1, count);
    index
}

/// A key's upper twelve bits.
const fn top(key: u32) -> usize {
    (key >> 20) as usize
}

const fn low(key: u32) -> u16 {
    (key & 0xffff) as u16
}

const fn high(key: u32) -> u16 {
    (key >> 16) as u16
}

fn place(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Keys of a few clusters: enough of them for groups, and some with very many values.
    fn entries(seed: &[u32], many: usize, bits: u8) -> Vec<(u32, u32)> {
        let mut state = 0x9e37_79b9_u32;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        };
        let mask = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
        (0..INDEXED_MIN + many)
            .map(|at| {
                let base = seed[random() as usize % seed.len()];
                let spread = if at % 7 == 0 { 0xffff } else { 0x1ff };
                ((base ^ (random() & spread)) & mask, 1 + random() % 5)
            })
            .chain((0..many as u32).map(|value| (seed[0] & mask, 1_000 + value)))
            .chain([(0, 9), (mask, 9), (mask - 1, 9)])
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Both forms answer like a sorted list.
        #[test]
        fn both_forms_are_the_sorted_list(
            seed in proptest::collection::vec(any::<u32>(), 1..40),
            many in 0_usize..700,
            bits in 25_u8..=32,
            asked in proptest::collection::vec(any::<u32>(), 20),
        ) {
            let entries = entries(&seed, many, bits);
            let mut sorted = entries.clone();
            sorted.sort_by_key(|&(key, _)| key);
            drop_repeated(&mut sorted);
            let keys: Vec<u32> = sorted.iter().map(|entry| entry.0).collect();
            let values = || Ids::new(sorted.iter().map(|entry| entry.1));
            let groups = Groups::new(keys.iter().copied(), group_count(keys.iter().copied()));
            let groups = Level { bits, keys: Keys::Groups(groups), values: values() };
            let lows = keys.iter().copied().map(low).collect();
            let indexed = Keys::Pairs { index: index(keys.iter().copied(), bits), highs: Vec::new(), lows };
            let pairs = Level { bits, keys: indexed, values: values() };
            let level = Level::new(bits, entries, true);
            let mask = level.key(u32::MAX);
            let near = seed.iter().flat_map(|&key| [key, key ^ 1, key ^ 0x100, key.wrapping_add(0x1ff)]);
            for key in asked.into_iter().chain(near).map(|key| key & mask).chain([0, mask]) {
                let expected: Vec<u32> = sorted.iter().filter(|entry| entry.0 == key).map(|entry| entry.1).collect();
                let next = sorted.iter().find(|entry| entry.0 >= key).map(|entry| entry.0);
                for level in [&level, &groups, &pairs] {
                    let found: Vec<u32> = level.find(key).map(|at| level.value(at).0).collect();
                    prop_assert_eq!(&found, &expected);
                    prop_assert_eq!(level.next(key), next);
                }
            }
            for level in [&level, &groups, &pairs] {
                let mut all = Vec::new();
                level.for_each(|key, value| all.push((key, value.0)));
                prop_assert_eq!(&all, &sorted);
            }
        }
    }

    #[test]
    fn keys_are_sorted_whatever_bytes_they_share() {
        for (spread, base) in [(u32::MAX, 0), (0xffff, 0x0a00_0000), (0xff, 0xfe12_3400), (0xff00_00ff, 7), (0, 9)] {
            for count in [0, 1, SORTED_BY_BYTES_MIN - 1, SORTED_BY_BYTES_MIN, 60_000_u32 as usize] {
                let mut state = 0x9e37_79b9_u32;
                let mut keys: Vec<u32> = (0..count)
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        base | state.rotate_left(11) & spread
                    })
                    .collect();
                let mut expected = keys.clone();
                expected.sort_unstable();
                sort(&mut keys, 24);
                assert!(keys == expected, "{count} keys of {spread:x}");
                sort(&mut keys, 24);
                assert!(keys == expected, "sorted ones");
            }
        }
    }

    #[test]
    fn a_list_of_clusters_takes_little_more_than_a_byte_an_address() {
        let keys: Vec<u32> = (0..100_000_u32).flat_map(|net| (0..12).map(move |host| net << 8 | (host * 21))).collect();
        let level = Level::of_one_value(32, keys, 1);
        assert!(level.memory_bytes() < level.len() * 4 / 3, "{} for {}", level.memory_bytes(), level.len());
    }
}
