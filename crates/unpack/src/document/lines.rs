//! A file in the lines of a text: each holds a piece of it, in Base64 or hexadecimal, between the same words.
//!
//! Scripts that write a file line by line (`echo TVqQ... >> a.b64`, `sb.Append("TVqQ...")`), quoted mails and listings are
//! alike: the first word of [`PIECE_MIN`] characters of a line is the piece, and what stands before and behind it is the
//! frame, in which only numbers change. Pairs of hexadecimal digits are pieces too ([`pairs`]), and dumps with addresses, whatever
//! stands behind them. Records of Intel HEX and of Motorola count their bytes. None of the languages is
//! parsed.
//!
//! Left out: lines without a frame, strings one behind the other and strings appended to a variable, which other readers
//! find; pieces in another order than their lines; records of fewer than seven bytes.
//!
//! Bounds: a line of [`LINE_BYTES`], [`HELD_MAX`] characters until it is decided what they are.

mod pairs;
mod record;

use stream::{Kind, Object, ReadAt};

use super::runs;
use super::script::makes_sense;
use crate::document::html::base64_value;
use crate::frame::reader::{Ended, Outbox, Reader};
use pairs::{Pairs, are_alike, is_address};
use record::Record;

/// The longest line that is looked at.
const LINE_BYTES: usize = 8 << 10;
/// Characters of the first pieces.
const PIECE_MIN: usize = 24;
/// Lines that are alike before anything is told.
const LINES_MIN: usize = 4;
/// Bytes of pairs that are told if they make sense.
const PAIRS_MIN: usize = 64;
/// Characters that are told if they make sense.
const CHARACTERS_MIN: usize = 160;
/// Characters after which they are told whatever they are, or dropped.
const HELD_MAX: usize = 2048;

/// A reader of text.
pub(crate) struct Lines {
    line: Vec<u8>,
    /// Whether the line is longer than what is looked at.
    is_long: bool,
    chain: Option<Chain>,
}

/// Lines that are alike.
struct Chain {
    frame: Frame,
    lines: usize,
    /// Characters, or bytes of records, that are not told yet.
    held: Vec<u8>,
    told: Option<Decoder>,
}

enum Frame {
    Words {
        before: Vec<u8>,
        behind: Vec<u8>,
        /// Characters of each piece but the last.
        characters: usize,
    },
    Pairs {
        before: Vec<u8>,
        /// The text behind the pairs; nothing of a dump.
        behind: Option<Vec<u8>>,
        /// Bytes of each line but the last.
        bytes: usize,
    },
    Record,
}

/// Decoder of what is told.
struct Decoder {
    width: u32,
    bits: u32,
    bit_count: u32,
}

impl Lines {
    pub fn new() -> Lines {
        Lines { line: Vec::new(), is_long: false, chain: None }
    }

    /// A line is complete.
    fn line(&mut self, outbox: &mut Outbox) {
        let line = std::mem::take(&mut self.line);
        if !std::mem::take(&mut self.is_long) {
            self.read_line(line.trim_ascii_end(), outbox);
        } else {
            self.end_chain(outbox);
        }
        self.line = line;
        self.line.clear();
    }

    fn read_line(&mut self, line: &[u8], outbox: &mut Outbox) {
        if let Some(chain) = &mut self.chain {
            match chain.next(line, outbox) {
                Next::Belongs => return,
                Next::Last => return self.end_chain(outbox),
                Next::Other => self.end_chain(outbox),
            }
        }
        self.chain = Chain::begin(line);
    }

    fn end_chain(&mut self, outbox: &mut Outbox) {
        if let Some(mut chain) = self.chain.take() {
            chain.end(outbox);
        }
    }
}

/// Relation of a line to the ones before.
enum Next {
    Belongs,
    /// It belongs to them, and no other follows.
    Last,
    Other,
}

impl Chain {
    fn begin(line: &[u8]) -> Option<Chain> {
        let of = |frame, held| Some(Chain { frame, lines: 1, held, told: None });
        let Some(start) = runs::stretch_of_base64(line, PIECE_MIN) else {
            let (frame, bytes) = frame_of_pairs(line)?;
            return of(frame, bytes);
        };
        if let Some(record) = Record::read(line) {
            return of(Frame::Record, record.data);
        }
        let piece = characters(&line[start..]);
        let (before, behind) = (&line[..start], &line[start + piece.len()..]);
        if is_read_elsewhere(before, behind) {
            return None;
        }
        let frame = Frame::Words { before: before.to_vec(), behind: behind.to_vec(), characters: piece.len() };
        of(frame, piece.to_vec())
    }

