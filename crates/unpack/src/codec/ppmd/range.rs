//! The range decoders of PPMd, over bytes that are at hand.
//!
//! Behind the last byte they read zeros, so that damage cannot stop them in the middle of a symbol; whoever drives them
//! looks at [`Coder::consumed`]. 7z has the decoder of LZMA; RAR and zip have the carryless one of Subbotin (1999).

/// Bits of a probability.
const SCALE_BITS: u32 = 14;
const TOP: u32 = 1 << 24;
const BOTTOM: u32 = 1 << 15;

/// A range decoder at work. The order of calls for one choice is `threshold`, `decode`, `normalise`.
pub(crate) trait Coder {
    /// The decoder's registers, to stop and to go on.
    type Registers: Copy + Default + Send;

    /// Bytes that initialise it.
    const INIT_BYTES: usize;

    /// The most bytes that one choice takes.
    const CHOICE_BYTES_MAX: usize;

    /// Starts from the first [`INIT_BYTES`](Self::INIT_BYTES); `None` if they cannot be those.
    fn start(init: &[u8]) -> Option<Self::Registers>;

    /// Registers with which it goes on later.
    fn registers(&self) -> Self::Registers;

    /// How many bytes have been read, those behind the input included.
    fn consumed(&self) -> usize;

    /// The most by which the range can be divided now.
    fn range(&self) -> u32;

    /// Divides the range by `total`, which is neither 0 nor above the range, and tells which part was meant: `total` or
    /// more if none was.
    fn threshold(&mut self, total: u32) -> u32;

    /// Selects the parts from `start`, `size` of them.
    fn decode(&mut self, start: u32, size: u32);

    /// Reads the bytes that the next choice needs.
    fn normalise(&mut self);

    /// A choice by the probability of its first side, in 2^14ths; whether it was the first.
    fn first(&mut self, probability: u32) -> bool;
}

/// The decoder of 7z.
pub(crate) struct SevenZip<'a> {
    input: Input<'a>,
    registers: SevenZipRegisters,
}

/// See [`SevenZip`].
#[derive(Clone, Copy, Default)]
pub(crate) struct SevenZipRegisters {
    range: u32,
    code: u32,
}

/// The carryless decoder.
pub(crate) struct Carryless<'a> {
    input: Input<'a>,
    registers: CarrylessRegisters,
}

/// See [`Carryless`].
#[derive(Clone, Copy, Default)]
pub(crate) struct CarrylessRegisters {
    low: u32,
    range: u32,
    code: u32,
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    #[inline(always)]
    fn byte(&mut self) -> u32 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        u32::from(byte)
    }
}

impl<'a> SevenZip<'a> {
    /// Goes on over `bytes`.
    pub const fn over(bytes: &'a [u8], registers: SevenZipRegisters) -> SevenZip<'a> {
        SevenZip { input: Input { bytes, at: 0 }, registers }
    }
}

impl<'a> Carryless<'a> {
    /// Goes on over `bytes`.
    pub const fn over(bytes: &'a [u8], registers: CarrylessRegisters) -> Carryless<'a> {
        Carryless { input: Input { bytes, at: 0 }, registers }
    }
}

impl Coder for SevenZip<'_> {
    type Registers = SevenZipRegisters;

    const INIT_BYTES: usize = 5;
    const CHOICE_BYTES_MAX: usize = 2;

    fn start(init: &[u8]) -> Option<SevenZipRegisters> {
        let (&first, code) = init.split_first()?;
        let code = u32::from_be_bytes(*code.first_chunk()?);
        (first == 0 && code < u32::MAX).then_some(SevenZipRegisters { range: u32::MAX, code })
    }

    fn registers(&self) -> SevenZipRegisters {
        self.registers
    }

    fn consumed(&self) -> usize {
        self.input.at
    }

    #[inline(always)]
    fn range(&self) -> u32 {
        self.registers.range
    }

    #[inline(always)]
    fn threshold(&mut self, total: u32) -> u32 {
        self.registers.range /= total;
        self.registers.code / self.registers.range
    }

    #[inline(always)]
    fn decode(&mut self, start: u32, size: u32) {
        self.registers.code -= start * self.registers.range;
        self.registers.range *= size;
    }

    #[inline(always)]
    fn normalise(&mut self) {
        for _ in 0..Self::CHOICE_BYTES_MAX {
            if self.registers.range < TOP {
                self.registers.code = self.registers.code << 8 | self.input.byte();
                self.registers.range <<= 8;
            }
        }
    }

    #[inline(always)]
    fn first(&mut self, probability: u32) -> bool {
        let bound = (self.registers.range >> SCALE_BITS) * probability;
        let is_first = self.registers.code < bound;
        if is_first {
            self.registers.range = bound;
        } else {
            self.registers.code -= bound;
            self.registers.range -= bound;
        }
        is_first
    }
}

impl Coder for Carryless<'_> {
    type Registers = CarrylessRegisters;

    const INIT_BYTES: usize = 4;
    const CHOICE_BYTES_MAX: usize = 4;

    fn start(init: &[u8]) -> Option<CarrylessRegisters> {
        let code = u32::from_be_bytes(*init.first_chunk()?);
        (code < u32::MAX).then_some(CarrylessRegisters { low: 0, range: u32::MAX, code })
    }

    fn registers(&self) -> CarrylessRegisters {
        self.registers
    }

    fn consumed(&self) -> usize {
        self.input.at
    }

    #[inline(always)]
    fn range(&self) -> u32 {
        self.registers.range
    }

    #[inline(always)]
    fn threshold(&mut self, total: u32) -> u32 {
        self.registers.range /= total;
        self.registers.code / self.registers.range
    }

    #[inline(always)]
    fn decode(&mut self, start: u32, size: u32) {
        let skipped = start * self.registers.range;
        self.registers.low = self.registers.low.wrapping_add(skipped);
        self.registers.code = self.registers.code.wrapping_sub(skipped);
        self.registers.range *= size;
    }

    #[inline(always)]
    fn normalise(&mut self) {
        let state = &mut self.registers;
        for _ in 0..Self::CHOICE_BYTES_MAX {
            let is_settled = (state.low ^ state.low.wrapping_add(state.range)) >= TOP;
            if is_settled {
                if state.range >= BOTTOM {
                    return;
                }
                state.range = state.low.wrapping_neg() & (BOTTOM - 1);
            }
            state.code = state.code << 8 | self.input.byte();
            state.range <<= 8;
            state.low <<= 8;
        }
        // Only a state that no encoder reaches is not settled here.
        state.range = state.range.max(BOTTOM);
    }

    #[inline(always)]
    fn first(&mut self, probability: u32) -> bool {
        let state = &mut self.registers;
        let bound = (state.range >> SCALE_BITS) * probability;
        let is_first = state.code < bound;
        if is_first {
            state.range = bound;
        } else {
            state.low = state.low.wrapping_add(bound);
            state.code = state.code.wrapping_sub(bound);
            // Both sides together are the part that the scale divides without remainder.
            state.range = (state.range & !((1 << SCALE_BITS) - 1)) - bound;
        }
        is_first
    }
}
