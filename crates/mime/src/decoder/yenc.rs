//! yEnc (draft 1.3).
//!
//! Text outside of `=ybegin` and `=yend` is skipped; parts follow one another. Sizes and checksums are not compared.
//! Known wrong: two dots at the start of a line stay two dots; the doubling of NNTP is undone by the software that
//! fetched the article.

use alloc::vec::Vec;

use super::sink::Sink;

/// Bytes of a line that decide its kind.
const KEYWORD_MAX: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Yenc {
    at: At,
    /// Between `=ybegin` and `=yend`.
    inside: bool,
}

#[derive(Debug, Clone)]
enum At {
    /// At the start of a line, so far these bytes.
    LineStart(Vec<u8>),
    Data,
    /// After `=`.
    Escape,
    /// In a line that holds no data.
    Skip,
}

impl Default for Yenc {
    fn default() -> Yenc {
        Yenc { at: At::LineStart(Vec::new()), inside: false }
    }
}

impl Yenc {
    /// Decodes a prefix of `input`; how long it was.
    pub(super) fn decode(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let mut taken = 0;
        while taken < input.len() && !sink.is_full() {
            let rest = &input[taken..];
            taken += match self.at {
                At::LineStart(_) => self.line_start(rest[0]),
                At::Data => self.data(rest, sink),
                At::Escape => self.escape(rest[0], sink),
                At::Skip => self.skip(rest),
            };
        }
        taken
    }

    fn line_start(&mut self, byte: u8) -> usize {
        let At::LineStart(line) = &mut self.at else {
            return 0;
        };
        let ends = matches!(byte, b'\r' | b'\n');
        if line.is_empty() && ends {
            return 1;
        }
        if line.is_empty() && byte != b'=' {
            self.at = if self.inside { At::Data } else { At::Skip };
            return 0;
        }
        if *line == b"=" && byte != b'y' {
            self.at = if self.inside { At::Escape } else { At::Skip };
            return 0;
        }
        if !ends && line.len() < KEYWORD_MAX {
            line.push(byte);
            return 1;
        }
        if line.starts_with(b"=ybegin") {
            self.inside = true;
        } else if line.starts_with(b"=yend") {
            self.inside = false;
        }
        self.at = At::Skip;
        0
    }

    fn data(&mut self, input: &[u8], sink: &mut Sink) -> usize {
        let end = memchr::memchr3(b'=', b'\r', b'\n', input).unwrap_or(input.len());
        if end == 0 {
            self.at = match input[0] {
                b'=' => At::Escape,
                _ => At::LineStart(Vec::new()),
            };
            return 1;
        }
        let spare = sink.spare();
        let count = end.min(spare.len());
        for (decoded, byte) in spare.iter_mut().zip(&input[..count]) {
            *decoded = byte.wrapping_sub(42);
        }
        sink.wrote(count);
        count
    }

    fn escape(&mut self, byte: u8, sink: &mut Sink) -> usize {
        self.at = At::Data;
        if matches!(byte, b'\r' | b'\n') {
            return 0;
        }
        sink.push(&[byte.wrapping_sub(42 + 64)]);
        1
    }

    fn skip(&mut self, input: &[u8]) -> usize {
        let end = memchr::memchr2(b'\r', b'\n', input);
        if end.is_some() {
            self.at = At::LineStart(Vec::new());
        }
        end.map_or(input.len(), |end| end + 1)
    }
}