    fn next(&mut self, line: &[u8], outbox: &mut Outbox) -> Next {
        match &self.frame {
            Frame::Record => {
                let Some(record) = Record::read(line) else { return Next::Other };
                self.lines += 1;
                self.take(&record.data, outbox);
                if record.is_last { Next::Last } else { Next::Belongs }
            }
            Frame::Pairs { before, behind, bytes: length } => {
                let Some((Frame::Pairs { before: own, behind: own_behind, .. }, mut bytes)) = pairs_like(line, behind)
                else {
                    return Next::Other;
                };
                let is_dump = behind.is_none();
                if !are_alike(before, &own) || *behind != own_behind || bytes.len() > *length && !is_dump {
                    return Next::Other;
                }
                bytes.truncate(*length);
                let is_short = bytes.len() < *length;
                self.lines += 1;
                self.take(&bytes, outbox);
                if is_short { Next::Last } else { Next::Belongs }
            }
            Frame::Words { before, behind, characters: length } => {
                let Some(rest) = behind_frame(line, before) else { return Next::Other };
                let piece = characters(rest);
                let end = &rest[piece.len()..];
                let unpadded = end.iter().position(|&byte| byte != b'=').unwrap_or(end.len()).min(2);
                let is_whole = behind_frame(end, behind).is_some_and(<[u8]>::is_empty);
                let is_last = behind_frame(&end[unpadded..], behind).is_some_and(<[u8]>::is_empty);
                if !is_whole && !is_last || piece.len() > *length {
                    return Next::Other;
                }
                let is_short = piece.len() < *length;
                self.lines += 1;
                self.take(piece, outbox);
                if is_short || !is_whole { Next::Last } else { Next::Belongs }
            }
        }
    }

    fn take(&mut self, piece: &[u8], outbox: &mut Outbox) {
        if let Some(told) = &mut self.told {
            return told.tell(piece, outbox);
        }
        // What has been dropped is not looked at again.
        if self.held.len() < HELD_MAX {
            self.held.extend_from_slice(piece);
            let is_due = match self.frame {
                Frame::Record => true,
                Frame::Pairs { .. } => self.held.len() >= PAIRS_MIN,
                Frame::Words { .. } => self.held.len() >= HELD_MAX,
            };
            if self.lines >= LINES_MIN && is_due {
                self.decide(outbox);
            }
        }
    }

    fn decide(&mut self, outbox: &mut Outbox) {
        let Some(width) = self.width() else { return };
        outbox.open(Object { kind: Kind::Embedded, ..Object::default() });
        let told = self.told.insert(Decoder { width, bits: 0, bit_count: 0 });
        told.tell(&std::mem::take(&mut self.held), outbox);
    }

    /// Bits of a character, if the held ones are told.
    fn width(&self) -> Option<u32> {
        let count = |is_in: fn(&u8) -> bool| self.held.iter().filter(|byte| is_in(byte)).count();
        let width = match self.frame {
            Frame::Record => return Some(8),
            Frame::Pairs { .. } => {
                let is_due = self.lines >= LINES_MIN && self.held.len() >= PAIRS_MIN;
                return (is_due && (makes_sense(&self.held) || self.held.len() >= HELD_MAX)).then_some(8);
            }
            _ if self.held.len() < CHARACTERS_MIN || self.lines < LINES_MIN => return None,
            // Digits alone are numbers.
            _ if self.held.iter().all(u8::is_ascii_hexdigit) && count(u8::is_ascii_alphabetic) > 0 => 4,
            _ if count(u8::is_ascii_uppercase) >= 4 && count(u8::is_ascii_lowercase) >= 4 => 6,
            _ => return None,
        };
        let told = decoded(&self.held, width);
        let is_sure = || {
            // As many of each as packed bytes have, and as names have not.
            let share = |is_in: fn(&u8) -> bool| count(is_in) * 100 / self.held.len();
            share(u8::is_ascii_uppercase) >= 20 && share(u8::is_ascii_lowercase) >= 20 && share(u8::is_ascii_digit) >= 5
        };
        (makes_sense(&told) || self.held.len() >= HELD_MAX && width == 6 && is_sure()).then_some(width)
    }

    fn end(&mut self, outbox: &mut Outbox) {
        if self.told.is_none() && self.lines >= LINES_MIN && self.held.len() < HELD_MAX {
            self.decide(outbox);
        }
        if self.told.is_some() {
            outbox.close();
        }
    }
}

impl Decoder {
    fn tell(&mut self, piece: &[u8], outbox: &mut Outbox) {
        if self.width == 8 {
            return outbox.content(piece);
        }
        let mut bytes = Vec::with_capacity(piece.len());
        for &byte in piece {
            let value = if self.width == 4 { hex_value(byte) } else { base64_value(byte) };
            let Some(value) = value else { continue };
            self.bits = self.bits << self.width | u32::from(value);
            self.bit_count += self.width;
            if self.bit_count >= 8 {
                self.bit_count -= 8;
                bytes.push((self.bits >> self.bit_count) as u8);
            }
        }
        outbox.content(&bytes);
    }
}

