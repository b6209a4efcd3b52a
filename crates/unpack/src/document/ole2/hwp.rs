//! Documents of Hangul Word Processor 5 (`HWP Document File`): compound files of which the streams of text, scripts and embedded
//! files are raw deflate.
//!
//! Bounds: one decoder. An embedded object has its length in front, which is passed.

use stream::{Kind, Object, ReadAt};

use crate::codec::deflate::Deflate;
use crate::frame::codec::{Decoder, Told, le32};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader};

/// The stream that says what the others are.
pub(super) const HEADER: &str = "FileHeader";
pub(super) const HEADER_BYTES: usize = 40;

/// Content after which a fault is one of the stream; files that are embedded as they are come to one at once.
const SURE_BYTES: u64 = 4096;

const COMPOUND: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// What the header says of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub is_compressed: bool,
    /// By a password, for distribution, or by rights management.
    pub is_encrypted: bool,
}

impl Head {
    pub fn read(stream: &[u8]) -> Option<Head> {
        let is_head = stream.len() >= HEADER_BYTES && stream.starts_with(b"HWP Document File");
        let flags = if is_head { le32(stream, 36) } else { return None };
        Some(Head { is_compressed: flags & 1 != 0, is_encrypted: flags & 0b1_0110 != 0 })
    }
}

/// Whether streams with this path are compressed.
pub(super) fn is_packed(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    matches!(first, "DocInfo" | "BodyText" | "BinData" | "Scripts" | "ViewText")
}

/// Emits the content of a stream.
pub(super) struct Inflated {
    name: Box<str>,
    deflate: Deflate,
    /// The first bytes of the content, until it is known whether they are a length.
    front: Option<Vec<u8>>,
    made: u64,
    has_begun: bool,
    is_over: bool,
}

impl Inflated {
    pub fn new(name: Box<str>) -> Inflated {
        let deflate = Deflate::new("Heuristics.Malformed.Deflate.Data", "Heuristics.Truncated.Deflate");
        Inflated { name, deflate, front: Some(Vec::new()), made: 0, has_begun: false, is_over: false }
    }

    fn emit(&mut self, content: &[u8], outbox: &mut Outbox) {
        const LENGTH: usize = 4;
        self.made = self.made.saturating_add(content.len() as u64);
        let Some(front) = &mut self.front else { return outbox.content(content) };
        front.extend_from_slice(content);
        if front.len() >= LENGTH + COMPOUND.len() || self.is_over {
            let front = self.front.take().unwrap_or_default();
            let skip = if front.get(LENGTH..).is_some_and(|rest| rest.starts_with(COMPOUND)) { LENGTH } else { 0 };
            if !front.is_empty() {
                self.has_begun = true;
                outbox.open(Object { kind: Kind::Member, name: Some(self.name.clone()), ..Object::default() });
                outbox.content(&front[skip..]);
            }
        }
    }

    /// Decodes a piece; how much of the input was taken.
    fn decode(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let mut piece = [0; CONTENT_BYTES];
        let progress = self.deflate.decode(input, &mut piece);
        match progress.told {
            Told::Over => self.is_over = true,
            Told::Fault(fault) => {
                self.is_over = true;
                if self.made > SURE_BYTES {
                    outbox.finding(fault.class, fault.name, 0);
                }
            }
            _ => {}
        }
        self.emit(&piece[..progress.wrote], outbox);
        let stands = progress.taken == 0 && progress.wrote == 0;
        self.is_over |= stands && !input.is_empty();
        progress.taken
    }
}

impl Reader for Inflated {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if self.is_over {
            return input.len();
        }
        self.decode(input, outbox)
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if !self.is_over {
            let made = self.made;
            self.decode(b"", outbox);
            self.is_over |= self.made == made;
            return Ended::More;
        }
        self.emit(b"", outbox);
        if self.has_begun {
            outbox.close();
        }
        Ended::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_how_streams_are_read() {
        let head = |flags: u8| {
            let mut head = [0; HEADER_BYTES];
            head[..17].copy_from_slice(b"HWP Document File");
            head[36] = flags;
            Head::read(&head)
        };
        let told = |is_compressed, is_encrypted| Some(Head { is_compressed, is_encrypted });
        assert_eq!(head(1), told(true, false));
        assert_eq!(head(0), told(false, false));
        for flags in [2, 4, 16] {
            assert_eq!(head(flags | 1), told(true, true));
        }
        assert_eq!(Head::read(b"HWP Document File"), None);
        assert!(is_packed("BodyText/Section0") && is_packed("DocInfo") && !is_packed("PrvText"));
    }
}
