//! A run of Base64, of Base32 or of hexadecimal digits, over the lines that it has.
//!
//! What it is shows in its characters: it is held until they look like no word and no digest, or until there are many.
//! The alphabet for URLs has `-` and `_` in place of `+` and `/`: a run has one of the two alphabets.
//! Bounds: [`RUN_SURE`] characters, a line of [`LINE_MIN`].

use stream::{FileType, Kind, Object};

use super::{HEX_MIN, LINE_MIN, RUN_MIN, RUN_SURE, RUNS_FREE, is_base64};
use crate::document::html::base64_value;
use crate::document::script::makes_sense;
use crate::frame::reader::Outbox;
use crate::recognise::head::recognise;

/// A run of Base64.
#[derive(Default)]
pub(super) struct Base64 {
    /// Characters that are not told yet, as long as it is not decided whether they will be.
    pub held: Vec<u8>,
    /// The line that is being read, as long as it is short.
    line: Vec<u8>,
    /// Characters of that line.
    line_chars: usize,
    /// Line ends since the last character.
    line_ends: u8,
    /// Whether a blank precedes the next byte.
    blank: bool,
    /// Whether the lines behind the first one begin with a blank.
    pub folded: Option<bool>,
    /// The reference to a character that is being read.
    reference: Option<u8>,
    padded: bool,
    /// Whether the alphabet is the one for URLs.
    pub is_for_urls: bool,
    /// Whether `+` or `/` has been read.
    is_usual: bool,
    /// `-` and `_` that belong to the run if more of it follows.
    dashes: Vec<u8>,
    /// The name of what it holds.
    pub name: Option<Box<str>>,
    pub decided: Decided,
    looks: Looks,
    /// What its characters are.
    alphabet: Alphabet,
    bits: u32,
    bit_count: u32,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    #[default]
    Base64,
    Base32,
    Hex,
}

impl Alphabet {
    const fn width(self) -> u32 {
        match self {
            Alphabet::Base64 => 6,
            Alphabet::Base32 => 5,
            Alphabet::Hex => 4,
        }
    }

    fn value(self, byte: u8) -> Option<u8> {
        match self {
            Alphabet::Base64 => base64_value(byte),
            Alphabet::Base32 => base32_value(byte),
            Alphabet::Hex => char::from(byte).to_digit(16).map(|digit| digit as u8),
        }
    }

    fn decode(self, run: &[u8]) -> Vec<u8> {
        let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::with_capacity(run.len()));
        for value in run.iter().filter_map(|&byte| self.value(byte)) {
            bits = bits << self.width() | u32::from(value);
            count += self.width();
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
            }
        }
        bytes
    }
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decided {
    #[default]
    Open,
    Told,
    Dropped,
}

/// Most `-` and `_` in a row; armour has five.
const DASHES_MAX: usize = 4;

/// Characters that are read at a time, and the bytes that they stand for.
const CHARACTERS_MAX: usize = 1_024;
const DECODED_BYTES_MAX: usize = CHARACTERS_MAX / 4 * 3 + 1;

/// The values of characters; [`NO_VALUE`] of all others.
static VALUES: [u8; 256] = {
    let mut values = [NO_VALUE; 256];
    let mut at = 0;
    while at < 256 {
        if let Some(value) = text::base64::value(at as u8) {
            values[at] = value;
        }
        at += 1;
    }
    values
};

const NO_VALUE: u8 = u8::MAX;

impl Base64 {
    /// Reads the first characters at once where they go on with a long line and its run is decided upon, as [`Base64::byte`] would read
    /// each; how many.
    pub fn characters(&mut self, bytes: &[u8], outbox: &mut Outbox) -> usize {
        let is_within = self.line_ends == 0 && self.line_chars >= LINE_MIN && !self.blank;
        if !is_within
            || self.decided == Decided::Open
            || self.alphabet != Alphabet::Base64
            || self.padded
            || self.is_for_urls
            || !self.dashes.is_empty()
            || self.reference.is_some()
        {
            return 0;
        }
        let mut decoded = [0; DECODED_BYTES_MAX];
        let (mut bits, mut bit_count, mut length, mut count) = (self.bits, self.bit_count, 0, 0);
        for &byte in bytes.iter().take(CHARACTERS_MAX) {
            let value = VALUES[usize::from(byte)];
            if value == NO_VALUE {
                break;
            }
            bits = bits << 6 | u32::from(value);
            bit_count += 6;
            if bit_count >= 8 {
                bit_count -= 8;
                decoded[length] = (bits >> bit_count) as u8;
                length += 1;
            }
            count += 1;
        }
        self.line_chars += count;
        self.is_usual = self.is_usual || memchr::memchr2(b'+', b'/', &bytes[..count]).is_some();
        if self.decided == Decided::Told {
            (self.bits, self.bit_count) = (bits, bit_count);
            outbox.content(&decoded[..length]);
        }
        count
    }

