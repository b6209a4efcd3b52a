//! Bytes as numbers: between commas, decimal (signed or not) or with `0x`; or as pairs of hexadecimal digits between blanks,
//! colons or commas, which a backslash may carry on to the next line.
//!
//! Bounds: [`NUMBERS_MIN`] numbers, [`PAIRS_SURE`] pairs until it is decided what they are.

use stream::{Kind, Object};

use crate::document::script::makes_sense;
use crate::frame::reader::Outbox;

/// Numbers that are emitted as bytes.
const NUMBERS_MIN: usize = 32;
/// Pairs that are emitted if they make sense, and those that are emitted whatever they hold.
const PAIRS_MIN: usize = 64;
const PAIRS_SURE: usize = 1024;

/// A run of numbers.
#[derive(Default)]
pub(super) struct Numbers {
    bytes: Vec<u8>,
    number: Option<u32>,
    is_negative: bool,
    hex: bool,
    /// Whether a number is complete, so that a comma comes next.
    complete: bool,
    opened: bool,
    /// Whether the rest of a word is passed, which is no number.
    skip: bool,
    /// Letters and digits since the last other character.
    pub word: usize,
    pairs: Pairs,
    /// Whether the last byte is a dash, and whether it is the first one.
    is_dash: bool,
    has_begun: bool,
    is_first_dash: bool,
}

/// The same run, as pairs of digits.
#[derive(Default)]
struct Pairs {
    bytes: Vec<u8>,
    value: u8,
    digits: usize,
    has_letter: bool,
    opened: bool,
    skip: bool,
}

impl Numbers {
    /// A run that begins within a word, or not.
    pub fn new(skip: bool) -> Numbers {
        Numbers { skip, pairs: Pairs { skip, ..Pairs::default() }, ..Numbers::default() }
    }

    /// Whether this byte makes a rule of dashes, which is no number.
    pub fn is_rule(&self, byte: u8) -> bool {
        self.is_dash && byte == b'-'
    }

    /// How many of the last bytes may begin something else.
    pub fn unread(&self) -> usize {
        // A run of one dash has to be passed.
        if self.is_dash && !self.is_first_dash { 1 } else { self.word }
    }

    /// Reads a byte of the class. Text other than numbers between commas restarts the search, without a second look at
    /// it.
    pub fn byte(&mut self, byte: u8, outbox: &mut Outbox) {
        self.is_dash = byte == b'-';
        self.is_first_dash = self.is_dash && !self.has_begun;
        self.has_begun = true;
        let in_word = byte.is_ascii_alphanumeric();
        self.word = if in_word { self.word + 1 } else { 0 };
        if !self.opened {
            self.pairs.byte(byte, outbox);
        }
        if !self.pairs.opened {
            self.number_byte(byte, in_word, outbox);
        }
    }

    fn number_byte(&mut self, byte: u8, in_word: bool, outbox: &mut Outbox) {
        self.skip &= in_word;
        match byte {
            _ if self.skip => {}
            b',' => {
                (self.hex, self.complete) = (false, false);
                match self.value() {
                    Some(value) => self.take(value, outbox),
                    None if self.is_negative => self.restart(false, outbox),
                    None => {}
                }
                self.is_negative = false;
            }
            b'-' if self.number.is_none() && !self.is_negative => self.is_negative = true,
            b'-' => self.restart(false, outbox),
            _ if !in_word => self.complete = self.number.is_some(),
            b'x' | b'X' if self.number == Some(0) && !self.hex && !self.complete => self.hex = true,
            _ => {
                let base = if self.hex { 16 } else { 10 };
                let digit = char::from(byte).to_digit(base).filter(|_| !self.complete);
                let number = digit.map(|digit| self.number.unwrap_or(0) * base + digit);
                let max = if self.is_negative { 128 } else { 255 };
                match number.filter(|&number| number <= max) {
                    Some(number) => self.number = Some(number),
                    None => self.restart(true, outbox),
                }
            }
        }
    }

    /// What was read is no number.
    fn restart(&mut self, skip: bool, outbox: &mut Outbox) {
        self.number = None;
        self.close(outbox);
        let Numbers { word, is_dash, has_begun, is_first_dash, .. } = *self;
        let pairs = std::mem::take(&mut self.pairs);
        *self = Numbers { skip, word, pairs, is_dash, has_begun, is_first_dash, ..Numbers::default() };
    }

    /// The byte that a number stands for.
    fn value(&mut self) -> Option<u8> {
        let value = self.number.take()? as u8;
        Some(if self.is_negative { value.wrapping_neg() } else { value })
    }

    fn take(&mut self, byte: u8, outbox: &mut Outbox) {
        if self.opened {
            return outbox.content(&[byte]);
        }
        self.bytes.push(byte);
        if self.bytes.len() == NUMBERS_MIN {
            self.opened = true;
            self.pairs = Pairs::default();
            outbox.open(Object { kind: Kind::Embedded, ..Object::default() });
            outbox.content(&std::mem::take(&mut self.bytes));
        }
    }

    /// Ends the run.
    pub fn end(&mut self, outbox: &mut Outbox) {
        if !self.opened {
            self.pairs.end(outbox);
        }
        self.close(outbox);
    }

    fn close(&mut self, outbox: &mut Outbox) {
        if !std::mem::take(&mut self.opened) {
            return;
        }
        if let Some(value) = self.value() {
            outbox.content(&[value]);
        }
        outbox.close();
    }
}

impl Pairs {
    fn byte(&mut self, byte: u8, outbox: &mut Outbox) {
        match char::from(byte).to_digit(16) {
            Some(_) if self.skip => {}
            Some(digit) if self.digits < 2 => {
                self.value = self.value << 4 | digit as u8;
                self.digits += 1;
                self.has_letter |= digit > 9;
            }
            None if matches!(byte, b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' | b'\\') => {
                let digits = std::mem::take(&mut self.digits);
                let is_skipped = std::mem::take(&mut self.skip);
                match digits {
                    2 => self.take(outbox),
                    0 => {}
                    _ if !is_skipped => self.end(outbox),
                    _ => {}
                }
            }
            _ => {
                self.digits = 0;
                self.end(outbox);
                self.skip = true;
            }
        }
    }

    fn take(&mut self, outbox: &mut Outbox) {
        if self.opened {
            return outbox.content(&[self.value]);
        }
        self.bytes.push(self.value);
        let is_due = self.bytes.len() == PAIRS_MIN && makes_sense(&self.bytes) || self.bytes.len() == PAIRS_SURE;
        if !is_due {
            return;
        }
        if !self.has_letter {
            // Numbers without a letter among them are decimal.
            return self.end(outbox);
        }
        self.opened = true;
        outbox.open(Object { kind: Kind::Embedded, ..Object::default() });
        outbox.content(&std::mem::take(&mut self.bytes));
    }

    fn end(&mut self, outbox: &mut Outbox) {
        if self.opened {
            if self.digits == 2 {
                outbox.content(&[self.value]);
            }
            outbox.close();
        }
        *self = Pairs::default();
    }
}
