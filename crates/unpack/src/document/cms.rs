//! Cryptographic messages (RFC 5652, BER): what S/MIME mails in `smime.p7m` sign or compress.
//!
//! The content is found by its place in the structure, be it in one piece or in many, of known length or not.
//! Compressed content is emitted as the zlib stream that it is.
//!
//! Bounds: [`DEPTH_MAX`] lengths, one identifier.

use stream::{Class, Kind, Object, ReadAt};

use crate::frame::codec::Collected;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{Ended, Outbox, Reader};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "S/MIME (CMS)",
    methods: "signed, authenticated and compressed content",
    not_read: "enveloped content",
    reads: Reads::Stream,
    memory: "1 KiB",
    decoder: "own",
    fuzz: "unpack_cms",
    compared_with: "openssl, over messages made by it",
};

const DEPTH_MAX: usize = 32;
const IDENTIFIER_BYTES: usize = 16;
const BEGINNING_BYTES: usize = 8;

const SEQUENCE: u8 = 0x30;
const TAGGED: u8 = 0xa0;
const CONSTRUCTED: u8 = 0x20;
const OCTETS: u8 = 0x04;
const IDENTIFIER: u8 = 0x06;
const END_OF_CONTENTS: u8 = 0x00;

/// `eContent` within ContentInfo, its content, SignedData and EncapsulatedContentInfo.
const CONTENT_PATH: [u8; 5] = [SEQUENCE, TAGGED, SEQUENCE, SEQUENCE, TAGGED];

/// id-envelopedData and id-encryptedData, without the last byte in common.
const PKCS7: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07";
const ENVELOPED: u8 = 3;
const ENCRYPTED: u8 = 6;

