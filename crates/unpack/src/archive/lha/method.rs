//! Method of a member: a machine that reads symbols, run by the decoder.

use crate::bits::history::History;
use crate::bits::pushed::Bits;

/// A method: symbols to literals and matches.
pub(crate) trait Method: Send {
    /// Reads symbols until the history is at `end`; `None` if they make no sense.
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run>;
}

/// Why a run ended.
pub(crate) enum Run {
    Full,
    Input,
}

/// Returns whether a method has to wait for input: for the header of a block, or within one for a symbol, each of which
/// takes at most so many bits.
pub(super) fn lacks_input(bits: &Bits, is_in_block: bool, [header_bits, symbol_bits]: [usize; 2]) -> bool {
    match is_in_block {
        // A symbol that is the only one takes no bits.
        true => !bits.has(symbol_bits) || bits.overran(),
        false => !bits.has(header_bits) || bits.is_at_end(),
    }
}
