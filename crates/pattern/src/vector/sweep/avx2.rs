//! The sweep in AVX2.
//!
//! Eight grams at a time are cut out of the stream, multiplied and tested in vectors. The eight words of the filter are
//! fetched by plain loads: a gather was no faster where this was measured, and with some microcode it is much slower.

use std::arch::x86_64::*;

use crate::filter::{BIT_SHIFTS, FACTORS, Filter};

/// Looks at every `S`-th offset and sets the answers, eight a byte, as far as whole vectors go. Returns how many bytes
/// of answers were set.
///
/// # Panics
/// If the machine has no AVX2.
pub(crate) fn sweep<const Q: usize, const S: usize>(
    filter: &Filter,
    fold: u64,
    bytes: &[u8],
    masks: &mut [u8],
) -> usize {
    assert!(super::super::is_supported());
    // SAFETY: the machine has AVX2, as was just asserted.
    unsafe { sweep_avx2::<Q, S>(filter, fold, bytes, masks) }
}

#[target_feature(enable = "avx2")]
fn sweep_avx2<const Q: usize, const S: usize>(filter: &Filter, fold: u64, bytes: &[u8], masks: &mut [u8]) -> usize {
    let span = span::<Q, S>();
    let groups = bytes.len().checked_sub(span).map_or(0, |room| room / (8 * S) + 1).min(masks.len());
    let tester = Tester::new(filter, fold);
    for (group, mask) in masks[..groups].iter_mut().enumerate() {
        let bytes = &bytes[group * 8 * S..group * 8 * S + span];
        *mask = tester.passes(eight_grams::<Q, S>(bytes));
    }
    groups
}

/// How many bytes [`eight_grams`] reads.
const fn span<const Q: usize, const S: usize>() -> usize {
    match (Q, S) {
        (8, 8) => 64,
        (8 | 6, 4) => 36,
        (8, _) => 28,
        (_, 4) => 32,
        _ => 4 * S + 16,
    }
}

/// The low and the high halves of eight grams; of short grams there is no high half.
type Grams = (__m256i, Option<__m256i>);

/// The `Q` bytes at each of the first eight multiples of `S`.
#[inline]
#[target_feature(enable = "avx2")]
fn eight_grams<const Q: usize, const S: usize>(bytes: &[u8]) -> Grams {
    match (Q, S) {
        (8, 8) => {
            let (first, second) = (_mm256_castsi256_ps(load(bytes)), _mm256_castsi256_ps(load(&bytes[32..])));
            let low = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(first, second));
            let high = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(first, second));
            // The shuffle works within halves of a vector; this puts their quarters in order.
            let (low, high) =
                (_mm256_permute4x64_epi64::<0b11_01_10_00>(low), _mm256_permute4x64_epi64::<0b11_01_10_00>(high));
            (low, Some(high))
        }
        (8, 4) => (load(bytes), Some(load(&bytes[4..]))),
        (6, 4) => (load(bytes), Some(_mm256_and_si256(load(&bytes[4..]), _mm256_set1_epi32(0xffff)))),
        (8, _) => (fours_at_twos(bytes), Some(fours_at_twos(&bytes[4..]))),
        (_, 4) => (load(bytes), None),
        (4, 2) => (fours_at_twos(bytes), None),
        (4, _) => (reorder(halves(bytes, 4), &[0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6]), None),
        _ => (reorder(halves(bytes, 4), &[0, 1, Z, Z, 1, 2, Z, Z, 2, 3, Z, Z, 3, 4, Z, Z]), None),
    }
}

/// The four bytes at each of the first eight even places.
#[inline]
#[target_feature(enable = "avx2")]
fn fours_at_twos(bytes: &[u8]) -> __m256i {
    reorder(halves(bytes, 8), &[0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9])
}

/// Makes a zero in [`reorder`].
const Z: u8 = 0x80;

/// Within each half, the bytes that `order` numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn reorder(bytes: __m256i, order: &[u8; 16]) -> __m256i {
    _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(load_half(order)))
}

/// The first 16 bytes and the 16 from `second` on.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(bytes: &[u8], second: usize) -> __m256i {
    _mm256_set_m128i(load_half(&bytes[second..]), load_half(bytes))
}

/// What the tests of all grams of a sweep have in common.
struct Tester<'a> {
    words: &'a [u32],
    shift: __m128i,
    fold_low: __m256i,
    fold_high: __m256i,
    factors: [__m256i; 4],
    salt: __m256i,
}

impl<'a> Tester<'a> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(filter: &'a Filter, fold: u64) -> Tester<'a> {
        Tester {
            words: filter.words(),
            shift: _mm_cvtsi32_si128(filter.shift().cast_signed()),
            fold_low: _mm256_set1_epi32(fold as i32),
            fold_high: _mm256_set1_epi32((fold >> 32) as i32),
            factors: FACTORS.map(|factor| _mm256_set1_epi32(factor.cast_signed())),
            salt: _mm256_set1_epi32(filter.salt().cast_signed()),
        }
    }

    /// [`Filter::passes`] for eight grams.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn passes(&self, (low, high): Grams) -> u8 {
        let low = _mm256_or_si256(low, self.fold_low);
        let mut place = _mm256_mullo_epi32(low, self.factors[0]);
        let mut number = _mm256_add_epi32(_mm256_mullo_epi32(low, self.factors[2]), self.salt);
        if let Some(high) = high {
            let high = _mm256_or_si256(high, self.fold_high);
            place = _mm256_add_epi32(place, _mm256_mullo_epi32(high, self.factors[1]));
            number = _mm256_add_epi32(number, _mm256_mullo_epi32(high, self.factors[3]));
        }
        let words = self.fetch(_mm256_srl_epi32(place, self.shift));
        let [first, second, third] = BIT_SHIFTS.map(|shift| {
            let number = _mm256_srl_epi32(number, _mm_cvtsi32_si128(shift.cast_signed()));
            _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_and_si256(number, _mm256_set1_epi32(31)))
        });
        let bits = _mm256_or_si256(_mm256_or_si256(first, second), third);
        let pass = _mm256_cmpeq_epi32(_mm256_and_si256(words, bits), bits);
        _mm256_movemask_ps(_mm256_castsi256_ps(pass)) as u8
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn fetch(&self, places: __m256i) -> __m256i {
        // SAFETY: both are 32 bytes, of which any are valid.
        let places: [u32; 8] = unsafe { std::mem::transmute(places) };
        // SAFETY: a place has been shifted until it has no more bits than the number of words, a power of two.
        let words = places.map(|place| unsafe { *self.words.get_unchecked(place as usize) });
        // SAFETY: both are 32 bytes, of which any are valid.
        unsafe { std::mem::transmute::<[u32; 8], __m256i>(words) }
    }
}

/// The first 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8]) -> __m256i {
    let bytes: &[u8; 32] = bytes.first_chunk().expect("the caller has counted the bytes");
    // SAFETY: the 32 bytes are there, and the load asks for no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// The first 16 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn load_half(bytes: &[u8]) -> __m128i {
    let bytes: &[u8; 16] = bytes.first_chunk().expect("the caller has counted the bytes");
    // SAFETY: the 16 bytes are there, and the load asks for no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}
