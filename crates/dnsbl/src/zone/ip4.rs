//! IPv4 networks: how they are written, and a table that finds what covers an address.
//!
//! The table has a level for each length of prefix that occurs; the longest prefix that covers an address counts. How a level
//! keeps its networks in little more than a byte each stands in `level.rs`.

use super::above::{Prefix, any_listed};
use super::level::Level;
use super::value::{ValueId, number};

/// Number of entries from which on room is reserved for as many again: 8 MiB and more, which allocators take from and
/// return to the system whole; growing in steps leaves holes of several megabytes. Unused room costs nothing.
const MANY: usize = 16_384;
const AT_ONCE: usize = (8 << 20) / 4 + 4_096;

/// The longest line that is an address, its end included.
const PLAIN_BYTES_MAX: usize = 16;

/// Networks with their values, while a file is read.
#[derive(Debug)]
pub struct Builder {
    /// By prefix length.
    levels: [Entries; 33],
}

/// The networks of one prefix length in the order of the file: shifted right, and their values. Most lists have one value, and
/// then it is kept once.
#[derive(Debug, Default)]
struct Entries {
    keys: Vec<u32>,
    value: u32,
    /// Where they differ, all of them.
    values: Vec<u32>,
}

impl Entries {
    const NONE: Entries = Entries { keys: Vec::new(), value: 0, values: Vec::new() };

    fn push(&mut self, key: u32, value: u32) {
        if self.keys.len() == MANY {
            self.keys.reserve_exact(AT_ONCE - MANY);
        }
        if self.keys.is_empty() {
            self.value = value;
        }
        if self.values.is_empty() && self.value != value {
            self.values = vec![self.value; self.keys.len()];
        }
        if self.value != value || !self.values.is_empty() {
            self.values.push(value);
        }
        self.keys.push(key);
    }

    fn finish(self, bits: u8, all: bool) -> Level {
        if self.values.is_empty() {
            return Level::of_one_value(bits, self.keys, self.value);
        }
        Level::new(bits, self.keys.into_iter().zip(self.values).collect(), all)
    }
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { levels: [Entries::NONE; 33] }
    }
}

impl Builder {
    /// Adds the network of `bits` bits that `address` is in.
    pub fn add(&mut self, address: u32, bits: u8, value: ValueId) {
        let key = if bits == 0 { 0 } else { address >> (32 - u32::from(bits.min(32))) };
        self.levels[usize::from(bits.min(32))].push(key, value.0);
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
        let levels =
            (0..=32_u8).rev().zip(self.levels.into_iter().rev()).filter(|(_, entries)| !entries.keys.is_empty());
        Table { levels: levels.map(|(bits, entries)| entries.finish(bits, all)).collect() }
    }
}

/// Finds the networks that contain an address.
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
            .map(|(range, level)| range.map(|entry| level.value(entry)))
            .into_iter()
            .flatten()
    }

    /// Whether an address of a prefix is listed.
    pub fn lists_within(&self, prefix: Prefix<u32>) -> bool {
        let last = u64::from(prefix.first) + (1_u64 << (32 - prefix.bits)) - 1;
        let last = u32::try_from(last).unwrap_or(u32::MAX);
        let longer = self.levels.iter().filter(|level| level.bits > prefix.bits);
        let within = longer.flat_map(|level| {
            let mut next = level.next(level.key(prefix.first));
            core::iter::from_fn(move || {
                let key = next.filter(|&key| key <= level.key(last))?;
                next = key.checked_add(1).and_then(|key| level.next(key));
                Some(level.find(key).map(|entry| level.value(entry)))
            })
            .flatten()
        });
        let covering = self.levels.iter().filter(|level| level.bits <= prefix.bits);
        let mut covering = covering.map(|level| (level, level.find(level.key(prefix.first))));
        any_listed(within, || {
            let longest = covering.find(|(_, range)| !range.is_empty());
            longest.is_some_and(|(level, mut range)| range.all(|entry| level.value(entry) != ValueId::EXCLUDED))
        })
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
            level.for_each(|key, value| each(level.address(key), level.bits, value));
        }
    }

    /// How many networks there are.
    pub fn count(&self) -> usize {
        self.levels.iter().map(Level::len).sum()
    }

    /// How many bytes it takes.
    pub fn memory_bytes(&self) -> usize {
        self.levels.iter().map(Level::memory_bytes).sum()
    }
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

/// Reason why a text is not an address, network or range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeError {
    /// Not an address.
    Address,
    /// Bits behind the prefix are set.
    HostPart,
}

/// Forms that a data set accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forms {
    /// Ranges of two addresses.
    pub ranges: bool,
    /// A network of no bits: everything.
    pub everything: bool,
}

/// Reads an address, prefix, network or range at the start of `text`. Returns its length.
///
/// # Errors
/// Not an address: the caller skips the line.
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

/// Reads a line that is an address and nothing else, its end included: the address, and how many bytes. It says no to some
/// lines that are right, and never reads one otherwise than [`read`] and [`read_address`] do.
pub fn plain_line(text: &[u8]) -> Option<(u32, usize)> {
    let (mut address, mut octet, mut digits, mut dots) = (0_u32, 0_u32, 0_u8, 0_u8);
    for (at, &byte) in text.iter().take(PLAIN_BYTES_MAX).enumerate() {
        match byte {
            b'0'..=b'9' if digits < 3 => {
                octet = octet * 10 + u32::from(byte - b'0');
                digits += 1;
            }
            b'.' | b'\n' if digits > 0 && octet <= 255 => {
                address = address << 8 | octet;
                match (byte, dots) {
                    (b'\n', 3) => return Some((address, at + 1)),
                    (b'.', 0..3) => (octet, digits, dots) = (0, 0, dots + 1),
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    None
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMS: Forms = Forms { ranges: true, everything: false };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn a_plain_line_is_read_as_any_other(text in "[0-9]{1,4}(\\.[0-9]{1,4}){2,4}[ :\r]{0,1}\n[0-9.]{0,3}") {
            if let Some((address, len)) = plain_line(text.as_bytes()) {
                let line = text.as_bytes()[..len].strip_suffix(b"\n").unwrap();
                prop_assert_eq!(read(line, FORMS), Ok((prefix(address, 32), line.len())));
                prop_assert_eq!(read_address(line), Some((address, line.len())));
            }
        }
    }

    #[test]
    fn lines_of_addresses_are_plain_and_others_are_not() {
        assert_eq!(plain_line(b"192.0.2.7\n192."), Some((0xc000_0207, 10)));
        assert_eq!(plain_line(b"255.255.255.255\n"), Some((u32::MAX, 16)));
        for other in
            ["1.2.3\n", "1.2.3.4.5\n", "1.2.3.256\n", "1.2.3.4", "1.2.3.4 \n", "1..3.4\n", ".1.2.3.4\n", "\n", ""]
        {
            assert_eq!(plain_line(other.as_bytes()), None, "{other:?}");
        }
    }
}
