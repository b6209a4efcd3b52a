//! Words of eight streams in AVX2.

use core::arch::x86_64::*;

use super::WIDTH;
use crate::lanes::Words;

/// Words of eight streams. There are none but in the functions for machines with AVX2.
#[derive(Clone, Copy)]
pub(super) struct Vector(__m256i);

impl Vector {
    #[inline(always)]
    pub(super) fn new(lanes: [u32; WIDTH]) -> Vector {
        // SAFETY: both are 32 bytes, of which any are valid.
        Vector(unsafe { core::mem::transmute::<[u32; WIDTH], __m256i>(lanes) })
    }

    #[inline(always)]
    pub(super) fn lanes(self) -> [u32; WIDTH] {
        // SAFETY: both are 32 bytes, of which any are valid.
        unsafe { core::mem::transmute::<__m256i, [u32; WIDTH]>(self.0) }
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
        let [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
        let (p0, p1) = (_mm256_unpacklo_epi32(r0.0, r1.0), _mm256_unpackhi_epi32(r0.0, r1.0));
        let (p2, p3) = (_mm256_unpacklo_epi32(r2.0, r3.0), _mm256_unpackhi_epi32(r2.0, r3.0));
        let (p4, p5) = (_mm256_unpacklo_epi32(r4.0, r5.0), _mm256_unpackhi_epi32(r4.0, r5.0));
        let (p6, p7) = (_mm256_unpacklo_epi32(r6.0, r7.0), _mm256_unpackhi_epi32(r6.0, r7.0));
        let (f0, f1) = (_mm256_unpacklo_epi64(p0, p2), _mm256_unpackhi_epi64(p0, p2));
        let (f2, f3) = (_mm256_unpacklo_epi64(p1, p3), _mm256_unpackhi_epi64(p1, p3));
        let (f4, f5) = (_mm256_unpacklo_epi64(p4, p6), _mm256_unpackhi_epi64(p4, p6));
        let (f6, f7) = (_mm256_unpacklo_epi64(p5, p7), _mm256_unpackhi_epi64(p5, p7));
        [
            Vector(_mm256_permute2x128_si256::<0x20>(f0, f4)),
            Vector(_mm256_permute2x128_si256::<0x20>(f1, f5)),
            Vector(_mm256_permute2x128_si256::<0x20>(f2, f6)),
            Vector(_mm256_permute2x128_si256::<0x20>(f3, f7)),
            Vector(_mm256_permute2x128_si256::<0x31>(f0, f4)),
            Vector(_mm256_permute2x128_si256::<0x31>(f1, f5)),
            Vector(_mm256_permute2x128_si256::<0x31>(f2, f6)),
            Vector(_mm256_permute2x128_si256::<0x31>(f3, f7)),
        ]
    }
}

// SAFETY of all that follows: whoever has a `Vector` is on a machine with AVX2.
impl Words for Vector {
    #[inline(always)]
    fn all(word: u32) -> Vector {
        Vector::new([word; WIDTH])
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
