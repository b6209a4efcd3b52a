//! Quantum: LZ77 whose symbols come from an arithmetic coder with adaptive models.
//!
//! The coder restarts with each block; models and window last as long as the folder. The increments of a model, and the
//! time at which it halves and sorts its counts, are arbitrary and exact. Distances and lengths have further bits that
//! are not modelled. Source: M. Russoto's description of Quantum archives. Bounds: the window, a kilobyte of models.

// A bit machine: its sums are those of the code, and overflow checks are on.
#![allow(clippy::arithmetic_side_effects)]

use crate::codec::lzma::Dictionary;

/// Symbols of the selector: four kinds of literals, then matches of three, of four and of more bytes.
const SELECTORS: usize = 7;
const LITERALS: usize = 64;
const LENGTHS: usize = 27;
/// Distances of matches of three, of four, and of more bytes have so many slots at most.
const SLOTS_MAX: [usize; 3] = [24, 36, 42];

/// A decoder of one folder.
pub(super) struct Quantum {
    window: Dictionary,
    selector: Model,
    literals: [Model; 4],
    slots: [Model; 3],
    lengths: Model,
}

impl Quantum {
    /// The decoder for a window of `1 << bits`.
    pub fn new(bits: u32) -> Quantum {
        let mut window = Dictionary::new();
        window.declare(1 << bits, 1 << bits);
        Quantum {
            window,
            selector: Model::new(SELECTORS),
            literals: std::array::from_fn(|_| Model::new(LITERALS)),
            slots: SLOTS_MAX.map(|most| Model::new(most.min(2 * bits as usize))),
            lengths: Model::new(LENGTHS),
        }
    }

    /// Decodes a block of `size` bytes; the content before an error stays in `content`.
    pub fn frame(&mut self, data: &[u8], size: usize, content: &mut Vec<u8>) -> Option<()> {
        let mut coder = Coder::new(data);
        while content.len() < size {
            let (slots, length) = match self.selector.read(&mut coder) {
                kind @ 0..4 => {
                    let byte = kind * LITERALS + self.literals[kind].read(&mut coder);
                    self.window.room(1);
                    self.window.push(byte as u8);
                    content.push(byte as u8);
                    continue;
                }
                4 => (0, 3),
                5 => (1, 4),
                _ => (2, 5 + length(self.lengths.read(&mut coder), &mut coder)),
            };
            let distance = distance(self.slots[slots].read(&mut coder), &mut coder);
            if coder.overran() || content.len() + length > size {
                return None;
            }
            self.copy(distance, length, content)?;
        }
        (!coder.overran()).then_some(())
    }

    fn copy(&mut self, distance: usize, length: usize, content: &mut Vec<u8>) -> Option<()> {
        self.window.check(distance).ok()?;
        let mut left = length;
        while left > 0 {
            let count = self.window.room(left);
            self.window.repeat(distance, count);
            content.extend_from_slice(self.window.last(count));
            left -= count;
        }
        Some(())
    }
}

/// From slot 4 on two slots share a number of further bits.
fn distance(slot: usize, coder: &mut Coder) -> usize {
    1 + match slot {
        0..4 => slot,
        _ => {
            let extra = slot / 2 - 1;
            ((2 + slot % 2) << extra) + coder.bits(extra)
        }
    }
}

/// From slot 6 on four slots share a number of further bits; the last has none.
fn length(slot: usize, coder: &mut Coder) -> usize {
    const LAST: usize = LENGTHS - 1;
    match slot {
        0..6 => slot,
        6..LAST => {
            let extra = (slot - 2) / 4;
            ((4 + (slot - 2) % 4) << extra) - 2 + coder.bits(extra)
        }
        _ => 254,
    }
}

/// Symbols with their counts, each count with those of all symbols behind it.
struct Model {
    /// One more than there are symbols; the last counts nothing.
    counts: Vec<(u16, u8)>,
    halvings_left: u8,
}

const COUNT_STEP: u16 = 8;
const COUNT_MAX: u16 = 3800;

impl Model {
    fn new(symbols: usize) -> Model {
        let counts = (0..=symbols).map(|symbol| ((symbols - symbol) as u16, symbol as u8)).collect();
        Model { counts, halvings_left: 4 }
    }

    fn read(&mut self, coder: &mut Coder) -> usize {
        let total = self.counts[0].0;
        let meant = coder.meant(total);
        let last = self.counts.len() - 1;
        let at = self.counts[1..last].iter().position(|(count, _)| *count <= meant).unwrap_or(last - 1);
        let symbol = self.counts[at].1;
        coder.take(self.counts[at].0, self.counts[at + 1].0, total);
        self.counts[..=at].iter_mut().for_each(|(count, _)| *count += COUNT_STEP);
        if self.counts[0].0 > COUNT_MAX {
            self.rescale();
        }
        usize::from(symbol)
    }

