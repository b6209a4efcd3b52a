//! Contents of brackets.

use super::super::error::{SyntaxError, Wrong};
use super::super::syntax::{Node, has_case, is_word};
use super::Parser;
use super::atom::class_of;
use crate::ByteSet;

/// One member of a bracket.
enum Member {
    Byte(u8),
    Class(ByteSet),
}

impl Parser<'_, '_> {
    /// A bracket, behind its `[`.
    pub(super) fn bracket(&mut self) -> Result<Node, SyntaxError> {
        let start = self.at - 1;
        let is_negated = self.eat_plain(b'^');
        let mut set = ByteSet::EMPTY;
        let mut is_first = true;
        loop {
            self.skip_blanks_of_bracket();
            match self.peek() {
                None => return Err(SyntaxError { offset: start, wrong: Wrong::OpenBracket }),
                Some(b']') if !is_first => break,
                Some(_) => self.members(&mut set)?,
            }
            is_first = false;
        }
        self.at += 1;
        if self.flags.ignore_case {
            let plain = set;
            plain.iter().filter(|&byte| has_case(byte)).for_each(|byte| set.insert(byte ^ 0x20));
        }
        Ok(Node::Set(if is_negated { set.complement() } else { set }))
    }

    /// A member, or a range of them.
    fn members(&mut self, set: &mut ByteSet) -> Result<(), SyntaxError> {
        let offset = self.at;
        let low = self.member()?;
        self.skip_blanks_of_bracket();
        let is_range = matches!(self.rest(), [b'-', next, ..] if *next != b']');
        let low = match low {
            Some(Member::Byte(low)) if is_range => low,
            member => {
                add(set, member);
                return Ok(());
            }
        };
        self.at += 1;
        self.skip_blanks_of_bracket();
        match self.member()? {
            Some(Member::Byte(high)) if high < low => Err(SyntaxError { offset, wrong: Wrong::BadRange }),
            Some(Member::Byte(high)) => {
                (low..=high).for_each(|byte| set.insert(byte));
                Ok(())
            }
            other => {
                set.insert(low);
                set.insert(b'-');
                add(set, other);
                Ok(())
            }
        }
    }

    /// With `xx`, steps over blanks.
    fn skip_blanks_of_bracket(&mut self) {
        if self.flags.extended_more {
            self.take_while(usize::MAX, |byte| matches!(byte, b' ' | b'\t'));
        }
    }

    /// One member; nothing for an `\E`.
    fn member(&mut self) -> Result<Option<Member>, SyntaxError> {
        let byte = match self.rest() {
            [] => return self.fail(Wrong::OpenBracket),
            [b'\\', ..] => return self.member_escaped(),
            [b'[', mark @ (b':' | b'.' | b'='), rest @ ..] => {
                if let Some(class) = self.posix(*mark, rest)? {
                    return Ok(Some(Member::Class(class)));
                }
                b'['
            }
            [byte, ..] => *byte,
        };
        self.at += 1;
        Ok(Some(Member::Byte(byte)))
    }

    fn member_escaped(&mut self) -> Result<Option<Member>, SyntaxError> {
        self.at += 1;
        let Some(letter) = self.peek() else {
            return self.fail(Wrong::OpenBracket);
        };
        if let Some(class) = class_of(letter) {
            self.at += 1;
            return Ok(Some(Member::Class(class)));
        }
        match letter {
            b'E' => {
                self.at += 1;
                Ok(None)
            }
            b'b' => {
                self.at += 1;
                Ok(Some(Member::Byte(8)))
            }
            b'N' if !self.rest().starts_with(b"N{") => self.fail(Wrong::BadEscape),
            _ => Ok(Some(self.escaped_byte()?.map_or(Member::Class(ByteSet::EMPTY), Member::Byte))),
        }
    }

    /// `[:alpha:]`, of which `rest` is behind the mark; nothing if what stands here only looks so.
    fn posix(&mut self, mark: u8, rest: &[u8]) -> Result<Option<ByteSet>, SyntaxError> {
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'^').count();
        let (name, behind) = rest.split_at(length);
        if !behind.starts_with(&[mark, b']']) {
            return Ok(None);
        }
        if mark != b':' {
            return self.fail(Wrong::Unsupported("a collating element"));
        }
        let (is_negated, name) = name.strip_prefix(b"^").map_or((false, name), |name| (true, name));
        let Some(class) = self.posix_class(name) else {
            return self.fail(Wrong::UnknownClass);
        };
        self.at += length + 4;
        Ok(Some(if is_negated { class.complement() } else { class }))
    }

    fn posix_class(&self, name: &[u8]) -> Option<ByteSet> {
        Some(match name {
            b"upper" | b"lower" if self.flags.ignore_case => ByteSet::of(|byte| byte.is_ascii_alphabetic()),
            b"alpha" => ByteSet::of(|byte| byte.is_ascii_alphabetic()),
            b"upper" => ByteSet::of(|byte| byte.is_ascii_uppercase()),
            b"lower" => ByteSet::of(|byte| byte.is_ascii_lowercase()),
            b"digit" => ByteSet::of(|byte| byte.is_ascii_digit()),
            b"alnum" => ByteSet::of(|byte| byte.is_ascii_alphanumeric()),
            b"xdigit" => ByteSet::of(|byte| byte.is_ascii_hexdigit()),
            b"punct" => ByteSet::of(|byte| byte.is_ascii_punctuation()),
            b"cntrl" => ByteSet::of(|byte| byte.is_ascii_control()),
            b"print" => ByteSet::of(|byte| matches!(byte, b' '..=b'~')),
            b"graph" => ByteSet::of(|byte| byte.is_ascii_graphic()),
            b"blank" => ByteSet::of(|byte| matches!(byte, b' ' | b'\t')),
            b"space" => ByteSet::of(|byte| matches!(byte, b' ' | b'\t'..=b'\r')),
            b"word" => ByteSet::of(is_word),
            b"ascii" => ByteSet::of(|byte| byte.is_ascii()),
            _ => return None,
        })
    }
}

fn add(set: &mut ByteSet, member: Option<Member>) {
    match member {
        Some(Member::Byte(byte)) => set.insert(byte),
        Some(Member::Class(class)) => *set = set.union(&class),
        None => {}
    }
}
