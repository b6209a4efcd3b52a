//! BinHex 4.0 (RFC 1741): the data fork of the file.
//!
//! Everything up to the first colon at the start of a line is skipped. The resource fork and the checksums are read over
//! and not told; the name is in the header and is not told either.

use super::sink::Sink;

const ALPHABET: &[u8; 64] = b"!\"#$%&'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr";
const NONE: u8 = 0xff;
const REPEAT: u8 = 0x90;

/// Bytes of the header behind the name: a zero, type, creator, flags, two lengths, checksum.
const FIXED_BYTES: u32 = 1 + 4 + 4 + 2 + 4 + 4 + 2;
/// Where among them the length of the data fork stands.
const LENGTH_AT: core::ops::Range<u32> = 11..15;

static VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    let mut values = [NONE; 256];
    let mut index = 0;
    while index < ALPHABET.len() {
        values[ALPHABET[index] as usize] = index as u8;
        index += 1;
    }
    values
}

#[derive(Debug, Clone)]
pub(super) struct BinHex {
    text: Text,
    bits: u32,
    bits_len: u8,
    /// The byte that a repetition would repeat.
    last: u8,
    repeat_follows: bool,
    part: Part,
}

/// Where in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Before { line_start: bool },
    Data,
    Behind,
}

/// Where in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    NameLength,
    Name { left: u8 },
    Fixed { at: u32, length: u32 },
    Data { left: u32 },
    Rest,
}

impl Default for BinHex {
    fn default() -> BinHex {
        BinHex {
            text: Text::Before { line_start: true },
            bits: 0,
            bits_len: 0,
            last: 0,
            repeat_follows: false,
            part: Part::NameLength,
        }
    }
}

impl BinHex {
    /// Decodes a prefix of `input`; how long it was.
    pub(super) fn decode(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let mut taken = 0;
        while taken < input.len() && !sink.is_full() {
            self.character(input[taken], sink);
            taken += 1;
        }
        taken
    }

    fn character(&mut self, byte: u8, sink: &mut Sink) {
        match self.text {
            Text::Before { line_start: true } if byte == b':' => self.text = Text::Data,
            Text::Before { .. } => {
                let line_start = matches!(byte, b'\r' | b'\n');
                self.text = Text::Before { line_start };
            }
            Text::Data if byte == b':' => self.text = Text::Behind,
            Text::Data => self.bits(VALUES[usize::from(byte)], sink),
            Text::Behind => {}
        }
    }

    fn bits(&mut self, value: u8, sink: &mut Sink) {
        if value == NONE {
            return;
        }
        self.bits = self.bits << 6 | u32::from(value);
        self.bits_len += 6;
        if self.bits_len < 8 {
            return;
        }
        self.bits_len -= 8;
        let byte = (self.bits >> self.bits_len) as u8;
        self.bits &= (1 << self.bits_len) - 1;
        self.packed(byte, sink);
    }

    fn packed(&mut self, byte: u8, sink: &mut Sink) {
        if self.repeat_follows {
            self.repeat_follows = false;
            match byte {
                0 => self.unpacked(REPEAT, 1, sink),
                _ => self.unpacked(self.last, u32::from(byte) - 1, sink),
            }
        } else if byte == REPEAT {
            self.repeat_follows = true;
        } else {
            self.unpacked(byte, 1, sink);
        }
    }

    fn unpacked(&mut self, byte: u8, count: u32, sink: &mut Sink) {
        self.last = byte;
        for _ in 0..count {
            self.part = match self.part {
                Part::NameLength => Part::Name { left: byte },
                Part::Name { left: 0 } => self.fixed(byte, 0, 0),
                Part::Name { left } => Part::Name { left: left - 1 },
                Part::Fixed { at, length } => self.fixed(byte, at, length),
                Part::Data { left: 0 } | Part::Rest => Part::Rest,
                Part::Data { left } => {
                    sink.push(&[byte]);
                    Part::Data { left: left - 1 }
                }
            };
        }
    }

    fn fixed(&self, byte: u8, at: u32, length: u32) -> Part {
        let length = match LENGTH_AT.contains(&at) {
            true => length << 8 | u32::from(byte),
            false => length,
        };
        if at + 1 == FIXED_BYTES {
            return Part::Data { left: length };
        }
        Part::Fixed { at: at + 1, length }
    }
}
