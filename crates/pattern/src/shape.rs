//! The shapes of tiers: how long the grams are that are looked for, and how far apart the places that are looked at.

/// Case folding of ASCII letters, and of a few other bytes, which costs nothing but a little selectivity.
pub(crate) const FOLD: u64 = 0x2020_2020_2020_2020;

/// Bytes that hold a window of any shape; the longest has a byte less.
pub(crate) const WINDOW_BYTES_MAX: usize = 16;

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

    /// How many offsets of a kilobyte are looked at.
    pub(crate) const fn looks(self) -> f32 {
        1024.0 / self.s() as f32
    }

    /// Whether parts of this shape cost at most one look in four bytes.
    pub(crate) const fn is_cheap(self) -> bool {
        self.s() >= 4
    }

    /// Bits or'ed to a q-gram where case does not matter.
    pub(crate) const fn fold(self) -> u64 {
        FOLD & (u64::MAX >> (64 - 8 * self.q()))
    }

    /// The length of a window that holds a q-gram at a sampled offset whatever the alignment.
    pub(crate) const fn window(self) -> usize {
        self.q() + self.s() - 1
    }
}
