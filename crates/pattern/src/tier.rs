//! A tier: one filter and one table for all parts whose anchors are of one shape.
//!
//! For each sampled offset the q-gram there is hashed and looked up in the filter. The answers of 64 looks are
//! collected as the bits of one word without a branch; only afterwards are the few that passed taken up, so that their
//! table look-ups overlap.

use memchr::memmem::Finder;

use crate::anchor::Anchor;
use crate::bucket::Buckets;

/// How long the q-grams are and how far apart the sampled offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Q8S8,
    Q8S4,
    Q4S4,
    Q4S2,
    Q4S1,
    Q2S1,
}

impl Shape {
    /// All shapes, the cheapest to look for first.
    pub(crate) const ALL: [Shape; 6] = [Shape::Q8S8, Shape::Q8S4, Shape::Q4S4, Shape::Q4S2, Shape::Q4S1, Shape::Q2S1];

    /// The length of a q-gram.
    pub(crate) const fn q(self) -> usize {
        match self {
            Shape::Q8S8 | Shape::Q8S4 => 8,
            Shape::Q4S4 | Shape::Q4S2 | Shape::Q4S1 => 4,
            Shape::Q2S1 => 2,
        }
    }

    /// The distance between sampled offsets.
    pub(crate) const fn s(self) -> usize {
        match self {
            Shape::Q8S8 => 8,
            Shape::Q8S4 | Shape::Q4S4 => 4,
            Shape::Q4S2 => 2,
            Shape::Q4S1 | Shape::Q2S1 => 1,
        }
    }

    /// Whether parts of this shape cost at most one look in four bytes.
    pub(crate) const fn is_cheap(self) -> bool {
        self.s() >= 4
    }

    /// The length of a window that holds a q-gram at a sampled offset whatever the alignment.
    pub(crate) const fn window(self) -> usize {
        self.q() + self.s() - 1
    }
}

/// The bits of a filter that few anchors share: 16 kB, half of a first-level cache.
const SMALL_FILTER_BITS: usize = 1 << 17;
/// Up to this many q-grams one bit each in a small filter lets at most one look in 32 pass.
const SMALL_FILTER_GRAMS: usize = SMALL_FILTER_BITS / 32;
/// Up to this many short anchors are searched for one by one: a substring search costs less than a look at every second
/// byte.
const FEW_MAX: usize = 6;
/// Case folding of ASCII letters, and of a few other bytes, which costs nothing but a little selectivity.
const FOLD: u64 = 0x2020_2020_2020_2020;

/// One filter and its table.
#[derive(Debug, Clone)]
pub(crate) struct Tier {
    shape: Shape,
    fold: u64,
    filter: Vec<u64>,
    mask: u64,
    single: bool,
    buckets: Buckets,
    /// Searched for instead, with their values, if there are any.
    few: Vec<(Finder<'static>, u32)>,
}

impl Tier {
    /// A tier of anchors, each with a value whose low three bits are free for the phase.
    pub(crate) fn new(shape: Shape, anchors: &[(&Anchor, u32)]) -> Tier {
        let caseless = anchors.iter().any(|(anchor, _)| anchor.caseless);
        let is_few = matches!(shape, Shape::Q4S2 | Shape::Q4S1) && anchors.len() <= FEW_MAX && !caseless;
        let finder = |(anchor, value): &(&Anchor, u32)| (Finder::new(&anchor.window).into_owned(), *value);
        let few = if is_few { anchors.iter().map(finder).collect() } else { Vec::new() };
        let fold = if caseless { FOLD } else { 0 };
        let fold = fold & (u64::MAX >> (64 - 8 * shape.q()));
        let mut entries = Vec::with_capacity(anchors.len() * shape.s());
        for (anchor, value) in anchors {
            for (phase, gram) in anchor.window.windows(shape.q()).enumerate() {
                entries.push((hash(load(gram) | fold), value | phase as u32));
            }
        }
        let single = entries.len() <= SMALL_FILTER_GRAMS;
        let bits = if single { SMALL_FILTER_BITS } else { entries.len() * 16 };
        let words = (bits / 64).next_power_of_two();
        let mut tier = Tier {
            shape,
            fold,
            filter: vec![0; words],
            mask: words as u64 - 1,
            single,
            buckets: Buckets::new(&entries),
            few,
        };
        for (hash, _) in &entries {
            let word = word(*hash, tier.mask);
            tier.filter[word] |= if single { first(*hash) } else { all_three(*hash) };
        }
        tier
    }

    /// The shape and the size of the tables.
    pub(crate) fn describe(&self) -> String {
        format!(
            "{:?}: filter {} B, single {}, table {} B",
            self.shape,
            self.filter.len() * 8,
            self.single,
            self.buckets.bytes()
        )
    }

    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.filter.len() * 8 + self.buckets.bytes()
    }

