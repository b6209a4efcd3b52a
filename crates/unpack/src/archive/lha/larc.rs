//! LArc's methods `lzs` and `lz5`: matches tell a place in a ring, not a distance.

// A bit machine: its sums are those of the code, and overflow checks are on.
#![allow(clippy::arithmetic_side_effects)]

use super::method::{Method, Run};
use crate::bits::history::History;
use crate::bits::pushed::Bits;

const SYMBOL_BITS: usize = 32;

/// The method `lzs`: a bit says whether a literal or a match follows.
pub(super) struct Lzs;

impl Lzs {
    const RING: usize = 1 << 11;
    const SHIFT: usize = 17;
}

impl Method for Lzs {
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run> {
        while history.position() < end {
            if !bits.has(SYMBOL_BITS) || bits.is_at_end() {
                return Some(Run::Input);
            }
            if bits.flag() {
                history.dictionary.push(bits.take(8) as u8);
                continue;
            }
            let place = bits.take(11) as usize + Lzs::SHIFT;
            let length = bits.take(4) as usize + 2;
            history.copy(distance(history.position(), place, Lzs::RING), length, end).ok()?;
        }
        Some(Run::Full)
    }
}

/// The method `lz5`: the bits that say so come eight together, the lowest first.
pub(super) struct Lz5 {
    flags: u32,
    flags_left: u32,
}

impl Lz5 {
    const RING: usize = 1 << 12;
    const SHIFT: usize = 18;

    pub const fn new() -> Lz5 {
        Lz5 { flags: 0, flags_left: 0 }
    }

    /// Initial content of the ring: runs of each byte, all bytes up and down, zeros, spaces.
    pub fn before() -> Vec<u8> {
        let mut ring = vec![0; Lz5::SHIFT];
        (0..=255).for_each(|byte| ring.extend_from_slice(&[byte; 13]));
        ring.extend(0..=255u8);
        ring.extend((0..=255u8).rev());
        ring.resize(ring.len() + 128, 0);
        ring.resize(Lz5::RING, b' ');
        ring
    }
}

impl Method for Lz5 {
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run> {
        while history.position() < end {
            if !bits.has(SYMBOL_BITS) || bits.is_at_end() {
                return Some(Run::Input);
            }
            if self.flags_left == 0 {
                (self.flags, self.flags_left) = (bits.take(8), 8);
            }
            let is_literal = self.flags & 1 == 1;
            self.flags >>= 1;
            self.flags_left -= 1;
            if is_literal {
                history.dictionary.push(bits.take(8) as u8);
                continue;
            }
            let (low, high) = (bits.take(8) as usize, bits.take(4) as usize);
            let length = bits.take(4) as usize + 3;
            let place = (high << 8 | low) + Lz5::SHIFT;
            history.copy(distance(history.position(), place, Lz5::RING), length, end).ok()?;
        }
        Some(Run::Full)
    }
}

/// How far back a place in the ring is; the history began with a whole ring.
const fn distance(position: u64, place: usize, ring: usize) -> usize {
    let back = (position as usize).wrapping_sub(place) & (ring - 1);
    if back == 0 { ring } else { back }
}
