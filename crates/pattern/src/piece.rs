//! Pieces of parts.
//!
//! A part is a sequence of pieces, each of which consumes bytes, looks behind the start or looks past the end. Lengths
//! here are short: long and open gaps separate parts and are not part of one.

use bytemuck::{Pod, Zeroable};

/// The number of a part, in the order in which parts were added.
pub type PartId = u32;

/// A set of byte values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct ByteSet([u64; 4]);

/// Texts that are shorter are put into a set byte by byte.
const SHORT: usize = 128;

impl ByteSet {
    /// The set of no byte.
    pub const EMPTY: ByteSet = ByteSet([0; 4]);

    /// The set of the bytes for which `holds`.
    pub fn of(holds: impl Fn(u8) -> bool) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        for byte in (0..=u8::MAX).filter(|&byte| holds(byte)) {
            set.insert(byte);
        }
        set
    }

    /// The set whose bits these are, the lowest first.
    pub(crate) const fn from_words(words: [u64; 4]) -> ByteSet {
        ByteSet(words)
    }

    /// The set with ASCII letters in lower case, and blanks as spaces.
    pub(crate) fn folded(&self) -> ByteSet {
        const CAPITALS: u64 = 0x07ff_fffe;
        const BLANKS: u64 = 0x3e00;
        let [low, high, ..] = self.0;
        let blank = u64::from(low & BLANKS != 0) << b' ';
        ByteSet([low & !BLANKS | blank, high & !CAPITALS | (high & CAPITALS) << 32, self.0[2], self.0[3]])
    }

    /// The bytes that are in both sets.
    pub fn intersection(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// Whether a byte is in both sets.
    pub fn meets(&self, other: &ByteSet) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }

    /// The set of the bytes that stand in a text.
    pub fn present(text: &[u8]) -> ByteSet {
        if text.len() < SHORT {
            let mut set = ByteSet::EMPTY;
            text.iter().for_each(|&byte| set.insert(byte));
            return set;
        }
        let mut seen = [0u8; 256];
        text.iter().for_each(|&byte| seen[usize::from(byte)] = 1);
        let word = |seen: &[u8]| seen.iter().rev().fold(0, |word, &seen| word << 1 | u64::from(seen));
        ByteSet(std::array::from_fn(|at| word(&seen[at * 64..at * 64 + 64])))
    }

    /// Adds a byte.
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Whether the byte is in the set.
    pub const fn has(&self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 != 0
    }

    /// The set as bits.
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (eight, word) in bytes.chunks_mut(8).zip(self.0) {
            eight.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The bytes of both sets.
    pub fn union(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// How many bytes are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no byte is in the set.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The bytes of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..4u8).flat_map(|word| {
            let mut bits = self.0[usize::from(word)];
            std::iter::from_fn(move || {
                let bit = u8::try_from(bits.trailing_zeros()).ok().filter(|&bit| bit < 64)?;
                bits &= bits - 1;
                Some(word << 6 | bit)
            })
        })
    }

    /// All bytes that are not in the set.
    pub fn complement(&self) -> ByteSet {
        ByteSet(self.0.map(|word| !word))
    }
}

/// Condition beside a part, looked at but not consumed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Edge {
    /// The neighbouring byte is in the set; at the border of the stream the answer is `at_border`.
    Byte {
        /// The bytes that will do.
        set: ByteSet,
        /// Whether the stream's border will do.
        at_border: bool,
    },
    /// The neighbouring two bytes are not a byte of the set followed by NUL. The border of the stream will do.
    NotWide(ByteSet),
    /// A line feed, a carriage return with a line feed, or the border of the stream. Behind the start this is the same
    /// as a line feed or the border.
    Line,
}

/// One piece of a part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Piece {
    /// A byte `b` with `b & mask == value`. A mask of `0xff` is a fixed byte, `0xdf` a letter in either case, `0xf0` and
    /// `0x0f` are nibbles.
    Byte {
        /// Value of the masked byte.
        value: u8,
        /// The bits that count.
        mask: u8,
    },
    /// A byte of a set.
    Set(ByteSet),
    /// That many bytes, whatever they are.
    Skip(u16),
    /// From `min` to `max` bytes, whatever they are; every length is tried, so keep the difference small.
    Gap {
        /// The fewest bytes.
        min: u16,
        /// The most bytes.
        max: u16,
    },
    /// One of several sequences, which may differ in length and hold alternatives themselves.
    OneOf(Vec<Vec<Piece>>),
    /// As many bytes as each of the sequences has (they are of one length), but none of them.
    NoneOf(Vec<Vec<u8>>),
    /// Looks behind the start; only as the first piece.
    Behind(Edge),
    /// Looks past the end; only as the last piece.
    Ahead(Edge),
}

impl Piece {
    /// A fixed byte.
    pub const fn byte(value: u8) -> Piece {
        Piece::Byte { value, mask: 0xff }
    }

    /// Fixed bytes.
    pub fn bytes(bytes: &[u8]) -> Vec<Piece> {
        bytes.iter().map(|&byte| Piece::byte(byte)).collect()
    }

    /// The byte in either case if it is a letter.
    pub const fn caseless(byte: u8) -> Piece {
        if byte.is_ascii_alphabetic() { Piece::Byte { value: byte & 0xdf, mask: 0xdf } } else { Piece::byte(byte) }
    }

    /// The fewest and the most bytes that the piece consumes.
    #[inline]
    pub fn lengths(&self) -> (usize, usize) {
        match self {
            Piece::Byte { .. } | Piece::Set(_) => (1, 1),
            Piece::Skip(count) => (usize::from(*count), usize::from(*count)),
            Piece::Gap { min, max } => (usize::from(*min), usize::from(*max)),
            Piece::OneOf(all) => {
                all.iter().map(|one| total(one)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0))
            }
            Piece::NoneOf(all) => all.first().map_or((0, 0), |one| (one.len(), one.len())),
            Piece::Behind(_) | Piece::Ahead(_) => (0, 0),
        }
    }
}

/// The fewest and the most bytes that a sequence consumes.
pub(crate) fn total(pieces: &[Piece]) -> (usize, usize) {
    pieces.iter().fold((0, 0), |(low, high), piece| {
        let (min, max) = piece.lengths();
        (low + min, high + max)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in_and_its_complement_the_rest() {
        let set = ByteSet::of(|byte| byte.is_ascii_digit());
        for byte in 0..=u8::MAX {
            assert_eq!(set.has(byte), byte.is_ascii_digit());
            assert_eq!(set.complement().has(byte), !byte.is_ascii_digit());
        }
    }

    #[test]
    fn a_folded_set_has_what_its_bytes_are_folded_to() {
        for byte in 0..=u8::MAX {
            let mut text = [byte];
            crate::expression::fold(&mut text);
            let mut set = ByteSet::EMPTY;
            set.insert(byte);
            assert_eq!(set.folded().iter().collect::<Vec<_>>(), text);
        }
    }

    #[test]
    fn lengths_add_up_through_alternatives() {
        let alternatives = vec![Piece::bytes(b"ab"), vec![Piece::Gap { min: 1, max: 9 }]];
        let pieces = [Piece::byte(1), Piece::OneOf(alternatives), Piece::Skip(3), Piece::NoneOf(vec![b"xy".to_vec()])];
        assert_eq!(total(&pieces), (7, 15));
    }
}
