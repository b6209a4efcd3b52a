//! Sixteen lanes in AVX-512.

use std::arch::x86_64::*;

use super::Vector;
use super::avx2::Eight;

/// Numbers in sixteen lanes; whether words are gathered or loaded one by one.
#[derive(Clone, Copy)]
pub(super) struct Sixteen<const GATHERS: bool>(__m512i);

// SAFETY of all that follows: whoever has a `Sixteen` is in a function for machines with AVX-512.
impl<const GATHERS: bool> Vector for Sixteen<GATHERS> {
    const LANES: usize = 16;

    #[inline(always)]
    fn all(number: u32) -> Self {
        Self(unsafe { _mm512_set1_epi32(number.cast_signed()) })
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(unsafe { _mm512_add_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        Self(unsafe { _mm512_mullo_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(unsafe { _mm512_and_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(unsafe { _mm512_or_si512(self.0, other.0) })
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Self {
        Self(unsafe { _mm512_srl_epi32(self.0, _mm_cvtsi32_si128(bits.cast_signed())) })
    }
    #[inline(always)]
    fn shift_left(self, bits: Self) -> Self {
        Self(unsafe { _mm512_sllv_epi32(self.0, bits.0) })
    }
    #[inline(always)]
    fn signs<const Q: usize, const S: usize>(self) -> u16 {
        unsafe { _mm512_cmplt_epi32_mask(self.0, _mm512_setzero_si512()) }
    }
    #[inline(always)]
    unsafe fn fetch(self, words: &[u32]) -> Self {
        if GATHERS {
            // SAFETY: the caller has seen to it.
            return Self(unsafe { _mm512_i32gather_epi32::<4>(self.0, words.as_ptr().cast()) });
        }
        // SAFETY: the caller has seen to it; whoever has AVX-512 has AVX2.
        unsafe {
            let low = Eight(_mm512_castsi512_si256(self.0)).fetch(words);
            let high = Eight(_mm512_extracti64x4_epi64::<1>(self.0)).fetch(words);
            Self(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low.0), high.0))
        }
    }

    #[inline(always)]
    fn span<const Q: usize, const S: usize>() -> usize {
        match (Q, S) {
            (8, 8) => 128,
            (8 | 6, 4) => 68,
            _ => 64,
        }
    }

    #[inline(always)]
    fn grams<const Q: usize, const S: usize>(bytes: &[u8]) -> (Self, Option<Self>) {
        match (Q, S) {
            (8, 8) => {
                let (low, high) = sort(load(bytes), load(&bytes[64..]));
                (low, Some(high))
            }
            (8, 4) => (load(bytes), Some(load(&bytes[4..]))),
            (6, 4) => (load(bytes), Some(load(&bytes[4..]).and(Self::all(0xffff)))),
            (_, 4) => (load(bytes), None),
            (8, _) => (fours_at_twos::<0, GATHERS>(bytes), Some(fours_at_twos::<1, GATHERS>(bytes))),
            (4, 2) => (fours_at_twos::<0, GATHERS>(bytes), None),
            (4, _) => (fours(bytes), None),
            _ => (fours(bytes).and(Self::all(0xffff)), None),
        }
    }
}

/// The numbers at even and at odd places of two vectors.
#[inline(always)]
fn sort<const G: bool>(first: Sixteen<G>, second: Sixteen<G>) -> (Sixteen<G>, Sixteen<G>) {
    unsafe {
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
        (
            Sixteen(_mm512_permutex2var_epi32(first.0, even, second.0)),
            Sixteen(_mm512_permutex2var_epi32(first.0, odd, second.0)),
        )
    }
}

/// The four bytes at each of sixteen even places, from that of the pair with this number on.
#[inline(always)]
fn fours_at_twos<const PAIR: usize, const G: bool>(bytes: &[u8]) -> Sixteen<G> {
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
    let pairs = unsafe { std::mem::transmute::<[i16; 32], __m512i>(PAIRS[PAIR]) };
    Sixteen(unsafe { _mm512_permutexvar_epi16(pairs, load::<G>(bytes).0) })
}

/// The four bytes at each of the first sixteen places.
#[inline(always)]
fn fours<const G: bool>(bytes: &[u8]) -> Sixteen<G> {
    unsafe {
        // Each quarter has the eight bytes that its four fours are in.
        let pairs = _mm512_setr_epi32(0, 1, 0, 1, 1, 2, 1, 2, 2, 3, 2, 3, 3, 4, 3, 4);
        let order = _mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
        let quarters = _mm512_permutexvar_epi32(pairs, load::<G>(bytes).0);
        Sixteen(_mm512_shuffle_epi8(quarters, _mm512_broadcast_i32x4(order)))
    }
}

/// The first 64 bytes.
#[inline(always)]
fn load<const G: bool>(bytes: &[u8]) -> Sixteen<G> {
    let bytes: &[u8; 64] = bytes.first_chunk().expect("the caller has counted the bytes");
    // SAFETY: the 64 bytes are there, and the load asks for no alignment.
    Sixteen(unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) })
}
