//! XPRESS with Huffman codes: one chunk, its code of 512 symbols in front.
//!
//! Bits come in little-endian words of 16, the highest first, and are read a word ahead; long lengths stand as bytes
//! between the words. Source: [MS-XCA] 2.2.

use crate::bits::huffman::Huffman;
use crate::frame::codec::le16;
use crate::frame::held::repeat;

const SYMBOLS: usize = 512;
const LENGTHS_BYTES: usize = SYMBOLS / 2;
const CODE_BITS: u32 = 15;
const LITERALS: usize = 256;
const LENGTH_MIN: usize = 3;

/// Unpacks a chunk into `content`, which is empty, up to `bytes_max`. Returns whether it was sound; output before an
/// error stays.
pub(crate) fn unpack(chunk: &[u8], content: &mut Vec<u8>, bytes_max: usize) -> bool {
    symbols(chunk, content, bytes_max).is_some()
}

fn symbols(chunk: &[u8], content: &mut Vec<u8>, bytes_max: usize) -> Option<()> {
    let (lengths, words) = chunk.split_at_checked(LENGTHS_BYTES)?;
    let mut of_symbols = [0; SYMBOLS];
    for (pair, lengths) in of_symbols.chunks_exact_mut(2).zip(lengths) {
        pair.copy_from_slice(&[lengths & 15, lengths >> 4]);
    }
    let mut code = Huffman::<{ CODE_BITS as usize }>::default();
    code.set(&of_symbols).ok()?;
    let mut bits = Bits { words, at: 0, ahead: 0, count: 0 };
    while content.len() < bytes_max {
        let (symbol, length) = code.find(bits.peek(CODE_BITS))?;
        bits.skip(length);
        let Some(symbol) = symbol.checked_sub(LITERALS) else {
            content.push(symbol as u8);
            bits.is_within().then_some(())?;
            continue;
        };
        let width = (symbol >> 4) as u32;
        let distance = (1 << width) + bits.take(width) as usize;
        let length = match symbol & 15 {
            15 => bits.length()?,
            length => length,
        };
        bits.is_within().then_some(())?;
        let length = (length + LENGTH_MIN).min(bytes_max - content.len());
        repeat(content, distance, length, bytes_max).then_some(())?;
    }
    Some(())
}

/// The words, and the unread bits of the current ones.
struct Bits<'a> {
    words: &'a [u8],
    at: usize,
    ahead: u32,
    count: u32,
}

impl Bits<'_> {
    /// Returns the next bits, 16 at most, zeros after the last word. Afterwards 16 are loaded.
    fn peek(&mut self, count: u32) -> u32 {
        if self.count < 16 {
            self.ahead |= u32::from(le16(self.words, self.at)) << (16 - self.count);
            self.at += 2;
            self.count += 16;
        }
        if count == 0 { 0 } else { self.ahead >> (32 - count) }
    }

    fn skip(&mut self, count: u32) {
        self.ahead <<= count;
        self.count -= count;
    }

    fn take(&mut self, count: u32) -> u32 {
        let bits = self.peek(count);
        self.skip(count);
        bits
    }

    /// A length that has no room in its symbol: a byte, or the two bytes behind it.
    fn length(&mut self) -> Option<usize> {
        let byte = *self.words.get(self.at)?;
        self.at += 1;
        if byte < u8::MAX {
            return Some(usize::from(byte) + 15);
        }
        let word = le16(self.words.get(self.at..self.at + 2)?, 0);
        self.at += 2;
        (word > 0).then_some(word.into())
    }

    /// Whether no more was read than there is, but for the word ahead.
    const fn is_within(&self) -> bool {
        self.at <= self.words.len() + 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of 9 bits for all symbols, so that a symbol stands as its number.
    fn chunk(symbols: &[(u32, u32)]) -> Vec<u8> {
        let mut bits: Vec<bool> = Vec::new();
        for &(value, width) in symbols {
            bits.extend((0..width).rev().map(|bit| value >> bit & 1 == 1));
        }
        bits.resize(bits.len().next_multiple_of(16), false);
        let words = bits.chunks(16).map(|word| word.iter().fold(0u16, |word, &bit| word << 1 | u16::from(bit)));
        let mut chunk = vec![0x99; LENGTHS_BYTES];
        chunk.extend(words.flat_map(u16::to_le_bytes));
        chunk
    }

    #[test]
    fn literals_and_a_match() {
        // Three literals, then a match of 4 at a distance of 2 + 1.
        let chunk = chunk(&[(97, 9), (98, 9), (99, 9), (256 + 16 + 1, 9), (1, 1)]);
        let mut content = Vec::new();
        assert!(unpack(&chunk, &mut content, 7));
        assert_eq!(content, b"abcabca");
        content.clear();
        assert!(unpack(&chunk, &mut content, 5));
        assert_eq!(content, b"abcab");
    }

    #[test]
    fn damage_is_told_and_what_came_before_it_stays() {
        let mut content = Vec::new();
        assert!(!unpack(&chunk(&[(97, 9), (256 + 16, 9), (1, 1)]), &mut content, 7));
        assert_eq!(content, b"a");
        content.clear();
        assert!(!unpack(&[0x99; 255], &mut content, 7));
        assert!(!unpack(&[0x11; 300], &mut content, 7), "too many codes");
        assert!(!unpack(&[0; 300], &mut content, 7), "no code");
        assert!(content.is_empty());
        assert!(!unpack(&chunk(&[(97, 9)]), &mut content, 1 << 20), "cut short");
        assert!(content.len() < 100);
    }
}
