//! The framing of a body (RFC 9112, section 6): where it ends.

use super::Version;
use super::chunks::{Chunks, Piece, part};
use super::field::{Fields, trim};
use super::head::Manner;
use super::limits::Limits;
use super::refusal::Refusal;

/// The way in which a message's end is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    Empty,
    /// This many bytes.
    Length(u64),
    /// Chunks, and a trailer.
    Chunked,
    /// The body ends with the connection: responses alone.
    Close,
}

impl Framing {
    /// The framing that fields declare; `None` without any.
    pub(crate) fn declared(fields: &Fields, version: Version) -> Result<Option<Framing>, Refusal> {
        let length = length(fields)?;
        if fields.get("transfer-encoding").is_none() {
            return Ok(length.map(Framing::Length));
        }
        if length.is_some() {
            return Err(Refusal::LengthWithChunks);
        }
        let mut codings = fields.elements("transfer-encoding");
        let is_chunked = codings.next().is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
        match is_chunked && codings.next().is_none() && version >= Version::Http11 {
            true => Ok(Some(Framing::Chunked)),
            false => Err(Refusal::TransferCoding),
        }
    }
}

/// The framing that the fields of a response declare. What servers and every client agree on is read: chunks in HTTP/1.0 and beside a
/// length, which does not count then (RFC 9112, section 6.3), `chunked` that is named twice, and `identity`, the coding of RFC 2616 that is
/// none. The message is written anew, so no later reader sees two.
pub(crate) fn declared_by_response(fields: &Fields) -> Result<Option<Framing>, Refusal> {
    let is_identity = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"identity");
    let mut codings = fields.elements("transfer-encoding").filter(|coding| !is_identity(coding));
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    match codings.next() {
        None => Ok(length(fields)?.map(Framing::Length)),
        Some(first) if is_chunked(first) && codings.all(is_chunked) => Ok(Some(Framing::Chunked)),
        Some(_) => Err(Refusal::TransferCoding),
    }
}

/// `Content-Length`: digits, repeated only with the same value.
fn length(fields: &Fields) -> Result<Option<u64>, Refusal> {
    let mut length = None;
    for value in fields.all("content-length").flat_map(|value| value.split(|&byte| byte == b',')) {
        let digits = trim(value);
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let text = core::str::from_utf8(digits).ok().filter(|_| is_number).ok_or(Refusal::Length)?;
        let number = text.parse().map_err(|_| Refusal::Length)?;
        if length.is_some_and(|before| before != number) {
            return Err(Refusal::Length);
        }
        length = Some(number);
    }
    Ok(length)
}

/// A body that is being read.
#[derive(Debug)]
pub(crate) enum Body {
    Counted(u64),
    Chunked(Chunks),
    Endless,
}

impl Body {
    pub fn new(framing: Framing) -> Body {
        Body::of(framing, Manner::Strict)
    }

    /// The body of a message whose lines are read in this manner.
    pub fn of(framing: Framing, manner: Manner) -> Body {
        match framing {
            Framing::Empty => Body::Counted(0),
            Framing::Length(bytes) => Body::Counted(bytes),
            Framing::Chunked => Body::Chunked(Chunks::of(manner)),
            Framing::Close => Body::Endless,
        }
    }

    pub fn step(&mut self, input: &[u8], limits: &Limits) -> Result<Piece, Refusal> {
        match self {
            Body::Counted(0) => Ok(Piece::End(Fields::default())),
            Body::Counted(left) => Ok(Piece::Content(part(left, input))),
            Body::Chunked(chunks) => chunks.step(input, limits),
            Body::Endless => Ok(Piece::Content(input.len())),
        }
    }

    /// The connection has ended.
    pub fn finish(&self) -> Result<(), Refusal> {
        match self {
            Body::Endless | Body::Counted(0) => Ok(()),
            Body::Counted(_) | Body::Chunked(_) => Err(Refusal::Incomplete),
        }
    }
}