    fn rescale(&mut self) {
        const HALVINGS: u8 = 50;
        self.halvings_left -= 1;
        if self.halvings_left > 0 {
            for at in (0..self.counts.len() - 1).rev() {
                let behind = self.counts[at + 1].0;
                let count = &mut self.counts[at].0;
                *count = (*count / 2).max(behind + 1);
            }
            return;
        }
        self.halvings_left = HALVINGS;
        let last = self.counts.len() - 1;
        for at in 0..last {
            self.counts[at].0 = (self.counts[at].0 - self.counts[at + 1].0).div_ceil(2);
        }
        // An exchange sort, because it is not stable, and symbols of one count have to end up where it puts them.
        for at in 0..last - 1 {
            for other in at + 1..last {
                if self.counts[at].0 < self.counts[other].0 {
                    self.counts.swap(at, other);
                }
            }
        }
        for at in (0..last).rev() {
            self.counts[at].0 += self.counts[at + 1].0;
        }
    }
}

/// The arithmetic decoder over a block.
struct Coder<'a> {
    data: &'a [u8],
    /// Bits taken, those behind the data included.
    at: usize,
    low: u16,
    high: u16,
    code: u16,
}

impl<'a> Coder<'a> {
    fn new(data: &'a [u8]) -> Coder<'a> {
        let mut coder = Coder { data, at: 0, low: 0, high: u16::MAX, code: 0 };
        coder.code = coder.bits(16) as u16;
        coder
    }

    fn bit(&mut self) -> u16 {
        let byte = self.data.get(self.at / 8).copied().unwrap_or(0);
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        bit.into()
    }

    fn bits(&mut self, count: usize) -> usize {
        (0..count).fold(0, |bits, _| bits << 1 | usize::from(self.bit()))
    }

    /// Whether more was taken than the coder reads ahead.
    const fn overran(&self) -> bool {
        const AHEAD: usize = 32;
        self.at > 8 * self.data.len() + AHEAD
    }

    fn range(&self) -> u32 {
        u32::from(self.high.wrapping_sub(self.low)) + 1
    }

    /// Number out of `total` that is coded next.
    fn meant(&self, total: u16) -> u16 {
        let code = u32::from(self.code.wrapping_sub(self.low)) + 1;
        ((code * u32::from(total) - 1) / self.range()) as u16
    }

    /// Takes the parts from `bottom` to `top`.
    fn take(&mut self, top: u16, bottom: u16, total: u16) {
        const HALF: u16 = 0x8000;
        const QUARTER: u16 = 0x4000;
        let part = |count: u16| (u32::from(count) * self.range() / u32::from(total)) as u16;
        let (low, high) = (self.low.wrapping_add(part(bottom)), self.low.wrapping_add(part(top)).wrapping_sub(1));
        (self.low, self.high) = (low, high);
        loop {
            if (self.low ^ self.high) & HALF != 0 {
                if self.low & QUARTER == 0 || self.high & QUARTER != 0 {
                    return;
                }
                self.code ^= QUARTER;
                self.low &= QUARTER - 1;
                self.high |= QUARTER;
            }
            self.low <<= 1;
            self.high = self.high << 1 | 1;
            self.code = self.code << 1 | self.bit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_each_other_without_gaps() {
        let mut coder = Coder::new(&[0; 64]);
        let distances: Vec<usize> = (0..42).map(|slot| distance(slot, &mut coder)).collect();
        assert_eq!(distances[..8], [1, 2, 3, 4, 5, 7, 9, 13]);
        assert_eq!(distances[41], 1 + (3 << 19));
        let lengths: Vec<usize> = (0..LENGTHS).map(|slot| length(slot, &mut coder)).collect();
        assert_eq!(lengths[4..12], [4, 5, 6, 8, 10, 12, 14, 18]);
        assert_eq!(lengths[22..], [126, 158, 190, 222, 254]);
    }

    #[test]
    fn counts_stay_in_order_through_halving_and_sorting() {
        let mut model = Model::new(LITERALS);
        let data: Vec<u8> = (0..20_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 19) as u8).collect();
        let mut coder = Coder::new(&data);
        while !coder.overran() {
            assert!(model.read(&mut coder) < LITERALS);
            assert!(model.counts.windows(2).all(|pair| pair[0].0 > pair[1].0));
        }
    }
}
