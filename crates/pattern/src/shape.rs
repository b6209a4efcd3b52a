//! The shapes of tiers: how long the grams are that are looked for, and how far apart the places that are looked at.

/// Case folding of ASCII letters: the bit that all of them have, and few other bytes. Zeros and line ends stay what they are.
pub(crate) const FOLD: u64 = 0x4040_4040_4040_4040;

/// A gram whose bytes with a bit of `fold` have the next lower bit, too: 0x20, which letters in lower case have.
#[inline(always)]
pub(crate) const fn folded(gram: u64, fold: u64) -> u64 {
    gram | (gram & fold) >> 1
}

/// Bytes that hold a window of any shape; the longest has a byte less.
pub(crate) const WINDOW_BYTES_MAX: usize = 16;

/// How many bytes beside a gram are looked at where a part has them.
pub(crate) const BESIDE: usize = 4;

/// How long the q-grams are and how far apart the sampled offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Q8S8,
    Q8S4,
    Q6S4,
    Q4S4,
    Q8S2,
    Q4S2,
    Q4S1,
    Q2S1,
}

impl Shape {
    /// All shapes, the cheapest to look for first.
    pub(crate) const ALL: [Shape; 8] =
        [Shape::Q8S8, Shape::Q8S4, Shape::Q6S4, Shape::Q4S4, Shape::Q8S2, Shape::Q4S2, Shape::Q4S1, Shape::Q2S1];

    /// That with the shortest window.
    pub(crate) const SHORTEST: Shape = Shape::Q2S1;

    /// The length of the shortest window of those that are [cheap](Shape::is_cheap).
    pub(crate) const SHORTEST_CHEAP: usize = Shape::Q4S4.window();

    /// The length of a q-gram.
    pub(crate) const fn q(self) -> usize {
        match self {
            Shape::Q8S8 | Shape::Q8S4 | Shape::Q8S2 => 8,
            Shape::Q6S4 => 6,
            Shape::Q4S4 | Shape::Q4S2 | Shape::Q4S1 => 4,
            Shape::Q2S1 => 2,
        }
    }

    /// The distance between sampled offsets.
    pub(crate) const fn s(self) -> usize {
        match self {
            Shape::Q8S8 => 8,
            Shape::Q8S4 | Shape::Q6S4 | Shape::Q4S4 => 4,
            Shape::Q8S2 | Shape::Q4S2 => 2,
            Shape::Q4S1 | Shape::Q2S1 => 1,
        }
    }

    /// How many bytes of a window are before a q-gram or behind it, whatever the phase.
    pub(crate) const fn beside(self) -> usize {
        self.s() / 2
    }

    /// How many offsets of a kilobyte are looked at.
    pub(crate) const fn looks(self) -> f32 {
        1024.0 / self.s() as f32
    }

    /// What a sweep of a kilobyte costs, in looks of their own: two grams that share six bytes are looked at together.
    pub(crate) const fn cost(self) -> f32 {
        match self {
            Shape::Q8S2 => 0.6 * self.looks(),
            _ => self.looks(),
        }
    }

    /// Whether parts of this shape cost at most one look in four bytes.
    pub(crate) const fn is_cheap(self) -> bool {
        self.s() >= 4
    }

    /// The bits by which a q-gram is [`folded`] where case does not matter.
    pub(crate) const fn fold(self) -> u64 {
        FOLD & (u64::MAX >> (64 - 8 * self.q()))
    }

    /// The length of a window that holds a q-gram at a sampled offset whatever the alignment.
    pub(crate) const fn window(self) -> usize {
        self.q() + self.s() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_folded_and_no_byte_below_them() {
        for byte in 0..=255_u8 {
            let folded = folded(u64::from(byte) << 8, FOLD).to_le_bytes();
            assert_eq!(folded, [0, folded[1], 0, 0, 0, 0, 0, 0], "{byte:02x} changes its neighbours");
            let is_other = byte.is_ascii_uppercase() || byte >= 0x80 || matches!(byte, b'@' | b'['..=b'_');
            assert!(is_other || folded[1] == byte, "{byte:02x}");
            assert!(!byte.is_ascii_alphabetic() || folded[1] == byte.to_ascii_lowercase(), "{byte:02x}");
        }
    }
}
