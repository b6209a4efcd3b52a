//! The codes of a block: how much there is of them, which one each group of symbols uses, and how long their codes are.

use super::recent::Recent;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;

/// The longest code.
pub(super) const CODE_BITS_MAX: usize = 20;

/// Up to six codes.
pub(super) struct Codes {
    codes: Vec<Huffman<CODE_BITS_MAX>>,
    selectors: Vec<u8>,
    /// The alphabet of each: two digits of runs, all bytes that occur but the latest, the end.
    symbols: usize,
}

impl Codes {
    pub const fn new() -> Codes {
        Codes { codes: Vec::new(), selectors: Vec::new(), symbols: 0 }
    }

    /// Reads which bytes occur, in rows of 16, and how many codes and selectors follow; tells the latter. `None` if that is
    /// nothing that an encoder would write.
    pub fn begin(&mut self, bits: &mut Bits, recent: &mut Recent) -> Option<u32> {
        let rows = bits.take(16);
        recent.clear();
        for row in (0..16).filter(|row| rows >> (15 - row) & 1 == 1) {
            let row_bytes = bits.take(16);
            let bytes = (0..16).filter(|byte| row_bytes >> (15 - byte) & 1 == 1);
            bytes.for_each(|byte| recent.push((row * 16 + byte) as u8));
        }
        let (codes, selectors) = (bits.take(3), bits.take(15));
        self.symbols = recent.length() + 2;
        self.codes.resize_with(codes as usize, Huffman::default);
        self.selectors.clear();
        (recent.length() > 0 && (2..=6).contains(&codes) && selectors > 0).then_some(selectors)
    }

    /// Reads the number of a code, told by how long ago it was used.
    pub fn selector(&mut self, bits: &mut Bits, order: &mut [u8; 6]) -> Option<()> {
        let mut place = 0;
        while bits.flag() {
            place += 1;
            if place >= self.codes.len() {
                return None;
            }
        }
        order[..=place].rotate_right(1);
        self.selectors.push(order[0]);
        Some(())
    }

    /// Reads one bit or two of the lengths of all codes, which are told by their differences; whether that was all.
    /// `length` is the one under way, 0 in front of the first of a code.
    pub fn length(&mut self, bits: &mut Bits, lengths: &mut Vec<u8>, length: &mut u8) -> Option<bool> {
        if *length == 0 {
            *length = bits.take(5) as u8;
        }
        if !(1..=CODE_BITS_MAX as u8).contains(length) {
            return None;
        }
        if bits.flag() {
            *length = if bits.flag() { *length - 1 } else { *length + 1 };
            return (*length > 0).then_some(false);
        }
        lengths.push(*length);
        if lengths.len().is_multiple_of(self.symbols) {
            *length = 0;
        }
        if lengths.len() < self.symbols * self.codes.len() {
            return Some(false);
        }
        for (code, lengths) in self.codes.iter_mut().zip(lengths.chunks_exact(self.symbols)) {
            // As bzip2 takes them: more codes than there are, too.
            code.set_any(lengths).ok()?;
        }
        Some(true)
    }

    /// The code of a group of symbols.
    #[inline(always)]
    pub fn of(&self, group: usize) -> Option<&Huffman<CODE_BITS_MAX>> {
        self.codes.get(usize::from(*self.selectors.get(group)?))
    }

    /// The last symbol.
    pub const fn end(&self) -> usize {
        self.symbols - 1
    }
}
