//! IPv4 networks: how they are written, and a table that finds what covers an address.
//!
//! The table has a level for each length of prefix that occurs. A level keeps its networks sorted in 65,536 or fewer
//! buckets by their upper 16 bits, so that two bytes are left of each; what they are worth takes no byte where it is the
//! same for all, and one or two where few values occur. An address alone costs two bytes.

use super::ids::Ids;
use super::value::{ValueId, number};

/// From how many networks on a level has an index of buckets.
const INDEXED_MIN: usize = 4_096;

/// Networks with what they are worth, while a file is read.
#[derive(Debug)]
pub struct Builder {
    /// By prefix length: the network shifted right, and its value.
    levels: [Vec<(u32, u32)>; 33],
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { levels: [const { Vec::new() }; 33] }
    }
}

impl Builder {
    /// Adds the network of `bits` bits that `address` is in.
    pub fn add(&mut self, address: u32, bits: u8, value: ValueId) {
        let key = if bits == 0 { 0 } else { address >> (32 - u32::from(bits.min(32))) };
        self.levels[usize::from(bits.min(32))].push((key, value.0));
    }

    /// Adds the addresses of a range as networks of 32, 24, 16 and 8 bits, as few as will do.
    pub fn add_range(&mut self, first: u32, last: u32, value: ValueId) {
        let mut at = u64::from(first);
        let end = u64::from(last) + 1;
        while at < end {
            let fits = |bits: u8| {
                let size = 1_u64 << (32 - bits);
                at % size == 0 && at + size <= end
            };
            let bits = [8, 16, 24].into_iter().find(|&bits| fits(bits)).unwrap_or(32);
            self.add(u32::try_from(at).unwrap_or(u32::MAX), bits, value);
            at += 1_u64 << (32 - bits);
        }
    }

    /// Sorts. `all` keeps every value of a network; otherwise the first one counts.
    pub fn finish(self, all: bool) -> Table {
        let mut levels: Vec<Level> = Vec::new();
        for (bits, entries) in self.levels.into_iter().enumerate().rev() {
            if !entries.is_empty() {
                levels.push(Level::new(u8::try_from(bits).unwrap_or(32), entries, all));
            }
        }
        Table { levels }
    }
}

/// Finds what covers an address.
#[derive(Debug, Default)]
pub struct Table {
    /// From the longest prefixes to the shortest.
    levels: Vec<Level>,
}

impl Table {
    /// The values of the longest network that covers `address`: none if there is no such network, and
    /// [`ValueId::EXCLUDED`] among them if it is excluded.
    pub fn find(&self, address: u32) -> impl Iterator<Item = ValueId> + '_ {
        self.levels
            .iter()
            .map(move |level| level.find(level.key(address)))
            .zip(&self.levels)
            .find(|(range, _)| !range.is_empty())
            .map(|(range, level)| range.map(|index| ValueId(level.values.get(index))))
            .into_iter()
            .flatten()
    }

    /// Collects where in the network of `bits` bits that begins at `first` the answer may change: the first address of
    /// each stretch. Returns `false` if there are more than `out` may have.
    pub fn boundaries(&self, first: u32, bits: u8, count_max: usize, out: &mut Vec<u64>) -> bool {
        let size = 1_u64 << (32 - bits);
        for level in self.levels.iter().filter(|level| level.bits > bits) {
            let last = u32::try_from(u64::from(first) + size - 1).unwrap_or(u32::MAX);
            let mut key = level.key(first);
            let width = 1_u64 << (32 - level.bits);
            while let Some(found) = level.next(key).filter(|&found| found <= level.key(last)) {
                let start = u64::from(found) << (32 - level.bits);
                out.extend([start, start + width]);
                if out.len() > count_max {
                    return false;
                }
                let Some(next) = found.checked_add(1) else { break };
                key = next;
            }
        }
        true
    }

    /// Calls `each` with address, bits and values of every network.
    pub fn for_each(&self, mut each: impl FnMut(u32, u8, ValueId)) {
        for level in &self.levels {
            level.for_each(|key, value| {
                let address = if level.bits == 0 { 0 } else { key << (32 - level.bits) };
                each(address, level.bits, value);
            });
        }
    }

    /// How many networks there are.
    pub fn count(&self) -> usize {
        self.levels.iter().map(|level| level.lows.len()).sum()
    }

    /// How many bytes it takes.
    pub fn memory_bytes(&self) -> usize {
        self.levels.iter().map(Level::memory_bytes).sum()
    }
}

