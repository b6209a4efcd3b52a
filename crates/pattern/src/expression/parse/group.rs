//! Contents of parentheses.

use super::super::error::{SyntaxError, Wrong};
use super::super::flags::Flags;
use super::super::syntax::{Node, is_word};
use super::{GROUP_BYTES, NAMED, Parser, Read};

/// Kind of group that a `(` opens.
enum Opened {
    /// `(?i)`: nothing; what follows in the group around it is read with other flags.
    Flags,
    Plain,
    Capture(u32),
    Atomic,
    Look {
        negative: bool,
        is_behind: bool,
    },
    /// `(?P=name)`.
    Reference(Node),
}

impl Parser<'_, '_> {
    /// A group, behind its `(`. Nothing if it only sets flags.
    pub(super) fn group(&mut self) -> Result<Option<Node>, SyntaxError> {
        let start = self.at - 1;
        if let Some(node) = self.remembered(start) {
            return Ok(Some(node));
        }
        let (groups, references) = (self.groups, self.references());
        let deepest = std::mem::replace(&mut self.deepest, self.depth);
        let node = self.group_anew(start)?;
        if let Some(alternatives @ Node::Alternate(_)) = &node
            && (groups, references) == (self.groups, self.references())
        {
            self.remember(start, alternatives.clone());
        }
        self.deepest = self.deepest.max(deepest);
        Ok(node)
    }

    /// The group that begins at `start`, if one of the same text was read before.
    fn remembered(&mut self, start: usize) -> Option<Node> {
        let read = self.memo.find(&self.text[start..], self.flags)?;
        let deepest = self.depth + read.height;
        if deepest > self.depth_max {
            return None;
        }
        self.at = start + read.text.len();
        self.deepest = self.deepest.max(deepest);
        Some(read.node.clone())
    }

    /// Remembers the group that was read from `start` to here.
    fn remember(&mut self, start: usize, node: Node) {
        let text = &self.text[start..self.at];
        if GROUP_BYTES.contains(&text.len()) && !self.is_unsure {
            let height = self.deepest - self.depth;
            self.memo.insert(Read { text: text.into(), flags: self.flags, height, node });
        }
    }

    /// How many references there are.
    fn references(&self) -> usize {
        self.referred.len() + self.referred_names.len()
    }

    fn group_anew(&mut self, start: usize) -> Result<Option<Node>, SyntaxError> {
        if self.depth == self.depth_max {
            return self.fail(Wrong::TooDeep);
        }
        let flags = self.flags;
        let opened = self.opened(start)?;
        match opened {
            Opened::Flags => return Ok(None),
            Opened::Reference(node) => return Ok(Some(node)),
            _ => {}
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let node = self.alternatives()?;
        self.depth -= 1;
        self.flags = flags;
        if !self.eat(b')') {
            return Err(SyntaxError { offset: start, wrong: Wrong::OpenGroup });
        }
        Ok(Some(match opened {
            Opened::Capture(number) => Node::Group(Box::new(node), number),
            Opened::Atomic => Node::Atomic(Box::new(node)),
            Opened::Look { negative, is_behind } => self.look(node, negative, is_behind, start)?,
            Opened::Plain | Opened::Flags | Opened::Reference(_) => node,
        }))
    }

    fn opened(&mut self, start: usize) -> Result<Opened, SyntaxError> {
        if self.peek() == Some(b'*') {
            return self.fail(Wrong::Unsupported("a verb (*...)"));
        }
        if !self.eat(b'?') {
            return Ok(if self.flags.no_capture { Opened::Plain } else { self.capture() });
        }
        let look = |negative, is_behind| Opened::Look { negative, is_behind };
        let (length, opened) = match self.rest() {
            [b':', ..] => (1, Opened::Plain),
            [b'>', ..] => (1, Opened::Atomic),
            [b'=', ..] => (1, look(false, false)),
            [b'!', ..] => (1, look(true, false)),
            [b'<', b'=', ..] => (2, look(false, true)),
            [b'<', b'!', ..] => (2, look(true, true)),
            [b'P', b'<', ..] => return self.named(2, b'>'),
            [b'<', ..] => return self.named(1, b'>'),
            [b'\'', ..] => return self.named(1, b'\''),
            [b'P', b'=', ..] => return self.reference_of_python(),
            [b'|', ..] => return self.fail(Wrong::Unsupported("branch reset (?|...)")),
            [b'(', ..] => return self.fail(Wrong::Unsupported("a condition (?(...)...)")),
            [b'{' | b'?', ..] => return self.fail(Wrong::Unsupported("code (?{...})")),
            [b'&' | b'R' | b'0'..=b'9' | b'+', ..] | [b'P', b'>', ..] | [b'-', b'0'..=b'9', ..] => {
                return self.fail(Wrong::Unsupported("recursion"));
            }
            [] => return Err(SyntaxError { offset: start, wrong: Wrong::OpenGroup }),
            _ => return self.inline_flags(start),
        };
        self.at += length;
        Ok(opened)
    }

    fn capture(&mut self) -> Opened {
        self.groups += 1;
        Opened::Capture(self.groups)
    }

    fn named(&mut self, skipped: usize, end: u8) -> Result<Opened, SyntaxError> {
        self.at += skipped;
        let name = self.name(end)?;
        let opened = self.capture();
        self.names.push((name, self.groups));
        Ok(opened)
    }

    fn reference_of_python(&mut self) -> Result<Opened, SyntaxError> {
        self.at += 2;
        let offset = self.at;
        let name = self.name(b')')?;
        Ok(Opened::Reference(self.reference_by_name(name, offset)))
    }

    /// A name, and what ends it.
    pub(super) fn name(&mut self, end: u8) -> Result<String, SyntaxError> {
        let offset = self.at;
        let name = self.take_until(end).unwrap_or_default().trim_ascii();
        let is_name = name.first().is_some_and(|byte| !byte.is_ascii_digit()) && name.iter().all(|&byte| is_word(byte));
        if !is_name {
            return Err(SyntaxError { offset, wrong: Wrong::BadEscape });
        }
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    pub(super) fn reference_by_name(&mut self, name: String, offset: usize) -> Node {
        let group = NAMED + self.referred_names.len() as u32;
        self.referred_names.push((name, offset));
        Node::Backreference { group, fold: self.flags.ignore_case }
    }

    /// `(?i)`, `(?i-s:...)`, `(?^i:...)`.
    fn inline_flags(&mut self, start: usize) -> Result<Opened, SyntaxError> {
        let mut flags = if self.eat(b'^') { Flags::NONE } else { self.flags };
        let mut on = true;
        let mut before = 0;
        while let Some(letter) = self.peek() {
            match letter {
                b')' | b':' => {
                    self.at += 1;
                    self.flags = flags;
                    return Ok(if letter == b':' { Opened::Plain } else { Opened::Flags });
                }
                b'-' if on => on = false,
                b'u' | b'l' => return self.fail(Wrong::Unsupported("a character set other than bytes")),
                b'x' if on && before != b'x' => (flags.extended, flags.extended_more) = (true, false),
                _ if !flags.set(letter, on) => return self.fail(Wrong::UnknownFlag),
                _ => {}
            }
            before = letter;
            self.at += 1;
        }
        Err(SyntaxError { offset: start, wrong: Wrong::OpenGroup })
    }
}
