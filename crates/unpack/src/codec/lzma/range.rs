//! The range decoder of LZMA, over bytes held as a whole.
//!
//! After the last byte it reads zeros, so that damage cannot stop it within a symbol; its driver checks
//! [`Range::is_finished`].
//!
//! Its sums wrap on purpose: probabilities stay between 31 and 2017, so a bound is below its range, and no length of
//! the input is involved. A check of the impossible at each bit took 7 % of all instructions.

use std::hint::select_unpredictable;

/// A probability of a zero, in 2048ths.
pub(crate) type Probability = u16;

/// The probability to begin with.
pub(crate) const EVEN: Probability = 1024;

const BITS: u32 = 11;
const SHIFT: u32 = 5;
const TOP: u32 = 1 << 24;

/// Bytes that initialise it.
pub(crate) const INIT_BYTES: usize = 5;

/// The decoder's registers and its place in the input.
#[derive(Clone, Copy, Default)]
pub(crate) struct Registers {
    range: u32,
    code: u32,
    at: usize,
}

impl Registers {
    /// Starts at the front of `input`; `None` if the first byte is not the zero it must be.
    pub fn start(input: &[u8]) -> Option<Registers> {
        let (&first, code) = input.get(..INIT_BYTES)?.split_first()?;
        let code = u32::from_be_bytes(*code.first_chunk()?);
        (first == 0).then_some(Registers { range: u32::MAX, code, at: INIT_BYTES })
    }

    /// How many bytes of the input were used, those behind its end included.
    pub const fn at(self) -> usize {
        self.at
    }

    /// The first `used` bytes of the input have been dropped.
    pub fn dropped(&mut self, used: usize) {
        self.at -= used;
    }

    /// Goes on over `input`, the same as before.
    pub const fn over(self, input: &[u8]) -> Range<'_> {
        Range { registers: self, input }
    }
}

/// The decoder at work.
pub(crate) struct Range<'a> {
    registers: Registers,
    input: &'a [u8],
}

impl Range<'_> {
    /// The registers, to go on later.
    pub const fn registers(&self) -> Registers {
        self.registers
    }

    /// See [`Registers::at`].
    #[inline(always)]
    pub const fn at(&self) -> usize {
        self.registers.at
    }

    /// Whether nothing is left over, as it must be behind the last symbol; uses the last byte, if there is one more.
    pub fn is_spent(&mut self) -> bool {
        self.normalise();
        self.registers.code == 0
    }

    /// Whether all input was used and nothing is left over, as it must be behind the last symbol.
    pub fn is_finished(&mut self) -> bool {
        self.is_spent() && self.registers.at == self.input.len()
    }

    #[inline(always)]
    fn normalise(&mut self) {
        let state = &mut self.registers;
        if state.range < TOP {
            let byte = self.input.get(state.at).copied().unwrap_or(0);
            state.range <<= 8;
            state.code = state.code << 8 | u32::from(byte);
            state.at = state.at.wrapping_add(1);
        }
    }

    /// One bit by its probability.
    #[inline(always)]
    pub fn bit(&mut self, probability: &mut Probability) -> bool {
        self.normalise();
        let state = &mut self.registers;
        let odds = u32::from(*probability);
        let bound = (state.range >> BITS).wrapping_mul(odds);
        if state.code < bound {
            state.range = bound;
            *probability = probability.wrapping_add((1u16 << BITS).wrapping_sub(*probability) >> SHIFT);
            false
        } else {
            state.range = state.range.wrapping_sub(bound);
            state.code = state.code.wrapping_sub(bound);
            *probability = probability.wrapping_sub(*probability >> SHIFT);
            true
        }
    }

    /// One bit by its probability, without a branch on it: for bits that a processor cannot predict either.
    #[inline(always)]
    pub fn noise(&mut self, probability: &mut Probability) -> usize {
        self.normalise();
        let state = &mut self.registers;
        let odds = i32::from(*probability);
        let bound = (state.range >> BITS).wrapping_mul(odds as u32);
        let is_zero = state.code < bound;
        state.range = select_unpredictable(is_zero, bound, state.range.wrapping_sub(bound));
        state.code = select_unpredictable(is_zero, state.code, state.code.wrapping_sub(bound));
        // Both adaptations of `bit` in one formula: a shift of a negative number rounds down.
        let towards = select_unpredictable(is_zero, (1 << SHIFT) - 1 - (1 << BITS), 0);
        *probability = odds.wrapping_sub(odds.wrapping_add(towards) >> SHIFT) as Probability;
        usize::from(!is_zero)
    }

    /// A symbol of `log2(N)` bits, the highest first.
    #[inline(always)]
    pub fn tree<const N: usize>(&mut self, probabilities: &mut [Probability; N]) -> usize {
        let mut symbol = 1;
        while symbol < N {
            symbol = symbol << 1 | self.noise(&mut probabilities[symbol]);
        }
        symbol.wrapping_sub(N)
    }

    /// A symbol of `bits` bits, the lowest first.
    #[inline(always)]
    pub fn reverse_tree(&mut self, probabilities: &mut [Probability], bits: u32) -> u32 {
        let (mut symbol, mut value) = (1, 0);
        for place in 0..bits {
            let Some(probability) = probabilities.get_mut(symbol) else {
                break;
            };
            let bit = self.noise(probability);
            symbol = symbol << 1 | bit;
            value |= (bit as u32) << place;
        }
        value
    }

    /// `count` bits of even odds, the highest first.
    #[inline(always)]
    pub fn direct(&mut self, count: u32) -> u32 {
        let mut value = 0;
        for _ in 0..count {
            self.normalise();
            let state = &mut self.registers;
            state.range >>= 1;
            let is_one = state.code >= state.range;
            state.code = state.code.wrapping_sub(if is_one { state.range } else { 0 });
            value = value << 1 | u32::from(is_one);
        }
        value
    }
}