/// The networks of one prefix length.
#[derive(Debug)]
struct Level {
    bits: u8,
    /// Where the bucket of an upper half begins, with one more at the end; or nothing: then `highs` has the upper halves.
    index: Vec<u32>,
    highs: Vec<u16>,
    lows: Vec<u16>,
    values: Ids,
}

impl Level {
    fn new(bits: u8, mut entries: Vec<(u32, u32)>, all: bool) -> Level {
        // Stable: values stay in the order of the file.
        entries.sort_by_key(|&(key, _)| key);
        if all {
            drop_repeated(&mut entries);
        } else {
            entries.dedup_by_key(|&mut (key, _)| key);
        }
        let values = Ids::new(entries.iter().map(|&(_, value)| value));
        let lows = entries.iter().map(|&(key, _)| low(key)).collect();
        let indexed = entries.len() >= INDEXED_MIN && bits > 16;
        let (index, highs) = match indexed {
            true => (index(&entries, bits), Vec::new()),
            false => (Vec::new(), entries.iter().map(|&(key, _)| high(key)).collect()),
        };
        Level { bits, index, highs, lows, values }
    }

    const fn key(&self, address: u32) -> u32 {
        if self.bits == 0 { 0 } else { address >> (32 - self.bits) }
    }

    /// Which entries a key has.
    fn find(&self, key: u32) -> core::ops::Range<usize> {
        let bucket = self.bucket(key);
        let lows = &self.lows[bucket.clone()];
        let start = bucket.start + lows.partition_point(|&each| each < low(key));
        let same = self.lows[start..bucket.end].iter().take_while(|&&each| each == low(key)).count();
        start..start + same
    }

    /// The first key that is not below this one.
    fn next(&self, key: u32) -> Option<u32> {
        let bucket = self.bucket(key);
        let at = bucket.start + self.lows[bucket].partition_point(|&each| each < low(key));
        (at < self.lows.len()).then(|| self.key_at(at))
    }

    fn key_at(&self, at: usize) -> u32 {
        let high = match self.index.is_empty() {
            true => u32::from(self.highs[at]),
            false => {
                let position = u32::try_from(at).unwrap_or(u32::MAX);
                u32::try_from(self.index.partition_point(|&start| start <= position) - 1).unwrap_or(0)
            }
        };
        high << 16 | u32::from(self.lows[at])
    }

    /// The entries whose upper half is that of `key`.
    fn bucket(&self, key: u32) -> core::ops::Range<usize> {
        if self.index.is_empty() {
            let start = self.highs.partition_point(|&each| each < high(key));
            let same = self.highs[start..].partition_point(|&each| each == high(key));
            return start..start + same;
        }
        let at = usize::from(high(key));
        match (self.index.get(at), self.index.get(at + 1)) {
            (Some(&start), Some(&end)) => place(start)..place(end),
            _ => self.lows.len()..self.lows.len(),
        }
    }

    fn for_each(&self, mut each: impl FnMut(u32, ValueId)) {
        if self.index.is_empty() {
            for at in 0..self.lows.len() {
                each(self.key_at(at), ValueId(self.values.get(at)));
            }
            return;
        }
        for (high, bounds) in self.index.windows(2).enumerate() {
            for at in place(bounds[0])..place(bounds[1]) {
                let key = u32::try_from(high).unwrap_or(0) << 16 | u32::from(self.lows[at]);
                each(key, ValueId(self.values.get(at)));
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.index.capacity() * 4 + (self.highs.capacity() + self.lows.capacity()) * 2 + self.values.memory_bytes()
    }
}

/// Removes what a network has twice, and lets an exclusion be the only value of its network.
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
    entries.shrink_to_fit();
}

fn index(entries: &[(u32, u32)], bits: u8) -> Vec<u32> {
    let buckets = 1_usize << (bits - 16);
    let mut index = Vec::with_capacity(buckets + 1);
    let mut at = 0;
    for bucket in 0..=buckets {
        while at < entries.len() && usize::from(high(entries[at].0)) < bucket {
            at += 1;
        }
        index.push(u32::try_from(at).unwrap_or(u32::MAX));
    }
    index
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

/// Networks as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first address.
    pub first: u32,
    /// The last address.
    pub last: u32,
    /// The prefix length, if it is a network that was written as one.
    pub bits: Option<u8>,
}

/// What cannot be read as an address, network or range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeError {
    /// Not an address.
    Address,
    /// Bits behind the prefix are set.
    HostPart,
}

