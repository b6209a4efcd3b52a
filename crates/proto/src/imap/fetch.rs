//! A FETCH command, understood: which messages, and what of them.
//!
//! Items that are not known are refused, for what they would bring is not known. Bounds: those of a command.

use alloc::vec::Vec;

use super::command::{Command, Piece, Verb};
use super::event::Fact;
use super::section::Section;

/// Items that carry no content. What is in parentheses behind an item is known too: `PREVIEW (LAZY)`.
const PLAIN: [&str; 21] = [
    "ALL",
    "BODY",
    "BODYSTRUCTURE",
    "EMAILID",
    "ENVELOPE",
    "FAST",
    "FLAGS",
    "FULL",
    "INTERNALDATE",
    "MODSEQ",
    "PREVIEW",
    "PREVIEW (LAZY)",
    "RFC822.SIZE",
    "SAVEDATE",
    "SNIPPET",
    "THREADID",
    "UID",
    "X-GM-LABELS",
    "X-GM-MSGID",
    "X-GM-THRID",
    "SNIPPET (LAZY=FUZZY)",
];

/// A parsed FETCH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Whether the messages are named by UID.
    pub by_uid: bool,
    /// The messages.
    pub set: Vec<u8>,
    /// Items without content, as they were asked for.
    pub plain: Vec<Vec<u8>>,
    /// Items with content.
    pub sections: Vec<Section>,
    /// Modifiers after the items: `(CHANGEDSINCE 12)`.
    pub modifiers: Vec<u8>,
}

impl Command {
    /// A FETCH of our own.
    pub fn fetch(fetch: &Fetch) -> Command {
        let (name, text) = (if fetch.by_uid { "UID FETCH" } else { "FETCH" }, fetch.arguments());
        Command { tag: Vec::new(), verb: Verb::Fetch, name, pieces: alloc::vec![Piece::Text(text)] }
    }
}

impl Fetch {
    /// Reads a FETCH or UID FETCH.
    ///
    /// # Errors
    /// What the client is told.
    pub fn parse(command: &Command) -> Result<Fetch, &'static str> {
        debug_assert_eq!(command.verb, Verb::Fetch, "only a FETCH is read as one");
        let text = command.text().ok_or("No literals in FETCH here")?;
        let (set, rest) = super::command::word(text);
        let known = |byte: &u8| byte.is_ascii_digit() || b",:*$".contains(byte);
        if set.is_empty() || !set.iter().all(known) {
            return Err("Not a set of messages");
        }
        let mut fetch = Fetch {
            by_uid: command.by_uid(),
            set: set.to_vec(),
            plain: Vec::new(),
            sections: Vec::new(),
            modifiers: Vec::new(),
        };
        let end = item_end(rest)?;
        let (items, modifiers) = (&rest[..end], rest[end..].trim_ascii());
        match items.strip_prefix(b"(").and_then(|items| items.strip_suffix(b")")) {
            Some(items) => fetch.items(items)?,
            None => fetch.items(items)?,
        }
        let listed = modifiers.starts_with(b"(") && item_end(modifiers)? == modifiers.len();
        if !modifiers.is_empty() && !listed {
            return Err("Not modifiers of a FETCH");
        }
        fetch.modifiers = modifiers.to_vec();
        Ok(fetch)
    }

    fn items(&mut self, mut text: &[u8]) -> Result<(), &'static str> {
        while !text.is_empty() {
            let mut end = item_end(text)?;
            // "PREVIEW (LAZY)" is one item.
            if text[end..].starts_with(b" (") {
                end += 1 + item_end(&text[end + 1..])?;
            }
            let item = &text[..end];
            match Section::parse(item).map_err(|_| "Not an item of FETCH")? {
                Some(section) => self.sections.push(section),
                None if is_plain(item) => self.plain.push(item.to_ascii_uppercase()),
                None => return Err("Not an item of FETCH"),
            }
            text = text[end..].trim_ascii_start();
        }
        if self.plain.is_empty() && self.sections.is_empty() { Err("Nothing to fetch") } else { Ok(()) }
    }

    /// Whether the message itself is asked for, or a part of it: more than its header.
    pub fn asks_for_content(&self) -> bool {
        self.sections.iter().any(|section| !section.is_header())
    }

    /// Whether the client wants to hear of this.
    pub fn asks_for(&self, fact: Fact) -> bool {
        self.plain
            .iter()
            .any(|item| matches!(item.as_slice(), b"ALL" | b"FAST" | b"FULL") || *item == fact.name().as_bytes())
    }

    /// A FETCH of UID, size and date of this message, without content.
    pub fn of_names(&self, number: u32) -> Fetch {
        let names = ["UID", Fact::Size.name(), Fact::Date.name()];
        Fetch { plain: names.map(|name| name.as_bytes().to_vec()).to_vec(), ..self.of_one(number, Vec::new()) }
    }

    /// One message, if only one is named, by its number.
    pub fn single(&self) -> Option<u32> {
        core::str::from_utf8(&self.set).ok()?.parse().ok().filter(|&number| number > 0)
    }

    /// Whether a section is asked for that is neither the whole message nor its header.
    pub fn asks_for_parts(&self) -> bool {
        self.sections.iter().any(|section| !section.is_whole() && !section.is_header())
    }

    /// The same for one message, with these sections only.
    pub fn of_one(&self, number: u32, sections: Vec<Section>) -> Fetch {
        Fetch {
            by_uid: self.by_uid,
            set: alloc::format!("{number}").into_bytes(),
            plain: Vec::new(),
            sections,
            modifiers: Vec::new(),
        }
    }

    /// The arguments of the command; the UID is asked for in front of content, and in front of more than a header what the
    /// message is told by beside it.
    pub fn arguments(&self) -> Vec<u8> {
        let mut items: Vec<Vec<u8>> = Vec::new();
        if !self.sections.is_empty() {
            items.push(b"UID".to_vec());
        }
        for fact in [Fact::Size, Fact::Date] {
            if self.asks_for_content() && !self.asks_for(fact) {
                items.push(fact.name().as_bytes().to_vec());
            }
        }
        items.extend(self.plain.iter().filter(|item| self.sections.is_empty() || item.as_slice() != b"UID").cloned());
        items.extend(self.sections.iter().map(|section| {
            let mut item = Vec::new();
            section.ask(&mut item);
            item
        }));
        // A macro stands alone, without parentheses.
        let items = match items.as_slice() {
            [only] => only.clone(),
            _ => [b"(", items.join(&b' ').as_slice(), b")"].concat(),
        };
        let mut text = [self.set.as_slice(), b" ", &items].concat();
        if !self.modifiers.is_empty() {
            text.push(b' ');
            text.extend_from_slice(&self.modifiers);
        }
        text
    }
}

