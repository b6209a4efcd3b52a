//! Eight lanes in AVX2.

use std::arch::x86_64::*;

use super::Vector;

/// Numbers in eight lanes.
#[derive(Clone, Copy)]
pub(super) struct Eight(__m256i);

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
    fn powers(self) -> Eight {
        Eight(unsafe { _mm256_sllv_epi32(_mm256_set1_epi32(1), self.0) })
    }
    #[inline(always)]
    fn equals(self, other: Eight) -> u16 {
        let equal = unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(self.0, other.0))) };
        equal as u16
    }
    #[inline(always)]
    unsafe fn fetch(self, words: &[u32]) -> Eight {
        // SAFETY: both are 32 bytes, of which any are valid.
        let [a, b, c, d] = unsafe { &std::mem::transmute::<__m256i, [[u32; 2]; 4]>(self.0) };
        // SAFETY: the caller has seen to it.
        unsafe {
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

/// The numbers at even and at odd places of two vectors.
#[inline(always)]
fn sort(first: Eight, second: Eight) -> (Eight, Eight) {
    unsafe {
        let (first, second) = (_mm256_castsi256_ps(first.0), _mm256_castsi256_ps(second.0));
        let even = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(first, second));
        let odd = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(first, second));
        // The shuffle works within halves of a vector; this puts their quarters in order.
        (Eight(_mm256_permute4x64_epi64::<0b11_01_10_00>(even)), Eight(_mm256_permute4x64_epi64::<0b11_01_10_00>(odd)))
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

/// The words at two places, by turns in all lanes. The compiler would take the places out of their vector, and put the words
/// into another, by shuffles, which most processors do one at a time; loads and blends they do two or three at a time.
///
/// # Safety
/// Both places are below the number of words.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn two(words: &[u32], places: &[u32; 2]) -> __m256i {
    let (first, second): (__m256i, __m256i);
    // SAFETY: the caller has seen to it that there are such words; nothing is written.
    unsafe {
        std::arch::asm!(
            "mov {place:e}, dword ptr [{places}]",
            "vpbroadcastd {first}, dword ptr [{words} + 4 * {place}]",
            "mov {place:e}, dword ptr [{places} + 4]",
            "vpbroadcastd {second}, dword ptr [{words} + 4 * {place}]",
            places = in(reg) places,
            words = in(reg) words.as_ptr(),
            place = out(reg) _,
            first = lateout(ymm_reg) first,
            second = lateout(ymm_reg) second,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    _mm256_blend_epi32::<0b1010_1010>(first, second)
}
