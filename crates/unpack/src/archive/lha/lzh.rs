//! The methods `lh4` to `lh7` and `lhx`, which ARJ has too: LZ77 in blocks, each with its Huffman codes in front.
//!
//! ```text
//! block := symbols u16, code of code lengths, code of literals and lengths, code of distances, symbols
//! ```

// A bit machine: its sums are those of the code, and overflow checks are on.
#![allow(clippy::arithmetic_side_effects)]

use super::method::{Method, Run, lacks_input};
use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;

/// Literals, and lengths from 3 to 256.
const MAIN: usize = 510;
const LENGTH_CODES: usize = 19;
/// Distances of 2^31 would have more; none of the methods does.
const DISTANCES_MAX: usize = 32;

const HEADER_BITS: usize = 8 * 1600;
const SYMBOL_BITS: usize = 80;

/// The method, by the bits of a distance.
pub(crate) struct Lzh {
    /// Bits that count the distance codes.
    count_bits: u32,
    main: Huffman,
    distances: Huffman,
    /// Symbols left in the block.
    left: u32,
}

impl Lzh {
    /// The method with a dictionary of `1 << dictionary_bits`.
    pub fn new(dictionary_bits: u32) -> Lzh {
        let count_bits = if dictionary_bits > 14 { 5 } else { 4 };
        Lzh { count_bits, main: Huffman::new(), distances: Huffman::new(), left: 0 }
    }

    /// Reads the head of a block.
    fn codes(&mut self, bits: &mut Bits) -> Option<()> {
        self.left = bits.take(16);
        let mut lengths = Huffman::new();
        read_small_code(&mut lengths, LENGTH_CODES, 5, Some(3), bits)?;
        self.read_main(&lengths, bits)?;
        let count_bits = self.count_bits;
        read_small_code(&mut self.distances, DISTANCES_MAX, count_bits, None, bits)
    }

    fn read_main(&mut self, code: &Huffman, bits: &mut Bits) -> Option<()> {
        let count = bits.take(9) as usize;
        if count == 0 {
            self.main.set_constant(bits.take(9) as u16);
            return Some(());
        }
        let mut lengths = [0; MAIN];
        let mut at = 0;
        while at < count.min(MAIN) {
            match code.read(bits)? {
                0 => at += 1,
                1 => at += bits.take(4) as usize + 3,
                2 => at += bits.take(9) as usize + 20,
                length => {
                    lengths[at] = length as u8 - 2;
                    at += 1;
                }
            }
        }
        self.main.set(&lengths).ok()
    }

    #[inline(always)]
    fn distance(&self, bits: &mut Bits) -> Option<usize> {
        match self.distances.read(bits)? {
            0 => Some(1),
            width => Some((1 << (width - 1)) + bits.take(width as u32 - 1) as usize + 1),
        }
    }
}

/// A code of few symbols: lengths of three bits, from 7 on one more for each further bit set. Behind the length at `gap`
/// two bits tell how many are zero.
fn read_small_code(
    code: &mut Huffman,
    symbols: usize,
    count_bits: u32,
    gap: Option<usize>,
    bits: &mut Bits,
) -> Option<()> {
    let count = bits.take(count_bits) as usize;
    if count == 0 {
        code.set_constant(bits.take(count_bits) as u16);
        return Some(());
    }
    let mut lengths = [0; DISTANCES_MAX];
    let mut at = 0;
    while at < count.min(symbols) {
        let mut length = bits.take(3);
        while length >= 7 && bits.flag() {
            length += 1;
        }
        lengths[at] = u8::try_from(length).ok()?;
        at += 1;
        if Some(at) == gap {
            at += bits.take(2) as usize;
        }
    }
    code.set(&lengths[..symbols]).ok()
}

impl Method for Lzh {
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run> {
        while history.position() < end {
            if lacks_input(bits, self.left > 0, [HEADER_BITS, SYMBOL_BITS]) {
                return Some(Run::Input);
            }
            if self.left == 0 {
                self.codes(bits)?;
                continue;
            }
            self.left -= 1;
            match self.main.read(bits)? {
                literal @ 0..256 => history.dictionary.push(literal as u8),
                symbol => {
                    let distance = self.distance(bits)?;
                    history.copy(distance, symbol - 256 + 3, end).ok()?;
                }
            }
        }
        Some(Run::Full)
    }
}
