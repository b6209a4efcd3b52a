//! Strings of which literals are made, as many as are followed at once.

use std::rc::Rc;

use crate::ByteSet;

/// Literals that a caller can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiteralLimits {
    /// How many there may be.
    pub count_max: usize,
    /// How short they may be.
    pub bytes_min: usize,
    /// How long they get; of longer ones the rarest part is taken.
    pub bytes_max: usize,
}

impl Default for LiteralLimits {
    fn default() -> LiteralLimits {
        LiteralLimits { count_max: 64, bytes_min: 3, bytes_max: 24 }
    }
}

/// Literals under way.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub strings: Strings,
    pub times: u32,
    pub share: f64,
}

/// Strings, end to end, each behind its length: there are many, and most are short.
#[derive(Debug, Clone, Default)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    count: usize,
    /// The strings have one length, are sorted, and are distinct.
    pub is_even: bool,
}

/// Bytes of a length: strings that are followed have fewer.
const LENGTH_BYTES: usize = 2;

impl Strings {
    pub fn one(string: &[u8]) -> Strings {
        let mut all = Strings::with_capacity(1, string.len());
        all.push(string);
        Strings { is_even: true, ..all }
    }

    /// Each of these bytes alone.
    pub fn of_bytes(bytes: &ByteSet) -> Strings {
        let mut all = Strings::with_capacity(bytes.len(), bytes.len());
        bytes.iter().for_each(|byte| all.push(&[byte]));
        Strings { is_even: true, ..all }
    }

    /// None yet, and room for so many, of so many bytes together.
    pub fn with_capacity(count: usize, bytes: usize) -> Strings {
        Strings { bytes: Vec::with_capacity(count * LENGTH_BYTES + bytes), count: 0, is_even: false }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk::<LENGTH_BYTES>()?;
            let (string, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            rest = behind;
            Some(string)
        })
    }

    pub fn push(&mut self, string: &[u8]) {
        self.push_both(string, b"");
    }

    /// Adds a string with another behind it.
    pub fn push_both(&mut self, string: &[u8], behind: &[u8]) {
        let length = u16::try_from(string.len() + behind.len()).unwrap_or(u16::MAX);
        debug_assert_eq!(usize::from(length), string.len() + behind.len());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(string);
        self.bytes.extend_from_slice(behind);
        self.count += 1;
        self.is_even = false;
    }

    pub fn extend<'s>(&mut self, strings: impl Iterator<Item = &'s [u8]>) {
        strings.for_each(|string| self.push(string));
    }

    /// Whether it is the empty string alone.
    pub fn is_nothing(&self) -> bool {
        self.count == 1 && self.bytes() == 0
    }

    /// The bytes of all.
    pub fn bytes(&self) -> usize {
        self.bytes.len() - self.count * LENGTH_BYTES
    }

    pub fn longest(&self) -> usize {
        match self.is_even {
            true => self.bytes() / self.count.max(1),
            false => self.iter().map(<[u8]>::len).max().unwrap_or(0),
        }
    }

    /// Sorts the strings and removes duplicates.
    pub fn sort(&mut self) {
        if self.is_even || self.iter().zip(self.iter().skip(1)).all(|(one, next)| one < next) {
            return;
        }
        let mut all: Vec<&[u8]> = self.iter().collect();
        all.sort_unstable();
        all.dedup();
        let mut sorted = Strings::with_capacity(all.len(), self.bytes());
        sorted.extend(all.into_iter());
        *self = sorted;
    }

    /// Only the empty string.
    pub fn reset(&mut self) {
        self.clear();
        self.push(b"");
        self.is_even = true;
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.count, self.is_even) = (0, false);
    }
}

/// Literals of alternatives.
#[derive(Clone)]
pub(super) enum Alternatives {
    /// Exactly these strings match.
    Exact(Rc<Strings>),
    /// Each match has one of these, if there are any.
    Needed(Option<Rc<Found>>),
}
