//! Hash functions over eight streams, in AVX2. Where the processor has AVX-512 the same code is compiled for it: a rotation
//! and a mix of three words are then one instruction each.

use std::arch::x86_64::*;

use crate::lanes::{Block, Function, LANES, Words};

/// Takes blocks, equally many of each stream, into the states of all lanes.
pub(crate) type Take<const N: usize> = fn(&mut [[u32; LANES]; N], [&[Block]; LANES]);

/// How this machine can take blocks, the best first.
pub(crate) fn paths<F: Function<N>, const N: usize>() -> impl Iterator<Item = Take<N>> {
    // SAFETY: a path is called where the machine has what it is compiled for.
    let avx512 =
        super::has_avx512().then_some::<Take<N>>(|lanes, blocks| unsafe { take_avx512::<F, N>(lanes, blocks) });
    let avx2 = super::is_supported().then_some::<Take<N>>(|lanes, blocks| unsafe { take_avx2::<F, N>(lanes, blocks) });
    avx512.into_iter().chain(avx2)
}

#[target_feature(enable = "avx512f,avx512vl")]
fn take_avx512<F: Function<N>, const N: usize>(lanes: &mut [[u32; LANES]; N], blocks: [&[Block]; LANES]) {
    take_all::<F, N>(lanes, blocks);
}

#[target_feature(enable = "avx2")]
fn take_avx2<F: Function<N>, const N: usize>(lanes: &mut [[u32; LANES]; N], blocks: [&[Block]; LANES]) {
    take_all::<F, N>(lanes, blocks);
}

#[inline(always)]
fn take_all<F: Function<N>, const N: usize>(lanes: &mut [[u32; LANES]; N], blocks: [&[Block]; LANES]) {
    let mut state = lanes.map(Vector::new);
    for index in 0..blocks[0].len() {
        let blocks = blocks.map(|blocks| blocks[index].as_chunks::<32>().0);
        let mut words = [Vector::all(0); 16];
        for half in 0..2 {
            let rows = blocks.map(|block| Vector::read(&block[half], F::SWAPS));
            words[8 * half..][..8].copy_from_slice(&transpose(rows));
        }
        F::take(&mut state, &words);
    }
    *lanes = state.map(Vector::lanes);
}

/// The rows as columns.
#[inline(always)]
fn transpose(rows: [Vector; 8]) -> [Vector; 8] {
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

/// Words of eight streams. There are none but in the functions for machines with AVX2.
#[derive(Clone, Copy)]
struct Vector(__m256i);

impl Vector {
    #[inline(always)]
    fn new(lanes: [u32; LANES]) -> Vector {
        // SAFETY: both are 32 bytes, of which any are valid.
        Vector(unsafe { std::mem::transmute::<[u32; LANES], __m256i>(lanes) })
    }

    #[inline(always)]
    fn lanes(self) -> [u32; LANES] {
        // SAFETY: both are 32 bytes, of which any are valid.
        unsafe { std::mem::transmute::<__m256i, [u32; LANES]>(self.0) }
    }

    /// Eight words of one stream.
    #[inline(always)]
    fn read(bytes: &[u8; 32], swaps: bool) -> Vector {
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
