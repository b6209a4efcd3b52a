//! LZMA: from the symbols of a range coder to bytes in a dictionary.
//!
//! The plain decoder, as the LZMA specification describes it:
//! ```text
//! while output is wanted:
//!     if not bit: a literal, its bits predicted by the byte before (and the byte at the last distance)
//!     else if bit: one of the last four distances again, with a length (or one byte)
//!     else: a length, then a distance whose upper bits are a slot
//!     copy the match
//! ```
//! It may stop between symbols and inside of a match, when the output that was asked for is complete.

use super::dictionary::{Dictionary, Unreachable};
use super::range::{EVEN, Probability, Range, Registers};

const STATES: usize = 12;
const POSITION_STATES: usize = 16;
const LITERAL_CODER: usize = 0x300;
const SLOTS_OF_MODELLED: usize = 14;
const FIRST_MODELLED_SLOT: usize = 4;

/// The decoder's model.
pub(crate) struct Lzma {
    literal_context_bits: u32,
    literal_position_mask: usize,
    position_mask: usize,
    state: usize,
    /// The last four distances, less one.
    reps: [u32; 4],
    /// Remaining bytes of a match that did not fit.
    pending: usize,
    models: Box<Models>,
    literals: Vec<[Probability; LITERAL_CODER]>,
}

struct Models {
    is_match: [[Probability; POSITION_STATES]; STATES],
    is_rep: [Probability; STATES],
    is_rep0: [Probability; STATES],
    is_rep1: [Probability; STATES],
    is_rep2: [Probability; STATES],
    is_rep0_long: [[Probability; POSITION_STATES]; STATES],
    slots: [[Probability; 64]; 4],
    modelled: [[Probability; 32]; SLOTS_OF_MODELLED - FIRST_MODELLED_SLOT],
    align: [Probability; 16],
    match_lengths: Lengths,
    rep_lengths: Lengths,
}

#[derive(Clone, Copy)]
struct Lengths {
    above_low: Probability,
    above_middle: Probability,
    low: [[Probability; 8]; POSITION_STATES],
    middle: [[Probability; 8]; POSITION_STATES],
    high: [Probability; 256],
}

const EVEN_LENGTHS: Lengths = Lengths {
    above_low: EVEN,
    above_middle: EVEN,
    low: [[EVEN; 8]; POSITION_STATES],
    middle: [[EVEN; 8]; POSITION_STATES],
    high: [EVEN; 256],
};

const EVEN_MODELS: Models = Models {
    is_match: [[EVEN; POSITION_STATES]; STATES],
    is_rep: [EVEN; STATES],
    is_rep0: [EVEN; STATES],
    is_rep1: [EVEN; STATES],
    is_rep2: [EVEN; STATES],
    is_rep0_long: [[EVEN; POSITION_STATES]; STATES],
    slots: [[EVEN; 64]; 4],
    modelled: [[EVEN; 32]; SLOTS_OF_MODELLED - FIRST_MODELLED_SLOT],
    align: [EVEN; 16],
    match_lengths: EVEN_LENGTHS,
    rep_lengths: EVEN_LENGTHS,
};

impl Lzma {
    pub fn new() -> Lzma {
        Lzma {
            literal_context_bits: 0,
            literal_position_mask: 0,
            position_mask: 0,
            state: 0,
            reps: [0; 4],
            pending: 0,
            models: Box::new(EVEN_MODELS),
            literals: Vec::new(),
        }
    }

    /// Sets lc, lp and pb from their byte; whether there are such, with lc and lp together within a bound.
    pub fn set_properties(&mut self, byte: u8, literal_bits_max: u32) -> bool {
        let byte = u32::from(byte);
        let (context, position, state) = (byte % 9, byte / 9 % 5, byte / 45);
        if state > 4 || context + position > literal_bits_max {
            return false;
        }
        self.literal_context_bits = context;
        self.literal_position_mask = (1 << position) - 1;
        self.position_mask = (1 << state) - 1;
        self.literals.resize(1 << (context + position), [EVEN; LITERAL_CODER]);
        self.reset();
        true
    }

    /// Resets the model.
    pub fn reset(&mut self) {
        self.state = 0;
        self.reps = [0; 4];
        self.pending = 0;
        *self.models = EVEN_MODELS;
        self.literals.fill([EVEN; LITERAL_CODER]);
    }

    /// Whether a match is still to be completed.
    pub const fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Whether the last symbol was the end marker: a match at a distance that cannot be.
    pub const fn is_end_marker(&self) -> bool {
        self.reps[0] == u32::MAX
    }

    /// Writes `count` bytes to the dictionary, which has room for them, or fewer if no symbol begins in front of the
    /// byte `until` of the input any more.
    pub fn decode(
        &mut self,
        registers: &mut Registers,
        input: &[u8],
        until: usize,
        dictionary: &mut Dictionary,
        count: usize,
    ) -> Result<(), Unreachable> {
        // A copy of our own, which the compiler can keep in machine registers.
        let mut range = registers.over(input);
        let result = self.decode_symbols(&mut range, until, dictionary, count);
        *registers = range.registers();
        result
    }

