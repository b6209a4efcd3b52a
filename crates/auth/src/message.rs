//! A mail as it streams in: its header is kept, its body is hashed.
//!
//! Bounds: a header of [`Limits::header_bytes_max`]; of a longer one nothing is known. The body has no bound, and nothing of
//! it is kept.

use crate::body::{BodyHashes, Wanted};
use crate::header::Header;

/// Bounds of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the header.
    pub header_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { header_bytes_max: 512 << 10 }
    }
}

/// Line ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineEnds {
    /// CRLF alone, as on the wire.
    #[default]
    Crlf,
    /// A bare LF too, as in files; it is hashed as CRLF.
    Any,
}

/// A mail that comes in.
#[derive(Debug)]
pub struct Message {
    limits: Limits,
    ends: LineEnds,
    /// Last byte of the previous input, for line ends that are cut.
    last: u8,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The header so far, and where its last line begins.
    Header { bytes: Vec<u8>, line: usize },
    /// The header is too long: as much of its last line as is needed to see its end.
    Passing { line: Vec<u8> },
    /// The body, with its hashes.
    Body { hashes: BodyHashes },
}

/// Progress after some bytes.
#[derive(Debug)]
pub enum Progress {
    /// More is wanted.
    More,
    /// The header is complete, or `None` if it is too long. [`Message::begin_body`] has to follow.
    Header(Option<Header>),
}

impl Message {
    /// Nothing has come in.
    pub fn new(ends: LineEnds, limits: Limits) -> Message {
        Message { limits, ends, last: 0, state: State::Header { bytes: Vec::new(), line: 0 } }
    }

