//! ASCIIHexDecode and ASCII85Decode (ISO 32000-2, 7.4.2 and 7.4.3). White space and what is no digit are passed over.

use super::layer::Layer;
use crate::frame::codec::{Progress, Told};

/// Pairs of hexadecimal digits up to `>`.
#[derive(Default)]
pub(super) struct AsciiHex {
    high: Option<u8>,
}

impl Layer for AsciiHex {
    fn decode(&mut self, input: &[u8], last: bool, output: &mut [u8]) -> Progress {
        let mut wrote = 0;
        for (at, &byte) in input.iter().enumerate() {
            if wrote + 1 >= output.len() {
                return Progress { wrote, ..Progress::took(at) };
            }
            if byte == b'>' {
                wrote += self.rest(&mut output[wrote..]);
                return Progress { taken: at + 1, wrote, told: Told::Over };
            }
            let Some(digit) = char::from(byte).to_digit(16) else { continue };
            match self.high.take() {
                None => self.high = Some((digit as u8) << 4),
                Some(high) => {
                    output[wrote] = high | digit as u8;
                    wrote += 1;
                }
            }
        }
        if last {
            wrote += self.rest(&mut output[wrote..]);
        }
        Progress { wrote, ..Progress::took(input.len()) }
    }
}

impl AsciiHex {
    /// A digit without its second stands before a 0.
    fn rest(&mut self, output: &mut [u8]) -> usize {
        let Some(high) = self.high.take() else { return 0 };
        output[0] = high;
        1
    }
}

/// Groups of five characters for four bytes, up to `~`.
#[derive(Default)]
pub(super) struct Ascii85 {
    value: u32,
    digits: usize,
    /// `<~` may stand in front.
    begun: bool,
    over: bool,
}

impl Layer for Ascii85 {
    fn decode(&mut self, input: &[u8], last: bool, output: &mut [u8]) -> Progress {
        let mut wrote = 0;
        for (at, &byte) in input.iter().enumerate() {
            if wrote + 8 > output.len() {
                return Progress { wrote, ..Progress::took(at) };
            }
            let is_mark = byte == b'~' && (self.begun || self.digits != 1);
            match byte {
                // The byte after the tilde is `>`, or does not matter.
                b'>' if self.over => return Progress { taken: at + 1, wrote, told: Told::Over },
                _ if self.over && super::lexer::is_space(byte) => {}
                _ if self.over => return Progress { taken: at, wrote, told: Told::Over },
                b'~' if is_mark => {
                    wrote += self.rest(&mut output[wrote..]);
                    self.over = true;
                }
                // The digit in front of this tilde was the `<` of an opening mark.
                b'~' => (self.digits, self.value) = (0, 0),
                b'z' if self.digits == 0 => {
                    output[wrote..wrote + 4].fill(0);
                    wrote += 4;
                }
                b'!'..=b'u' => wrote += self.digit(byte - b'!', &mut output[wrote..]),
                _ => {}
            }
            self.begun |= self.digits > 1 || wrote > 0 || is_mark || (byte == b'~');
        }
        if last && !self.over {
            wrote += self.rest(&mut output[wrote..]);
        }
        Progress { wrote, ..Progress::took(input.len()) }
    }
}

impl Ascii85 {
    fn digit(&mut self, digit: u8, output: &mut [u8]) -> usize {
        self.value = self.value.wrapping_mul(85).wrapping_add(digit.into());
        self.digits += 1;
        if self.digits < 5 {
            return 0;
        }
        output[..4].copy_from_slice(&self.value.to_be_bytes());
        (self.digits, self.value) = (0, 0);
        4
    }

    /// A last group of `n` characters makes `n - 1` bytes.
    fn rest(&mut self, output: &mut [u8]) -> usize {
        let bytes = self.digits.saturating_sub(1);
        while (1..5).contains(&self.digits) {
            self.value = self.value.wrapping_mul(85).wrapping_add(84);
            self.digits += 1;
        }
        output[..bytes].copy_from_slice(&self.value.to_be_bytes()[..bytes]);
        (self.digits, self.value) = (0, 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(mut layer: impl Layer, text: &[u8]) -> (Vec<u8>, usize) {
        let mut output = [0; 4096];
        let progress = layer.decode(text, true, &mut output);
        (output[..progress.wrote].to_vec(), progress.taken)
    }

    #[test]
    fn hexadecimal_ends_at_its_mark_with_half_a_byte() {
        assert_eq!(decode(AsciiHex::default(), b"4 8\n65 7>41"), (b"Hep".to_vec(), 9));
        assert_eq!(decode(AsciiHex::default(), b"487"), (b"Hp".to_vec(), 3));
    }

    #[test]
    fn base_85_has_groups_zeros_and_a_short_end() {
        assert_eq!(decode(Ascii85::default(), b"<~87cUR\nD]i,\"z~>x"), (b"Hello Wo\0\0\0\0".to_vec(), 16));
        assert_eq!(decode(Ascii85::default(), b"87cURDZ~>"), (b"Hello".to_vec(), 9));
        assert_eq!(decode(Ascii85::default(), b"87cURDZ").0, b"Hello");
    }
}
