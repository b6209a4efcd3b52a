//! A blocked Bloom filter over q-grams: each gram sets two bits of one 32-bit word, or three of one that it shares with a neighbour.
//!
//! It is made of operations that every machine has in lanes of 32 bits (multiply, shift, compare), so that one table
//! serves the portable sweep and the vector ones.

use std::collections::HashSet;
use std::io;

use crate::flat::{Flat, Reader, Unfit, Writer};

/// Up to so many grams have a word each: the filter is in the first-level cache.
const NEAR_MAX: usize = 1 << 13;
/// Up to so many have two: about one foreign gram in 4000 passes.
const SPARSE_MAX: usize = 1 << 15;
/// Up to so many have a word each, 2 MB at most: one in 400. With half a word one in 100 passes, but a larger filter is in no
/// second-level cache, and a look that misses it costs more than the passes.
const MIDDLE_MAX: usize = 1 << 19;
/// The least number of words: 8 kB, a quarter of a first-level cache.
const WORDS_MIN: usize = 1 << 11;
/// The most words: 1 GB.
const WORDS_MAX: usize = 1 << 28;

/// Odd multipliers: of the low and of the high half of a gram, and of the sum of both for its bits; another for those of the earlier
/// of two grams.
pub(crate) const FACTORS: [u32; 4] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f];
/// By how much the product for the bits is shifted so that its low five bits number a bit from the highest on, up to three times over.
pub(crate) const BIT_SHIFTS: [u32; 3] = [27, 22, 17];

/// The first six bytes of a gram.
const SIX: u64 = u64::MAX >> 16;

/// So many salts are tried, multiples of this.
const SALTS: u32 = 16;
const SALT: u32 = 0x9e37_79b9;

/// A gram as it is looked at: for itself, or of eight bytes as the earlier or the later of two that share six.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Member {
    Gram(u64),
    Earlier(u64),
    Later(u64),
}

impl Member {
    pub(crate) fn gram(self) -> u64 {
        match self {
            Member::Gram(gram) | Member::Earlier(gram) | Member::Later(gram) => gram,
        }
    }
}

/// A set of q-grams that never denies a member.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    /// A power of two of them, within the bounds above.
    words: Flat<u32>,
    /// Is added to the product for the bits.
    salt: u32,
}

impl Filter {
    /// The filter of these grams, salted so that as little as possible passes by chance of what ordinary content is full
    /// of, `often`, whose first is a fifth of some content.
    pub(crate) fn new(grams: &[Member], often: &[Member]) -> Filter {
        let mut foreign: HashSet<Member> = often.iter().copied().collect();
        for gram in grams {
            foreign.remove(gram);
        }
        let harm = |filter: &Filter| {
            let passing = foreign.iter().filter(|&&gram| filter.has(gram));
            passing.map(|gram| if often.first() == Some(gram) { often.len() } else { 1 }).sum::<usize>()
        };
        let (mut best, mut salt) = (Filter::salted(grams, 0), 0u32);
        while harm(&best) > 0 && salt < SALTS {
            salt += 1;
            let other = Filter::salted(grams, salt.wrapping_mul(SALT));
            if harm(&other) < harm(&best) {
                best = other;
            }
        }
        best
    }

