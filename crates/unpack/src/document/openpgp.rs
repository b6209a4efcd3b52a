//! OpenPGP messages (RFC 4880, RFC 9580) in their binary form: what is signed, compressed or stored in them.
//!
//! A message is packets one behind the other. The content of literal data is emitted as a member. Compressed data is emitted with
//! its leading octet, the algorithm, as an object of type [`COMPRESSED`], which [`compressed`] unpacks; the packets inside
//! are a message again, and are found by their beginning. Signatures, keys and padding are passed. Encrypted data behind a
//! session key has a finding. Armour is the business of the reader of text (`runs`), which decodes it.
//!
//! Nothing but its first packet shows a message, so that this reader is set on everything and gives up at the first packet that
//! makes no sense. Bounds: the fields of one packet, [`FIELDS_MAX`].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub(crate) mod compressed;
mod packet;

use stream::{Class, Kind, Object, ReadAt};

use crate::frame::codec::Fault;
use crate::frame::compressed::Compressed;
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::frame::reader::{Ended, Outbox, Reader, Reading};
use packet::{Field, Fields, Length, Lengths};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "OpenPGP",
    methods: "binary and armoured messages: literal, signed, and compressed data (ZIP, ZLIB, BZip2); partial lengths, nesting; text that is signed in the clear, with its dashes unescaped",
    not_read: "encrypted data",
    reads: Reads::Stream,
    memory: "1 KiB; compressed data as zlib or bzip2",
    decoder: "own; zlib-rs for ZIP and ZLIB",
    fuzz: "unpack_openpgp",
    compared_with: "gpg and PGPy, which made the seeds",
};

/// Declared of compressed data, whose first octet is the algorithm.
pub(crate) const COMPRESSED: &str = "application/x-openpgp-compressed";

const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.OpenPgp");
const ENCRYPTED: &str = "Heuristics.Encrypted.OpenPgp";

/// The name that asks for the content to be shown only, and not to be stored.
const FOR_EYES_ONLY: &[u8] = b"_CONSOLE";

/// The longest fields: the format, the name and the date of literal data.
const FIELDS_MAX: usize = 2 + 255 + 4;

/// A reader of messages.
pub(crate) struct OpenPgp {
    at: u64,
    tag: u8,
    lengths: Lengths,
    /// Bytes left of the packet, or of the part of it under way.
    left: Length,
    fields: Vec<u8>,
    state: State,
    /// Whether a packet was seen that is hardly anything else.
    is_sure: bool,
    /// Whether the last packet held a session key.
    has_key: bool,
    encrypted_told: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Tag,
    Length,
    /// In the first bytes of a packet.
    Fields,
    /// In content that is emitted.
    Content,
    Skip,
    /// Nothing more is understood.
    Over,
}

impl OpenPgp {
    pub const fn new() -> OpenPgp {
        OpenPgp {
            at: 0,
            tag: 0,
            lengths: Lengths::new(),
            left: Length::Last(0),
            fields: Vec::new(),
            state: State::Tag,
            is_sure: false,
            has_key: false,
            encrypted_told: false,
        }
    }

    fn tag(&mut self, byte: u8) {
        self.fields.clear();
        self.state = match self.lengths.tag(byte) {
            Some(tag) => {
                self.tag = tag;
                State::Length
            }
            None => State::Over,
        };
    }

    /// Reads a length; how much was taken.
    fn length(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let (taken, length) = self.lengths.read(input);
        let Some(length) = length else { return taken };
        self.left = length;
        self.at = self.at.saturating_add(taken as u64);
        match (outbox.is_open(), self.lengths.is_first()) {
            (true, _) => self.state = State::Content,
            (false, true) => self.look(self.left == Length::Last(0), outbox),
            (false, false) if self.has_read_fields() => self.state = State::Skip,
            (false, false) => self.state = State::Fields,
        }
        self.lengths.begun();
        self.at = self.at.saturating_sub(taken as u64);
        taken
    }

    /// Whether the beginning of the packet was looked at and emitted nothing.
    fn has_read_fields(&self) -> bool {
        self.fields.is_empty()
    }