/// Whether these bytes begin such a message: a sequence with an identifier of PKCS #7 or S/MIME.
pub(crate) fn is_message(head: &[u8]) -> bool {
    let body = match head {
        [SEQUENCE, 0..=0x80, body @ ..] => body,
        [SEQUENCE, length @ 0x81..=0x84, body @ ..] => body.get(usize::from(length - 0x80)..).unwrap_or_default(),
        _ => return false,
    };
    let identifier = match body {
        [IDENTIFIER, 9 | 11, identifier @ ..] => identifier,
        _ => return false,
    };
    identifier.starts_with(PKCS7) || identifier.starts_with(b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01")
}

/// A reader of messages.
pub(crate) struct Cms {
    at: u64,
    /// The elements that are open, the outermost first; ends are offsets, unknown ones `None`.
    open: Vec<(u8, Option<u64>)>,
    state: State,
    identifier: Vec<u8>,
    /// The first bytes of the content, which decide its type.
    beginning: Collected<BEGINNING_BYTES>,
    opened: bool,
    encrypted_told: bool,
}

enum State {
    Tag,
    /// The rest of a tag of several bytes.
    LongTag(u8),
    Length(u8),
    /// So many bytes of the length are to come.
    LongLength {
        tag: u8,
        left: u32,
        value: u64,
    },
    /// Content of a primitive element.
    Value {
        tag: u8,
        left: u64,
    },
    /// Nothing more is understood.
    Over,
}

impl Cms {
    pub fn new() -> Cms {
        Cms {
            at: 0,
            open: Vec::new(),
            state: State::Tag,
            identifier: Vec::new(),
            beginning: Collected::new(),
            opened: false,
            encrypted_told: false,
        }
    }

    /// Whether the innermost open element holds pieces of the content.
    fn is_content(&self) -> bool {
        let tags = self.open.iter().map(|(tag, _)| *tag);
        let starts = CONTENT_PATH.iter().copied().eq(tags.clone().take(CONTENT_PATH.len()));
        starts && tags.skip(CONTENT_PATH.len()).all(|tag| tag == OCTETS | CONSTRUCTED)
    }

    fn element(&mut self, tag: u8, length: Option<u64>, outbox: &mut Outbox) -> State {
        match (tag & CONSTRUCTED != 0, length) {
            (true, _) if self.open.len() == DEPTH_MAX => State::Over,
            (true, length) => {
                self.open.push((tag, length.map(|length| self.at.saturating_add(length))));
                State::Tag
            }
            (false, None) => State::Over,
            (false, Some(0)) if tag == END_OF_CONTENTS => {
                self.open.pop();
                self.content_may_end(outbox);
                State::Tag
            }
            (false, Some(left)) => {
                self.identifier.clear();
                State::Value { tag, left }
            }
        }
    }

    /// Elements whose end has been reached are closed.
    fn ends(&mut self, outbox: &mut Outbox) {
        while self.open.last().is_some_and(|(_, end)| end.is_some_and(|end| end <= self.at)) {
            self.open.pop();
        }
        self.content_may_end(outbox);
    }

    /// Opens the content, if that has not been done. What S/MIME signs is a part of a mail, with its header.
    fn open(&mut self, outbox: &mut Outbox) {
        if !std::mem::replace(&mut self.opened, true) {
            let is_name = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b':' | b' ');
            let is_part = self.beginning.bytes().iter().all(is_name);
            let media_type = is_part.then(|| "message/rfc822".into());
            outbox.open(Object { kind: Kind::Member, media_type, ..Object::default() });
            outbox.content(self.beginning.bytes());
        }
    }

    fn content_may_end(&mut self, outbox: &mut Outbox) {
        if self.beginning.len() > 0 && !self.is_content() {
            self.close(outbox);
        }
    }

    fn close(&mut self, outbox: &mut Outbox) {
        self.open(outbox);
        self.beginning.clear();
        self.opened = false;
        outbox.close();
    }

    fn value(&mut self, tag: u8, bytes: &[u8], outbox: &mut Outbox) {
        if tag == OCTETS && self.is_content() {
            let held = self.beginning.fill(bytes, BEGINNING_BYTES);
            if self.beginning.len() == BEGINNING_BYTES {
                self.open(outbox);
            }
            outbox.content(&bytes[held..]);
        } else if tag == IDENTIFIER && self.open.len() == 1 {
            let room = IDENTIFIER_BYTES.saturating_sub(self.identifier.len());
            self.identifier.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn value_ends(&mut self, outbox: &mut Outbox) {
        let kind = self.identifier.strip_prefix(PKCS7);
        let is_encrypted = matches!(kind, Some([ENVELOPED | ENCRYPTED]));
        if is_encrypted && !std::mem::replace(&mut self.encrypted_told, true) {
            outbox.finding(Class::Encrypted, "Heuristics.Encrypted.Smime", 0);
        }
        self.identifier.clear();
    }

    fn turn(&mut self, input: &[u8], outbox: &mut Outbox) -> (usize, State) {
        let byte = input[0];
        match std::mem::replace(&mut self.state, State::Over) {
            State::Tag if byte & 0x1f == 0x1f => (1, State::LongTag(byte)),
            State::Tag => (1, State::Length(byte)),
            State::LongTag(tag) => (1, if byte & 0x80 != 0 { State::LongTag(tag) } else { State::Length(tag) }),
            State::Length(tag) => {
                self.at += 1;
                let state = match byte {
                    0x80 => self.element(tag, None, outbox),
                    0..0x80 => self.element(tag, Some(byte.into()), outbox),
                    _ => State::LongLength { tag, left: u32::from(byte & 0x7f), value: 0 },
                };
                self.at -= 1;
                (1, state)
            }
            State::LongLength { tag, left, value } => {
                let value = value.saturating_mul(256).saturating_add(byte.into());
                self.at += 1;
                let state = match left {
                    1 => self.element(tag, Some(value), outbox),
                    _ => State::LongLength { tag, left: left - 1, value },
                };
                self.at -= 1;
                (1, state)
            }
            State::Value { left: 0, .. } => {
                self.value_ends(outbox);
                (0, State::Tag)
            }
            State::Value { tag, left } => {
                let count = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                self.value(tag, &input[..count], outbox);
                (count, State::Value { tag, left: left - count as u64 })
            }
            State::Over => (input.len(), State::Over),
        }
    }
}

impl Reader for Cms {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if matches!(self.state, State::Tag) {
            self.ends(outbox);
        }
        let (taken, state) = self.turn(input, outbox);
        self.state = state;
        self.at += taken as u64;
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if matches!(self.state, State::Value { left: 0, .. } | State::Tag) {
            self.ends(outbox);
        }
        if self.beginning.len() > 0 {
            self.close(outbox);
            outbox.finding(Class::Truncated, "Heuristics.Truncated.Smime", self.at);
        }
        Ended::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_begins_with_its_identifier() {
        assert!(is_message(b"\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"));
        assert!(is_message(b"\x30\x82\x12\x34\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x03"));
        assert!(!is_message(b"\x30\x82\x12\x34\x06\x09\x2a\x86\x48\x86\xf7\x0d\x02\x07\x03"));
        assert!(!is_message(b"0\x80 is text"));
    }
}
