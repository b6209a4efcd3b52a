//! Armour: Base64 between a line of dashes that begins it and what is no Base64, as OpenPGP and PEM have it; and text that is
//! signed in the clear.
//!
//! Lines may be of any length, and header fields may stand in front of them. Of signed text the dashes are unescaped
//! (RFC 9580, section 7). Bounds: a line that begins it, [`LINE_MAX`]; a header field, [`FIELD_MAX`].

use memchr::{memchr, memmem};
use stream::{Kind, Object};

use super::{LINE_MIN, is_base64};
use crate::document::html::base64_value;
use crate::frame::reader::Outbox;

const MARK: &[u8] = b"-----BEGIN ";
const DASHES: &[u8] = b"-----";
const SIGNED_TEXT: &[u8] = b"PGP SIGNED MESSAGE";
/// The rest of a line that begins it: a label, dashes and blanks. No part is long enough for a run.
const LINE_MAX: usize = 2 * LINE_MIN + DASHES.len();
/// A header field.
const FIELD_MAX: usize = 1024;
/// Characters that are emitted as bytes: fewer are a word.
const CHARS_MIN: usize = 16;
/// Characters of a line that may still be the name of a field.
pub(super) const NAME_MAX: usize = 40;

/// A block on its way.
pub(super) struct Armour {
    is_text: bool,
    state: State,
    /// Characters that are not told yet.
    held: Vec<u8>,
    bits: u32,
    bit_count: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of a line in front of the content, or in a name.
    Name,
    /// After the name of a field, and so many bytes of it.
    Field(usize),
    /// In Base64; whether a blank was the last that was read.
    Base64 { blank: bool },
    /// In signed text; whether in the middle of a line.
    Text { in_line: bool },
}

/// Finds the next block from `from` on, and the end of its first line; otherwise returns the searched end.
pub(super) fn find(held: &[u8], from: usize) -> Result<(usize, Armour, usize), usize> {
    let mut from = from;
    while let Some(at) = memmem::find(&held[from.min(held.len())..], MARK).map(|at| at + from) {
        let label_at = at + MARK.len();
        let line = &held[label_at..];
        let line = &line[..line.len().min(LINE_MAX)];
        match memchr(b'\n', line) {
            Some(end) => match label(&line[..end]) {
                Some(label) => return Ok((at, Armour::new(label == SIGNED_TEXT), label_at + end + 1)),
                None => from = label_at,
            },
            None if line.len() < LINE_MAX => return Err(at),
            None => from = label_at,
        }
    }
    let begun = (1..MARK.len()).rev().find(|&count| held.ends_with(&MARK[..count])).unwrap_or(0);
    Err((held.len() - begun).max(from))
}

/// The label of a line that begins a block.
fn label(line: &[u8]) -> Option<&[u8]> {
    let trimmed = line.trim_ascii_end();
    let label = trimmed.strip_suffix(DASHES)?;
    let is_short = label.len() < LINE_MIN && line.len() - trimmed.len() < LINE_MIN;
    let is_label = label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b',' | b'/' | b'#'));
    (is_label && is_short).then_some(label)
}

impl Armour {
    fn new(is_text: bool) -> Armour {
        Armour { is_text, state: State::Name, held: Vec::new(), bits: 0, bit_count: 0 }
    }

