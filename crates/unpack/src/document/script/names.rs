//! Strings under names, and where a script joins them: `a = "..."; b = "..."; f(a + b)`.
//!
//! A name gets the string that stands behind it and an equals sign. Joins are `+`, `&` and `.` between names alone. Left out:
//! names of objects and arrays, and strings that a script changes under their names.
//!
//! Bounds: [`NAMES_MAX`] names with [`NAMED_BYTES_MAX`] of strings; [`JOINS_MAX`] joins of [`JOINED_BYTES_MAX`] in all.

use std::collections::VecDeque;

/// The longest name.
const NAME_BYTES_MAX: usize = 32;
/// The text before a string in which its name stands.
const BEFORE_BYTES: usize = NAME_BYTES_MAX + 16;
const NAMES_MAX: usize = 16;
const NAMED_BYTES_MAX: usize = 256 << 10;
/// The shortest string that is worth a name.
const STRING_BYTES_MIN: usize = 8;
const CHAIN_MAX: usize = 32;
const JOINS_MAX: u32 = 64;
const JOINED_BYTES_MAX: usize = 2 << 20;

/// The strings of a script by their names.
pub(super) struct Names {
    /// The last text outside of strings.
    before: Vec<u8>,
    named: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// The name that is being read.
    word: Vec<u8>,
    /// The strings that are joined so far, and whether a sign stands behind the last of them.
    chain: Vec<Vec<u8>>,
    awaits: bool,
    joins_left: u32,
    bytes_left: usize,
}

impl Names {
    pub fn new() -> Names {
        Names {
            before: Vec::new(),
            named: VecDeque::new(),
            word: Vec::new(),
            chain: Vec::new(),
            awaits: false,
            joins_left: JOINS_MAX,
            bytes_left: JOINED_BYTES_MAX,
        }
    }

    /// Reads text outside of strings: how much of it, and what is joined where that ends.
    pub fn read(&mut self, text: &[u8]) -> (usize, Option<Joined>) {
        let (mut taken, mut joined) = (text.len(), None);
        if self.named.len() > 1 && self.joins_left > 0 {
            for (at, &byte) in text.iter().enumerate() {
                joined = self.push(byte);
                if joined.is_some() {
                    taken = at + 1;
                    break;
                }
            }
        }
        let last = &text[taken.saturating_sub(BEFORE_BYTES)..taken];
        self.before.extend_from_slice(last);
        let surplus = self.before.len().saturating_sub(BEFORE_BYTES);
        self.before.drain(..surplus);
        (taken, joined)
    }

    /// A string, or the end of all, comes: what is joined before it.
    pub fn end(&mut self) -> Option<Joined> {
        self.word_ends();
        self.chain_ends()
    }

    /// The name of the string that begins here, if it has one.
    pub fn name(&mut self) -> Option<Vec<u8>> {
        let before = std::mem::take(&mut self.before);
        let rest = before.trim_ascii_end().strip_suffix(b"=")?;
        let rest = rest.strip_suffix(b":").unwrap_or(rest).trim_ascii_end();
        let begin = rest.iter().rposition(|&byte| !is_of_name(byte)).map_or(0, |at| at + 1);
        let name = &rest[begin..];
        (!name.is_empty() && name.len() <= NAME_BYTES_MAX).then(|| name.to_vec())
    }

    /// Notes the string of a name.
    pub fn set(&mut self, name: Vec<u8>, string: &[u8]) {
        self.named.retain(|(known, _)| *known != name);
        if string.len() < STRING_BYTES_MIN || string.len() > NAMED_BYTES_MAX {
            return;
        }
        self.named.push_back((name, string.to_vec()));
        let total = |named: &VecDeque<(Vec<u8>, Vec<u8>)>| named.iter().map(|(_, string)| string.len()).sum::<usize>();
        while self.named.len() > NAMES_MAX || total(&self.named) > NAMED_BYTES_MAX {
            self.named.pop_front();
        }
    }

    fn push(&mut self, byte: u8) -> Option<Joined> {
        if is_of_name(byte) {
            if self.word.len() <= NAME_BYTES_MAX {
                self.word.push(byte);
            }
            return None;
        }
        let joined = self.word_ends();
        match byte {
            byte if byte.is_ascii_whitespace() => joined,
            b'+' | b'&' | b'.' if !self.chain.is_empty() && !self.awaits => {
                self.awaits = true;
                joined
            }
            _ => joined.or_else(|| self.chain_ends()),
        }
    }

    /// A name ends, if one was read: it goes on with what is joined, or ends it.
    fn word_ends(&mut self) -> Option<Joined> {
        if self.word.is_empty() {
            return None;
        }
        let word = std::mem::take(&mut self.word);
        let string = self.named.iter().find(|(name, _)| *name == word).map(|(_, string)| string.clone());
        let joined = if self.awaits && string.is_some() { None } else { self.chain_ends() };
        if let Some(string) = string.filter(|_| self.chain.len() < CHAIN_MAX) {
            self.chain.push(string);
        }
        self.awaits = false;
        joined
    }

    fn chain_ends(&mut self) -> Option<Joined> {
        self.awaits = false;
        let chain = std::mem::take(&mut self.chain);
        let bytes: usize = chain.iter().map(Vec::len).sum();
        if chain.len() < 2 || bytes > self.bytes_left || self.joins_left == 0 {
            return None;
        }
        (self.joins_left, self.bytes_left) = (self.joins_left - 1, self.bytes_left - bytes);
        Some(Joined { pieces: chain.len(), bytes: chain.concat() })
    }
}

/// Strings that are joined by their names.
pub(super) struct Joined {
    pub pieces: usize,
    pub bytes: Vec<u8>,
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}
