//! TNEF (MS-OXTNEF), the `winmail.dat` of Outlook, forward as it streams: attachments, bodies, embedded messages.
//!
//! Checksums of attributes play no role, as with its readers. A name that follows the data of its attachment, as Outlook
//! writes it, is that of an empty member. Reading ends at what is no attribute; the rest is emitted as
//! a member without name.
//!
//! Bounds: a header of 9 bytes, one name, the properties of [`properties`].

mod properties;

use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::frame::codec::{Collected, le32};
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::frame::reader::{Ended, Outbox, Reader};
use properties::{Attachment, Properties};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "TNEF",
    methods: "attachments, embedded messages and objects, bodies (plain, HTML, compressed RTF)",
    not_read: "",
    reads: Reads::Stream,
    memory: "one name, 4 KiB",
    decoder: "own",
    fuzz: "unpack_tnef",
    compared_with: "documents made for it",
};

const SIGNATURE_BYTES: usize = 6;
const HEADER: usize = 9;
const CHECKSUM_BYTES: u64 = 2;

/// Attributes, by the lower half of their identifier.
const ATTACH_DATA: u32 = 0x800f;
const ATTACH_TITLE: u32 = 0x8010;
const ATTACH_BEGINS: u32 = 0x9002;
const MESSAGE_PROPERTIES: u32 = 0x9003;
const ATTACH_PROPERTIES: u32 = 0x9005;
const BODY: u32 = 0x800c;

/// A reader of TNEF.
pub(crate) struct Tnef {
    limits: Limits,
    at: u64,
    header: Collected<HEADER>,
    /// The title that is being read.
    title: Vec<u8>,
    attachment: Attachment,
    state: State,
}

enum State {
    Signature(usize),
    Header,
    Skip(u64),
    Title(u64),
    /// Content of the open member.
    Content(u64),
    Properties {
        reader: Box<Properties>,
        left: u64,
    },
    /// Not an attribute: emitted raw.
    Rest,
}

impl Tnef {
    pub fn new(limits: &Limits) -> Tnef {
        Tnef {
            limits: limits.clone(),
            at: 0,
            header: Collected::new(),
            title: Vec::new(),
            attachment: Attachment::default(),
            state: State::Signature(SIGNATURE_BYTES),
        }
    }

    fn attribute(&mut self, header: &[u8; HEADER], outbox: &mut Outbox) -> State {
        let length = u64::from(le32(header, 5));
        if !matches!(header[0], 1 | 2) {
            let offset = self.at - HEADER as u64;
            outbox.finding(Class::Malformed, "Heuristics.Malformed.Tnef.Attribute", offset);
            outbox.open(Object { kind: Kind::Member, raw_offset: Some(offset), ..Object::default() });
            outbox.content(header);
            return State::Rest;
        }
        match le32(header, 1) & 0xffff {
            ATTACH_BEGINS => {
                self.attachment = Attachment::default();
                State::Skip(length + CHECKSUM_BYTES)
            }
            ATTACH_TITLE => {
                self.title.clear();
                State::Title(length)
            }
            ATTACH_DATA => {
                self.attachment.is_told = true;
                self.member(self.attachment.name.clone(), length, outbox)
            }
            BODY => self.member(Some("body.txt".into()), length, outbox),
            MESSAGE_PROPERTIES | ATTACH_PROPERTIES => {
                let attachment = std::mem::take(&mut self.attachment);
                State::Properties { reader: Box::new(Properties::new(attachment, &self.limits)), left: length }
            }
            _ => State::Skip(length + CHECKSUM_BYTES),
        }
    }

    fn member(&self, name: Option<Box<str>>, size: u64, outbox: &mut Outbox) -> State {
        outbox.open(Object {
            kind: Kind::Member,
            name,
            size: Some(size),
            raw_offset: Some(self.at),
            ..Object::default()
        });
        State::Content(size)
    }

    /// The title is read.
    fn title_ends(&mut self, outbox: &mut Outbox) {
        let title = self.title.split(|&byte| byte == 0).next().unwrap_or_default();
        if !title.is_empty() {
            self.attachment.has_name(name::utf8_or_latin1(title), outbox);
        }
    }

    fn take(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let at_most = |left: u64| input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (taken, state) = match std::mem::replace(&mut self.state, State::Header) {
            State::Signature(left) => {
                let count = left.min(input.len());
                (count, if left > count { State::Signature(left - count) } else { State::Header })
            }
            State::Header => {
                let taken = self.header.fill(input, HEADER);
                self.at += taken as u64;
                let state = match self.header.whole().copied() {
                    None => State::Header,
                    Some(header) => {
                        self.header.clear();
                        self.attribute(&header, outbox)
                    }
                };
                self.at -= taken as u64;
                (taken, state)
            }
            State::Skip(0) => (0, State::Header),
            State::Skip(left) => (at_most(left), State::Skip(left - at_most(left) as u64)),
            State::Title(0) => {
                self.title_ends(outbox);
                (0, State::Skip(CHECKSUM_BYTES))
            }
            State::Title(left) => {
                let count = at_most(left);
                let room = (self.limits.name_bytes_max as usize).saturating_sub(self.title.len());
                self.title.extend_from_slice(&input[..count.min(room)]);
                (count, State::Title(left - count as u64))
            }
            State::Content(0) => {
                outbox.close();
                (0, State::Skip(CHECKSUM_BYTES))
            }
            State::Content(left) => {
                outbox.content(&input[..at_most(left)]);
                (at_most(left), State::Content(left - at_most(left) as u64))
            }
            State::Properties { mut reader, left: 0 } => {
                reader.finish(outbox);
                self.attachment = reader.into_attachment();
                (0, State::Skip(CHECKSUM_BYTES))
            }
            State::Properties { mut reader, left } => {
                let taken = reader.read(&input[..at_most(left)], outbox);
                (taken, State::Properties { reader, left: left - taken as u64 })
            }
            State::Rest => {
                outbox.content(input);
                (input.len(), State::Rest)
            }
        };
        self.state = state;
        taken
    }
}

impl Reader for Tnef {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let taken = self.take(input, outbox);
        self.at += taken as u64;
        taken
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        let is_cut = match std::mem::replace(&mut self.state, State::Skip(0)) {
            State::Signature(_) => true,
            State::Title(_) => {
                self.title_ends(outbox);
                true
            }
            // The checksum behind the last attribute is often missing.
            State::Skip(left) => left > CHECKSUM_BYTES,
            State::Header => self.header.len() > 0,
            State::Content(left) => {
                outbox.close();
                left > 0
            }
            State::Properties { mut reader, left } => {
                reader.finish(outbox);
                left > 0
            }
            State::Rest => {
                outbox.close();
                false
            }
        };
        if is_cut {
            outbox.finding(Class::Truncated, "Heuristics.Truncated.Tnef", self.at);
        }
        Ended::Done
    }
}
