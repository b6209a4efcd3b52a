//! Codes that are made anew of the frequencies of their symbols, and numbers in slots with bits behind them.

use crate::bits::huffman::Huffman;
use crate::frame::codec::le16;

const LONGEST: usize = 15;

/// Bits out of words, from the end of the chunk to its front; zeros where there are no more.
pub(super) struct Backward {
    packed: Vec<u8>,
    /// Where the words end that were not read.
    end: usize,
    ahead: u64,
    count: u32,
}

impl Backward {
    pub const fn new(packed: Vec<u8>) -> Backward {
        let end = packed.len();
        Backward { packed, end, ahead: 0, count: 0 }
    }

    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// The next bits, 32 at most.
    fn peek(&mut self, count: u32) -> u32 {
        while self.count < count {
            let word = self.end.checked_sub(2).map_or(0, |at| le16(&self.packed, at));
            self.end = self.end.saturating_sub(2);
            self.ahead |= u64::from(word) << (48 - self.count);
            self.count += 16;
        }
        if count == 0 { 0 } else { (self.ahead >> (64 - count)) as u32 }
    }

    fn skip(&mut self, count: u32) {
        self.ahead <<= count;
        self.count -= count;
    }
}

/// A code that follows the frequencies.
pub(super) struct Code {
    huffman: Huffman<LONGEST>,
    frequencies: Vec<u32>,
    /// Symbols up to the next code, and between two codes.
    left: u32,
    every: u32,
}

impl Code {
    pub fn new(symbols: usize, every: u32) -> Code {
        let mut code = Code { huffman: Huffman::default(), frequencies: vec![1; symbols], left: 0, every };
        code.make();
        code
    }

    /// The next symbol.
    pub fn read(&mut self, bits: &mut Backward) -> Option<usize> {
        let (symbol, length) = self.huffman.find(bits.peek(LONGEST as u32))?;
        bits.skip(length);
        *self.frequencies.get_mut(symbol)? += 1;
        self.left -= 1;
        if self.left == 0 {
            self.make();
            self.frequencies.iter_mut().for_each(|frequency| *frequency = (*frequency >> 1) + 1);
        }
        Some(symbol)
    }

    fn make(&mut self) {
        // Lengths of a tree are always those of a code.
        let _ = self.huffman.set(&lengths(&self.frequencies));
        self.left = self.every;
    }
}

/// Returns the lengths of the codes of symbols with these frequencies, which are positive.
///
/// A tree is built of leaves in the order of their frequencies, the lower symbol first, and of the nodes made so far;
/// of two with equal weight the leaf is taken. If it is too deep, a shorter code gives way. The lengths are then
/// assigned, the longest to the rarest symbols.
fn lengths(frequencies: &[u32]) -> Vec<u8> {
    let mut order: Vec<usize> = (0..frequencies.len()).collect();
    order.sort_by_key(|&symbol| frequencies[symbol]);
    let mut lengths = vec![1; frequencies.len()];
    if frequencies.len() < 2 {
        return lengths;
    }
    let counts = counts(&tree(&order, frequencies));
    let mut dealt = order.iter();
    for (length, &count) in counts.iter().enumerate().skip(1).rev() {
        for &symbol in dealt.by_ref().take(count as usize) {
            lengths[symbol] = length as u8;
        }
    }
    lengths
}

/// The parent of each inner node, in the order in which they are made; the last one is the root.
fn tree(order: &[usize], frequencies: &[u32]) -> Vec<usize> {
    let mut weights: Vec<u32> = Vec::with_capacity(order.len());
    let mut parents = vec![0; order.len() - 1];
    let (mut leaf, mut inner) = (0, 0);
    while weights.len() < order.len() - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            let of_leaf = order.get(leaf).map(|&symbol| frequencies[symbol]);
            weight += match (of_leaf, weights.get(inner)) {
                (Some(of_leaf), of_inner) if of_inner.is_none_or(|&of_inner| of_leaf <= of_inner) => {
                    leaf += 1;
                    of_leaf
                }
                (_, Some(&of_inner)) => {
                    parents[inner] = weights.len();
                    inner += 1;
                    of_inner
                }
                (_, None) => 0,
            };
        }
        weights.push(weight);
    }
    parents
}