    /// Calls `hit` with the place in `bytes` and the value of each anchor whose q-gram stands at a sampled offset and
    /// ends behind `fresh`. `base` is the stream offset of `bytes`; `fresh` is a place in `bytes`.
    pub(crate) fn probe(
        &self,
        bytes: &[u8],
        base: u64,
        fresh: usize,
        masks: &mut Vec<u64>,
        hit: &mut impl FnMut(usize, u32),
    ) {
        if !self.few.is_empty() {
            return self.search_few(bytes, fresh, hit);
        }
        let (q, s) = (self.shape.q(), self.shape.s());
        let earliest = (fresh + 1).saturating_sub(q);
        let phase = (base.wrapping_add(earliest as u64) % s as u64) as usize;
        let first = earliest + if phase == 0 { 0 } else { s - phase };
        let Some(sampled) = bytes.get(first..).filter(|sampled| sampled.len() >= q) else {
            return;
        };
        masks.clear();
        match (self.shape, self.single) {
            (Shape::Q8S8, true) => self.sweep::<8, 8, true>(sampled, masks),
            (Shape::Q8S8, false) => self.sweep::<8, 8, false>(sampled, masks),
            (Shape::Q8S4, true) => self.sweep::<8, 4, true>(sampled, masks),
            (Shape::Q8S4, false) => self.sweep::<8, 4, false>(sampled, masks),
            (Shape::Q4S4, true) => self.sweep::<4, 4, true>(sampled, masks),
            (Shape::Q4S4, false) => self.sweep::<4, 4, false>(sampled, masks),
            (Shape::Q4S2, true) => self.sweep::<4, 2, true>(sampled, masks),
            (Shape::Q4S2, false) => self.sweep::<4, 2, false>(sampled, masks),
            (Shape::Q4S1, true) => self.sweep::<4, 1, true>(sampled, masks),
            (Shape::Q4S1, false) => self.sweep::<4, 1, false>(sampled, masks),
            (Shape::Q2S1, true) => self.sweep::<2, 1, true>(sampled, masks),
            (Shape::Q2S1, false) => self.sweep::<2, 1, false>(sampled, masks),
        }
        for (block, &mask) in masks.iter().enumerate() {
            let mut mask = mask;
            while mask != 0 {
                let at = first + (block * 64 + mask.trailing_zeros() as usize) * s;
                mask &= mask - 1;
                let gram = load(&bytes[at..at + q]) | self.fold;
                self.buckets.look_up(hash(gram), |value| hit(at, value));
            }
        }
    }

    /// Finds each window that ends behind `fresh`, overlapping ones too.
    fn search_few(&self, bytes: &[u8], fresh: usize, hit: &mut impl FnMut(usize, u32)) {
        for (finder, value) in &self.few {
            let mut from = (fresh + 1).saturating_sub(finder.needle().len());
            while let Some(found) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
                hit(from + found, *value);
                from += found + 1;
            }
        }
    }

    /// Looks at every `S`-th offset and appends the answers, 64 a word.
    fn sweep<const Q: usize, const S: usize, const SINGLE: bool>(&self, bytes: &[u8], masks: &mut Vec<u64>) {
        let looks = (bytes.len() - Q) / S + 1;
        let mut rest = bytes;
        for _ in 0..looks / 64 {
            masks.push(self.block::<Q, S, SINGLE>(rest, 64));
            rest = rest.get(64 * S..).unwrap_or(&[]);
        }
        let count = looks % 64;
        if count > 0 {
            masks.push(self.block::<Q, S, SINGLE>(rest, count) >> (64 - count));
        }
    }

    /// The answers of `count` looks, the last in the highest bit.
    #[inline(always)]
    fn block<const Q: usize, const S: usize, const SINGLE: bool>(&self, bytes: &[u8], count: usize) -> u64 {
        let filter = self.filter.as_slice();
        let mask = filter.len() as u64 - 1;
        let bytes = &bytes[..(count - 1) * S + Q];
        let look = |number: usize| {
            let hash = hash(load_q::<Q>(bytes, number * S) | self.fold);
            let word = filter[word(hash, mask)];
            let pass = if SINGLE {
                word >> (hash >> 58)
            } else {
                (word >> (hash >> 58)) & (word >> ((hash >> 52) & 63)) & (word >> ((hash >> 46) & 63))
            };
            pass & 1
        };
        // Shifted in from below, which is one addition; shifting in from above is a slow instruction on some machines.
        let mut answers = 0u64;
        let fours = count / 4 * 4;
        for number in (0..fours).step_by(4) {
            let four = look(number) << 3 | look(number + 1) << 2 | look(number + 2) << 1 | look(number + 3);
            answers = answers << 4 | four;
        }
        for number in fours..count {
            answers = answers << 1 | look(number);
        }
        answers.reverse_bits()
    }
}

#[inline]
fn load_q<const Q: usize>(bytes: &[u8], at: usize) -> u64 {
    match Q {
        8 => bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes),
        4 => bytes[at..at + 4].try_into().map_or(0, |four| u64::from(u32::from_le_bytes(four))),
        _ => bytes[at..at + 2].try_into().map_or(0, |two| u64::from(u16::from_le_bytes(two))),
    }
}

fn load(gram: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..gram.len()].copy_from_slice(gram);
    u64::from_le_bytes(bytes)
}

/// A multiplication whose halves are folded: each bit of the result depends on all bits of the gram.
#[inline]
fn hash(gram: u64) -> u64 {
    let product = u128::from(gram ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
fn word(hash: u64, mask: u64) -> usize {
    ((hash >> 16) & mask) as usize
}

fn first(hash: u64) -> u64 {
    1 << (hash >> 58)
}

fn all_three(hash: u64) -> u64 {
    1 << (hash >> 58) | 1 << ((hash >> 52) & 63) | 1 << ((hash >> 46) & 63)
}
