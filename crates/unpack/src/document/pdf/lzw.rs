//! LZWDecode (ISO 32000-2, 7.4.4): codes of 9 to 12 bits, the highest bit first.
//!
//! With `EarlyChange` codes grow one code earlier than they need to. A table that is full stays as it is until it is
//! cleared, as readers have it.
//!
//! Bounds: 4096 entries of 4 bytes, one string of 4 KiB.

use stream::Class;

use super::layer::Layer;
use crate::frame::codec::{Fault, Progress, Told};

const CLEAR: u16 = 256;
const END: u16 = 257;
const CODES_MAX: usize = 4096;

const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Pdf.Filter");

/// A decoder.
pub(super) struct Lzw {
    /// Each string as the code of its beginning and its last byte.
    table: Vec<(u16, u8)>,
    early: usize,
    bits: u32,
    bit_count: u32,
    previous: Option<u16>,
    /// The string to be written, backwards.
    string: Vec<u8>,
}

impl Lzw {
    pub fn new(early_change: bool) -> Lzw {
        Lzw {
            table: Vec::with_capacity(CODES_MAX),
            early: usize::from(early_change),
            bits: 0,
            bit_count: 0,
            previous: None,
            string: Vec::with_capacity(CODES_MAX),
        }
        .cleared()
    }

    fn cleared(mut self) -> Lzw {
        self.clear();
        self
    }

    fn clear(&mut self) {
        self.table.clear();
        self.table.extend((0..=END).map(|code| (code, code as u8)));
        self.previous = None;
    }

    fn width(&self) -> u32 {
        match self.table.len() + self.early {
            ..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        }
    }

    /// Takes bytes until there is a code.
    fn code(&mut self, input: &[u8], taken: &mut usize) -> Option<u16> {
        let width = self.width();
        while self.bit_count < width {
            let byte = input.get(*taken)?;
            *taken += 1;
            self.bits = self.bits << 8 | u32::from(*byte);
            self.bit_count += 8;
        }
        self.bit_count -= width;
        Some((self.bits >> self.bit_count & ((1 << width) - 1)) as u16)
    }

    /// Writes the string of a code backwards; returns whether the code exists.
    fn read(&mut self, code: u16) -> bool {
        let known = usize::from(code) < self.table.len();
        let start = match self.previous {
            _ if known => code,
            // The string that is made by this very code.
            Some(previous) if usize::from(code) == self.table.len() => previous,
            _ => return false,
        };
        self.spell(start);
        let first = self.string.last().copied().unwrap_or(0);
        if !known {
            self.string.insert(0, first);
        }
        if let Some(previous) = self.previous.filter(|_| self.table.len() < CODES_MAX) {
            self.table.push((previous, first));
        }
        self.previous = Some(code);
        true
    }

    fn spell(&mut self, mut code: u16) {
        // Each beginning has a smaller code than its string.
        while let Some(&(before, byte)) = self.table.get(usize::from(code)) {
            self.string.push(byte);
            if code <= END {
                return;
            }
            code = before;
        }
    }
}

impl Layer for Lzw {
    fn decode(&mut self, input: &[u8], _: bool, output: &mut [u8]) -> Progress {
        let (mut taken, mut wrote) = (0, 0);
        loop {
            while let Some(byte) = self.string.pop() {
                output[wrote] = byte;
                wrote += 1;
                if wrote == output.len() {
                    return Progress { wrote, ..Progress::took(taken) };
                }
            }
            match self.code(input, &mut taken) {
                None => return Progress { wrote, ..Progress::took(taken) },
                Some(CLEAR) => self.clear(),
                Some(END) => return Progress { taken, wrote, told: Told::Over },
                Some(code) if self.read(code) => {}
                Some(_) => return Progress { taken, wrote, told: Told::Fault(DATA) },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard() {
        let mut output = [0; 4096];
        let packed = [0x80, 0x0b, 0x60, 0x50, 0x22, 0x0c, 0x0c, 0x85, 0x01];
        let progress = Lzw::new(true).decode(&packed, true, &mut output);
        assert_eq!(progress, Progress { taken: 9, wrote: 10, told: Told::Over });
        assert_eq!(output[..10], [45, 45, 45, 45, 45, 65, 45, 45, 45, 66]);
    }
}
