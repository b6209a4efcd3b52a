//! The method `lh3`: as `lh4`, but the lengths of the codes are stored plainly, and those of the distances may be left
//! out for a code that both sides know.
//!
//! ```text
//! block := symbols u16, code of literals and lengths, flag, code of distances if the flag is set, symbols
//! ```
//!
//! Source: what public readers do (LHa for UNIX, XADMaster).

// A bit machine: its sums are those of the code, and overflow checks are on.
#![allow(clippy::arithmetic_side_effects)]

use super::method::{Method, Run, lacks_input};
use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;

/// Literals, lengths from 3 to 31, and one for those above.
const SYMBOLS: usize = 286;
const LONG: usize = SYMBOLS - 1;
/// The upper seven bits of a distance.
const DISTANCES: usize = 128;

const HEADER_BITS: usize = 16 + SYMBOLS * 5 + 1 + DISTANCES * 4 + 16;
const SYMBOL_BITS: usize = 64;

/// The method.
pub(super) struct Lh3 {
    main: Huffman,
    distances: Huffman,
    /// Symbols left in the block.
    left: u32,
}

impl Lh3 {
    pub fn new() -> Lh3 {
        Lh3 { main: Huffman::new(), distances: Huffman::new(), left: 0 }
    }

    /// Reads the head of a block.
    fn codes(&mut self, bits: &mut Bits) -> Option<()> {
        self.left = bits.take(16);
        let length = |bits: &mut Bits| if bits.flag() { bits.take(4) as u8 + 1 } else { 0 };
        read_code::<SYMBOLS>(&mut self.main, 9, length, bits)?;
        if bits.flag() {
            return read_code::<DISTANCES>(&mut self.distances, 7, |bits| bits.take(4) as u8, bits);
        }
        const COUNTS: [(u8, usize); 7] = [(2, 1), (4, 2), (5, 3), (6, 7), (7, 18), (8, 47), (9, 50)];
        let known: Vec<u8> = COUNTS.iter().flat_map(|&(length, count)| std::iter::repeat_n(length, count)).collect();
        self.distances.set(&known).ok()
    }
}

/// Reads a code of `COUNT` symbols; where the first three have one bit each, of the one symbol that follows.
fn read_code<const COUNT: usize>(
    code: &mut Huffman,
    symbol_bits: u32,
    length: impl Fn(&mut Bits) -> u8,
    bits: &mut Bits,
) -> Option<()> {
    let mut lengths = [0; COUNT];
    for at in 0..COUNT {
        lengths[at] = length(bits);
        if at == 2 && lengths.starts_with(&[1, 1, 1]) {
            code.set_constant(bits.take(symbol_bits) as u16);
            return Some(());
        }
    }
    code.set(&lengths).ok()
}

impl Method for Lh3 {
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
            let symbol = match self.main.read(bits)? {
                LONG => LONG + bits.take(8) as usize,
                symbol => symbol,
            };
            if symbol < 256 {
                history.dictionary.push(symbol as u8);
                continue;
            }
            let distance = (self.distances.read(bits)? << 6 | bits.take(6) as usize) + 1;
            history.copy(distance, symbol - 256 + 3, end).ok()?;
        }
        Some(Run::Full)
    }
}