fn is_plain(item: &[u8]) -> bool {
    let upper = item.to_ascii_uppercase();
    is_size(&upper) || PLAIN.iter().any(|known| known.as_bytes() == upper)
}

/// Whether it is `BINARY.SIZE[1.2]`, in capitals: a number, and no content.
pub(super) fn is_size(item: &[u8]) -> bool {
    let path = item.strip_prefix(b"BINARY.SIZE[").and_then(|rest| rest.strip_suffix(b"]"));
    path.is_some_and(|path| path.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
}

/// Where the item at the start of a text ends: at the next blank, or the end, outside of brackets and parentheses.
fn item_end(text: &[u8]) -> Result<usize, &'static str> {
    let (mut depth, mut quoted) = (0u32, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1).ok_or("A parenthesis too many")?,
            b' ' if depth == 0 => return Ok(at),
            _ => {}
        }
    }
    if depth == 0 && !quoted { Ok(text.len()) } else { Err("A parenthesis is missing") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn fetch(line: &str) -> Result<Fetch, &'static str> {
        Fetch::parse(&Command::parse(line.as_bytes(), false).map_err(|(_, reason)| reason)?)
    }

    #[test]
    fn the_uid_is_asked_for_in_front_of_content() {
        for (line, arguments) in [
            ("a FETCH 1:* FLAGS", "1:* FLAGS"),
            ("a FETCH 1:* (FLAGS UID)", "1:* (FLAGS UID)"),
            ("a FETCH 1 FULL", "1 FULL"),
            ("a FETCH 2,4:7 body.peek[]", "2,4:7 (UID RFC822.SIZE INTERNALDATE BODY.PEEK[])"),
            ("a FETCH 2 (rfc822.size BODY[1])", "2 (UID INTERNALDATE RFC822.SIZE BODY[1])"),
            (
                "a UID FETCH 3 (BODY[HEADER.FIELDS (DATE FROM)] UID FLAGS) (CHANGEDSINCE 12 VANISHED)",
                "3 (UID FLAGS BODY[HEADER.FIELDS (DATE FROM)]) (CHANGEDSINCE 12 VANISHED)",
            ),
            ("a FETCH 1 (PREVIEW (LAZY) BINARY.SIZE[1.2])", "1 (PREVIEW (LAZY) BINARY.SIZE[1.2])"),
        ] {
            assert_eq!(String::from_utf8(fetch(line).unwrap().arguments()).unwrap(), arguments);
        }
    }

    #[test]
    fn what_is_not_known_is_not_asked() {
        for line in [
            "a FETCH",
            "a FETCH 1",
            "a FETCH x FLAGS",
            "a FETCH 1 ()",
            "a FETCH 1 (X-CONTENT)",
            "a FETCH 1 (FLAGS",
            "a FETCH 1 FLAGS)",
            "a FETCH 1 BODY[1",
            "a FETCH 1 (FLAGS) x",
            "a FETCH 1 CONVERT[1]",
            "a FETCH 1 BODY[HEADER.FIELDS ({4}",
        ] {
            assert!(fetch(line).is_err(), "{line}");
        }
    }

    #[test]
    fn one_message_is_told_from_many() {
        assert_eq!(fetch("a UID FETCH 17 FLAGS").unwrap().single(), Some(17));
        assert_eq!(fetch("a UID FETCH 17:18 FLAGS").unwrap().single(), None);
        assert!(!fetch("a FETCH 1 (BODY[] RFC822.HEADER)").unwrap().asks_for_parts());
        assert!(fetch("a FETCH 1 (BODY[] BODY[1])").unwrap().asks_for_parts());
    }
}
