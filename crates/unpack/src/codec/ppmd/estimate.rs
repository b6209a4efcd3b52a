//! Common estimates of both variants of PPMd: escapes after masked symbols, and choices of a context with one symbol.

/// Bits of fraction in an estimate.
const PERIOD_BITS: u32 = 7;
const INTERVAL: u32 = 1 << 7;

/// Probabilities are in 2^14ths.
const SCALE: u32 = 1 << 14;

/// The highest frequency before a context is rescaled.
pub(super) const FREQUENCY_MAX: u32 = 124;

/// A secondary estimate of how often a context with so many masked symbols escapes.
#[derive(Clone, Copy)]
pub(crate) struct Escape {
    sum: u16,
    shift: u8,
    count: u8,
}

impl Escape {
    /// The estimate of the root, which has all symbols: always 1.
    pub const ROOT: Escape = Escape { sum: 0, shift: 16, count: 64 };

    pub const fn new(frequency: u32, count: u8) -> Escape {
        let shift = PERIOD_BITS - 4;
        Escape { sum: (frequency << shift) as u16, shift: shift as u8, count }
    }

    /// The frequency of an escape now; the estimate is lowered by it.
    #[inline(always)]
    pub fn frequency(&mut self) -> u32 {
        let frequency = u32::from(self.sum) >> self.shift;
        self.sum -= frequency as u16;
        frequency.max(1)
    }

    /// Records an escape, among choices of this total.
    #[inline(always)]
    pub fn escaped(&mut self, total: u32) {
        self.sum = self.sum.wrapping_add(total as u16);
    }

    /// Records a symbol without an escape.
    #[inline(always)]
    pub fn found(&mut self) {
        if u32::from(self.shift) >= PERIOD_BITS {
            return;
        }
        self.count = self.count.wrapping_sub(1);
        if self.count == 0 {
            self.sum <<= 1;
            self.count = (3u32 << self.shift) as u8;
            self.shift += 1;
        }
    }
}

/// How probable the one symbol of a context is, in 2^14ths.
#[derive(Clone, Copy)]
pub(crate) struct Single(u16);

impl Single {
    /// The first estimates, for eight kinds of context and a symbol seen `divisor` times, so to speak.
    pub const fn first(kind: usize, divisor: u32) -> Single {
        const ESCAPES: [u32; 8] = [0x3cdd, 0x1f3f, 0x59bf, 0x48f3, 0x64a1, 0x5abc, 0x6632, 0x6051];
        Single((SCALE - ESCAPES[kind % 8] / divisor) as u16)
    }

    #[inline(always)]
    pub fn probability(self) -> u32 {
        u32::from(self.0)
    }

    /// The symbol was it.
    #[inline(always)]
    pub fn found(&mut self) {
        self.0 = (self.lowered() + INTERVAL) as u16;
    }

    /// Updates after an escape; returns the weight of an escape from here when the context gets a second symbol.
    #[inline(always)]
    pub fn escaped(&mut self) -> u32 {
        const WORTH: [u8; 16] = [25, 14, 9, 7, 5, 5, 4, 4, 4, 3, 3, 3, 2, 2, 2, 2];
        self.0 = self.lowered() as u16;
        u32::from(WORTH[usize::from(self.0 >> 10) % 16])
    }

    #[inline(always)]
    fn lowered(self) -> u32 {
        let probability = self.probability();
        probability - ((probability + (1 << (PERIOD_BITS - 2))) >> PERIOD_BITS)
    }
}

/// Returns 8 for symbols from 0x40 on: letters and non-ASCII.
#[inline(always)]
pub(super) const fn high(symbol: u8) -> usize {
    if symbol < 0x40 { 0 } else { 8 }
}

/// The kind of a context by its number of symbols, as far as the suffix of a context with one symbol goes.
#[inline(always)]
pub(super) const fn suffix_kind(symbols: u32) -> usize {
    match symbols {
        0 | 1 => 0,
        2 => 2,
        3..=11 => 4,
        _ => 6,
    }
}

/// A number below `N`, in steps that grow: the first `exact` numbers stand for themselves, then for runs of 1, 2, 3 and
/// so on.
pub(super) const fn steps<const N: usize>(exact: usize) -> [u8; N] {
    let mut all = [0; N];
    let (mut at, mut step, mut left) = (0, exact, 1);
    while at < N {
        if at < exact {
            all[at] = at as u8;
        } else {
            all[at] = step as u8;
            left -= 1;
            if left == 0 {
                step += 1;
                left = step + 1 - exact;
            }
        }
        at += 1;
    }
    all
}

/// Where the state of `symbol` is among those of a context, which has it.
#[inline(always)]
pub(super) fn position(states: &[[u8; 6]], symbol: u8) -> usize {
    states.iter().position(|state| state[0] == symbol).unwrap_or(0)
}

/// The symbols that a context need not offer again, because a longer one has.
pub(super) struct Mask {
    /// All bits of offered symbols, none of masked ones: branches on these would be mispredicted half of the time.
    offered: [u8; 256],
}

impl Mask {
    pub const fn new() -> Mask {
        Mask { offered: [u8::MAX; 256] }
    }

    /// No symbol is masked any more.
    #[inline(always)]
    pub const fn clear(&mut self) {
        *self = Mask::new();
    }

    #[inline(always)]
    pub fn add(&mut self, symbol: u8) {
        self.offered[usize::from(symbol)] = 0;
    }

    #[inline(always)]
    pub fn add_all(&mut self, states: &[[u8; 6]]) {
        for state in states {
            self.add(state[0]);
        }
    }

    /// The frequency of a state, 0 if its symbol is masked.
    #[inline(always)]
    pub fn frequency(&self, state: &[u8; 6]) -> u32 {
        u32::from(state[1] & self.offered[usize::from(state[0])])
    }
}
