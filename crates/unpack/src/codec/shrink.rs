//! Shrink, zip's method 1: LZW with codes of 9 to 13 bits, whose table is cleared of what nothing builds on.
//!
//! Source: APPNOTE 6.3.10, section 5.1. Bounds: a table of 8192 codes, 24 KiB.

use crate::bits::tokens::{Bits, Broken, Tokens};

const CODES: usize = 1 << 13;
const BITS_FIRST: u32 = 9;
const BITS_LAST: u32 = 13;
/// The code that is followed by a command.
const CONTROL: usize = 256;
const NOTHING: u16 = u16::MAX;

/// The state of a shrunk stream.
pub(crate) struct Shrink {
    bits: u32,
    /// The code that each code extends by a byte.
    prefix: Box<[u16; CODES]>,
    suffix: Box<[u8; CODES]>,
    /// The code before.
    last: Option<usize>,
    first_byte: u8,
    /// Codes below are taken.
    next: usize,
}

impl Shrink {
    pub fn new() -> Shrink {
        Shrink {
            bits: BITS_FIRST,
            prefix: Box::new([NOTHING; CODES]),
            suffix: Box::new([0; CODES]),
            last: None,
            first_byte: 0,
            next: CONTROL + 1,
        }
    }

    fn is_known(&self, code: usize) -> bool {
        code < CONTROL || self.prefix[code] != NOTHING
    }

    /// Appends the expansion of a code.
    fn expand(&self, mut code: usize, content: &mut Vec<u8>) -> Result<(), Broken> {
        let start = content.len();
        while code > CONTROL {
            if !self.is_known(code) || content.len() - start > CODES {
                return Err(Broken);
            }
            content.push(self.suffix[code]);
            code = usize::from(self.prefix[code]);
        }
        content.push(code as u8);
        content[start..].reverse();
        Ok(())
    }

    fn command(&mut self, command: usize) -> Result<(), Broken> {
        match command {
            1 if self.bits < BITS_LAST => self.bits += 1,
            2 => self.clear(),
            _ => return Err(Broken),
        }
        Ok(())
    }

    /// Frees the codes that no other extends.
    fn clear(&mut self) {
        let mut extended = [false; CODES];
        for &prefix in &self.prefix[CONTROL + 1..] {
            if prefix != NOTHING {
                extended[usize::from(prefix)] = true;
            }
        }
        for (prefix, extended) in self.prefix.iter_mut().zip(extended).skip(CONTROL + 1) {
            if !extended {
                *prefix = NOTHING;
            }
        }
        self.next = CONTROL + 1;
    }

    /// The last code and the first byte of this one become a new code.
    fn learn(&mut self, last: usize) {
        while self.next < CODES && self.is_known(self.next) {
            self.next += 1;
        }
        if self.next < CODES {
            self.prefix[self.next] = last as u16;
            self.suffix[self.next] = self.first_byte;
        }
    }
}

impl Tokens for Shrink {
    const BITS_MAX: u32 = 2 * BITS_LAST;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        let code = bits.take(self.bits) as usize;
        if code == CONTROL {
            let command = bits.take(self.bits) as usize;
            return self.command(command);
        }
        let start = content.len();
        match self.last {
            None if code > CONTROL => return Err(Broken),
            None => self.expand(code, content)?,
            Some(_) if self.is_known(code) => self.expand(code, content)?,
            Some(last) => {
                // A code that is being made: the last one, and its first byte again.
                self.expand(last, content)?;
                content.push(content[start]);
            }
        }
        self.first_byte = content[start];
        if let Some(last) = self.last {
            self.learn(last);
        }
        self.last = Some(code);
        Ok(())
    }

    fn may_end(&self, bits_left: u32) -> bool {
        bits_left < self.bits
    }
}
