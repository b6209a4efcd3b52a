//! Words of eight streams in AVX2.

use std::arch::x86_64::*;

use crate::lanes::{LANES, Words};

/// Words of eight streams. There are none but in the functions for machines with AVX2.
#[derive(Clone, Copy)]
pub(super) struct Vector(__m256i);

impl Vector {
    #[inline(always)]
    pub(super) fn new(lanes: [u32; LANES]) -> Vector {
        // SAFETY: both are 32 bytes, of which any are valid.
        Vector(unsafe { std::mem::transmute::<[u32; LANES], __m256i>(lanes) })
    }

    #[inline(always)]
    pub(super) fn lanes(self) -> [u32; LANES] {
        // SAFETY: both are 32 bytes, of which any are valid.
        unsafe { std::mem::transmute::<__m256i, [u32; LANES]>(self.0) }
    }

    /// Eight words of one stream.
    #[inline(always)]
    pub(super) fn read(bytes: &[u8; 32], swaps: bool) -> Vector {
        // SAFETY: the 32 bytes are there, the load asks for no alignment, and the machine has AVX2.
        unsafe {
            let words = _mm256_loadu_si256(bytes.as_ptr().cast());
            if !swaps {
                return Vector(words);
            }
            let order = _mm256_set_epi64x(
                0x0c0d_0e0f_0809_0a0b,
                0x0405_0607_0001_0203,
                0x0c0d_0e0f_0809_0a0b,
                0x0405_0607_0001_0203,
            );
            Vector(_mm256_shuffle_epi8(words, order))
        }
    }
}

/// The rows as columns.
#[inline(always)]
pub(super) fn transpose(rows: [Vector; 8]) -> [Vector; 8] {
    // SAFETY: whoever has a `Vector` is on a machine with AVX2.
    unsafe {
        let rows = rows.map(|Vector(row)| row);
        let pairs = |low: usize| {
            let (first, second) = (rows[low], rows[low + 1]);
            (_mm256_unpacklo_epi32(first, second), _mm256_unpackhi_epi32(first, second))
        };
        let fours = |low: usize| {
            let ((a, c), (b, d)) = (pairs(low), pairs(low + 2));
            [
                _mm256_unpacklo_epi64(a, b),
                _mm256_unpackhi_epi64(a, b),
                _mm256_unpacklo_epi64(c, d),
                _mm256_unpackhi_epi64(c, d),
            ]
        };
        let (upper, lower) = (fours(0), fours(4));
        std::array::from_fn(|column| {
            let (upper, lower) = (upper[column % 4], lower[column % 4]);
            Vector(match column / 4 {
                0 => _mm256_permute2x128_si256::<0x20>(upper, lower),
                _ => _mm256_permute2x128_si256::<0x31>(upper, lower),
            })
        })
    }
}

// SAFETY of all that follows: whoever has a `Vector` is on a machine with AVX2.
impl Words for Vector {
    #[inline(always)]
    fn all(word: u32) -> Vector {
        Vector::new([word; LANES])
    }
    #[inline(always)]
    fn add(self, other: Vector) -> Vector {
        Vector(unsafe { _mm256_add_epi32(self.0, other.0) })
    }
    #[inline(always)]
    fn and(self, other: Vector) -> Vector {
        Vector(unsafe { _mm256_and_si256(self.0, other.0) })
    }
    #[inline(always)]
    fn or(self, other: Vector) -> Vector {
        Vector(unsafe { _mm256_or_si256(self.0, other.0) })
    }
    #[inline(always)]
    fn xor(self, other: Vector) -> Vector {
        Vector(unsafe { _mm256_xor_si256(self.0, other.0) })
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Vector {
        Vector(unsafe { _mm256_srl_epi32(self.0, _mm_cvtsi32_si128(bits.cast_signed())) })
    }
    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Vector {
        let left = unsafe { _mm256_sll_epi32(self.0, _mm_cvtsi32_si128(bits.cast_signed())) };
        self.shift_right(32 - bits).or(Vector(left))
    }
}
