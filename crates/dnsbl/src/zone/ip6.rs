//! IPv6 networks: how they are written, and tables that find what covers an address.

use super::above::{Prefix, any_listed};
use super::ids::Ids;
use super::value::{ValueId, number};

/// Networks with their values, while a file is read. The first value of a network counts.
#[derive(Debug, Default)]
pub struct Builder {
    /// Prefix length, network, its place in the file, value.
    entries: Vec<(u8, u128, u32, u32)>,
}

impl Builder {
    /// Adds a network.
    pub fn add(&mut self, address: u128, bits: u8, value: ValueId) {
        let place = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push((bits.min(128), address, place, value.0));
    }

    /// Sorts.
    pub fn finish(mut self) -> Table {
        self.entries.sort_unstable();
        self.entries.dedup_by_key(|&mut (bits, address, ..)| (bits, address));
        let mut levels = Vec::new();
        for entries in self.entries.chunk_by(|a, b| a.0 == b.0).rev() {
            let bits = entries[0].0;
            let values = Ids::new(entries.iter().map(|&(.., value)| value));
            let keys = match bits {
                0..=64 => Keys::Upper(entries.iter().map(|&(_, address, ..)| upper(address)).collect()),
                _ => Keys::Whole(entries.iter().map(|&(_, address, ..)| address).collect()),
            };
            levels.push(Level { bits, keys, values });
        }
        Table { levels }
    }
}

/// Finds the longest network that covers an address.
#[derive(Debug, Default)]
pub struct Table {
    /// From the longest prefixes to the shortest.
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    bits: u8,
    keys: Keys,
    values: Ids,
}

/// Networks sorted by their first address; of those up to 64 bits long the upper half alone.
#[derive(Debug)]
enum Keys {
    Upper(Vec<u64>),
    Whole(Vec<u128>),
}

const fn upper(address: u128) -> u64 {
    (address >> 64) as u64
}

const fn mask(bits: u8) -> u128 {
    if bits == 0 { 0 } else { u128::MAX << (128 - bits) }
}

impl Table {
    /// The value of the longest network that covers `address`.
    pub fn find(&self, address: u128) -> Option<ValueId> {
        self.levels.iter().find_map(|level| level.find(address))
    }

    /// Whether an address of a prefix is listed.
    pub fn lists_within(&self, prefix: Prefix<u128>) -> bool {
        let last = prefix.last();
        let within = self.levels.iter().filter(|level| level.bits > prefix.bits).flat_map(|level| {
            let range = match &level.keys {
                Keys::Upper(keys) => {
                    keys.partition_point(|&key| key < upper(prefix.first))
                        ..keys.partition_point(|&key| key <= upper(last))
                }
                Keys::Whole(keys) => {
                    keys.partition_point(|&key| key < prefix.first)..keys.partition_point(|&key| key <= last)
                }
            };
            range.map(|at| ValueId(level.values.get(at)))
        });
        let covers = |level: &Level| level.bits <= prefix.bits;
        any_listed(within, || {
            let covering = self.levels.iter().filter(|level| covers(level));
            let longest = covering.filter_map(|level| level.find(prefix.first)).next();
            longest.is_some_and(|value| value != ValueId::EXCLUDED)
        })
    }

    /// Collects where in the network of 48 bits that begins at `first` the answer for a /64 may change. `false` if it may
    /// change within a /64, or in more places than `out` may have.
    pub fn boundaries_of_48(&self, first: u128, count_max: usize, out: &mut Vec<u128>) -> bool {
        let last = first | !mask(48);
        for level in self.levels.iter().filter(|level| level.bits > 48) {
            match &level.keys {
                Keys::Whole(keys) => {
                    if keys.get(keys.partition_point(|&key| key < first)).is_some_and(|&key| key <= last) {
                        return false;
                    }
                }
                Keys::Upper(keys) => {
                    let start = keys.partition_point(|&key| key < upper(first));
                    for &key in keys[start..].iter().take_while(|&&key| key <= upper(last)) {
                        let begin = u128::from(key) << 64;
                        out.push(begin);
                        out.extend(begin.checked_add(1_u128 << (128 - level.bits)));
                        if out.len() > count_max {
                            return false;
                        }
                    }
                }
            }
        }
        true
    }

