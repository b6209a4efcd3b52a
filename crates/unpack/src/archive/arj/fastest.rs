//! ARJ's method 4: literals, and matches with a length and a distance in codes of growing width.

// A bit machine: its sums are those of the code, and overflow checks are on.
#![allow(clippy::arithmetic_side_effects)]

use crate::archive::lha::{Method, Run};
use crate::bits::history::History;
use crate::bits::pushed::Bits;

/// How far back matches reach, and more.
pub(super) const DICTIONARY_BYTES: usize = 32 << 10;

const LENGTH_MIN: usize = 3;
/// The most bits of a symbol, and more.
const SYMBOL_BITS: usize = 48;

/// The method.
pub(super) struct Fastest;

/// A number whose width is told by the ones in front of it, from `first` to `last` bits.
fn number(bits: &mut Bits, first: u32, last: u32) -> usize {
    let (mut width, mut base) = (first, 0);
    while width < last && bits.flag() {
        base += 1 << width;
        width += 1;
    }
    base + bits.take(width) as usize
}

impl Method for Fastest {
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run> {
        while history.position() < end {
            if !bits.has(SYMBOL_BITS) || bits.is_at_end() {
                return Some(Run::Input);
            }
            match number(bits, 0, 7) {
                0 => history.dictionary.push(bits.take(8) as u8),
                length => {
                    let distance = number(bits, 9, 13) + 1;
                    history.copy(distance, length - 1 + LENGTH_MIN, end).ok()?;
                }
            }
        }
        Some(Run::Full)
    }
}