fn decoded(piece: &[u8], width: u32) -> Vec<u8> {
    let mut outbox = Outbox::default();
    Decoder { width, bits: 0, bit_count: 0 }.tell(piece, &mut outbox);
    outbox.last_content(outbox.content_bytes()).to_vec()
}

fn hex_value(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Length of the first whole lines, none of which can begin a chain.
fn lines_without_piece(text: &[u8]) -> usize {
    let piece = runs::stretch_of_base64(text, PIECE_MIN).unwrap_or(text.len());
    let pairs = runs::stretch_of_pairs(&text[..piece], PIECE_MIN).unwrap_or(piece);
    let piece = piece.min(pairs);
    memchr::memrchr(b'\n', &text[..piece]).map_or(0, |end| end + 1)
}

/// The frame of a line with pairs, and its bytes.
fn frame_of_pairs(line: &[u8]) -> Option<(Frame, Vec<u8>)> {
    let Pairs { start, end, bytes } = Pairs::find(line)?;
    let (before, behind) = (&line[..start], &line[end..]);
    let is_dump = is_address(before);
    if !is_dump && is_joined(before, behind) {
        return None;
    }
    let behind = (!is_dump).then(|| behind.to_vec());
    Some((Frame::Pairs { before: before.to_vec(), behind, bytes: bytes.len() }, bytes))
}

/// The same of a further line, which may be shorter: the text behind its pairs is the one of the first.
fn pairs_like(line: &[u8], behind: &Option<Vec<u8>>) -> Option<(Frame, Vec<u8>)> {
    if let Some(found) = frame_of_pairs(line) {
        return Some(found);
    }
    let front = line.strip_suffix(behind.as_deref().unwrap_or_default())?;
    let begins = |at: &usize| *at == 0 || !front[*at - 1].is_ascii_alphanumeric();
    let pairs = (0..front.len()).rev().filter(begins).filter_map(|at| Pairs::at(front, at));
    let Pairs { start, end, bytes } = pairs.take_while(|pairs| pairs.end == front.len() || behind.is_none()).last()?;
    let frame = Frame::Pairs { before: front[..start].to_vec(), behind: behind.clone(), bytes: bytes.len() };
    (end == front.len() || behind.is_none()).then_some((frame, bytes))
}

/// Whether other readers find pairs: there is no frame, or they are in strings one behind the other.
fn is_joined(before: &[u8], behind: &[u8]) -> bool {
    let before = before.trim_ascii();
    let is_prefix = |text: &[u8]| text.len() <= 2 && text.iter().all(u8::is_ascii_alphabetic);
    match before.split_last() {
        None => matches!(behind.trim_ascii(), b"" | b"," | b"\\"),
        Some((b'"' | b'\'' | b'`', in_front)) => is_prefix(in_front) || is_read_elsewhere(before, behind),
        Some(_) => false,
    }
}

/// The characters of Base64 at the front.
fn characters(text: &[u8]) -> &[u8] {
    let count = text.iter().position(|&byte| !runs::is_base64(byte)).unwrap_or(text.len());
    &text[..count]
}

/// What stands behind the frame, in which numbers may be others.
fn behind_frame<'t>(text: &'t [u8], frame: &[u8]) -> Option<&'t [u8]> {
    let (mut text, mut frame) = (text, frame);
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    while let (&[first, ref rest @ ..], &[expected, ref expected_rest @ ..]) = (text, frame) {
        if first.is_ascii_digit() && expected.is_ascii_digit() {
            (text, frame) = (&text[digits(text)..], &frame[digits(frame)..]);
        } else if first == expected {
            (text, frame) = (rest, expected_rest);
        } else {
            return None;
        }
    }
    frame.is_empty().then_some(text)
}

/// Whether other readers find the pieces: there is no frame, or they are strings that are joined or appended.
fn is_read_elsewhere(before: &[u8], behind: &[u8]) -> bool {
    let before = before.trim_ascii();
    let (last, in_front) = before.split_last().map_or((None, before), |(last, rest)| (Some(*last), rest.trim_ascii()));
    match last {
        None => behind.iter().all(|byte| *byte == b'='),
        Some(b'"' | b'\'' | b'`') => matches!(in_front.last(), None | Some(b'=' | b'+' | b'&' | b'.' | b'[')),
        Some(_) => false,
    }
}

impl Reader for Lines {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let mut rest = input;
        while !rest.is_empty() {
            if self.chain.is_none() && self.line.is_empty() && !self.is_long {
                rest = &rest[lines_without_piece(rest)..];
            }
            let end = memchr::memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            let room = LINE_BYTES - self.line.len();
            self.is_long |= line.len() > room;
            self.line.extend_from_slice(&line[..line.len().min(room)]);
            rest = rest.get(line.len() + 1..).unwrap_or_default();
            if end.is_some() {
                self.line(outbox);
            }
        }
        input.len()
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        self.line(outbox);
        self.end_chain(outbox);
        Ended::Done
    }
}

#[cfg(test)]
mod tests;
