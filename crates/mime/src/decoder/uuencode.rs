//! uuencode (POSIX), and the `begin-base64` form of it.
//!
//! Text before `begin` and behind `end` is skipped, and so are lines between them that cannot be of the coding. A line
//! that is too short is filled up with spaces, which mail software likes to remove; one that is too long is cut. Any
//! number of files follow one another. Data without a `begin` line is recognised by a full line.

use alloc::vec::Vec;

use super::base64::Base64;
use super::sink::{Sink, Spill};

/// The longest line that is looked at: 63 bytes in 84 characters, and Base64 of 76, with some room.
const LINE_MAX: usize = 256;

#[derive(Debug, Clone, Default)]
pub(super) struct Uuencode {
    line: Vec<u8>,
    too_long: bool,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    #[default]
    Outside,
    Lines,
    Base64,
}

impl Uuencode {
    /// Decodes a prefix of `input`; how long it was.
    pub(super) fn decode(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let mut taken = 0;
        while taken < input.len() && !sink.is_full() {
            let rest = &input[taken..];
            let end = memchr::memchr2(b'\n', b'\r', rest);
            self.note(&rest[..end.unwrap_or(rest.len())]);
            taken += end.map_or(rest.len(), |end| end + 1);
            if end.is_some() {
                self.line_end(sink);
            }
        }
        taken
    }

    pub(super) fn finish(&mut self, sink: &mut Sink) {
        self.line_end(sink);
    }

    fn note(&mut self, bytes: &[u8]) {
        let room = LINE_MAX - self.line.len();
        self.too_long |= bytes.len() > room;
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn line_end(&mut self, sink: &mut Sink) {
        let too_long = core::mem::take(&mut self.too_long);
        if self.line.is_empty() {
            return;
        }
        let mut line = core::mem::take(&mut self.line);
        if let Some(at) = begins(&line) {
            self.at = at;
        } else if !too_long {
            self.data_line(&line, sink);
        }
        line.clear();
        self.line = line;
    }

    fn data_line(&mut self, line: &[u8], sink: &mut Sink) {
        match self.at {
            At::Outside if is_full_line(line) => {
                self.at = At::Lines;
                decode_line(line, sink);
            }
            At::Outside => {}
            At::Lines if line.trim_ascii_end() == b"end" => self.at = At::Outside,
            At::Lines => decode_line(line, sink),
            At::Base64 if line.starts_with(b"====") => self.at = At::Outside,
            At::Base64 => decode_base64_line(line, sink),
        }
    }
}

/// Kind of the lines that follow this one, if it is a `begin` line.
fn begins(line: &[u8]) -> Option<At> {
    let (at, rest) = match line.strip_prefix(b"begin-base64 ") {
        Some(rest) => (At::Base64, rest),
        None => (At::Lines, line.strip_prefix(b"begin ")?),
    };
    rest.trim_ascii_start().first()?.is_ascii_digit().then_some(at)
}

fn is_full_line(line: &[u8]) -> bool {
    line.first() == Some(&b'M') && (60..=62).contains(&line.len()) && line.iter().all(is_character)
}

const fn is_character(byte: &u8) -> bool {
    matches!(*byte, b' '..=b'`')
}

fn decode_line(line: &[u8], sink: &mut Sink) {
    let Some((&first, characters)) = line.split_first() else {
        return;
    };
    if !is_character(&first) {
        return;
    }
    let wanted = usize::from(value(first));
    let count = wanted.div_ceil(3) * 4;
    let characters = &characters[..characters.len().min(count)];
    if !characters.iter().all(is_character) {
        return;
    }
    let mut padded = [b' '; 84];
    padded[..characters.len()].copy_from_slice(characters);
    let mut decoded = [0; 63];
    let (quads, _) = padded[..count].as_chunks::<4>();
    let (triples, _) = decoded.as_chunks_mut::<3>();
    for (quad, triple) in quads.iter().zip(triples) {
        let [a, b, c, d] = quad.map(value);
        *triple = [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d];
    }
    sink.push(&decoded[..wanted]);
}

const fn value(character: u8) -> u8 {
    character.wrapping_sub(b' ') & 63
}

fn decode_base64_line(line: &[u8], sink: &mut Sink) {
    let mut window = stream::Window::with_capacity(LINE_MAX);
    let mut spill = Spill::default();
    let mut own = Sink::new(&mut window, &mut spill);
    let mut base64 = Base64::default();
    let mut rest = line;
    while !rest.is_empty() {
        rest = &rest[base64.decode(rest, &mut own).0..];
    }
    base64.finish(&mut own);
    sink.push(window.filled());
}
