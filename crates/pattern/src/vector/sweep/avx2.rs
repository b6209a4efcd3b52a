//! Eight lanes in AVX2.

use std::arch::x86_64::*;

use super::Vector;

/// Numbers in eight lanes.
#[derive(Clone, Copy)]
pub(super) struct Eight(pub(super) __m256i);

// SAFETY of all that follows: whoever has an `Eight` is in a function for machines with AVX2.
impl Vector for Eight {
    const LANES: usize = 8;

    #[inline(always)]
    fn all(number: u32) -> Eight {
        Eight(unsafe { _mm256_set1_epi32(number.cast_signed()) })
    }
    #[inline(always)]
    fn add(self, other: Eight) -> Eight {
        Eight(unsafe { _mm256_add_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn multiply(self, other: Eight) -> Eight {
        Eight(unsafe { _mm256_mullo_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Eight) -> Eight {
        Eight(unsafe { _mm256_and_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn or(self, other: Eight) -> Eight {
        Eight(unsafe { _mm256_or_si256(self.0, other.0) })
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Eight {
        Eight(unsafe { _mm256_srl_epi32(self.0, _mm_cvtsi32_si128(bits.cast_signed())) })
    }
    #[inline(always)]
    fn shift_left(self, bits: Eight) -> Eight {
        Eight(unsafe { _mm256_sllv_epi32(self.0, bits.0) })
    }
    #[inline(always)]
    fn signs<const Q: usize, const S: usize>(self) -> u16 {
        // Quarters that were sorted are put in order.
        let sorted = unsafe {
            match (Q, S) {
                (8, 8) => _mm256_permute4x64_epi64::<0b11_01_10_00>(self.0),
                _ => self.0,
            }
        };
        (unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(sorted)) }) as u16
    }
    #[inline(always)]
    fn signs_by_turns(self, other: Eight) -> u32 {
        let signs = unsafe {
            let halves = _mm256_blend_epi16::<0b1010_1010>(_mm256_srli_epi32::<16>(self.0), other.0);
            // A byte for each half, those of four lanes in the low quarter of either half.
            _mm256_movemask_epi8(_mm256_packs_epi16(halves, halves)).cast_unsigned()
        };
        signs & 0xff | signs >> 8 & 0xff00
    }
    #[inline(always)]
    unsafe fn fetch(self, words: &[u32]) -> Eight {
        // SAFETY: the caller has seen to it.
        unsafe {
            let (first, second) = (_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            let (a, b) = (_mm_cvtsi128_si64(first), _mm_extract_epi64::<1>(first));
            let (c, d) = (_mm_cvtsi128_si64(second), _mm_extract_epi64::<1>(second));
            let low = _mm256_blend_epi32::<0b1100>(two(words, a), two(words, b));
            let high = _mm256_blend_epi32::<0b1100_0000>(two(words, c), two(words, d));
            Eight(_mm256_blend_epi32::<0b1111_0000>(low, high))
        }
    }

    #[inline(always)]
    fn span<const Q: usize, const S: usize>() -> usize {
        match (Q, S) {
            (8, 8) => 64,
            (8 | 6, 4) => 36,
            (8, _) => 28,
            (_, 4) => 32,
            _ => 4 * S + 16,
        }
    }

    #[inline(always)]
    fn grams<const Q: usize, const S: usize>(bytes: &[u8]) -> (Eight, Option<Eight>) {
        match (Q, S) {
            (8, 8) => {
                let (low, high) = sort(load(bytes), load(&bytes[32..]));
                (low, Some(high))
            }
            (8, 4) => (load(bytes), Some(load(&bytes[4..]))),
            (6, 4) => (load(bytes), Some(load(&bytes[4..]).and(Eight::all(0xffff)))),
            (8, _) => (fours_at_twos(bytes), Some(fours_at_twos(&bytes[4..]))),
            (_, 4) => (load(bytes), None),
            (4, 2) => (fours_at_twos(bytes), None),
            (4, _) => (reorder(halves(bytes, 4), &[0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6]), None),
            _ => (reorder(halves(bytes, 4), &[0, 1, Z, Z, 1, 2, Z, Z, 2, 3, Z, Z, 3, 4, Z, Z]), None),
        }
    }
}

/// The numbers at even and at odd places of two vectors: within each half first two of the one, then two of the other.
#[inline(always)]
fn sort(first: Eight, second: Eight) -> (Eight, Eight) {
    unsafe {
        let (first, second) = (_mm256_castsi256_ps(first.0), _mm256_castsi256_ps(second.0));
        let even = _mm256_shuffle_ps::<0b10_00_10_00>(first, second);
        let odd = _mm256_shuffle_ps::<0b11_01_11_01>(first, second);
        (Eight(_mm256_castps_si256(even)), Eight(_mm256_castps_si256(odd)))
    }
}

/// The four bytes at each of the first eight even places.
#[inline(always)]
fn fours_at_twos(bytes: &[u8]) -> Eight {
    reorder(halves(bytes, 8), &[0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9])
}

/// Makes a zero in [`reorder`].
const Z: u8 = 0x80;

/// Within each half, the bytes that `order` numbers.
#[inline(always)]
fn reorder(bytes: Eight, order: &[u8; 16]) -> Eight {
    Eight(unsafe { _mm256_shuffle_epi8(bytes.0, _mm256_broadcastsi128_si256(load_half(order))) })
}

/// The first 16 bytes and the 16 from `second` on.
#[inline(always)]
fn halves(bytes: &[u8], second: usize) -> Eight {
    Eight(unsafe { _mm256_set_m128i(load_half(&bytes[second..]), load_half(bytes)) })
}

/// The first 32 bytes.
#[inline(always)]
fn load(bytes: &[u8]) -> Eight {
    let bytes: &[u8; 32] = bytes.first_chunk().expect("the caller has counted the bytes");
    // SAFETY: the 32 bytes are there, and the load asks for no alignment.
    Eight(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
}

/// The first 16 bytes.
#[inline(always)]
fn load_half(bytes: &[u8]) -> __m128i {
    let bytes: &[u8; 16] = bytes.first_chunk().expect("the caller has counted the bytes");
    // SAFETY: the 16 bytes are there, and the load asks for no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// The words at two places, a half of the number each, by turns in all lanes. The compiler would put words into their vector by
/// shuffles, which most processors do one at a time; loads and blends they do two or three at a time.
///
/// # Safety
/// Both places are below the number of words.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn two(words: &[u32], places: i64) -> __m256i {
    let places = places.cast_unsigned();
    let (first, second): (__m256i, __m256i);
    // SAFETY: the caller has seen to it that there are such words; nothing is written.
    unsafe {
        std::arch::asm!(
            "vpbroadcastd {first}, dword ptr [{words} + 4 * {first_place}]",
            "vpbroadcastd {second}, dword ptr [{words} + 4 * {second_place}]",
            first_place = in(reg) places & u64::from(u32::MAX),
            second_place = in(reg) places >> 32,
            words = in(reg) words.as_ptr(),
            first = out(ymm_reg) first,
            second = lateout(ymm_reg) second,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    _mm256_blend_epi32::<0b1010_1010>(first, second)
}
