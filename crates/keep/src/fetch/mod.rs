//! The content of one message: its parts, its fields, its digest; where they are, or as bytes if they are short.
//!
//! A reply that may be long is a run of the message, which the host reads piece by piece: no more is held than a header of
//! [`HEADER_BYTES_MAX`].

mod decode;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use store::{Error, State};
use stream::Coding;

use crate::content::{Messages, Reader};
use crate::digest::{Digest, Known, Text};
use crate::header::{end_of_header, fields, split};
use decode::Decoding;

/// Bytes of a message read at a time.
const CHUNK_BYTES: usize = 32 << 10;

/// Bytes of a message that its preview is made of.
const PREVIEW_BYTES_MAX: u64 = 256 << 10;

/// Bytes of a header that fields are picked from.
pub const HEADER_BYTES_MAX: u64 = 1 << 20;

/// A section of a message (RFC 9051, section 6.4.5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The numbers of the part; none for the message.
    pub path: Vec<u32>,
    /// The share of the part.
    pub share: Share,
    /// The first byte of a range of it, and how long that may be.
    pub range: Option<(u64, Option<u64>)>,
}

/// The share of a message or part that a section is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    /// All of it; of a part, all behind its header.
    All,
    /// The header of a message.
    Header,
    /// Fields of it with these names, or with all others.
    Fields {
        /// The names.
        names: Vec<Vec<u8>>,
        /// The fields with other names.
        is_not: bool,
    },
    /// All behind the header of a message.
    Text,
    /// The header of a part.
    Mime,
}

/// The reply to a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The message has no such section.
    Missing,
    /// Bytes.
    Bytes(Vec<u8>),
    /// A run of the message, from an offset to another.
    Run(u64, u64),
    /// A part without its transfer coding.
    Decoded(Run),
}

/// A run of a part without its transfer coding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    part: Coded,
    skipped: u64,
    /// Bytes of the run.
    pub length: u64,
    /// The part holds a NUL, or a line end that is not CRLF.
    pub is_binary: bool,
}

/// A part in its transfer coding: from an offset of the message to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Coded {
    from: u64,
    to: u64,
    coding: Coding,
}

impl Coded {
    fn decoding(self) -> Decoding {
        Decoding::new(self.coding, self.from, self.to)
    }
}