    /// Calls `each` with address, bits and value of every network.
    pub fn for_each(&self, mut each: impl FnMut(u128, u8, ValueId)) {
        for level in &self.levels {
            for at in 0..level.len() {
                each(level.key_at(at), level.bits, ValueId(level.values.get(at)));
            }
        }
    }

    /// How many networks there are.
    pub fn count(&self) -> usize {
        self.levels.iter().map(Level::len).sum()
    }

    /// How many bytes it takes.
    pub fn memory_bytes(&self) -> usize {
        self.levels
            .iter()
            .map(|level| match &level.keys {
                Keys::Upper(keys) => keys.capacity() * 8 + level.values.memory_bytes(),
                Keys::Whole(keys) => keys.capacity() * 16 + level.values.memory_bytes(),
            })
            .sum()
    }
}

impl Level {
    fn find(&self, address: u128) -> Option<ValueId> {
        let network = address & mask(self.bits);
        let at = match &self.keys {
            Keys::Upper(keys) => keys.binary_search(&upper(network)),
            Keys::Whole(keys) => keys.binary_search(&network),
        };
        at.ok().map(|at| ValueId(self.values.get(at)))
    }

    fn len(&self) -> usize {
        match &self.keys {
            Keys::Upper(keys) => keys.len(),
            Keys::Whole(keys) => keys.len(),
        }
    }

    fn key_at(&self, at: usize) -> u128 {
        match &self.keys {
            Keys::Upper(keys) => u128::from(keys[at]) << 64,
            Keys::Whole(keys) => keys[at],
        }
    }
}

/// An address or network as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The first address.
    pub address: u128,
    /// Number of given bits: 16 for each word, all with `::`, or the number after a slash.
    pub bits: u8,
}

/// Reason why a text cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    /// Not an address.
    Address,
    /// Bits behind the prefix are set.
    HostPart,
}

/// Reads an address with, if `masks` allows it, a prefix length. Returns its length.
///
/// # Errors
/// Not an address: the caller skips the line.
pub fn read(text: &[u8], masks: bool) -> Result<(Written, usize), ReadError> {
    let (mut written, mut len) = words(text).ok_or(ReadError::Address)?;
    if masks && text.get(len) == Some(&b'/') {
        let rest = &text[len + 1..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let bits = number(&rest[..digits]).filter(|&bits| bits <= 128).ok_or(ReadError::Address)?;
        written.bits = bits;
        len += 1 + digits;
    } else if written.bits == 16 {
        // One word alone is no address.
        return Err(ReadError::Address);
    }
    if written.address & !mask(written.bits) != 0 {
        return Err(ReadError::HostPart);
    }
    let ended = text.get(len).is_none_or(|&byte| matches!(byte, b' ' | b'\t' | b':' | b'#' | b';'));
    if ended { Ok((written, len)) } else { Err(ReadError::Address) }
}

/// Up to eight words between colons, `::` once.
fn words(text: &[u8]) -> Option<(Written, usize)> {
    let (mut front, mut back) = ([0_u16; 8], [0_u16; 8]);
    let (mut front_len, mut back_len, mut at) = (0, 0, 0);
    let mut gap = false;
    if text.starts_with(b"::") {
        gap = true;
        at = 2;
    }
    loop {
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            // Behind `::` there may be nothing; elsewhere a word is missing.
            let empty = gap && back_len == 0;
            break empty.then_some(())?;
        }
        let word = word(&text[at..at + digits])?;
        if front_len + back_len >= 8 - usize::from(gap) {
            return None;
        }
        match gap {
            true => back[back_len] = word,
            false => front[front_len] = word,
        }
        back_len += usize::from(gap);
        front_len += usize::from(!gap);
        at += digits;
        if text.get(at) != Some(&b':') || front_len + back_len == 8 - usize::from(gap) && !text[at..].starts_with(b"::")
        {
            break;
        }
        at += 1;
        if text.get(at) == Some(&b':') {
            if gap {
                at -= 1;
                break;
            }
            gap = true;
            at += 1;
        }
    }
    let mut all = front;
    for (index, word) in back[..back_len].iter().enumerate() {
        all[8 - back_len + index] = *word;
    }
    let address = all.iter().fold(0_u128, |address, &word| address << 16 | u128::from(word));
    let bits = if gap { 128 } else { u8::try_from(front_len * 16).unwrap_or(128) };
    Some((Written { address, bits }, at))
}

fn word(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0_u16, |word, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        (word >> 12 == 0).then_some(word << 4 | u16::try_from(digit).ok()?)
    })
}
