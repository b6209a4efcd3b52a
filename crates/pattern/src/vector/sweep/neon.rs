//! The sweep in NEON: sixteen grams at a time in four vectors of four, otherwise as in AVX2.

use std::arch::aarch64::*;

use crate::filter::{BIT_SHIFTS, FACTORS, Filter};

/// How many grams are looked at together.
const TOGETHER: usize = 16;

/// Looks at every `S`-th offset and sets the answers, eight a byte, as far as whole rounds go. Returns how many bytes of
/// answers were set.
///
/// # Panics
/// If the machine has no NEON.
pub(crate) fn sweep<const Q: usize, const S: usize>(
    filter: &Filter,
    fold: u64,
    bytes: &[u8],
    masks: &mut [u8],
) -> usize {
    assert!(super::super::is_supported());
    // SAFETY: the machine has NEON, as was just asserted.
    unsafe { sweep_neon::<Q, S>(filter, fold, bytes, masks) }
}

#[target_feature(enable = "neon")]
fn sweep_neon<const Q: usize, const S: usize>(filter: &Filter, fold: u64, bytes: &[u8], masks: &mut [u8]) -> usize {
    let span = (TOGETHER - 4) * S + span::<Q, S>();
    let groups = bytes.len().checked_sub(span).map_or(0, |room| room / (TOGETHER * S) + 1);
    let tester = Tester::new(filter, fold);
    let masks = masks.as_chunks_mut::<2>().0;
    let groups = groups.min(masks.len());
    for (group, mask) in masks[..groups].iter_mut().enumerate() {
        let bytes = &bytes[group * TOGETHER * S..group * TOGETHER * S + span];
        let passes = |four: usize| tester.passes(four_grams::<Q, S>(&bytes[four * 4 * S..]));
        *mask = bits([passes(0), passes(1), passes(2), passes(3)]).to_le_bytes();
    }
    2 * groups
}

/// How many bytes [`four_grams`] reads.
const fn span<const Q: usize, const S: usize>() -> usize {
    match (Q, S) {
        (8, 8) => 32,
        (8 | 6, _) => 20,
        _ => 16,
    }
}

/// The low and the high halves of four grams; of short grams there is no high half.
type Grams = (uint32x4_t, Option<uint32x4_t>);

/// The `Q` bytes at each of the first four multiples of `S`.
#[inline]
#[target_feature(enable = "neon")]
fn four_grams<const Q: usize, const S: usize>(bytes: &[u8]) -> Grams {
    match (Q, S) {
        (8, 8) => {
            let (first, second) = (load(bytes), load(&bytes[16..]));
            (vuzp1q_u32(first, second), Some(vuzp2q_u32(first, second)))
        }
        (8, 4) => (load(bytes), Some(load(&bytes[4..]))),
        (6, 4) => (load(bytes), Some(vandq_u32(load(&bytes[4..]), vdupq_n_u32(0xffff)))),
        (8, _) => (fours_at_twos(bytes), Some(fours_at_twos(&bytes[4..]))),
        (_, 4) => (load(bytes), None),
        (4, 2) => (fours_at_twos(bytes), None),
        (4, _) => (reorder(bytes, [0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6]), None),
        _ => (reorder(bytes, [0, 1, Z, Z, 1, 2, Z, Z, 2, 3, Z, Z, 3, 4, Z, Z]), None),
    }
}

/// The four bytes at each of the first four even places.
#[inline]
#[target_feature(enable = "neon")]
fn fours_at_twos(bytes: &[u8]) -> uint32x4_t {
    reorder(bytes, [0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9])
}

/// Makes a zero in [`reorder`].
const Z: u8 = 0xff;

/// Of the first 16 bytes those that `order` numbers.
#[inline]
#[target_feature(enable = "neon")]
fn reorder(bytes: &[u8], order: [u8; 16]) -> uint32x4_t {
    // SAFETY: both are 16 bytes, of which any are valid.
    let order = unsafe { std::mem::transmute::<[u8; 16], uint8x16_t>(order) };
    vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(load(bytes)), order))
}

/// One bit for each of sixteen answers, all ones or all zeros.
#[inline]
#[target_feature(enable = "neon")]
fn bits(answers: [uint32x4_t; 4]) -> u16 {
    // SAFETY: both are 16 bytes, of which any are valid.
    let first = unsafe { std::mem::transmute::<[u32; 4], uint32x4_t>([1, 2, 4, 8]) };
    let [a, b, c, d] = answers;
    let low = vorrq_u32(vandq_u32(a, first), vandq_u32(b, vshlq_n_u32::<4>(first)));
    let high = vorrq_u32(vandq_u32(c, vshlq_n_u32::<8>(first)), vandq_u32(d, vshlq_n_u32::<12>(first)));
    vaddvq_u32(vorrq_u32(low, high)) as u16
}

/// What the tests of all grams of a sweep have in common.
struct Tester<'a> {
    words: &'a [u32],
    shift: int32x4_t,
    fold_low: uint32x4_t,
    fold_high: uint32x4_t,
    factors: [uint32x4_t; 4],
    salt: uint32x4_t,
}

impl<'a> Tester<'a> {
    #[inline]
    #[target_feature(enable = "neon")]
    fn new(filter: &'a Filter, fold: u64) -> Tester<'a> {
        Tester {
            words: filter.words(),
            // A shift to the left by less than nothing is one to the right.
            shift: vdupq_n_s32(-filter.shift().cast_signed()),
            fold_low: vdupq_n_u32(fold as u32),
            fold_high: vdupq_n_u32((fold >> 32) as u32),
            factors: FACTORS.map(|factor| vdupq_n_u32(factor)),
            salt: vdupq_n_u32(filter.salt()),
        }
    }

    /// [`Filter::passes`] for four grams: all ones for those that pass.
    #[inline]
    #[target_feature(enable = "neon")]
    fn passes(&self, (low, high): Grams) -> uint32x4_t {
        let low = vorrq_u32(low, self.fold_low);
        let mut place = vmulq_u32(low, self.factors[0]);
        let mut number = vmlaq_u32(self.salt, low, self.factors[2]);
        if let Some(high) = high {
            let high = vorrq_u32(high, self.fold_high);
            place = vmlaq_u32(place, high, self.factors[1]);
            number = vmlaq_u32(number, high, self.factors[3]);
        }
        let words = self.fetch(vshlq_u32(place, self.shift));
        let [first, second, third] = BIT_SHIFTS.map(|shift| {
            let number = vshlq_u32(number, vdupq_n_s32(-shift.cast_signed()));
            vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(vandq_u32(number, vdupq_n_u32(31))))
        });
        let bits = vorrq_u32(vorrq_u32(first, second), third);
        vceqq_u32(vandq_u32(words, bits), bits)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn fetch(&self, places: uint32x4_t) -> uint32x4_t {
        // SAFETY: both are 16 bytes, of which any are valid.
        let places: [u32; 4] = unsafe { std::mem::transmute(places) };
        // SAFETY: a place has been shifted until it has no more bits than the number of words, a power of two.
        let words = places.map(|place| unsafe { *self.words.get_unchecked(place as usize) });
        // SAFETY: both are 16 bytes, of which any are valid.
        unsafe { std::mem::transmute::<[u32; 4], uint32x4_t>(words) }
    }
}

/// The first 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8]) -> uint32x4_t {
    let bytes: &[u8; 16] = bytes.first_chunk().expect("the caller has counted the bytes");
    // SAFETY: the 16 bytes are there, and the load asks for no alignment.
    vreinterpretq_u32_u8(unsafe { vld1q_u8(bytes.as_ptr()) })
}
