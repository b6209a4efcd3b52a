//! Canonical Huffman codes read from the highest bit on, as LHA, ARJ, RAR, LZX and bzip2 have them.
//!
//! Codes of up to [`QUICK_BITS`] bits are found by one look at a table, longer ones by the first code of each length.

use crate::bits::pushed::Bits;

/// The longest code of most formats.
pub(crate) const LENGTH_MAX: usize = 16;

const QUICK_BITS: u32 = 10;
/// An entry of the quick table that says nothing.
const NOT_QUICK: u16 = u16::MAX;
const LENGTH_BITS: u32 = 4;

/// A code, made for alphabets of at most 4095 symbols and codes of at most `LONGEST` bits.
pub(crate) struct Huffman<const LONGEST: usize = LENGTH_MAX> {
    /// Symbol and length of the code that these bits begin with.
    quick: Box<[u16; 1 << QUICK_BITS]>,
    lengths: [Length; LENGTHS],
    symbols: Vec<u16>,
}

/// From no bits to those of the longest code of all formats.
const LENGTHS: usize = 21;

/// The codes of one length.
#[derive(Clone, Copy, Default)]
struct Length {
    /// The first one, as `LONGEST` bits.
    first: u32,
    /// The end of the codes: the last one and 1.
    limit: u32,
    /// The place of the first one's symbol.
    place: u16,
}

/// A set of lengths that is no code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoCode;

impl Huffman {
    /// Makes a code without symbols, for formats with the usual lengths.
    pub fn new() -> Huffman {
        Huffman::default()
    }
}

impl<const LONGEST: usize> Default for Huffman<LONGEST> {
    fn default() -> Huffman<LONGEST> {
        Huffman { quick: Box::new([NOT_QUICK; 1 << QUICK_BITS]), lengths: Default::default(), symbols: Vec::new() }
    }
}

impl<const LONGEST: usize> Huffman<LONGEST> {
    /// Makes it the code in which symbol `i` takes `lengths[i]` bits (0: it does not occur). It may leave bits unused,
    /// but not use them twice.
    pub fn set(&mut self, lengths: &[u8]) -> Result<(), NoCode> {
        self.set_any(lengths)?;
        if self.lengths[LONGEST].limit > 1 << LONGEST {
            return Err(NoCode);
        }
        Ok(())
    }

    /// As [`set`](Self::set), but of too many codes the last ones never occur.
    pub fn set_any(&mut self, lengths: &[u8]) -> Result<(), NoCode> {
        let mut counts = [0u32; LENGTHS];
        let counts = &mut counts[..=LONGEST];
        for &length in lengths {
            *counts.get_mut(usize::from(length)).ok_or(NoCode)? += 1;
        }
        let (mut first, mut place) = (0, 0);
        for (length, &count) in counts.iter().enumerate() {
            let count = if length == 0 { 0 } else { count };
            let limit = first + (count << (LONGEST - length));
            self.lengths[length] = Length { first, limit, place };
            (first, place) = (limit, place + count as u16);
        }
        self.symbols.clear();
        self.symbols.resize(usize::from(place), 0);
        self.quick.fill(NOT_QUICK);
        let mut next = self.lengths;
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let Length { first: code, place, .. } = &mut next[usize::from(length)];
            self.symbols[usize::from(*place)] = symbol as u16;
            *place += 1;
            let width = 1 << (LONGEST - usize::from(length));
            if u32::from(length) <= QUICK_BITS {
                let shift = LONGEST as u32 - QUICK_BITS;
                let range = (*code >> shift) as usize..((*code + width) >> shift) as usize;
                let entries = self.quick.get_mut(range).unwrap_or_default();
                entries.fill((symbol as u16) << LENGTH_BITS | u16::from(length));
            }
            *code += width;
        }
        Ok(())
    }

    /// Makes it the code that takes no bits and always means `symbol`.
    pub fn set_constant(&mut self, symbol: u16) {
        self.quick.fill(symbol << LENGTH_BITS);
    }

    /// Reads a symbol; `None` if the bits are no code.
    #[inline(always)]
    pub fn read(&self, bits: &mut Bits) -> Option<usize> {
        let (symbol, length) = self.find(bits.peek(LONGEST as u32))?;
        bits.skip(length);
        Some(symbol)
    }

    /// The symbol that the next `LONGEST` bits begin with, and how many of them it takes; `None` if they are no code.
    #[inline(always)]
    pub fn find(&self, ahead: u32) -> Option<(usize, u32)> {
        let entry = self.quick[(ahead >> (LONGEST as u32 - QUICK_BITS)) as usize & ((1 << QUICK_BITS) - 1)];
        if entry != NOT_QUICK {
            return Some((usize::from(entry >> LENGTH_BITS), u32::from(entry) & ((1 << LENGTH_BITS) - 1)));
        }
        self.find_long(ahead)
    }

    fn find_long(&self, ahead: u32) -> Option<(usize, u32)> {
        let length = (QUICK_BITS as usize + 1..=LONGEST).find(|&length| ahead < self.lengths[length].limit)?;
        let codes = self.lengths[length];
        let index = usize::from(codes.place) + (ahead.checked_sub(codes.first)? >> (LONGEST - length)) as usize;
        self.symbols.get(index).map(|&symbol| (usize::from(symbol), length as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(code: &Huffman, bytes: &[u8], count: usize) -> Vec<Option<usize>> {
        let mut bits = Bits::new();
        bits.fill(bytes);
        bits.fill(&[]);
        (0..count).map(|_| code.read(&mut bits)).collect()
    }

    #[test]
    fn short_and_long_codes_are_read() {
        // 0, 10, 110, ... one symbol for each length, two for the longest.
        let mut lengths: Vec<u8> = (1..=16).collect();
        lengths.push(16);
        let mut code = Huffman::new();
        assert_eq!(code.set(&lengths), Ok(()));
        let bytes = [0b0101_1011, 0xff, 0xff, 0b1111_1111, 0xff, 0b1110_1111, 0xff, 0xe0];
        assert_eq!(read_all(&code, &bytes, 4), [Some(0), Some(1), Some(2), Some(16)]);
    }

    #[test]
    fn lengths_that_take_too_much_are_no_code_and_too_little_may_be() {
        let mut code = Huffman::new();
        assert_eq!(code.set_any(&[2, 1, 1]), Ok(()));
        assert_eq!(read_all(&code, &[0x60], 3), [Some(1), Some(2), Some(2)]);
        assert_eq!(code.set(&[1, 1, 1]), Err(NoCode));
        assert_eq!(code.set(&[17]), Err(NoCode));
        assert_eq!(code.set(&[0, 2]), Ok(()));
        assert_eq!(read_all(&code, &[0x30], 3), [Some(1), None, None]);
        code.set_constant(300);
        assert_eq!(read_all(&code, &[], 2), [Some(300), Some(300)]);
    }
}
