//! The sweep in vectors: one algorithm over what each kind of them can do.
//!
//! As many grams as a vector has lanes are cut out of the stream, multiplied and tested at once. The words of the filter
//! are fetched by plain loads, or gathered where that is quicker: on some processors it is much slower.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

use crate::filter::{BIT_SHIFTS, FACTORS, Filter};

/// Numbers of 32 bits, one in each lane. There are none but in functions that are compiled for machines with what they are
/// made of; all methods are inlined there.
trait Vector: Copy {
    /// How many lanes: eight or sixteen.
    const LANES: usize;

    /// The same number in all lanes.
    fn all(number: u32) -> Self;
    fn add(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn shift_right(self, bits: u32) -> Self;

    /// Each number shifted to the left by another, which is below 32.
    fn shift_left(self, bits: Self) -> Self;

    /// The highest bit of each number that was made of [`grams`](Vector::grams): the lowest is that of the first gram.
    fn signs<const Q: usize, const S: usize>(self) -> u16;

    /// The highest bits of these numbers and of others by turns: the lowest is the first of these.
    #[inline(always)]
    fn signs_by_turns(self, other: Self) -> u32 {
        let [these, others] = [self, other].map(|numbers| {
            let signs = u32::from(numbers.signs::<4, 4>());
            let spread = (signs | signs << 8) & 0x00ff_00ff;
            let spread = (spread | spread << 4) & 0x0f0f_0f0f;
            let spread = (spread | spread << 2) & 0x3333_3333;
            (spread | spread << 1) & 0x5555_5555
        });
        these | others << 1
    }

    /// The words at these places.
    ///
    /// # Safety
    /// Each number is below the number of words.
    unsafe fn fetch(self, words: &[u32]) -> Self;

    /// How many bytes [`grams`](Vector::grams) reads.
    fn span<const Q: usize, const S: usize>() -> usize;

    /// The `Q` bytes at each of the first multiples of `S`, a lane each, in an order that [`signs`](Vector::signs) knows: the
    /// low and the high halves. Of short grams there is no high half.
    fn grams<const Q: usize, const S: usize>(bytes: &[u8]) -> (Self, Option<Self>);
}

/// The sweep for machines with these instructions; it panics on others.
macro_rules! sweep_in {
    ($name:ident, $pairs:ident, $vector:ty, $features:literal, $has:ident) => {
        pub(crate) fn $name<const Q: usize, const S: usize>(
            filter: &Filter,
            fold: u64,
            bytes: &[u8],
            masks: &mut [u8],
        ) -> usize {
            #[target_feature(enable = $features)]
            fn here<const Q: usize, const S: usize>(
                filter: &Filter,
                fold: u64,
                bytes: &[u8],
                masks: &mut [u8],
            ) -> usize {
                sweep::<$vector, Q, S>(filter, fold, bytes, masks)
            }
            assert!(super::$has());
            // SAFETY: the machine has what this is compiled for, as was just asserted.
            unsafe { here::<Q, S>(filter, fold, bytes, masks) }
        }

        pub(crate) fn $pairs(filter: &Filter, fold: u64, bytes: &[u8], masks: &mut [u8]) -> usize {
            #[target_feature(enable = $features)]
            fn here(filter: &Filter, fold: u64, bytes: &[u8], masks: &mut [u8]) -> usize {
                sweep_pairs::<$vector>(filter, fold, bytes, masks)
            }
            assert!(super::$has());
            // SAFETY: the machine has what this is compiled for, as was just asserted.
            unsafe { here(filter, fold, bytes, masks) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
sweep_in!(avx2, avx2_pairs, avx2::Eight, "avx2", is_supported);
#[cfg(target_arch = "x86_64")]
sweep_in!(avx512, avx512_pairs, avx512::Sixteen<false>, "avx512f,avx512bw,avx512vl", has_avx512);
#[cfg(target_arch = "x86_64")]
sweep_in!(avx512_gather, avx512_gather_pairs, avx512::Sixteen<true>, "avx512f,avx512bw,avx512vl", has_avx512);
#[cfg(target_arch = "aarch64")]
sweep_in!(neon, neon_pairs, neon::Sixteen, "neon", is_supported);

/// Looks at every `S`-th offset and sets the answers, eight a byte, as far as whole vectors go. Returns how many bytes
/// of answers were set.
#[inline(always)]
fn sweep<V: Vector, const Q: usize, const S: usize>(
    filter: &Filter,
    fold: u64,
    bytes: &[u8],
    masks: &mut [u8],
) -> usize {
    let (stride, mask_bytes) = (V::LANES * S, V::LANES / 8);
    let room = bytes.len().checked_sub(V::span::<Q, S>()).map_or(0, |room| room / stride + 1);
    let groups = room.min(masks.len() / mask_bytes);
    let masks = &mut masks[..groups * mask_bytes];
    let tester = Tester::<V>::new(filter, fold);
    match fold {
        0 => tester.walk::<Q, S, false>(bytes, masks),
        _ => tester.walk::<Q, S, true>(bytes, masks),
    }
    groups * mask_bytes
}

/// Looks at every second offset for eight bytes, two at a time that share six, and sets the answers as [`sweep`] does.
#[inline(always)]
fn sweep_pairs<V: Vector>(filter: &Filter, fold: u64, bytes: &[u8], masks: &mut [u8]) -> usize {
    let mask_bytes = V::LANES / 4;
    let room = bytes.len().checked_sub(V::span::<4, 4>() + 6).map_or(0, |room| room / (V::LANES * 4) + 1);
    let groups = room.min(masks.len() / mask_bytes);
    let masks = &mut masks[..groups * mask_bytes];
    let tester = Tester::<V>::new(filter, fold);
    match fold {
        0 => tester.walk_pairs::<false>(bytes, masks),
        _ => tester.walk_pairs::<true>(bytes, masks),
    }
    groups * mask_bytes
}

/// Common part of the tests of all grams of a sweep.
struct Tester<'a, V> {
    words: &'a [u32],
    shift: u32,
    fold_low: V,
    fold_high: V,
    factors: [V; 4],
    salt: V,
}

impl<'a, V: Vector> Tester<'a, V> {
    #[inline(always)]
    fn new(filter: &'a Filter, fold: u64) -> Tester<'a, V> {
        Tester {
            words: filter.words(),
            shift: filter.shift(),
            fold_low: V::all(fold as u32),
            fold_high: V::all((fold >> 32) as u32),
            factors: FACTORS.map(V::all),
            salt: V::all(filter.salt()),
        }
    }

    /// Sets the answers; there are bytes for all of them.
    #[inline(always)]
    fn walk<const Q: usize, const S: usize, const FOLDS: bool>(&self, bytes: &[u8], masks: &mut [u8]) {
        for (group, mask) in masks.chunks_exact_mut(V::LANES / 8).enumerate() {
            let bytes = &bytes[group * V::LANES * S..][..V::span::<Q, S>()];
            let passes = self.passes::<FOLDS>(V::grams::<Q, S>(bytes)).signs::<Q, S>();
            mask.copy_from_slice(&passes.to_le_bytes()[..V::LANES / 8]);
        }
    }

    /// [`Filter::passes`] for the grams of all lanes, folded if `FOLDS`: the highest bit of each.
    #[inline(always)]
    fn passes<const FOLDS: bool>(&self, (low, high): (V, Option<V>)) -> V {
        let low = if FOLDS { low.or(low.and(self.fold_low).shift_right(1)) } else { low };
        let mut sum = low.multiply(self.factors[0]);
        if let Some(high) = high {
            let high = if FOLDS { high.or(high.and(self.fold_high).shift_right(1)) } else { high };
            sum = sum.add(high.multiply(self.factors[1]));
        }
        let number = sum.multiply(self.factors[2]).add(self.salt);
        // SAFETY: a place has been shifted until it has no more bits than the number of words, a power of two.
        let words = unsafe { sum.shift_right(self.shift).fetch(self.words) };
        has_two(words, number)
    }

    /// Sets the answers for pairs; there are bytes for all of them.
    #[inline(always)]
    fn walk_pairs<const FOLDS: bool>(&self, bytes: &[u8], masks: &mut [u8]) {
        for (group, mask) in masks.chunks_exact_mut(V::LANES / 4).enumerate() {
            let bytes = &bytes[group * V::LANES * 4..][..V::span::<4, 4>() + 6];
            // The first two bytes of the earlier gram are in front in each four, those of the six next, the last of the later behind.
            let fours = [bytes, &bytes[2..], &bytes[6..]].map(|bytes| V::grams::<4, 4>(bytes).0);
            let (earlier, later) = self.pairs::<FOLDS>(fours);
            mask.copy_from_slice(&earlier.signs_by_turns(later).to_le_bytes()[..V::LANES / 4]);
        }
    }

    /// [`Filter::has`] for the earlier and the later of all pairs: the highest bit of each.
    #[inline(always)]
    fn pairs<const FOLDS: bool>(&self, fours: [V; 3]) -> (V, V) {
        let fold = |four: V| if FOLDS { four.or(four.and(self.fold_low).shift_right(1)) } else { four };
        let [first, low, high] = fours.map(fold);
        let sum = low.multiply(self.factors[0]).add(high.and(V::all(0xffff)).multiply(self.factors[1]));
        // SAFETY: as above.
        let words = unsafe { sum.shift_right(self.shift).fetch(self.words) };
        let earlier = sum.add(first.shift_left(V::all(16))).multiply(self.factors[3]).add(self.salt);
        let later = sum.add(high.and(V::all(0xffff_0000))).multiply(self.factors[2]).add(self.salt);
        (has_three(words, earlier), has_three(words, later))
    }
}

/// Whether each word has the first two bits that its number names, as its highest bit.
#[inline(always)]
fn has_two<V: Vector>(words: V, number: V) -> V {
    let [first, second, _] = BIT_SHIFTS;
    lifted(words, number, first).and(lifted(words, number, second))
}

/// The same for all three bits.
#[inline(always)]
fn has_three<V: Vector>(words: V, number: V) -> V {
    has_two(words, number).and(lifted(words, number, BIT_SHIFTS[2]))
}

/// Each word shifted to the left until the bit is the highest that five of the bits of its number name, from `shift` on.
#[inline(always)]
fn lifted<V: Vector>(words: V, number: V, shift: u32) -> V {
    words.shift_left(number.shift_right(shift).and(V::all(31)))
}