/// Which forms a data set takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forms {
    /// Ranges of two addresses.
    pub ranges: bool,
    /// A network of no bits: everything.
    pub everything: bool,
}

/// Reads an address, prefix, network or range at the start of `text`. Returns how many bytes it takes.
///
/// # Errors
/// What is none; the line is to be passed over.
pub fn read(text: &[u8], forms: Forms) -> Result<(Range, usize), RangeError> {
    let (address, count, len) = octets(text).ok_or(RangeError::Address)?;
    let (range, len) = match text.get(len) {
        Some(b'/') => network(text, address, len + 1, forms)?,
        Some(b'-') if forms.ranges => range(text, address, count, len + 1)?,
        _ if count == 1 => return Err(RangeError::Address),
        _ => (prefix(address, count * 8), len),
    };
    let ended = text.get(len).is_none_or(|&byte| matches!(byte, b' ' | b'\t' | b':' | b'#' | b';'));
    if ended { Ok((range, len)) } else { Err(RangeError::Address) }
}

/// Reads a whole address at the start of `text`.
pub fn read_address(text: &[u8]) -> Option<(u32, usize)> {
    let (address, count, len) = octets(text)?;
    let ended = text.get(len).is_none_or(|&byte| matches!(byte, b' ' | b'\t' | b':' | b'#' | b';'));
    (count == 4 && ended).then_some((address, len))
}

/// Up to four numbers between dots, as the upper octets of an address.
fn octets(text: &[u8]) -> Option<(u32, u8, usize)> {
    let (mut address, mut count, mut at) = (0_u32, 0_u8, 0);
    loop {
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let octet = number(&text[at..at + digits])?;
        address |= u32::from(octet) << (24 - 8 * u32::from(count));
        count += 1;
        at += digits;
        match text.get(at) {
            Some(b'.') if count < 4 => at += 1,
            _ => return Some((address, count, at)),
        }
    }
}

fn prefix(address: u32, bits: u8) -> Range {
    Range { first: address, last: address | host_mask(bits), bits: Some(bits) }
}

const fn host_mask(bits: u8) -> u32 {
    if bits >= 32 { 0 } else { u32::MAX >> bits }
}

fn network(text: &[u8], address: u32, at: usize, forms: Forms) -> Result<(Range, usize), RangeError> {
    let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let bits = number(&text[at..at + digits]).filter(|&bits| bits <= 32).ok_or(RangeError::Address)?;
    if bits == 0 && !forms.everything {
        return Err(RangeError::Address);
    }
    if address & host_mask(bits) != 0 {
        return Err(RangeError::HostPart);
    }
    Ok((prefix(address, bits), at + digits))
}

/// A range's second half: as many octets as the first, or one, which stands in place of the first's last.
fn range(text: &[u8], first: u32, count: u8, at: usize) -> Result<(Range, usize), RangeError> {
    let (second, second_count, len) = octets(text.get(at..).unwrap_or_default()).ok_or(RangeError::Address)?;
    let shift = 32 - 8 * u32::from(count);
    let last = match second_count {
        same if same == count => second,
        1 => (first & !(0xff << shift)) | (second >> 24) << shift,
        _ => return Err(RangeError::Address),
    };
    let last = last | host_mask(count * 8);
    if last < first {
        return Err(RangeError::Address);
    }
    Ok((Range { first, last, bits: None }, at + len))
}
