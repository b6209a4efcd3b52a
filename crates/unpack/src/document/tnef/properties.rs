//! Properties in TNEF (MS-OXTNEF 2.1.3.4): the data of attachments that are objects, their long names, and bodies.
//!
//! Bounds: one property's head, one name.

use stream::{Kind, Limits, Nothing, Object};

use crate::codec::lzfu::LzFu;
use crate::frame::codec::{Collected, le32};
use crate::frame::name;
use crate::frame::reader::{Outbox, Reader};

const BODY: u16 = 0x1000;
const RTF_COMPRESSED: u16 = 0x1009;
const HTML: u16 = 0x1013;
const DATA: u16 = 0x3701;
const SHORT_NAME: u16 = 0x3704;
const LONG_NAME: u16 = 0x3707;

const OBJECT: u16 = 0x0d;
const STRING: u16 = 0x1e;
const UNICODE: u16 = 0x1f;
const BINARY: u16 = 0x102;
const MULTIPLE: u16 = 0x1000;
/// Length of the interface id before an object.
const INTERFACE_BYTES: u64 = 16;

/// What is known of the attachment that is being read.
#[derive(Default)]
pub(super) struct Attachment {
    pub name: Option<Box<str>>,
    /// Whether its data were told.
    pub is_told: bool,
}

impl Attachment {
    /// Takes a name, which is that of an empty member if the data were told under another.
    pub fn has_name(&mut self, name: Box<str>, outbox: &mut Outbox) {
        if self.is_told && self.name.as_ref() != Some(&name) {
            outbox.open(Object { kind: Kind::Member, name: Some(name.clone()), size: Some(0), ..Object::default() });
            outbox.close();
        }
        self.name = Some(name);
    }
}

/// Reads the properties of a message or attachment.
pub(super) struct Properties {
    attachment: Attachment,
    name_bytes_max: usize,
    field: Collected<8>,
    step: Step,
    kind: u16,
    id: u16,
    /// Values of the property that are still to come.
    values: u32,
}

enum Step {
    Count,
    Head,
    /// A named property: its namespace and kind, then its number or the length of its name.
    Namespace {
        left: u64,
    },
    NameKind,
    NameNumber {
        has_text: bool,
    },
    NameText {
        left: u64,
    },
    /// How many values follow.
    Values,
    Length,
    Value {
        left: u64,
        padding: u64,
        sink: Sink,
    },
    Skip(u64),
}

/// Where a value goes.
enum Sink {
    None,
    Name(Vec<u8>),
    /// The open member, behind so many bytes.
    Member {
        skip: u64,
    },
    Rtf(Box<LzFu>),
}

impl Properties {
    pub fn new(attachment: Attachment, limits: &Limits) -> Properties {
        Properties {
            attachment,
            name_bytes_max: limits.name_bytes_max as usize,
            field: Collected::new(),
            step: Step::Count,
            kind: 0,
            id: 0,
            values: 0,
        }
    }