    /// Takes bytes, as far as the end of the header, and says how many.
    pub fn feed(&mut self, bytes: &[u8]) -> (usize, Progress) {
        if let State::Body { .. } = self.state {
            self.feed_body(bytes);
            return (bytes.len(), Progress::More);
        }
        let mut at = 0;
        while at < bytes.len() {
            let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |len| at + len + 1);
            let is_whole = self.line(&bytes[at..end]);
            at = end;
            if is_whole {
                return (at, Progress::Header(self.end_header()));
            }
        }
        (at, Progress::More)
    }

    /// Ends the mail. A header without a body is reported, and [`Message::begin_body`] has to follow.
    pub fn finish(&mut self) -> Progress {
        match &mut self.state {
            State::Body { hashes } => {
                hashes.finish();
                Progress::More
            }
            _ => Progress::Header(self.end_header()),
        }
    }

    /// Sets the hashes of the body.
    pub fn begin_body(&mut self, wanted: impl IntoIterator<Item = Wanted>) {
        self.last = 0;
        self.state = State::Body { hashes: BodyHashes::new(wanted) };
    }

    /// The hashes of the body.
    pub fn hashes(&self) -> Option<&BodyHashes> {
        match &self.state {
            State::Body { hashes } => Some(hashes),
            _ => None,
        }
    }

    /// Takes a line of the header or a piece of one. Returns whether the line that ends here is empty.
    fn line(&mut self, piece: &[u8]) -> bool {
        let is_bare =
            piece.ends_with(b"\n") && !(if piece.len() > 1 { piece.ends_with(b"\r\n") } else { self.last == b'\r' });
        self.last = piece.last().copied().unwrap_or(self.last);
        let (bytes_max, any) = (self.limits.header_bytes_max, self.ends == LineEnds::Any);
        let put = |bytes: &mut Vec<u8>| match is_bare && any {
            true => {
                bytes.extend_from_slice(&piece[..piece.len() - 1]);
                bytes.extend_from_slice(b"\r\n");
            }
            false => bytes.extend_from_slice(piece),
        };
        match &mut self.state {
            State::Header { bytes, line } => {
                put(bytes);
                if bytes.get(*line..) == Some(b"\r\n") {
                    bytes.truncate(*line);
                    return true;
                }
                if bytes.ends_with(b"\r\n") {
                    *line = bytes.len();
                }
                if bytes.len() > bytes_max {
                    let line = bytes.get(*line..).unwrap_or_default();
                    self.state = State::Passing { line: line[..line.len().min(2)].to_vec() };
                }
                false
            }
            State::Passing { line } => {
                put(line);
                let is_empty = line == b"\r\n";
                if line.ends_with(b"\r\n") {
                    line.clear();
                } else if line.len() > 2 {
                    // Of a long line only two facts are kept: it is not empty, and how it may end.
                    line.drain(1..line.len() - 1);
                }
                is_empty
            }
            State::Body { .. } => false,
        }
    }

    fn end_header(&mut self) -> Option<Header> {
        match &mut self.state {
            State::Header { bytes, .. } => Some(Header::new(core::mem::take(bytes))),
            _ => None,
        }
    }

    fn feed_body(&mut self, bytes: &[u8]) {
        let State::Body { hashes } = &mut self.state else { return };
        if self.ends == LineEnds::Crlf {
            return hashes.feed(bytes);
        }
        let mut from = 0;
        for at in memchr::memchr_iter(b'\n', bytes) {
            let before = if at == 0 { self.last } else { bytes[at - 1] };
            if before != b'\r' {
                hashes.feed(&bytes[from..at]);
                hashes.feed(b"\r\n");
                from = at + 1;
            }
        }
        hashes.feed(&bytes[from..]);
        self.last = bytes.last().copied().unwrap_or(self.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Hash;
    use crate::header::Canonicalization;

    const WANTED: Wanted = Wanted { form: Canonicalization::Simple, hash: Hash::Sha256, len: None };

    /// Names of the fields, if there are some, and the hash of the body.
    fn read(bytes: &[u8], piece: usize, ends: LineEnds, header_bytes_max: usize) -> (Option<Vec<String>>, Vec<u8>) {
        let mut message = Message::new(ends, Limits { header_bytes_max });
        let mut names = None;
        let mut note = |message: &mut Message, progress| {
            if let Progress::Header(header) = progress {
                let all = |header: Header| {
                    let fields = (0..100).filter_map(|index| header.field(index).map(|field| field.name().to_vec()));
                    fields.map(|name| String::from_utf8(name).unwrap()).collect()
                };
                names = header.map(all);
                message.begin_body([WANTED]);
            }
        };
        for mut piece in bytes.chunks(piece) {
            while !piece.is_empty() {
                let (taken, progress) = message.feed(piece);
                note(&mut message, progress);
                piece = &piece[taken..];
            }
        }
        let progress = message.finish();
        if let Progress::Header(_) = progress {
            note(&mut message, progress);
            message.finish();
        }
        let digest = message.hashes().unwrap().digest(WANTED).unwrap().0.to_vec();
        (names, digest)
    }

    fn hash(body: &[u8]) -> Vec<u8> {
        aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body).as_ref().to_vec()
    }

    #[test]
    fn header_and_body_are_told_apart_with_any_cut() {
        for (bytes, ends, names, body) in [
            (&b"A: 1\r\nB: 2\r\n\r\nbody\r\n"[..], LineEnds::Crlf, &["A", "B"][..], &b"body\r\n"[..]),
            (b"A: 1\n\r\r\nB: 2\r\n\r\n\r\nx", LineEnds::Crlf, &["A", "B"], b"\r\nx\r\n"),
            (b"A: 1\nB: 2\n\nbo\r\ndy\n\n\n", LineEnds::Any, &["A", "B"], b"bo\r\ndy\r\n"),
            (b"A: 1\nB: 2\r\n", LineEnds::Any, &["A", "B"], b"\r\n"),
            (b"\r\nA: 1", LineEnds::Crlf, &[], b"A: 1\r\n"),
            (b"", LineEnds::Any, &[], b"\r\n"),
        ] {
            for piece in [1, 2, 3, 100] {
                let wanted = (Some(names.iter().map(ToString::to_string).collect()), hash(body));
                assert_eq!(read(bytes, piece, ends, 1_000), wanted, "{piece} {}", bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn of_a_header_that_is_too_long_nothing_is_kept() {
        for ends in [LineEnds::Crlf, LineEnds::Any] {
            let bytes = [&b"A: 1\r\n".repeat(100)[..], b"B: 2\r\n\r\nbody\r\n"].concat();
            for piece in [1, 2, 7, 1_000] {
                assert_eq!(read(&bytes, piece, ends, 50), (None, hash(b"body\r\n")), "{piece}");
            }
        }
    }
}