    /// Reads a byte; whether the run goes on.
    pub fn byte(&mut self, byte: u8, runs: &mut u32, outbox: &mut Outbox) -> bool {
        if let Some(count) = self.reference {
            self.reference = (byte != b';').then_some(count + 1);
            return count < 5 && (byte.is_ascii_alphanumeric() || matches!(byte, b'#' | b';'));
        }
        match byte {
            b'\r' => true,
            b'\n' => {
                self.take_dashes(runs, outbox);
                self.line_is_whole(runs, outbox);
                self.line_ends += 1;
                self.blank = false;
                // A line without anything ends it.
                self.line_ends == 1
            }
            b' ' | b'\t' => {
                self.blank = true;
                true
            }
            b'&' => {
                self.reference = Some(0);
                true
            }
            b'=' => {
                self.take_dashes(runs, outbox);
                self.line_is_whole(runs, outbox);
                self.padded = true;
                true
            }
            b'-' | b'_' if self.may_be_for_urls() => {
                self.dashes.push(byte);
                self.dashes.len() <= DASHES_MAX
            }
            b'+' | b'/' if self.is_for_urls => false,
            _ if is_base64(byte) && !self.padded => {
                self.is_usual |= matches!(byte, b'+' | b'/');
                if !self.blank && self.line_ends == 0 {
                    self.take_dashes(runs, outbox);
                }
                self.character(byte, runs, outbox)
            }
            _ => false,
        }
    }

    /// Whether `-` and `_` may be characters of the run here.
    fn may_be_for_urls(&self) -> bool {
        let is_beyond_hex = || self.looks.beyond_hex || self.line.iter().any(|byte| !byte.is_ascii_hexdigit());
        let is_within = !self.is_usual && !self.padded && !self.blank && self.line_ends == 0;
        is_within
            && match self.decided {
                Decided::Told => self.alphabet == Alphabet::Base64,
                Decided::Dropped => true,
                Decided::Open => self.is_for_urls || is_beyond_hex(),
            }
    }

    /// The run goes on behind dashes: they are characters of it.
    fn take_dashes(&mut self, runs: &mut u32, outbox: &mut Outbox) {
        for byte in std::mem::take(&mut self.dashes) {
            self.is_for_urls = true;
            self.character(byte, runs, outbox);
        }
    }

    /// How many of the last bytes do not belong to the run.
    pub fn unread(&self) -> usize {
        self.dashes.len()
    }

    fn character(&mut self, byte: u8, runs: &mut u32, outbox: &mut Outbox) -> bool {
        let blank = std::mem::take(&mut self.blank);
        if std::mem::take(&mut self.line_ends) > 0 {
            self.line_chars = 0;
            if *self.folded.get_or_insert(blank) && !blank {
                return false;
            }
        } else if blank && self.line_chars > 0 {
            return false;
        }
        self.line_chars += 1;
        if self.line_chars <= LINE_MIN {
            self.line.push(byte);
            if self.line_chars == LINE_MIN {
                self.line_is_whole(runs, outbox);
            }
        } else {
            self.take(byte, runs, outbox);
        }
        true
    }

    /// Adds the held part of the line to the run.
    fn line_is_whole(&mut self, runs: &mut u32, outbox: &mut Outbox) {
        for byte in std::mem::take(&mut self.line) {
            self.take(byte, runs, outbox);
        }
    }

    fn take(&mut self, byte: u8, runs: &mut u32, outbox: &mut Outbox) {
        match self.decided {
            Decided::Dropped => {}
            Decided::Told => self.decode(byte, outbox),
            Decided::Open => {
                self.held.push(byte);
                self.looks.note(byte, self.held.len());
                if self.held.len() >= RUN_MIN && (self.held.len() >= RUN_SURE || self.looks.are_telling()) {
                    self.decide(runs, outbox);
                }
            }
        }
    }

    fn decide(&mut self, runs: &mut u32, outbox: &mut Outbox) {
        *runs += 1;
        let mut held = std::mem::take(&mut self.held);
        self.alphabet = self.looks.alphabet();
        if matches!(self.alphabet, Alphabet::Hex) {
            held.drain(..prefix(&held).len());
        }
        if *runs > RUNS_FREE && !is_known(&self.alphabet.decode(&held)) {
            self.decided = Decided::Dropped;
            return;
        }
        self.decided = Decided::Told;
        outbox.open(Object { kind: Kind::Embedded, name: self.name.take(), ..Object::default() });
        for byte in held {
            self.decode(byte, outbox);
        }
    }