/// How many codes there are of each length.
fn counts(parents: &[usize]) -> [u32; LONGEST + 1] {
    let mut counts = [0u32; LONGEST + 1];
    counts[1] = 2;
    let mut depths = vec![0; parents.len()];
    for node in (0..parents.len() - 1).rev() {
        depths[node] = depths[parents[node]] + 1;
        let mut length = depths[node];
        if length >= LONGEST {
            length = (1..LONGEST).rev().find(|&length| counts[length] > 0).unwrap_or(1);
        }
        counts[length] = counts[length].saturating_sub(1);
        counts[length + 1] += 2;
    }
    counts
}

/// Numbers told by a slot and the bits behind it.
pub(super) struct Slots<const N: usize> {
    /// The first number of each slot, and how many bits follow.
    slots: [(u32, u8); N],
}

impl<const N: usize> Slots<N> {
    /// Slots by how many of them are as wide as each power of two; the last one has so many bits.
    const fn of(runs: &[u8], last_bits: u8) -> Slots<N> {
        let mut slots = [(0, 0); N];
        let (mut base, mut slot, mut power) = (0u32, 0, 0);
        while power < runs.len() {
            let mut left = runs[power];
            while left > 0 {
                base += 1 << power;
                slots[slot].0 = base;
                if slot > 0 {
                    slots[slot - 1].1 = power as u8;
                }
                slot += 1;
                left -= 1;
            }
            power += 1;
        }
        slots[N - 1].1 = last_bits;
        Slots { slots }
    }

    pub fn read(&self, code: &mut Code, bits: &mut Backward) -> Option<u32> {
        let &(base, width) = self.slots.get(code.read(bits)?)?;
        let more = bits.peek(width.into());
        bits.skip(width.into());
        base.checked_add(more)
    }
}

pub(super) static OFFSETS: Slots<799> =
    Slots::of(&[9, 0, 9, 7, 10, 15, 15, 20, 20, 30, 33, 40, 42, 45, 60, 73, 80, 85, 95, 105, 6], 30);
pub(super) static LENGTHS: Slots<54> = Slots::of(&[27, 4, 6, 4, 5, 2, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1], 30);

/// How many slots of offsets a chunk of so many bytes has.
pub(super) fn offsets(bytes: usize) -> usize {
    let last = bytes.saturating_sub(1);
    OFFSETS.slots.partition_point(|slot| slot.0 as usize <= last).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_as_wide_as_what_follows() {
        assert_eq!(OFFSETS.slots[..10].iter().map(|slot| slot.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 13]);
        assert_eq!((OFFSETS.slots[8], OFFSETS.slots[17], OFFSETS.slots[18]), ((9, 2), (45, 3), (53, 3)));
        assert_eq!((LENGTHS.slots[26], LENGTHS.slots[52].1, LENGTHS.slots[53]), ((27, 1), 16, (0x108ab, 30)));
        assert_eq!((offsets(1), offsets(2), offsets(10), offsets(14)), (1, 1, 9, 10));
    }

    #[test]
    fn lengths_follow_the_frequencies() {
        assert_eq!(lengths(&[1]), [1]);
        assert_eq!(lengths(&[1, 1]), [1, 1]);
        assert_eq!(lengths(&[5, 1, 1, 2]), [1, 3, 3, 2]);
        // A leaf is taken where it weighs the same as a node.
        assert_eq!(lengths(&[1, 1, 2, 2]), [2, 2, 2, 2]);
    }

    #[test]
    fn no_code_is_longer_than_it_may_be() {
        let frequencies: Vec<u32> = (0..30).map(|power| 1 << power).collect();
        let lengths = lengths(&frequencies);
        assert!(lengths.iter().all(|&length| (1..=15).contains(&length)));
        let sum: u32 = lengths.iter().map(|&length| 1 << (15 - length)).sum();
        assert_eq!(sum, 1 << 15);
    }
}
