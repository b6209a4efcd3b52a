//! The body of `POST /checkv3`: what is known of the mail, as JSON, and the mail, as two parts of a form (RFC 7578) in that order.
//!
//! ```text
//!  Preamble ──► Head ──► Metadata ──► Head ──► Message ──► Last ──► Over
//! ```
//!
//! The mail is passed on as it comes, and what may be the beginning of its delimiter is left in the input until it is known. So
//! the length of the body has to be declared: with chunks, a delimiter might not stand in one piece.

use alloc::vec::Vec;

use memchr::{memchr, memmem};

use super::reply::Refusal;
use crate::http::body::Framing;

/// The longest boundary (RFC 2046, section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;

const NO_BOUNDARY: Refusal = Refusal::Malformed("the form has no boundary");
const NO_LENGTH: Refusal = Refusal::Malformed("a form needs its Content-Length");
const NO_METADATA: Refusal = Refusal::Malformed("the form has to begin with the part \"metadata\"");
const NO_MESSAGE: Refusal = Refusal::Malformed("the part \"message\" has to follow the metadata");
const NO_END: Refusal = Refusal::Malformed("the form has no end");
const MORE: Refusal = Refusal::Malformed("the form has more parts than metadata and message");
const TOO_LONG: Refusal = Refusal::Malformed("the metadata are too long");

/// A body that is being read.
#[derive(Debug)]
pub(super) struct Parts {
    /// Before and between parts, with the line end that belongs to it.
    delimiter: Vec<u8>,
    /// Bytes of the body that have not been taken.
    left: u64,
    state: State,
    /// The line under way, or in metadata all of them.
    text: Vec<u8>,
    /// The most bytes of text.
    text_bytes_max: usize,
    metadata: Option<Vec<u8>>,
    head: Head,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Preamble,
    Head,
    Metadata,
    Message,
    Last,
    Over,
}

/// Fields of a part.
#[derive(Debug, Default)]
struct Head {
    name: Vec<u8>,
    is_coded: bool,
}

/// One thing that a body holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Nothing that matters; with no byte taken, more is needed.
    Frame,
    /// The mail begins; this is known of it.
    Metadata(Vec<u8>),
    /// The bytes taken are of the mail.
    Content,
    /// The body is complete.
    End,
}

impl Parts {
    /// A body of a type (`Content-Type`).
    ///
    /// # Errors
    /// When its boundary or its length is not told.
    pub fn new(kind: &[u8], framing: Option<Framing>, text_bytes_max: usize) -> Result<Parts, Refusal> {
        let is_form = kind.get(..19).is_some_and(|kind| kind.eq_ignore_ascii_case(b"multipart/form-data"));
        let boundary = parameter(kind, "boundary").filter(|_| is_form).ok_or(NO_BOUNDARY)?;
        if !(1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()) {
            return Err(NO_BOUNDARY);
        }
        let Some(Framing::Length(left)) = framing else { return Err(NO_LENGTH) };
        Ok(Parts {
            delimiter: [b"\r\n--", boundary].concat(),
            left,
            state: State::Preamble,
            text: Vec::new(),
            text_bytes_max,
            metadata: None,
            head: Head::default(),
        })
    }

    /// Takes a prefix of the input, and tells one thing.
    pub fn step(&mut self, input: &[u8]) -> Result<(usize, Part), Refusal> {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let input = input.get(..left).unwrap_or(input);
        let (count, part) = match self.state {
            State::Message => self.message(input)?,
            State::Over if left == 0 => (0, Part::End),
            State::Over => (input.len(), Part::Frame),
            _ => self.line(input)?,
        };
        self.left = self.left.saturating_sub(count as u64);
        Ok((count, part))
    }

    /// The mail, up to the delimiter behind it.
    fn message(&mut self, input: &[u8]) -> Result<(usize, Part), Refusal> {
        let count = match memmem::find(input, &self.delimiter) {
            Some(0) => {
                self.state = State::Last;
                return Ok((self.delimiter.len(), Part::Frame));
            }
            Some(at) => at,
            None => input.len().saturating_sub(begun(input, &self.delimiter)),
        };
        match count {
            0 if input.len() as u64 == self.left => Err(NO_END),
            0 => Ok((0, Part::Frame)),
            count => Ok((count, Part::Content)),
        }
    }

