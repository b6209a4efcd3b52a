//! The compression of AutoIt: literals, and matches within 32 KiB.

use super::{Tokens, emit};
use crate::frame::reader::Outbox;

const WINDOW_BYTES: usize = 1 << 15;

/// The compression of a file.
pub(super) struct Lz {
    /// The bit in front of literals.
    pub(super) literal: u32,
    pub(super) left: u32,
    pub(super) bits: u128,
    pub(super) count: u32,
    pub(super) window: Box<[u8; WINDOW_BYTES]>,
    pub(super) wrote: usize,
    /// A match whose length is on its way: its distance, and the length so far.
    pub(super) longer: Option<(usize, usize)>,
}

/// A place among the bits.
struct Bits {
    bits: u128,
    count: u32,
}

impl Bits {
    pub(super) fn take(&mut self, count: u32) -> Option<u32> {
        self.count = self.count.checked_sub(count)?;
        Some((self.bits >> self.count) as u32 & ((1 << count) - 1))
    }
}

enum Symbol {
    Literal(u8),
    Match(usize, usize),
    /// A length that goes on.
    Longer(usize, usize),
}

impl Lz {
    pub(super) fn new(literal: u32, left: u32) -> Lz {
        let window = Box::new([0; WINDOW_BYTES]);
        Lz { literal, left, bits: 0, count: 0, window, wrote: 0, longer: None }
    }

    /// Decodes what is there; whether it makes sense.
    pub(super) fn symbols(&mut self, script: &mut Option<Tokens>, outbox: &mut Outbox) -> bool {
        const LENGTH_MAX: usize = 1 << 14;
        while self.left > 0 {
            let mut bits = Bits { bits: self.bits, count: self.count };
            let Some(symbol) = self.symbol(&mut bits) else { return true };
            self.count = bits.count;
            self.bits &= (1 << self.count) - 1;
            let is_sound = match symbol {
                Symbol::Literal(byte) => self.push(byte, script, outbox),
                Symbol::Longer(distance, length) => {
                    self.longer = Some((distance, length));
                    length <= LENGTH_MAX
                }
                Symbol::Match(distance, length) => {
                    self.longer = None;
                    let count = length.min(self.left as usize);
                    (1..=self.wrote).contains(&distance)
                        && (0..count).all(|_| {
                            let byte = self.window[self.wrote.wrapping_sub(distance) % WINDOW_BYTES];
                            self.push(byte, script, outbox)
                        })
                }
            };
            if !is_sound {
                return false;
            }
        }
        true
    }

    fn symbol(&self, bits: &mut Bits) -> Option<Symbol> {
        /// Lengths: the least of a class, and the bits of what is added; all ones mean the next class.
        const LENGTHS: [(usize, u32); 5] = [(3, 2), (6, 3), (13, 5), (44, 8), (299, 8)];
        if let Some((distance, length)) = self.longer {
            let more = bits.take(8)? as usize;
            let length = length + more;
            return Some(if more == 255 { Symbol::Longer(distance, length) } else { Symbol::Match(distance, length) });
        }
        if bits.take(1)? == self.literal {
            return Some(Symbol::Literal(bits.take(8)? as u8));
        }
        let distance = bits.take(15)? as usize;
        for (least, count) in LENGTHS {
            let more = bits.take(count)? as usize;
            if more + 1 < 1 << count {
                return Some(Symbol::Match(distance, least + more));
            }
        }
        Some(Symbol::Longer(distance, 299 + 255))
    }

    fn push(&mut self, byte: u8, script: &mut Option<Tokens>, outbox: &mut Outbox) -> bool {
        self.window[self.wrote % WINDOW_BYTES] = byte;
        self.wrote += 1;
        self.left -= 1;
        emit(&[byte], script, outbox)
    }
}