    /// Reads on; returns how many bytes were taken.
    pub fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        match std::mem::replace(&mut self.step, Step::Head) {
            Step::Count => self.number(input, Step::Count, |_, _| Step::Head),
            Step::Head => self.number(input, Step::Head, |properties, value| {
                (properties.kind, properties.id) = (value as u16, (value >> 16) as u16);
                if properties.id >= 0x8000 { Step::Namespace { left: 16 } } else { properties.values_follow() }
            }),
            Step::Namespace { left: 0 } => {
                self.step = Step::NameKind;
                0
            }
            Step::Namespace { left } => {
                let count = at_most(input, left);
                self.step = Step::Namespace { left: left - count as u64 };
                count
            }
            Step::NameKind => self.number(input, Step::NameKind, |_, value| Step::NameNumber { has_text: value == 1 }),
            Step::NameNumber { has_text } => {
                self.number(input, Step::NameNumber { has_text }, |properties, value| match has_text {
                    true => Step::NameText { left: u64::from(value) + padding(value) },
                    false => properties.values_follow(),
                })
            }
            Step::NameText { left: 0 } => {
                self.step = self.values_follow();
                0
            }
            Step::NameText { left } => {
                let count = at_most(input, left);
                self.step = Step::NameText { left: left - count as u64 };
                count
            }
            Step::Values => self.number(input, Step::Values, |properties, value| {
                properties.values = value;
                properties.next_value()
            }),
            Step::Length => self.length(input, outbox),
            Step::Value { left, padding, sink } => self.value(left, padding, sink, input, outbox),
            Step::Skip(0) => 0,
            Step::Skip(left) => {
                let count = at_most(input, left);
                self.step = if left > count as u64 { Step::Skip(left - count as u64) } else { self.next_value() };
                count
            }
        }
    }

    /// Collects a number, then continues with its meaning.
    fn number(&mut self, input: &[u8], stay: Step, then: impl FnOnce(&mut Properties, u32) -> Step) -> usize {
        let taken = self.field.fill(input, 4);
        self.step = stay;
        if self.field.len() == 4 {
            let value = le32(self.field.bytes(), 0);
            self.field.clear();
            self.step = then(self, value);
        }
        taken
    }

    /// The head of a property is complete.
    fn values_follow(&mut self) -> Step {
        let kind = self.kind & !MULTIPLE;
        if self.kind & MULTIPLE != 0 || matches!(kind, OBJECT | STRING | UNICODE | BINARY) {
            return Step::Values;
        }
        self.values = 1;
        self.next_value()
    }

    /// The next value of the property, or the next property.
    fn next_value(&mut self) -> Step {
        if self.values == 0 {
            return Step::Head;
        }
        self.values -= 1;
        match self.kind & !MULTIPLE {
            OBJECT | STRING | UNICODE | BINARY => Step::Length,
            0x05 | 0x06 | 0x07 | 0x14 | 0x40 => Step::Skip(8),
            0x48 => Step::Skip(16),
            _ => Step::Skip(4),
        }
    }

    fn length(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let taken = self.field.fill(input, 4);
        self.step = Step::Length;
        if self.field.len() == 4 {
            let length = le32(self.field.bytes(), 0);
            self.field.clear();
            let sink = self.sink(length.into(), outbox);
            self.step = Step::Value { left: length.into(), padding: padding(length), sink };
        }
        taken
    }

    fn sink(&mut self, size: u64, outbox: &mut Outbox) -> Sink {
        let is_wide = self.kind & !MULTIPLE == UNICODE;
        let mut member = |name: Option<Box<str>>, skip: u64| {
            let charset = is_wide.then(|| "utf-16le".into());
            let size = Some(size.saturating_sub(skip));
            outbox.open(Object { kind: Kind::Member, name, charset, size, ..Object::default() });
            Sink::Member { skip }
        };
        match self.id {
            DATA => {
                self.attachment.is_told = true;
                member(self.attachment.name.clone(), if self.kind == OBJECT { INTERFACE_BYTES } else { 0 })
            }
            HTML => member(Some("body.html".into()), 0),
            BODY => member(Some("body.txt".into()), 0),
            RTF_COMPRESSED => Sink::Rtf(Box::new(LzFu::new())),
            SHORT_NAME | LONG_NAME => Sink::Name(Vec::new()),
            _ => Sink::None,
        }
    }

    fn value(&mut self, left: u64, padding: u64, mut sink: Sink, input: &[u8], outbox: &mut Outbox) -> usize {
        if left == 0 {
            self.value_ends(sink, outbox);
            self.step = if padding > 0 { Step::Skip(padding) } else { self.next_value() };
            return 0;
        }
        let mut count = at_most(input, left);
        match &mut sink {
            Sink::None => {}
            Sink::Name(name) => {
                let room = (2 * self.name_bytes_max).saturating_sub(name.len());
                name.extend_from_slice(&input[..count.min(room)]);
            }
            Sink::Member { skip: 0 } => outbox.content(&input[..count]),
            Sink::Member { skip } => {
                count = at_most(&input[..count], *skip);
                *skip -= count as u64;
            }
            Sink::Rtf(reader) => count = reader.read(&input[..count], outbox),
        }
        self.step = Step::Value { left: left - count as u64, padding, sink };
        count
    }

    fn value_ends(&mut self, sink: Sink, outbox: &mut Outbox) {
        match sink {
            Sink::None => {}
            Sink::Member { .. } => outbox.close(),
            Sink::Rtf(mut reader) => {
                reader.end(&Nothing, outbox);
            }
            Sink::Name(bytes) => {
                let text = if self.kind & !MULTIPLE == UNICODE {
                    name::utf16_le(&bytes)
                } else {
                    name::utf8_or_latin1(&bytes)
                };
                let text = text.trim_end_matches('\0');
                let Attachment { name, is_told } = &self.attachment;
                if !text.is_empty() && (self.id == LONG_NAME || name.is_none() || *is_told) {
                    self.attachment.has_name(name::cut(text, self.name_bytes_max), outbox);
                }
            }
        }
    }

    /// What is known of the attachment, once the properties are read.
    pub fn into_attachment(self) -> Attachment {
        self.attachment
    }

    /// Ends the input: open objects are closed.
    pub fn finish(&mut self, outbox: &mut Outbox) {
        if let Step::Value { sink, .. } = std::mem::replace(&mut self.step, Step::Head) {
            self.value_ends(sink, outbox);
        }
    }
}

fn at_most(input: &[u8], left: u64) -> usize {
    input.len().min(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Values are padded to four bytes.
fn padding(length: u32) -> u64 {
    u64::from(length.wrapping_neg() & 3)
}