    /// Reads the next bytes. Returns how many were taken, and whether the block continues.
    pub fn read(&mut self, bytes: &[u8], outbox: &mut Outbox) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Text { in_line } = self.state {
                let Some(taken) = self.text(in_line, &bytes[at..], outbox) else { return (at, false) };
                if taken == 0 {
                    return (at, true);
                }
                at += taken;
                continue;
            }
            let goes_on = match self.state {
                State::Name => self.name(bytes[at], outbox),
                State::Field(count) => self.field(bytes[at], count),
                _ => self.base64(bytes[at], outbox),
            };
            if !goes_on {
                return (at, false);
            }
            at += 1;
        }
        (at, true)
    }

    /// No more follows but these bytes.
    pub fn end(&mut self, rest: &[u8], outbox: &mut Outbox) {
        match self.state {
            State::Text { .. } => outbox.content(rest),
            State::Name if !self.is_text => self.take_held(outbox),
            _ => {}
        }
        self.close(outbox);
    }

    /// Bytes that were read last and belong to no block: signed text has an empty line in front.
    pub const fn unread(&self) -> usize {
        if self.is_text && matches!(self.state, State::Name) { self.held.len() } else { 0 }
    }

    /// Closes the open object.
    pub fn close(&self, outbox: &mut Outbox) {
        if outbox.is_open() {
            outbox.close();
        }
    }

    /// A byte of a line that may be a field, or empty, or the first one of the content.
    fn name(&mut self, byte: u8, outbox: &mut Outbox) -> bool {
        match byte {
            b':' if !self.held.is_empty() => {
                self.held.clear();
                self.state = State::Field(0);
            }
            b'\n' if self.held.is_empty() && self.is_text => {
                self.state = State::Text { in_line: false };
                outbox.open(Object { kind: Kind::Embedded, ..Object::default() });
            }
            b'\n' if self.held.is_empty() => self.state = State::Base64 { blank: false },
            b' ' | b'\t' | b'\r' if self.held.is_empty() => {}
            b'-' if self.held.is_empty() => return false,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' if self.held.len() < NAME_MAX => self.held.push(byte),
            _ if self.is_text => return false,
            _ => {
                self.take_held(outbox);
                return self.base64(byte, outbox);
            }
        }
        true
    }

    /// A blank stands behind the colon, and the field ends with its line.
    fn field(&mut self, byte: u8, count: usize) -> bool {
        self.state = if byte == b'\n' { State::Name } else { State::Field(count + 1) };
        count < FIELD_MAX && (count > 0 || matches!(byte, b' ' | b'\r' | b'\n'))
    }

    /// Takes the held name for content.
    fn take_held(&mut self, outbox: &mut Outbox) {
        self.state = State::Base64 { blank: false };
        for byte in std::mem::take(&mut self.held) {
            self.base64(byte, outbox);
        }
    }

    fn base64(&mut self, byte: u8, outbox: &mut Outbox) -> bool {
        let blank = self.state == State::Base64 { blank: true };
        match byte {
            b'\n' => self.state = State::Base64 { blank: false },
            b' ' | b'\t' | b'\r' => self.state = State::Base64 { blank: true },
            _ if is_base64(byte) && !blank => {
                self.held.push(byte);
                if outbox.is_open() || self.held.len() >= CHARS_MIN {
                    self.tell_held(outbox);
                }
            }
            _ => return false,
        }
        true
    }

    fn tell_held(&mut self, outbox: &mut Outbox) {
        if !outbox.is_open() {
            outbox.open(Object { kind: Kind::Embedded, ..Object::default() });
        }
        for byte in std::mem::take(&mut self.held) {
            let Some(value) = base64_value(byte) else { continue };
            self.bits = self.bits << 6 | u32::from(value);
            self.bit_count += 6;
            if self.bit_count >= 8 {
                self.bit_count -= 8;
                outbox.content(&[(self.bits >> self.bit_count) as u8]);
            }
        }
    }

    /// Passes signed text from the beginning of a line up to its end, or a part of it; `None` before its end.
    fn text(&mut self, in_line: bool, bytes: &[u8], outbox: &mut Outbox) -> Option<usize> {
        let escape = match bytes {
            [b'-'] if !in_line => return Some(0),
            [b'-', b' ', ..] if !in_line => 2,
            [b'-', b'-', ..] if !in_line => return None,
            _ => 0,
        };
        let end = memchr(b'\n', bytes).map(|end| end + 1);
        let taken = end.unwrap_or(bytes.len());
        outbox.content(&bytes[escape.min(taken)..taken]);
        self.state = State::Text { in_line: end.is_none() };
        Some(taken)
    }
}
