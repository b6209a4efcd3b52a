//! The sweep in AVX-512: sixteen grams at a time, otherwise as in AVX2.

use std::arch::x86_64::*;

use crate::filter::{BIT_SHIFTS, FACTORS, Filter};

/// How many grams are looked at together.
const LANES: usize = 16;

/// Looks at every `S`-th offset and sets the answers, eight a byte, as far as whole vectors go. Returns how many bytes
/// of answers were set.
///
/// # Panics
/// If the machine has no AVX-512.
pub(crate) fn sweep<const Q: usize, const S: usize>(
    filter: &Filter,
    fold: u64,
    bytes: &[u8],
    masks: &mut [u8],
) -> usize {
    assert!(super::super::has_avx512());
    // SAFETY: the machine has what this is compiled for, as was just asserted.
    unsafe { sweep_avx512::<Q, S>(filter, fold, bytes, masks) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn sweep_avx512<const Q: usize, const S: usize>(filter: &Filter, fold: u64, bytes: &[u8], masks: &mut [u8]) -> usize {
    let span = span::<Q, S>();
    let groups = bytes.len().checked_sub(span).map_or(0, |room| room / (LANES * S) + 1);
    let tester = Tester::new(filter, fold);
    let masks = masks.as_chunks_mut::<2>().0;
    let groups = groups.min(masks.len());
    for (group, mask) in masks[..groups].iter_mut().enumerate() {
        let bytes = &bytes[group * LANES * S..group * LANES * S + span];
        *mask = tester.passes(sixteen_grams::<Q, S>(bytes)).to_le_bytes();
    }
    2 * groups
}

/// How many bytes [`sixteen_grams`] reads.
const fn span<const Q: usize, const S: usize>() -> usize {
    match (Q, S) {
        (8, 8) => 128,
        (8 | 6, 4) => 68,
        _ => 64,
    }
}

/// The low and the high halves of sixteen grams; of short grams there is no high half.
type Grams = (__m512i, Option<__m512i>);

/// The `Q` bytes at each of the first sixteen multiples of `S`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn sixteen_grams<const Q: usize, const S: usize>(bytes: &[u8]) -> Grams {
    match (Q, S) {
        (8, 8) => {
            let (first, second) = (load(bytes), load(&bytes[64..]));
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
            (_mm512_permutex2var_epi32(first, even, second), Some(_mm512_permutex2var_epi32(first, odd, second)))
        }
        (8, 4) => (load(bytes), Some(load(&bytes[4..]))),
        (6, 4) => (load(bytes), Some(_mm512_and_si512(load(&bytes[4..]), _mm512_set1_epi32(0xffff)))),
        (_, 4) => (load(bytes), None),
        (8, _) => (fours_at_twos::<0>(bytes), Some(fours_at_twos::<1>(bytes))),
        (4, 2) => (fours_at_twos::<0>(bytes), None),
        (4, _) => (fours(bytes), None),
        _ => (_mm512_and_si512(fours(bytes), _mm512_set1_epi32(0xffff)), None),
    }
}

/// The four bytes at each of sixteen even places, from that of the pair with this number on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn fours_at_twos<const PAIR: usize>(bytes: &[u8]) -> __m512i {
    const PAIRS: [[i16; 32]; 2] = {
        let mut order = [[0; 32]; 2];
        let mut place = 0;
        while place < 32 {
            order[0][place] = (place / 2 + place % 2) as i16;
            order[1][place] = order[0][place] + 2;
            place += 1;
        }
        order
    };
    // SAFETY: both are 64 bytes, of which any are valid.
    _mm512_permutexvar_epi16(unsafe { std::mem::transmute::<[i16; 32], __m512i>(PAIRS[PAIR]) }, load(bytes))
}

/// The four bytes at each of the first sixteen places.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn fours(bytes: &[u8]) -> __m512i {
    // Each quarter has the eight bytes that its four fours are in.
    let pairs = _mm512_setr_epi32(0, 1, 0, 1, 1, 2, 1, 2, 2, 3, 2, 3, 3, 4, 3, 4);
    let order = _mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
    _mm512_shuffle_epi8(_mm512_permutexvar_epi32(pairs, load(bytes)), _mm512_broadcast_i32x4(order))
}

/// What the tests of all grams of a sweep have in common.
struct Tester<'a> {
    words: &'a [u32],
    shift: __m128i,
    fold_low: __m512i,
    fold_high: __m512i,
    factors: [__m512i; 4],
    salt: __m512i,
}

impl<'a> Tester<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn new(filter: &'a Filter, fold: u64) -> Tester<'a> {
        Tester {
            words: filter.words(),
            shift: _mm_cvtsi32_si128(filter.shift().cast_signed()),
            fold_low: _mm512_set1_epi32(fold as i32),
            fold_high: _mm512_set1_epi32((fold >> 32) as i32),
            factors: FACTORS.map(|factor| _mm512_set1_epi32(factor.cast_signed())),
            salt: _mm512_set1_epi32(filter.salt().cast_signed()),
        }
    }

    /// [`Filter::passes`] for sixteen grams.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn passes(&self, (low, high): Grams) -> u16 {
        let low = _mm512_or_si512(low, self.fold_low);
        let mut place = _mm512_mullo_epi32(low, self.factors[0]);
        let mut number = _mm512_add_epi32(_mm512_mullo_epi32(low, self.factors[2]), self.salt);
        if let Some(high) = high {
            let high = _mm512_or_si512(high, self.fold_high);
            place = _mm512_add_epi32(place, _mm512_mullo_epi32(high, self.factors[1]));
            number = _mm512_add_epi32(number, _mm512_mullo_epi32(high, self.factors[3]));
        }
        let places = _mm512_srl_epi32(place, self.shift);
        let words = self.fetch(places);
        let [first, second, third] = BIT_SHIFTS.map(|shift| {
            let number = _mm512_srl_epi32(number, _mm_cvtsi32_si128(shift.cast_signed()));
            _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(number, _mm512_set1_epi32(31)))
        });
        let bits = _mm512_or_si512(_mm512_or_si512(first, second), third);
        _mm512_cmpeq_epi32_mask(_mm512_and_si512(words, bits), bits)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn fetch(&self, places: __m512i) -> __m512i {
        // SAFETY: both are 64 bytes, of which any are valid.
        let places: [u32; LANES] = unsafe { std::mem::transmute(places) };
        // SAFETY: a place has been shifted until it has no more bits than the number of words, a power of two.
        let word = |lane: usize| unsafe { *self.words.get_unchecked(places[lane] as usize) }.cast_signed();
        let four = |lane: usize| _mm_setr_epi32(word(lane), word(lane + 1), word(lane + 2), word(lane + 3));
        let low = _mm256_set_m128i(four(4), four(0));
        let high = _mm256_set_m128i(four(12), four(8));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
}

/// The first 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(bytes: &[u8]) -> __m512i {
    let bytes: &[u8; 64] = bytes.first_chunk().expect("the caller has counted the bytes");
    // SAFETY: the 64 bytes are there, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}