    /// The filter of these grams with that salt.
    pub(crate) fn salted(grams: &[Member], salt: u32) -> Filter {
        let words = match grams.len() {
            count @ ..=NEAR_MAX => count,
            count @ ..=SPARSE_MAX => 2 * count,
            count @ ..=MIDDLE_MAX => count,
            count => count / 2,
        };
        let words = words.next_power_of_two();
        let mut words = vec![0; words.clamp(WORDS_MIN, WORDS_MAX)];
        let (shift, last) = (shift(&words), words.len() - 1);
        for &gram in grams {
            let (place, bits) = look(gram, shift, salt);
            words[place & last] |= bits;
        }
        Filter { words: words.into(), salt }
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&[self.salt])?;
        writer.array(&self.words)
    }

    pub(crate) fn load(reader: &mut Reader) -> Result<Filter, Unfit> {
        let [salt] = reader.values::<u32, 1>()?;
        let words = reader.array()?;
        let fits = words.len().is_power_of_two() && (WORDS_MIN..=WORDS_MAX).contains(&words.len());
        if fits { Ok(Filter { words, salt }) } else { Err(Unfit::Malformed) }
    }

    /// Whether the gram may be a member.
    #[inline(always)]
    pub(crate) fn passes(&self, gram: u64) -> bool {
        self.has(Member::Gram(gram))
    }

    /// Whether it may be a member.
    #[inline(always)]
    pub(crate) fn has(&self, member: Member) -> bool {
        let (place, bits) = look(member, self.shift(), self.salt);
        self.words[place & (self.words.len() - 1)] & bits == bits
    }

    /// [`Filter::has`] for two grams of eight bytes that share six, and with these a word: the answers as two bits.
    #[inline(always)]
    pub(crate) fn has_pair(&self, earlier: u64, later: u64) -> u8 {
        let (place, bits) = look(Member::Earlier(earlier), self.shift(), self.salt);
        let word = self.words[place & (self.words.len() - 1)];
        let (_, others) = look(Member::Later(later), self.shift(), self.salt);
        u8::from(word & bits == bits) | u8::from(word & others == others) << 1
    }

    /// The words; a power of two of them.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Number added to the product for the bits.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(crate) fn salt(&self) -> u32 {
        self.salt
    }

    /// How far the product for the place is shifted.
    pub(crate) fn shift(&self) -> u32 {
        shift(&self.words)
    }

    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * 4
    }
}

#[inline(always)]
fn shift(words: &[u32]) -> u32 {
    32 - words.len().trailing_zeros()
}

/// Word of a member, and its bits: of two with the same six bytes in the middle the same word. The high bits of the sum depend on all
/// bytes of a gram, or on all six.
#[inline(always)]
fn look(member: Member, shift: u32, salt: u32) -> (usize, u32) {
    let [_, _, later, earlier] = FACTORS;
    let (gram, beside, factor) = match member {
        Member::Gram(gram) => (gram, 0, later),
        Member::Later(gram) => (gram & SIX, (gram >> 48) as u32, later),
        Member::Earlier(gram) => (gram >> 16, gram as u32, earlier),
    };
    let (low, high) = (gram as u32, (gram >> 32) as u32);
    let sum = low.wrapping_mul(FACTORS[0]).wrapping_add(high.wrapping_mul(FACTORS[1]));
    let number = sum.wrapping_add(beside << 16).wrapping_mul(factor).wrapping_add(salt);
    let shifts = if matches!(member, Member::Gram(_)) { &BIT_SHIFTS[..2] } else { &BIT_SHIFTS };
    let bits = shifts.iter().fold(0, |bits, shift| bits | 1 << 31 >> (number >> shift & 31));
    ((sum >> shift) as usize, bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern.
    fn scattered(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|number| {
            let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        })
    }

    fn members(grams: &[u64]) -> Vec<Member> {
        grams.iter().copied().map(Member::Gram).collect()
    }

    #[test]
    fn members_pass_and_few_others_do() {
        let grams: Vec<u64> = scattered(60_000).collect();
        let filter = Filter::new(&members(&grams), &[]);
        assert!(grams.iter().all(|&gram| filter.passes(gram)));
        let foreign = scattered(160_000).skip(60_000).filter(|&gram| filter.passes(gram)).count();
        assert!(foreign < 1500, "{foreign} of 100000");
    }

    #[test]
    fn what_content_is_full_of_does_not_pass_by_chance() {
        let often = [0, u64::MAX, 0x2020_2020_2020_2020];
        let passes = |filter: &Filter| often.iter().any(|&gram| filter.passes(gram));
        let mut unsalted = 0;
        let all: Vec<u64> = scattered(200 * 4000).collect();
        for grams in all.chunks(4000) {
            unsalted += usize::from(passes(&Filter::salted(&members(grams), 0)));
            assert!(!passes(&Filter::new(&members(grams), &members(&often))));
            assert!(Filter::new(&members(&[grams, &[0]].concat()), &members(&often)).passes(0), "a member does");
        }
        assert!(unsalted > 0);
    }

    #[test]
    fn grams_that_differ_in_one_bit_are_told_apart() {
        let filter = Filter::new(&members(&[0]), &[]);
        let near = (0..64).filter(|bit| filter.passes(1 << bit)).count();
        assert!(near <= 1, "{near}");
    }
}