    /// A line of anything else, or a part of one.
    fn line(&mut self, input: &[u8]) -> Result<(usize, Part), Refusal> {
        let end = memchr(b'\n', input).map(|at| at.saturating_add(1));
        let count = end.unwrap_or(input.len());
        if self.text.len().saturating_add(count) > self.text_bytes_max {
            return Err(TOO_LONG);
        }
        self.text.extend_from_slice(input.get(..count).unwrap_or_default());
        let is_last = count as u64 == self.left;
        let part = match (self.state, end) {
            (State::Last, _) if end.is_some() || is_last => self.last()?,
            _ if is_last => return Err(NO_END),
            (_, None) => Part::Frame,
            (State::Preamble, _) => self.preamble(),
            (State::Head, _) => self.field()?,
            _ => self.metadata(),
        };
        Ok((count, part))
    }

    fn preamble(&mut self) -> Part {
        if self.text.strip_suffix(b"\r\n") == self.delimiter.get(2..) {
            self.state = State::Head;
        }
        self.text.clear();
        Part::Frame
    }

    fn field(&mut self) -> Result<Part, Refusal> {
        let line = core::mem::take(&mut self.text);
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return self.begin();
        }
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-disposition") {
            self.head.name = parameter(value, "name").unwrap_or_default().to_vec();
        }
        let is_coding = [&b"content-encoding"[..], b"content-transfer-encoding"];
        if is_coding.iter().any(|coding| name.eq_ignore_ascii_case(coding)) {
            let plain = [&b"identity"[..], b"binary", b"8bit", b"7bit"];
            self.head.is_coded |= !plain.iter().any(|plain| value.eq_ignore_ascii_case(plain));
        }
        // The metadata may come as MessagePack too, which is not read here.
        self.head.is_coded |= name.eq_ignore_ascii_case(b"content-type") && memmem::find(value, b"msgpack").is_some();
        Ok(Part::Frame)
    }

    /// The head of a part is complete.
    fn begin(&mut self) -> Result<Part, Refusal> {
        let head = core::mem::take(&mut self.head);
        if head.is_coded {
            return Err(Refusal::Coded);
        }
        match self.metadata.take() {
            None if head.name == b"metadata" => {
                self.state = State::Metadata;
                Ok(Part::Frame)
            }
            None => Err(NO_METADATA),
            Some(metadata) if head.name == b"message" => {
                self.state = State::Message;
                Ok(Part::Metadata(metadata))
            }
            Some(_) => Err(NO_MESSAGE),
        }
    }

    /// A line of the metadata has come: it may be the delimiter behind them.
    fn metadata(&mut self) -> Part {
        let before = self.text.strip_suffix(b"\r\n").and_then(|text| text.strip_suffix(&*self.delimiter));
        if let Some(metadata) = before {
            self.metadata = Some(metadata.to_vec());
            self.text.clear();
            self.state = State::Head;
        }
        Part::Frame
    }

    /// The rest of the last delimiter's line.
    fn last(&mut self) -> Result<Part, Refusal> {
        if self.text.trim_ascii_end() != b"--" {
            return Err(MORE);
        }
        self.state = State::Over;
        Ok(Part::Frame)
    }
}

/// How much of a delimiter an input ends with, whole or not.
fn begun(input: &[u8], delimiter: &[u8]) -> usize {
    let longest = delimiter.len().min(input.len());
    (1..=longest).rev().find(|&count| delimiter.get(..count).is_some_and(|begun| input.ends_with(begun))).unwrap_or(0)
}

/// A parameter of a field, without its quotation marks.
fn parameter<'v>(value: &'v [u8], name: &str) -> Option<&'v [u8]> {
    value.split(|&byte| byte == b';').skip(1).find_map(|pair| {
        let equals = memchr(b'=', pair)?;
        let (found, value) = pair.split_at(equals);
        let value = value.get(1..)?.trim_ascii();
        let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        found.trim_ascii().eq_ignore_ascii_case(name.as_bytes()).then_some(bare)
    })
}
