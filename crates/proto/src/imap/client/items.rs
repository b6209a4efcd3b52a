//! Items of a FETCH: each value is reported by its name.

use super::{Client, QUOTED_BYTES_MAX, State};
use crate::imap::event::Message;
use crate::imap::event::{ClientEvent, Fact};
use crate::imap::fetch::is_size;
use crate::imap::run::{Run, Stop};
use crate::imap::section::{Section, number};

/// Items of a FETCH response that pass as they stand.
const KNOWN_ITEMS: [&str; 13] = [
    "BODY",
    "BODYSTRUCTURE",
    "EMAILID",
    "ENVELOPE",
    "FLAGS",
    "MODSEQ",
    "PREVIEW",
    "SAVEDATE",
    "SNIPPET",
    "THREADID",
    "X-GM-LABELS",
    "X-GM-MSGID",
    "X-GM-THRID",
];

/// Items that hold strings, which may come as literals.
const STRING_ITEMS: [&str; 6] = ["BODY", "BODYSTRUCTURE", "ENVELOPE", "PREVIEW", "SNIPPET", "X-GM-LABELS"];

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
        let has_strings = STRING_ITEMS.iter().any(|known| known.as_bytes() == upper);
        self.run = if has_strings { Run::default() } else { Run::without_literals() };
        let passes = KNOWN_ITEMS.iter().any(|known| known.as_bytes() == upper) || is_size(&upper);
        if !passes {
            self.run = Run::default();
        }
        self.state = State::Value(passes);
        Ok(if passes { ClientEvent::Item(name) } else { ClientEvent::Idle })
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