/// The reason why content was not read.
#[derive(Debug)]
pub enum Unread {
    /// No mailbox has the message any more.
    Gone,
    /// The message ends before it should.
    Short,
    /// The transfer coding is not known.
    UnknownCoding,
    /// The store failed.
    Store(Error),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Gone => f.write_str("the message is gone"),
            Unread::Short => f.write_str("a message is shorter than it was"),
            Unread::UnknownCoding => f.write_str("unknown transfer coding"),
            Unread::Store(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Unread {}

impl From<Error> for Unread {
    fn from(error: Error) -> Unread {
        Unread::Store(error)
    }
}

/// A message whose content is asked for.
pub struct Message<'a, M: Messages + 'a> {
    messages: &'a M,
    number: u64,
    size: u64,
    stored: Option<Vec<u8>>,
    known: Option<Known>,
    reader: Option<M::Reader<'a>>,
}

impl<'a, M: Messages> Message<'a, M> {
    /// The message with this number in the store.
    pub fn new(messages: &'a M, state: &State, number: u64) -> Self {
        let size = state.message(number).map_or(0, |message| message.size);
        Message { messages, number, size, stored: None, known: None, reader: None }
    }

    /// Its number in the store.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its size, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether its digest is at hand. If not, `lookup` may have it without waiting.
    pub fn has_digest(&mut self, lookup: impl FnOnce(&'a M, u64) -> Option<Vec<u8>>) -> bool {
        if self.stored.is_none() {
            self.stored = lookup(self.messages, self.number);
        }
        self.stored.as_ref().is_some_and(|stored| !stored.is_empty())
    }

    /// Bytes of its digest that is at hand.
    pub fn digest_bytes(&self) -> usize {
        self.stored.as_ref().map_or(0, Vec::len)
    }

    /// A text of its digest, made again if none is stored.
    ///
    /// # Errors
    /// When the message cannot be read.
    pub fn text(&mut self, text: Text) -> Result<Vec<u8>, Unread> {
        if let Some(stored) = self.stored.as_ref().and_then(|stored| text.of(stored)) {
            return Ok(stored.to_vec());
        }
        let known = self.known()?;
        Ok(match text {
            Text::Envelope => known.envelope.clone(),
            Text::Body => known.body.clone(),
            Text::BodyStructure => known.body_structure.clone(),
        })
    }

    /// A section as it stands.
    ///
    /// # Errors
    /// As [`Message::text`].
    pub fn section(&mut self, section: &Section) -> Result<Reply, Unread> {
        let Some((from, to)) = self.place(section)? else { return Ok(Reply::Missing) };
        if let Share::Fields { names, is_not } = &section.share {
            let header = self.bytes(from, to)?;
            let picked = pick(&header, names, *is_not);
            return Ok(Reply::Bytes(match section.range {
                Some((origin, length)) => clip(&picked, origin, length).to_vec(),
                None => picked,
            }));
        }
        let Some((origin, length)) = section.range else { return Ok(Reply::Run(from, to)) };
        let start = from.saturating_add(origin).min(to);
        Ok(Reply::Run(start, to.min(start.saturating_add(length.unwrap_or(u64::MAX)))))
    }

    /// A part without its transfer coding, or a range of that.
    ///
    /// # Errors
    /// As [`Message::text`], and when the coding is not known.
    pub fn decoded(&mut self, path: &[u32], range: Option<(u64, Option<u64>)>) -> Result<Reply, Unread> {
        let Some(part) = self.coded(path)? else { return Ok(Reply::Missing) };
        let (length, is_binary) = self.count_decoded(part)?;
        let (skipped, most) = range.unwrap_or((0, None));
        let skipped = skipped.min(length);
        let length = (length - skipped).min(most.unwrap_or(u64::MAX));
        Ok(Reply::Decoded(Run { part, skipped, length, is_binary }))
    }

    /// The size of a part without its transfer coding; `None` if there is no such part.
    ///
    /// # Errors
    /// As [`Message::decoded`].
    pub fn decoded_size(&mut self, path: &[u32]) -> Result<Option<u64>, Unread> {
        let Some(part) = self.coded(path)? else { return Ok(None) };
        Ok(Some(self.count_decoded(part)?.0))
    }

    /// The beginning of its first text, in one line.
    ///
    /// # Errors
    /// As [`Message::text`].
    pub fn preview(&mut self) -> Result<String, Unread> {
        let mail = self.bytes(0, self.size.min(PREVIEW_BYTES_MAX))?;
        Ok(decode::preview(&mail))
    }

    /// Its reader.
    ///
    /// # Errors
    /// When no mailbox has the message any more.
    pub fn reader(&mut self) -> Result<&mut M::Reader<'a>, Unread> {
        if self.reader.is_none() {
            self.reader = self.messages.reader(self.number);
        }
        self.reader.as_mut().ok_or(Unread::Gone)
    }

    /// Reads from an offset; 0 at the end.
    ///
    /// # Errors
    /// As [`Message::text`].
    pub fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, Unread> {
        Ok(self.reader()?.read(offset, buffer)?)
    }

    /// The digest; made anew where none was stored.
    fn known(&mut self) -> Result<&Known, Unread> {
        if self.known.is_none() {
            let stored = self.messages.digest(self.number)?;
            let known = match Known::decode(&stored) {
                Some(known) => known,
                None => self.derive()?,
            };
            self.known = Some(known);
        }
        self.known.as_ref().ok_or(Unread::Gone)
    }

    fn derive(&mut self) -> Result<Known, Unread> {
        let (mut digest, mut offset) = (Digest::default(), 0);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match self.read(offset, &mut chunk)? {
                0 => return Ok(digest.known()),
                length => {
                    digest.read(&chunk[..length]);
                    offset += length as u64;
                }
            }
        }
    }

    /// The place of a part, and its transfer coding; a part that has parts, and the message, have none.
    fn coded(&mut self, path: &[u32]) -> Result<Option<Coded>, Unread> {
        if path.is_empty() {
            return Ok(Some(Coded { from: 0, to: self.size, coding: Coding::Identity }));
        }
        let Some(part) = self.known()?.root.at(path) else { return Ok(None) };
        let (header, from, to) = (part.header, part.body, part.end);
        if part.is_message || !part.parts.is_empty() {
            return Ok(Some(Coded { from, to, coding: Coding::Identity }));
        }
        let header = self.bytes(header, from)?;
        let mut named = fields(&header).filter_map(split);
        let field = named.find(|(name, _)| name.eq_ignore_ascii_case(b"content-transfer-encoding"));
        let coding = mime::value::transfer_coding(field.map_or(b"", |(_, value)| value));
        Ok(Some(Coded { from, to, coding: coding.ok_or(Unread::UnknownCoding)? }))
    }

    /// The length of a part without its coding, and whether a NUL is in it, or a line end that is not CRLF.
    fn count_decoded(&mut self, part: Coded) -> Result<(u64, bool), Unread> {
        let mut decoding = part.decoding();
        let (mut length, mut is_binary, mut before) = (0, false, 0);
        loop {
            let piece = decoding.next(&mut |at, buffer: &mut [u8]| self.read(at, buffer))?;
            if piece.is_empty() {
                return Ok((length, is_binary || before == b'\r'));
            }
            length += piece.len() as u64;
            for byte in piece {
                is_binary |= byte == 0 || (byte == b'\n') != (before == b'\r') || (byte == b'\r' && before == b'\r');
                before = byte;
            }
        }
    }

    /// The place of a section; of fields, that of the header.
    fn place(&mut self, section: &Section) -> Result<Option<(u64, u64)>, Unread> {
        if section.path.is_empty() && section.share == Share::All {
            return Ok(Some((0, self.size)));
        }
        let root = &self.known()?.root;
        let Some(part) = root.at(&section.path) else { return Ok(None) };
        let message = if section.path.is_empty() { Some(part) } else { part.message() };
        Ok(match (&section.share, message) {
            (Share::All, _) => Some((part.body, part.end)),
            (Share::Mime, _) => Some((part.header, part.body)),
            (Share::Header | Share::Fields { .. }, Some(message)) => Some((message.header, message.body)),
            (Share::Text, Some(message)) => Some((message.body, message.end)),
            (_, None) => None,
        })
    }

    /// At most [`HEADER_BYTES_MAX`] of a run of the message.
    fn bytes(&mut self, from: u64, to: u64) -> Result<Vec<u8>, Unread> {
        let length = usize::try_from((to - from).min(HEADER_BYTES_MAX)).unwrap_or(0);
        let mut bytes = vec![0; length];
        let mut done = 0;
        while done < length {
            match self.read(from + done as u64, &mut bytes[done..])? {
                0 => break,
                read => done += read,
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }
}

/// A [`Run`] that is being read.
pub struct Running {
    decoding: Decoding,
    skipped: u64,
    left: u64,
}

impl Running {
    /// Begins to read a run, whose length was announced.
    pub fn new(run: &Run) -> Running {
        Running { decoding: run.part.decoding(), skipped: run.skipped, left: run.length }
    }

    /// The next bytes; empty at the end.
    ///
    /// # Errors
    /// When the message cannot be read, or the part is shorter than it was.
    pub fn next<M: Messages>(&mut self, message: &mut Message<'_, M>) -> Result<Vec<u8>, Unread> {
        while self.left > 0 {
            let mut piece = self.decoding.next(&mut |at, buffer: &mut [u8]| message.read(at, buffer))?;
            if piece.is_empty() {
                return Err(Unread::Short);
            }
            let from = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(piece.len());
            let to = from.saturating_add(usize::try_from(self.left).unwrap_or(usize::MAX)).min(piece.len());
            (self.skipped, self.left) = (self.skipped - from as u64, self.left - (to - from) as u64);
            if from < to {
                piece.truncate(to);
                piece.drain(..from);
                return Ok(piece);
            }
        }
        Ok(Vec::new())
    }
}

/// The fields that are named, or all others, and the empty line if the header has one.
fn pick(header: &[u8], names: &[Vec<u8>], is_not: bool) -> Vec<u8> {
    let mut picked = Vec::new();
    let end = end_of_header(header, 0);
    for field in fields(&header[..end.unwrap_or(header.len())]) {
        let Some((name, _)) = split(field) else { continue };
        if names.iter().any(|known| known.eq_ignore_ascii_case(name)) != is_not {
            picked.extend_from_slice(field);
        }
    }
    if end.is_some() {
        picked.extend_from_slice(b"\r\n");
    }
    picked
}

fn clip(bytes: &[u8], origin: u64, length: Option<u64>) -> &[u8] {
    let start = usize::try_from(origin).unwrap_or(usize::MAX).min(bytes.len());
    let length = usize::try_from(length.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    &bytes[start..start.saturating_add(length).min(bytes.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_picked() {
        let header = b"From: a\r\nTo: b,\r\n c\r\nSubject: d\r\nfrom: e\r\n\r\n";
        let names = |names: &[&str]| -> Vec<Vec<u8>> { names.iter().map(|name| name.as_bytes().to_vec()).collect() };
        assert_eq!(pick(header, &names(&["FROM", "to"]), false), b"From: a\r\nTo: b,\r\n c\r\nfrom: e\r\n\r\n");
        assert_eq!(pick(header, &names(&["From", "To"]), true), b"Subject: d\r\n\r\n");
        assert_eq!(pick(b"\r\n", &names(&["X"]), false), b"\r\n");
        assert_eq!(pick(b"From: a\r\nX: b\r\n", &names(&["X"]), true), b"From: a\r\n");
        assert_eq!(clip(b"abcdef", 2, Some(3)), b"cde");
        assert_eq!(clip(b"abcdef", 9, None), b"");
    }
}