    /// Judges the packet by the beginning of its body, and emits its events; `complete` marks the end of the body.
    fn look(&mut self, complete: bool, outbox: &mut Outbox) {
        let fields = Fields { tag: self.tag, bytes: &self.fields, left: self.left };
        let field = fields.judge(complete);
        let has_key = std::mem::replace(&mut self.has_key, field == Field::SessionKey);
        self.state = match field {
            Field::More => {
                self.has_key = has_key;
                State::Fields
            }
            Field::Nonsense => State::Over,
            Field::Unknown if self.is_sure => State::Skip,
            Field::Unknown => State::Over,
            Field::Passed => State::Skip,
            Field::SessionKey => State::Skip,
            Field::Signed => {
                self.is_sure = true;
                State::Skip
            }
            Field::Encrypted => {
                if has_key && !std::mem::replace(&mut self.encrypted_told, true) {
                    outbox.finding(Class::Encrypted, ENCRYPTED, self.at);
                }
                State::Over
            }
            Field::Literal(name) => {
                self.is_sure |= !self.fields[name.clone()].iter().any(|byte| byte.is_ascii_control());
                let name = Some(&self.fields[name]).filter(|name| !name.is_empty() && *name != FOR_EYES_ONLY);
                let name = name.map(name::utf8_or_latin1);
                let (size, raw_offset) = match self.left {
                    Length::Last(size) => (Some(size), Some(self.at)),
                    Length::Partial(_) => (None, None),
                    Length::ToTheEnd => (None, Some(self.at)),
                };
                outbox.open(Object { kind: Kind::Member, name, size, raw_offset, ..Object::default() });
                State::Content
            }
            Field::Compressed { is_sure } => {
                self.is_sure |= is_sure;
                outbox.open(Object { kind: Kind::Member, media_type: Some(COMPRESSED.into()), ..Object::default() });
                outbox.content(&self.fields);
                State::Content
            }
        };
        if self.state != State::Fields {
            self.fields.clear();
        }
    }

    /// Passes a piece of the packet's body; how much was taken.
    fn body(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let offered = &input[..self.left.most(input.len())];
        match self.state {
            State::Fields => {
                self.fields.push(offered[0]);
                self.left.pass(1);
                self.at = self.at.saturating_add(1);
                self.look(self.left == Length::Last(0), outbox);
                self.at = self.at.saturating_sub(1);
                return 1;
            }
            State::Content => outbox.content(offered),
            _ => {}
        }
        self.left.pass(offered.len());
        offered.len()
    }

    /// The packet, or the part of it under way, has come to its end.
    fn part_ends(&mut self, outbox: &mut Outbox) {
        if self.left == Length::Partial(0) {
            self.state = State::Length;
            return;
        }
        if self.state == State::Fields {
            self.look(true, outbox);
        }
        if self.state != State::Over {
            self.state = State::Tag;
        }
        if outbox.is_open() {
            outbox.close();
        }
    }
}

impl Reader for OpenPgp {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let is_in_body = matches!(self.state, State::Fields | State::Content | State::Skip);
        let taken = match self.state {
            _ if is_in_body && self.left.is_over() => {
                self.part_ends(outbox);
                0
            }
            State::Tag => {
                self.tag(input[0]);
                1
            }
            State::Length => self.length(input, outbox),
            State::Fields | State::Content | State::Skip => self.body(input, outbox),
            State::Over => input.len(),
        };
        self.at = self.at.saturating_add(taken as u64);
        taken
    }

    fn is_over(&self) -> bool {
        self.state == State::Over
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if self.state == State::Fields {
            self.look(true, outbox);
        }
        let is_whole = matches!(self.left, Length::Last(0) | Length::ToTheEnd);
        if outbox.is_open() {
            outbox.close();
            if !is_whole && self.is_sure {
                outbox.finding(TRUNCATED.class, TRUNCATED.name, self.at);
            }
        }
        Ended::Done
    }
}

/// Fuzz body: reads a message, and compressed data of one.
pub fn fuzz_openpgp(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(OpenPgp::new())));
    cuts::compare(data, |limits| Box::new(Compressed::new(compressed::Packed::new(limits))));
}

#[cfg(test)]
mod tests {
    use stream::law::{self, Told};

    use super::*;

    fn told(message: &[u8]) -> Vec<Told> {
        law::holds(|| Reading::new(OpenPgp::new()), message);
        law::holds_at_every_cut(|| Reading::new(OpenPgp::new()), message);
        law::tell(Reading::new(OpenPgp::new()), message)
    }

