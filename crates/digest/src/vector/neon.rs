//! Words of eight streams in NEON, four in each of two vectors: what one waits for itself, the other computes.

use core::arch::aarch64::*;

use super::WIDTH;
use crate::lanes::Words;

/// Words of eight streams. There are none but in the functions for machines with NEON.
#[derive(Clone, Copy)]
pub(super) struct Vector([uint32x4_t; 2]);

impl Vector {
    #[inline(always)]
    pub(super) fn new(lanes: [u32; WIDTH]) -> Vector {
        // SAFETY: both are 32 bytes, of which any are valid.
        Vector(unsafe { core::mem::transmute::<[u32; WIDTH], [uint32x4_t; 2]>(lanes) })
    }

    #[inline(always)]
    pub(super) fn lanes(self) -> [u32; WIDTH] {
        // SAFETY: both are 32 bytes, of which any are valid.
        unsafe { core::mem::transmute::<[uint32x4_t; 2], [u32; WIDTH]>(self.0) }
    }

    /// Eight words of one stream.
    #[inline(always)]
    pub(super) fn read(bytes: &[u8; 32], swaps: bool) -> Vector {
        // SAFETY: the 32 bytes are there, the load asks for no alignment, and the machine has NEON.
        let half = |half: usize| unsafe {
            let bytes = vld1q_u8(bytes[16 * half..].as_ptr());
            vreinterpretq_u32_u8(if swaps { vrev32q_u8(bytes) } else { bytes })
        };
        Vector([half(0), half(1)])
    }

    #[inline(always)]
    fn each(self, work: impl Fn(uint32x4_t) -> uint32x4_t) -> Vector {
        Vector(self.0.map(work))
    }

    #[inline(always)]
    fn both(self, other: Vector, work: impl Fn(uint32x4_t, uint32x4_t) -> uint32x4_t) -> Vector {
        Vector([work(self.0[0], other.0[0]), work(self.0[1], other.0[1])])
    }
}

/// The rows as columns.
#[inline(always)]
pub(super) fn transpose(rows: [Vector; 8]) -> [Vector; 8] {
    // Words `half * 4` to `half * 4 + 3` of four streams.
    // SAFETY: whoever has a `Vector` is on a machine with NEON.
    let fours = |first: usize, half: usize| unsafe {
        let pairs = |row: usize| {
            let (one, next) = (rows[row].0[half], rows[row + 1].0[half]);
            let (even, odd) = (vtrn1q_u32(one, next), vtrn2q_u32(one, next));
            (vreinterpretq_u64_u32(even), vreinterpretq_u64_u32(odd))
        };
        let ((even, odd), (later_even, later_odd)) = (pairs(first), pairs(first + 2));
        [
            vtrn1q_u64(even, later_even),
            vtrn1q_u64(odd, later_odd),
            vtrn2q_u64(even, later_even),
            vtrn2q_u64(odd, later_odd),
        ]
        .map(|column| vreinterpretq_u32_u64(column))
    };
    core::array::from_fn(|column| {
        let (half, column) = (column / 4, column % 4);
        Vector([fours(0, half)[column], fours(4, half)[column]])
    })
}

// SAFETY of all that follows: whoever has a `Vector` is on a machine with NEON.
impl Words for Vector {
    #[inline(always)]
    fn all(word: u32) -> Vector {
        Vector::new([word; WIDTH])
    }
    #[inline(always)]
    fn add(self, other: Vector) -> Vector {
        self.both(other, |one, other| unsafe { vaddq_u32(one, other) })
    }
    #[inline(always)]
    fn and(self, other: Vector) -> Vector {
        self.both(other, |one, other| unsafe { vandq_u32(one, other) })
    }
    #[inline(always)]
    fn or(self, other: Vector) -> Vector {
        self.both(other, |one, other| unsafe { vorrq_u32(one, other) })
    }
    #[inline(always)]
    fn xor(self, other: Vector) -> Vector {
        self.both(other, |one, other| unsafe { veorq_u32(one, other) })
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Vector {
        // A shift to the left by less than nothing is one to the right.
        self.each(|words| unsafe { vshlq_u32(words, vdupq_n_s32(-bits.cast_signed())) })
    }
    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Vector {
        let left = self.each(|words| unsafe { vshlq_u32(words, vdupq_n_s32(bits.cast_signed())) });
        self.shift_right(32 - bits).or(left)
    }
}
