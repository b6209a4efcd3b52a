//! Sixteen lanes in NEON, four in each of four vectors.

use std::arch::aarch64::*;

use super::Vector;

/// Numbers in sixteen lanes.
#[derive(Clone, Copy)]
pub(super) struct Sixteen([uint32x4_t; 4]);

impl Sixteen {
    #[inline(always)]
    fn each(self, work: impl Fn(uint32x4_t) -> uint32x4_t) -> Sixteen {
        let [a, b, c, d] = self.0;
        Sixteen([work(a), work(b), work(c), work(d)])
    }

    #[inline(always)]
    fn both(self, other: Sixteen, work: impl Fn(uint32x4_t, uint32x4_t) -> uint32x4_t) -> Sixteen {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Sixteen([work(a, e), work(b, f), work(c, g), work(d, h)])
    }
}

// SAFETY of all that follows: whoever has a `Sixteen` is in a function for machines with NEON.
impl Vector for Sixteen {
    const LANES: usize = 16;

    #[inline(always)]
    fn all(number: u32) -> Sixteen {
        Sixteen([unsafe { vdupq_n_u32(number) }; 4])
    }
    #[inline(always)]
    fn add(self, other: Sixteen) -> Sixteen {
        self.both(other, |one, other| unsafe { vaddq_u32(one, other) })
    }
    #[inline(always)]
    fn multiply(self, other: Sixteen) -> Sixteen {
        self.both(other, |one, other| unsafe { vmulq_u32(one, other) })
    }
    #[inline(always)]
    fn and(self, other: Sixteen) -> Sixteen {
        self.both(other, |one, other| unsafe { vandq_u32(one, other) })
    }
    #[inline(always)]
    fn or(self, other: Sixteen) -> Sixteen {
        self.both(other, |one, other| unsafe { vorrq_u32(one, other) })
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Sixteen {
        // A shift to the left by less than nothing is one to the right.
        self.each(|numbers| unsafe { vshlq_u32(numbers, vdupq_n_s32(-bits.cast_signed())) })
    }
    #[inline(always)]
    fn shift_left(self, bits: Sixteen) -> Sixteen {
        self.both(bits, |numbers, bits| unsafe { vshlq_u32(numbers, vreinterpretq_s32_u32(bits)) })
    }
    #[inline(always)]
    fn signs<const Q: usize, const S: usize>(self) -> u16 {
        let Sixteen([a, b, c, d]) = self.each(|numbers| unsafe { vcltzq_s32(vreinterpretq_s32_u32(numbers)) });
        // SAFETY: both are 16 bytes, of which any are valid.
        let first = unsafe { std::mem::transmute::<[u32; 4], uint32x4_t>([1, 2, 4, 8]) };
        unsafe {
            let low = vorrq_u32(vandq_u32(a, first), vandq_u32(b, vshlq_n_u32::<4>(first)));
            let high = vorrq_u32(vandq_u32(c, vshlq_n_u32::<8>(first)), vandq_u32(d, vshlq_n_u32::<12>(first)));
            vaddvq_u32(vorrq_u32(low, high)) as u16
        }
    }
    #[inline(always)]
    unsafe fn fetch(self, words: &[u32]) -> Sixteen {
        self.each(|places| {
            // SAFETY: both are 16 bytes, of which any are valid.
            let places: [u32; 4] = unsafe { std::mem::transmute(places) };
            // SAFETY: the caller has seen to it.
            let words = places.map(|place| unsafe { *words.get_unchecked(place as usize) });
            // SAFETY: both are 16 bytes, of which any are valid.
            unsafe { std::mem::transmute::<[u32; 4], uint32x4_t>(words) }
        })
    }

    #[inline(always)]
    fn span<const Q: usize, const S: usize>() -> usize {
        let last = match (Q, S) {
            (8, 8) => 32,
            (8 | 6, _) => 20,
            _ => 16,
        };
        12 * S + last
    }

    #[inline(always)]
    fn grams<const Q: usize, const S: usize>(bytes: &[u8]) -> (Sixteen, Option<Sixteen>) {
        let [a, b, c, d] = [0, 4, 8, 12].map(|gram| four_grams::<Q, S>(&bytes[gram * S..]));
        let low = Sixteen([a.0, b.0, c.0, d.0]);
        let high = match (a.1, b.1, c.1, d.1) {
            (Some(a), Some(b), Some(c), Some(d)) => Some(Sixteen([a, b, c, d])),
            _ => None,
        };
        (low, high)
    }
}

/// The `Q` bytes at each of the first four multiples of `S`.
#[inline(always)]
fn four_grams<const Q: usize, const S: usize>(bytes: &[u8]) -> (uint32x4_t, Option<uint32x4_t>) {
    match (Q, S) {
        (8, 8) => {
            let (first, second) = (load(bytes), load(&bytes[16..]));
            unsafe { (vuzp1q_u32(first, second), Some(vuzp2q_u32(first, second))) }
        }
        (8, 4) => (load(bytes), Some(load(&bytes[4..]))),
        (6, 4) => (load(bytes), Some(unsafe { vandq_u32(load(&bytes[4..]), vdupq_n_u32(0xffff)) })),
        (8, _) => (fours_at_twos(bytes), Some(fours_at_twos(&bytes[4..]))),
        (_, 4) => (load(bytes), None),
        (4, 2) => (fours_at_twos(bytes), None),
        (4, _) => (reorder(bytes, [0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6]), None),
        _ => (reorder(bytes, [0, 1, Z, Z, 1, 2, Z, Z, 2, 3, Z, Z, 3, 4, Z, Z]), None),
    }
}

/// The four bytes at each of the first four even places.
#[inline(always)]
fn fours_at_twos(bytes: &[u8]) -> uint32x4_t {
    reorder(bytes, [0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9])
}

/// Makes a zero in [`reorder`].
const Z: u8 = 0xff;

/// Picks the bytes that `order` numbers of the first 16.
#[inline(always)]
fn reorder(bytes: &[u8], order: [u8; 16]) -> uint32x4_t {
    // SAFETY: both are 16 bytes, of which any are valid.
    let order = unsafe { std::mem::transmute::<[u8; 16], uint8x16_t>(order) };
    unsafe { vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(load(bytes)), order)) }
}

/// The first 16 bytes.
#[inline(always)]
fn load(bytes: &[u8]) -> uint32x4_t {
    let bytes: &[u8; 16] = bytes.first_chunk().expect("the caller has counted the bytes");
    // SAFETY: the 16 bytes are there, and the load asks for no alignment.
    unsafe { vreinterpretq_u32_u8(vld1q_u8(bytes.as_ptr())) }
}
