//! Items of a FETCH: each value is reported by its name.

use super::{Client, QUOTED_BYTES_MAX, State};
use crate::imap::event::Message;
use crate::imap::event::{ClientEvent, Fact};
use crate::imap::fetch::is_size;
use crate::imap::run::{Run, Stop};
use crate::imap::section::{Section, number};

/// Items of a FETCH response that pass as they stand.
const KNOWN_ITEMS: [&str; 7] = ["BODY", "BODYSTRUCTURE", "ENVELOPE", "FLAGS", "PREVIEW", "SNIPPET", "X-GM-LABELS"];

/// Whether a value is what the grammar of its item has.
type IsSound = fn(&[u8]) -> bool;

/// Items whose values are short, and pass if they are what the grammar of the item has.
const SHORT_ITEMS: [(&str, IsSound); 6] = [
    ("EMAILID", is_id),
    ("THREADID", |value| is_id(value) || is_nil(value)),
    ("MODSEQ", |value| within(value, b"()").is_some_and(is_number)),
    ("SAVEDATE", |value| within(value, b"\"\"").is_some_and(is_date) || is_nil(value)),
    ("X-GM-MSGID", is_number),
    ("X-GM-THRID", is_number),
];

/// Bytes of such a value: an id of 255 in parentheses (RFC 8474, section 7).
const SHORT_BYTES_MAX: usize = 257;

/// Items that hold strings, which may come as literals.
const STRING_ITEMS: [&str; 6] = ["BODY", "BODYSTRUCTURE", "ENVELOPE", "PREVIEW", "SNIPPET", "X-GM-LABELS"];

/// A short value under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Short {
    /// Its place in [`SHORT_ITEMS`].
    item: usize,
    depth: u32,
    quoted: bool,
}

impl Client {
    pub(super) fn value(&mut self, passes: bool, input: &[u8]) -> Result<(usize, ClientEvent), &'static str> {
        let pass = if self.run.is_in_literal() { ClientEvent::PassText } else { ClientEvent::Pass };
        let (taken, stop) = self.run.take(input, true)?;
        self.state = match stop {
            Stop::ItemEnd => State::Between,
            Stop::LineEnd if taken == 0 => return Err("a FETCH without an end"),
            Stop::Input | Stop::LineEnd => State::Value(passes),
        };
        if taken == 0 && stop == Stop::ItemEnd {
            return self.take(input);
        }
        Ok((taken, if passes && taken > 0 { pass } else { ClientEvent::Idle }))
    }

    /// The name of an item is there.
    pub(super) fn named(&mut self) -> Result<ClientEvent, &'static str> {
        let name = core::mem::take(&mut self.word);
        if let Some(section) = Section::parse(&name)? {
            return self.go(State::Announce(section));
        }
        let upper = name.to_ascii_uppercase();
        if upper == b"UID" {
            return self.go(State::Uid);
        }
        if let Some(fact) = Fact::parse(&name) {
            return self.go(State::Fact { fact, quoted: false });
        }
        if let Some(item) = SHORT_ITEMS.iter().position(|(known, _)| known.as_bytes() == upper) {
            return self.go(State::Short(Short { item, depth: 0, quoted: false }));
        }
        let has_strings = STRING_ITEMS.iter().any(|known| known.as_bytes() == upper);
        self.run = if has_strings { Run::default() } else { Run::without_literals() };
        let passes = KNOWN_ITEMS.iter().any(|known| known.as_bytes() == upper) || is_size(&upper);
        if !passes {
            self.run = Run::default();
        }
        self.state = State::Value(passes);
        Ok(if passes { ClientEvent::Item(name) } else { ClientEvent::Idle })
    }

    /// A byte of a short value, which passes with its name once it is whole; one that is none is left out.
    pub(super) fn short(&mut self, short: Short, byte: u8) -> Result<ClientEvent, &'static str> {
        let Short { depth, quoted, .. } = short;
        if depth == 0 && !quoted && matches!(byte, b' ' | b')') {
            let value = core::mem::take(&mut self.word);
            self.between(byte)?;
            let (name, is_sound) = SHORT_ITEMS[short.item];
            return Ok(if is_sound(&value) { ClientEvent::Short(name, value) } else { ClientEvent::Idle });
        }
        let depth = match byte {
            b'{' if !quoted => return Err("a literal where none can be"),
            0 | b'\r' | b'\n' => return Err("not a short value"),
            b'\\' if quoted => return Err("not a short value"),
            b'(' if !quoted => depth + 1,
            b')' if !quoted => depth.saturating_sub(1),
            _ => depth,
        };
        self.collect(byte, SHORT_BYTES_MAX)?;
        self.go(State::Short(Short { depth, quoted: quoted != (byte == b'"'), ..short }))
    }

    /// A byte of a value that is content: `NIL`, the start of a quoted string, or the announcement of a literal.
    pub(super) fn announced(&mut self, section: Section, byte: u8) -> Result<ClientEvent, &'static str> {
        match (byte, self.word.is_empty()) {
            (b'"', true) => self.go(State::Quoted { section, escaped: false }),
            (b' ' | b')', false) => {
                let word = core::mem::take(&mut self.word);
                if !word.eq_ignore_ascii_case(b"NIL") {
                    return Err("not content");
                }
                self.between(byte)?;
                Ok(ClientEvent::Section(section, None))
            }
            (b'\n', false) => {
                let word = core::mem::take(&mut self.word);
                let word = word.strip_suffix(b"\r").unwrap_or(&word);
                let binary = word.starts_with(b"~");
                let digits = word.strip_prefix(b"~").unwrap_or(word);
                let digits = digits.strip_prefix(b"{").and_then(|digits| digits.strip_suffix(b"}"));
                let len = digits.and_then(number).ok_or("not content")?;
                self.state = if len == 0 { State::Between } else { State::Content(len) };
                Ok(ClientEvent::Section(section, Some(Message { len, binary })))
            }
            (byte, _) => {
                self.collect(byte, 30)?;
                self.go(State::Announce(section))
            }
        }
    }

    pub(super) fn quoted(&mut self, section: Section, escaped: bool, byte: u8) -> Result<ClientEvent, &'static str> {
        match byte {
            b'\r' | b'\n' | 0 => Err("a quoted string without an end"),
            b'\\' if !escaped => self.go(State::Quoted { section, escaped: true }),
            b'"' if !escaped => {
                let len = self.word.len() as u64;
                self.state = State::Unquoted;
                Ok(ClientEvent::Section(section, Some(Message { len, binary: false })))
            }
            byte => {
                self.collect(byte, QUOTED_BYTES_MAX)?;
                self.go(State::Quoted { section, escaped: false })
            }
        }
    }
}

/// The text between two signs.
fn within<'a>(value: &'a [u8], [open, close]: &[u8; 2]) -> Option<&'a [u8]> {
    let [first, text @ .., last] = value else { return None };
    (first == open && last == close).then_some(text)
}

/// An id in parentheses (RFC 8474, section 7).
fn is_id(value: &[u8]) -> bool {
    let is_of_id = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    within(value, b"()").is_some_and(|id| (1..=255).contains(&id.len()) && id.iter().all(is_of_id))
}

fn is_number(text: &[u8]) -> bool {
    (1..=20).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
}

fn is_date(text: &[u8]) -> bool {
    text.len() <= 32 && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b" :+-".contains(byte))
}

fn is_nil(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"NIL")
}