    fn findings(told: &[Told]) -> Vec<String> {
        let names = told.iter().filter_map(|told| match told {
            Told::Note(stream::Note::Finding(finding)) => Some(finding.name.to_string()),
            _ => None,
        });
        names.collect()
    }

    const ONE_PASS: &[u8] = b"\xc4\x0d\x03\x00\x0a\x01\x01\x02\x03\x04\x05\x06\x07\x08\x01";

    #[test]
    fn literal_data_of_every_kind_of_length_is_told() {
        let bodies: [&[u8]; 6] = [
            b"\xcb\x10b\x05a.txt\0\0\0\0hello",
            b"\xac\x10b\x05a.txt\0\0\0\0hello",
            b"\xad\0\x10b\x05a.txt\0\0\0\0hello",
            b"\xae\0\0\0\x10b\x05a.txt\0\0\0\0hello",
            b"\xaft\x05a.txt\0\0\0\0hello",
            b"\xcb\xff\0\0\0\x10u\x05a.txt\0\0\0\0hello",
        ];
        for body in bodies {
            for front in [&b""[..], ONE_PASS, b"\xca\x03PGP", b"\xd5\x02ab"] {
                let told = told(&[front, body].concat());
                assert!(matches!(&told[0], Told::Open(object) if object.name.as_deref() == Some("a.txt")), "{told:?}");
                assert_eq!(law::content(&told), b"hello");
                assert_eq!(findings(&told), [""; 0]);
            }
        }
    }

    #[test]
    fn fields_and_content_may_be_cut_into_partial_lengths() {
        let message = b"\xcb\xe1b\x05\xe0a\xe2.txt\xe2\0\0\0\0\xe0h\xe1el\x02lo\xc2\x00";
        let told = told(message);
        assert_eq!(law::content(&told), b"hello");
        assert_eq!(findings(&told), [""; 0]);
    }

    #[test]
    fn what_ends_early_is_said_where_it_is_a_message() {
        assert_eq!(findings(&told(b"\xcb\x20b\x05a.txt\0\0\0\0hello")), [TRUNCATED.name]);
        assert_eq!(findings(&told(b"\xcb\x20b\x05a\x01txt\0\0\0\0hello")), [""; 0]);
        assert_eq!(findings(&told(&[ONE_PASS, b"\xcb\xe9b\x05a\x01txt\0\0\0\0hello"].concat())), [TRUNCATED.name]);
    }

    #[test]
    fn encrypted_data_is_said_behind_a_session_key_only() {
        let key = b"\x84\x0c\x03\x01\x02\x03\x04\x05\x06\x07\x08\x01\0\0";
        let by_password = b"\xc3\x04\x04\x09\x00\x08";
        let data: [&[u8]; 3] = [b"\xd2\x05\x01abcd", b"\xd4\x06\x01\x09\x02\x10ab", b"\xc9\x03abc"];
        for data in data {
            assert_eq!(findings(&told(&[key, data].concat())), [ENCRYPTED]);
            assert_eq!(findings(&told(&[&by_password[..], data].concat())), [ENCRYPTED]);
            assert_eq!(findings(&told(data)), [""; 0]);
        }
    }

    #[test]
    fn compressed_data_is_told_with_its_algorithm() {
        for data in [&b"\x01\x03\x00"[..], b"\x02\x78\x9c", b"\x03BZh9"] {
            let told = told(&[&[0xa3], data].concat());
            assert!(matches!(&told[0], Told::Open(object) if object.media_type.as_deref() == Some(COMPRESSED)));
            assert_eq!(law::content(&told), data);
        }
    }

    #[test]
    fn of_other_files_nothing_is_told() {
        for head in [
            &b"\x7fELF"[..],
            b"\xca\xfe\xba\xbe\0\0\0\x34",
            b"\xcf\xfa\xed\xfe\x07\0\0\x01",
            b"\x89PNG\r\n\x1a\n",
            b"\xff\xd8\xff\xe0\0\x10JFIF",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
            b"\xcb\x10x\x05a.txt\0\0\0\0hello",
            b"\xa3\x02\x78\x9d",
            b"\xa1\xc8\xd4\x00\xe5\x48\xb0\x71",
            b"\xa3\x01\xed\xff\xff\xff",
        ] {
            let file = [head, &[0; 100]].concat();
            let told = told(&file);
            assert!(matches!(told[..], [Told::End(_)]), "{told:?}");
        }
    }
}