    #[inline(always)]
    fn decode_symbols(
        &mut self,
        range: &mut Range<'_>,
        until: usize,
        dictionary: &mut Dictionary,
        count: usize,
    ) -> Result<(), Unreachable> {
        let end = dictionary.position() + count as u64;
        self.copy_match(dictionary, end);
        while dictionary.position() < end && range.at() < until {
            let position = dictionary.position() as usize;
            let place = position & self.position_mask & (POSITION_STATES - 1);
            if !range.bit(&mut self.models.is_match[self.state][place]) {
                self.literal(range, dictionary, position);
                continue;
            }
            let length = if range.bit(&mut self.models.is_rep[self.state]) {
                self.rep(range, place)
            } else {
                self.fresh(range, place)
            };
            dictionary.check(self.reps[0] as usize + 1)?;
            self.pending = length;
            self.copy_match(dictionary, end);
        }
        Ok(())
    }

    #[inline(always)]
    fn copy_match(&mut self, dictionary: &mut Dictionary, end: u64) {
        if self.pending == 0 {
            return;
        }
        let count = self.pending.min((end - dictionary.position()) as usize);
        dictionary.repeat(self.reps[0] as usize + 1, count);
        self.pending -= count;
    }

    #[inline(always)]
    fn literal(&mut self, range: &mut Range<'_>, dictionary: &mut Dictionary, position: usize) {
        let before = usize::from(dictionary.back(1)) >> (8 - self.literal_context_bits);
        let context = ((position & self.literal_position_mask) << self.literal_context_bits) + before;
        let coder = &mut self.literals[context];
        let byte = if self.state < 7 {
            let mut symbol = 1;
            while symbol < 0x100 {
                symbol = symbol << 1 | range.noise(&mut coder[symbol]);
            }
            symbol as u8
        } else {
            matched_literal(range, coder, dictionary.back(self.reps[0] as usize + 1))
        };
        dictionary.push(byte);
        self.state = match self.state {
            0..=3 => 0,
            4..=9 => self.state - 3,
            _ => self.state - 6,
        };
    }

    /// A match at one of the last distances; its length.
    #[inline(always)]
    fn rep(&mut self, range: &mut Range<'_>, place: usize) -> usize {
        let state = self.state;
        let after_literal = state < 7;
        let models = &mut *self.models;
        if !range.bit(&mut models.is_rep0[state]) {
            if !range.bit(&mut models.is_rep0_long[state][place]) {
                self.state = if after_literal { 9 } else { 11 };
                return 1;
            }
        } else if !range.bit(&mut models.is_rep1[state]) {
            self.reps.swap(0, 1);
        } else if !range.bit(&mut models.is_rep2[state]) {
            self.reps[..3].rotate_right(1);
        } else {
            self.reps.rotate_right(1);
        }
        self.state = if after_literal { 8 } else { 11 };
        models.rep_lengths.decode(range, place)
    }

    /// A match at a new distance; its length.
    #[inline(always)]
    fn fresh(&mut self, range: &mut Range<'_>, place: usize) -> usize {
        self.state = if self.state < 7 { 7 } else { 10 };
        self.reps.rotate_right(1);
        let models = &mut *self.models;
        let length = models.match_lengths.decode(range, place);
        let slot = range.tree(&mut models.slots[(length - LENGTH_MIN).min(3)]);
        self.reps[0] = models.distance(range, slot);
        length
    }
}

impl Models {
    /// The distance, less one, whose upper bits are `slot`.
    #[inline(always)]
    fn distance(&mut self, range: &mut Range<'_>, slot: usize) -> u32 {
        const ALIGN_BITS: u32 = 4;
        if slot < FIRST_MODELLED_SLOT {
            return slot as u32;
        }
        let bits = (slot as u32 >> 1) - 1;
        let base = (2 | (slot as u32 & 1)) << bits;
        match self.modelled.get_mut(slot - FIRST_MODELLED_SLOT) {
            Some(models) => base + range.reverse_tree(models, bits),
            None => {
                let middle = range.direct(bits - ALIGN_BITS) << ALIGN_BITS;
                base.wrapping_add(middle + range.reverse_tree(&mut self.align, ALIGN_BITS))
            }
        }
    }
}

const LENGTH_MIN: usize = 2;

impl Lengths {
    #[inline(always)]
    fn decode(&mut self, range: &mut Range<'_>, place: usize) -> usize {
        if !range.bit(&mut self.above_low) {
            return LENGTH_MIN + range.tree(&mut self.low[place]);
        }
        if !range.bit(&mut self.above_middle) {
            return LENGTH_MIN + 8 + range.tree(&mut self.middle[place]);
        }
        LENGTH_MIN + 16 + range.tree(&mut self.high)
    }
}

/// A literal behind a match: its bits are predicted by the byte that would have continued the match, until one differs.
#[inline(always)]
fn matched_literal(range: &mut Range<'_>, coder: &mut [Probability; LITERAL_CODER], predicted: u8) -> u8 {
    let mut predicted = usize::from(predicted);
    let mut agreeing = 0x100;
    let mut symbol = 1;
    while symbol < 0x100 {
        predicted <<= 1;
        let expected = predicted & agreeing;
        let bit = range.noise(&mut coder[agreeing + expected + symbol]);
        symbol = symbol << 1 | bit;
        agreeing &= if bit == 1 { expected } else { !expected };
    }
    symbol as u8
}