    fn decode(&mut self, byte: u8, outbox: &mut Outbox) {
        let width = self.alphabet.width();
        let Some(value) = self.alphabet.value(byte) else { return };
        self.bits = self.bits << width | u32::from(value);
        self.bit_count += width;
        if self.bit_count >= 8 {
            self.bit_count -= 8;
            outbox.content(&[(self.bits >> self.bit_count) as u8]);
        }
    }

    /// Ends the run. Returns whether its last line still belongs to it.
    pub fn end(&mut self, belongs: bool, runs: &mut u32, outbox: &mut Outbox) {
        if self.is_for_urls && self.dashes.len() == 1 {
            self.take_dashes(runs, outbox);
        }
        if belongs {
            self.line_is_whole(runs, outbox);
        }
        let is_hex = self.held.len() >= HEX_MIN && self.looks.are_hex();
        if self.decided == Decided::Open
            && is_hex
            && makes_sense(&Alphabet::Hex.decode(&self.held[prefix(&self.held).len()..]))
        {
            self.decide(runs, outbox);
        }
        if self.decided == Decided::Told {
            outbox.close();
        }
    }
}

/// Characters of a run.
#[derive(Default)]
struct Looks {
    upper: usize,
    lower: usize,
    digits: usize,
    beyond_hex: bool,
    beyond_base32: bool,
    /// The first character.
    first: u8,
}

impl Looks {
    /// Notes the character with this number, counted from 1.
    fn note(&mut self, byte: u8, number: usize) {
        // `0x`, or what is left of `\\x`.
        self.first = if number == 1 { byte } else { self.first };
        if matches!(byte, b'x' | b'X') && (number == 1 || number == 2 && self.first == b'0') {
            return;
        }
        self.upper += usize::from(byte.is_ascii_uppercase());
        self.lower += usize::from(byte.is_ascii_lowercase());
        self.digits += usize::from(byte.is_ascii_digit());
        self.beyond_hex |= !byte.is_ascii_hexdigit();
        self.beyond_base32 |= base32_value(byte).is_none();
    }

    /// Whether it reads like no word and no digest: letters of both cases, and no hexadecimal.
    const fn are_telling(&self) -> bool {
        self.upper >= 4 && self.lower >= 1 && self.beyond_hex || self.are_base32()
    }

    /// Whether it reads like hexadecimal; digits alone are a number.
    const fn are_hex(&self) -> bool {
        !self.beyond_hex && self.upper + self.lower > 0
    }

    const fn alphabet(&self) -> Alphabet {
        match (self.beyond_hex, self.are_base32()) {
            (false, _) => Alphabet::Hex,
            (true, true) => Alphabet::Base32,
            (true, false) => Alphabet::Base64,
        }
    }

    /// Whether it reads like Base32: digits among capitals, and none that it has not.
    const fn are_base32(&self) -> bool {
        self.upper >= 16 && self.digits >= 4 && self.beyond_hex && !self.beyond_base32
    }
}

/// The value of a character of Base32 (RFC 4648).
const fn base32_value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

/// What stands in front of hexadecimal digits.
fn prefix(run: &[u8]) -> &[u8] {
    match run {
        [b'0', b'x' | b'X', ..] => &run[..2],
        [b'x' | b'X', ..] => &run[..1],
        _ => b"",
    }
}

/// Returns whether the first bytes have a known type.
fn is_known(bytes: &[u8]) -> bool {
    !matches!(recognise(bytes), FileType::Binary | FileType::Image)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_read_at_once_are_those_that_are_read_one_by_one() {
        let line: Vec<u8> = (0..5_000_u32).map(|at| text::base64::ALPHABET[((at * at) >> 3) as usize % 64]).collect();
        let told = |at_once: bool| {
            let (mut run, mut outbox, mut runs) = (Base64::default(), Outbox::default(), 0);
            let (mut at, mut calls) = (0, 0);
            while let Some(&byte) = line.get(at) {
                let count = if at_once { run.characters(&line[at..], &mut outbox) } else { 0 };
                calls += 1;
                at += count;
                if count == 0 {
                    assert!(run.byte(byte, &mut runs, &mut outbox));
                    at += 1;
                }
            }
            (outbox.last_content(usize::MAX).to_vec(), run.bits & 0xff, run.bit_count, run.line_chars, calls)
        };
        let (one_by_one, at_once) = (told(false), told(true));
        assert_eq!(
            (&one_by_one.0, one_by_one.1, one_by_one.2, one_by_one.3),
            (&at_once.0, at_once.1, at_once.2, at_once.3)
        );
        assert_eq!((one_by_one.0.len(), one_by_one.4), (3_750, 5_000));
        assert!(at_once.4 < 1_000, "{}", at_once.4);
    }
}
