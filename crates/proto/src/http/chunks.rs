//! Chunks (RFC 9112, section 7.1), decoded as they come.
//!
//! A size is one to sixteen hexadecimal digits; white space is allowed before an extension alone; extensions are skipped and
//! counted. Each line ends with CR LF, and each chunk exactly where its size says.

use super::field::Fields;
use super::head::{self, HeadBuffer, Manner};
use super::limits::Limits;
use super::refusal::Refusal;

/// The meaning of the next bytes of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// This many bytes of framing.
    Frame(usize),
    /// This many bytes of content.
    Content(usize),
    /// The body is complete; its trailer. No byte is taken.
    End(Fields),
}

/// A body that comes in chunks.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    state: State,
    /// How the lines of the trailer are read.
    manner: Manner,
    /// Bytes of the line under way.
    line_bytes: usize,
    extension_bytes: usize,
    /// How many letters of ICAP's extension `ieof` the line has, and nothing else.
    ieof: u8,
}

/// The extension by which ICAP says of a preview that it was the whole body (RFC 3507, section 4.5).
const IEOF: &[u8] = b"ieof";

#[derive(Debug)]
enum State {
    /// Digits of a size: how many, and their value.
    Size(u8, u64),
    /// White space after the digits.
    Blank(u64),
    /// An extension.
    Extension(u64),
    /// LF after the CR of a size's line.
    SizeEnd(u64),
    /// Content of which this many bytes are left.
    Content(u64),
    /// CR after the content.
    ContentReturn,
    /// LF after the content.
    ContentNewline,
    Trailer(HeadBuffer),
    End(Fields),
}

impl Default for State {
    fn default() -> State {
        State::Size(0, 0)
    }
}

/// Fields that decide how a message is read or where it goes: in a trailer they come too late (RFC 9110, section 6.5.1).
const NOT_IN_TRAILERS: [&str; 9] = [
    "content-length",
    "transfer-encoding",
    "host",
    "trailer",
    "content-encoding",
    "content-type",
    "content-range",
    "connection",
    "authorization",
];

impl Chunks {
    /// Chunks whose trailer is read in this manner.
    pub fn of(manner: Manner) -> Chunks {
        Chunks { manner, ..Chunks::default() }
    }

    /// Takes a prefix of the input and returns its meaning.
    pub fn step(&mut self, input: &[u8], limits: &Limits) -> Result<Piece, Refusal> {
        match &mut self.state {
            State::Content(left) => {
                let count = part(left, input);
                if *left == 0 {
                    self.state = State::ContentReturn;
                }
                Ok(Piece::Content(count))
            }
            State::Trailer(lines) => {
                let (count, complete) = lines.take(input, limits)?;
                if let Some(lines) = complete {
                    self.state = State::End(trailer(&lines, limits, self.manner)?);
                }
                Ok(Piece::Frame(count))
            }
            State::End(fields) => Ok(Piece::End(core::mem::take(fields))),
            _ => self.step_frame(input, limits),
        }
    }

    /// True when the last chunk has said so of the body by ICAP's extension `ieof`.
    pub fn is_whole(&self) -> bool {
        usize::from(self.ieof) == IEOF.len()
    }

    fn step_frame(&mut self, input: &[u8], limits: &Limits) -> Result<Piece, Refusal> {
        for (at, &byte) in input.iter().enumerate() {
            self.state = self.next(byte, limits)?;
            if matches!(self.state, State::Content(_) | State::Trailer(_)) {
                return Ok(Piece::Frame(at.saturating_add(1)));
            }
        }
        Ok(Piece::Frame(input.len()))
    }

    /// The state after one byte of framing.
    fn next(&mut self, byte: u8, limits: &Limits) -> Result<State, Refusal> {
        self.line_bytes = self.line_bytes.saturating_add(1);
        if self.line_bytes > limits.chunk_line_bytes_max || self.extension_bytes > limits.chunk_extension_bytes_max {
            return Err(Refusal::ChunkSize);
        }
        match (&self.state, byte) {
            (&State::Size(digits, size), digit) if digit.is_ascii_hexdigit() && digits < 16 => {
                let value = char::from(digit).to_digit(16).unwrap_or_default();
                Ok(State::Size(digits.saturating_add(1), size << 4 | u64::from(value)))
            }
            (State::Size(0, _), _) => Err(Refusal::ChunkSize),
            (&(State::Size(_, size) | State::Blank(size) | State::Extension(size)), b'\r') => Ok(State::SizeEnd(size)),
            (&(State::Size(_, size) | State::Blank(size)), b' ' | b'\t') => Ok(State::Blank(size)),
            (&(State::Size(_, size) | State::Blank(size)), b';') => {
                self.ieof = 0;
                Ok(State::Extension(size))
            }
            (&State::Extension(size), b'\t' | b' '..=b'~' | 0x80..) => {
                self.extension_bytes = self.extension_bytes.saturating_add(1);
                self.ieof = match (byte, IEOF.get(usize::from(self.ieof))) {
                    (b' ' | b'\t', _) if matches!(self.ieof, 0 | 4) => self.ieof,
                    (letter, Some(&wanted)) if letter.eq_ignore_ascii_case(&wanted) => self.ieof.saturating_add(1),
                    _ => u8::MAX,
                };
                Ok(State::Extension(size))
            }
            (State::SizeEnd(size), b'\n') => Ok(self.begin(*size)),
            (State::ContentReturn, b'\r') => Ok(State::ContentNewline),
            (State::ContentNewline, b'\n') => {
                self.line_bytes = 0;
                Ok(State::default())
            }
            (State::ContentReturn | State::ContentNewline, _) => Err(Refusal::ChunkEnd),
            (_, b'\n') => Err(Refusal::BareNewline),
            _ => Err(Refusal::ChunkSize),
        }
    }

    fn begin(&mut self, size: u64) -> State {
        self.line_bytes = 0;
        if size > 0 {
            self.ieof = 0;
        }
        match size {
            0 => State::Trailer(HeadBuffer::trailer(self.manner)),
            size => State::Content(size),
        }
    }
}

fn trailer(lines: &[u8], limits: &Limits, manner: Manner) -> Result<Fields, Refusal> {
    let mut fields = head::fields(lines, limits, manner)?;
    let is_misplaced = NOT_IN_TRAILERS.iter().any(|name| fields.get(name).is_some());
    match manner {
        Manner::Strict if is_misplaced => return Err(Refusal::Trailer),
        Manner::Strict => {}
        // Dropped, as the standard allows.
        Manner::OfResponse => NOT_IN_TRAILERS.iter().for_each(|name| fields.remove(name)),
    }
    Ok(fields)
}

/// Takes as much of the input as is left, and counts it down.
pub(crate) fn part(left: &mut u64, input: &[u8]) -> usize {
    let count = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
    *left = left.saturating_sub(count as u64);
    count
}
