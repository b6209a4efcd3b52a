//! The arguments of a command, word by word (RFC 9051, section 9).
//!
//! The frame is [`Server`](super::Server)'s: lines hold no control characters, quoted strings end, literals are whole. Where
//! clients are known to send more blanks than one, they may.

use alloc::string::String;
use alloc::vec::Vec;

use super::command::Piece;
use super::section::number;

/// Reply text for a command that cannot be parsed.
pub type Wrong = &'static str;

/// Where in the arguments of a command the reading is.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    pieces: &'a [Piece],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(pieces: &'a [Piece]) -> Self {
        Cursor { pieces, at: 0 }
    }

    /// The text up to the next literal.
    pub fn rest(&mut self) -> &'a [u8] {
        while let Some((Piece::Text(text), behind)) = self.pieces.split_first() {
            match text.get(self.at..).filter(|rest| !rest.is_empty()) {
                Some(rest) => return rest,
                None => (self.pieces, self.at) = (behind, 0),
            }
        }
        b""
    }

    pub fn peek(&mut self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub fn eat(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, wanted: u8, or: Wrong) -> Result<(), Wrong> {
        if self.eat(wanted) { Ok(()) } else { Err(or) }
    }

    /// Takes a word if it stands here, in any case.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let Some((start, behind)) = rest.split_at_checked(word.len()) else { return false };
        let ends = behind.first().is_none_or(|&byte| !is_atom(byte));
        let found = ends && start.eq_ignore_ascii_case(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found
    }

    pub fn blank(&mut self) -> Result<(), Wrong> {
        if !self.eat(b' ') {
            return Err("Missing argument");
        }
        while self.eat(b' ') {}
        Ok(())
    }

    pub fn end(&mut self) -> Result<(), Wrong> {
        while self.eat(b' ') {}
        if self.rest().is_empty() && self.pieces.is_empty() { Ok(()) } else { Err("Too many arguments") }
    }

    pub fn is_at_end(&mut self) -> bool {
        self.rest().is_empty() && self.pieces.is_empty()
    }

    /// Bytes as long as they fit.
    pub fn while_(&mut self, fits: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let length = rest.iter().position(|&byte| !fits(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// An atom, in upper case.
    pub fn atom(&mut self) -> Result<String, Wrong> {
        let atom = self.while_(is_atom);
        let text = core::str::from_utf8(atom).map_err(|_| "Not an atom")?;
        if text.is_empty() { Err("Missing argument") } else { Ok(text.to_ascii_uppercase()) }
    }

    pub fn astring(&mut self) -> Result<Vec<u8>, Wrong> {
        self.string_or(|byte| is_atom(byte) || byte == b']')
    }

    /// A mailbox, or a pattern of LIST.
    pub fn list_mailbox(&mut self) -> Result<Vec<u8>, Wrong> {
        self.string_or(|byte| is_atom(byte) || b"]%*".contains(&byte))
    }

    fn string_or(&mut self, fits: impl Fn(u8) -> bool) -> Result<Vec<u8>, Wrong> {
        match self.peek() {
            Some(b'"') => self.quoted(),
            Some(_) => match self.while_(fits) {
                b"" => Err("Not a string"),
                atom => Ok(atom.to_vec()),
            },
            None => self.literal(),
        }
    }

    fn literal(&mut self) -> Result<Vec<u8>, Wrong> {
        match self.pieces.split_first() {
            Some((Piece::Literal { bytes, .. }, behind)) => {
                (self.pieces, self.at) = (behind, 0);
                Ok(bytes.clone())
            }
            _ => Err("Missing argument"),
        }
    }

    fn quoted(&mut self) -> Result<Vec<u8>, Wrong> {
        let rest = self.rest();
        let (mut string, mut at) = (Vec::new(), 1);
        loop {
            match rest.get(at).ok_or("A quoted string without an end")? {
                b'"' => break,
                b'\\' => {
                    at += 1;
                    string.push(*rest.get(at).ok_or("A quoted string without an end")?);
                }
                byte => string.push(*byte),
            }
            at += 1;
        }
        self.at += at + 1;
        Ok(string)
    }

    pub fn number(&mut self) -> Result<u64, Wrong> {
        number(self.while_(|byte| byte.is_ascii_digit())).ok_or("Not a number")
    }

    /// A number above 0.
    pub fn positive(&mut self) -> Result<u64, Wrong> {
        self.number().and_then(|number| if number > 0 { Ok(number) } else { Err("Not a number above 0") })
    }

    /// `(a b c)`, at least one of them unless `empty` may be.
    pub fn list<T>(
        &mut self,
        empty: bool,
        mut one: impl FnMut(&mut Self) -> Result<T, Wrong>,
    ) -> Result<Vec<T>, Wrong> {
        self.expect(b'(', "Not a list")?;
        let mut all = Vec::new();
        if empty && self.eat(b')') {
            return Ok(all);
        }
        loop {
            all.push(one(self)?);
            if self.eat(b')') {
                return Ok(all);
            }
            self.blank()?;
        }
    }
}

pub(super) fn is_atom(byte: u8) -> bool {
    (byte > b' ' && byte != 0x7f) && !b"(){%*\"\\]".contains(&byte)
}

/// Messages by number or UID: runs as they were given, `*` the last there is. Without any it is what a search has saved (`$`,
/// RFC 5182).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set(Vec<(Bound, Bound)>);

/// An end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// A number, not 0.
    Number(u32),
    /// The last there is: `*`.
    Last,
}

impl Set {
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Set, Wrong> {
        if cursor.eat(b'$') {
            return Ok(Set(Vec::new()));
        }
        let mut runs = Vec::new();
        loop {
            let first = Bound::read(cursor)?;
            let last = if cursor.eat(b':') { Bound::read(cursor)? } else { first };
            runs.push((first, last));
            if !cursor.eat(b',') {
                return Ok(Set(runs));
            }
        }
    }

    /// Whether it is what a search has saved.
    pub fn is_saved(&self) -> bool {
        self.0.is_empty()
    }

    /// The runs, each ascending, if `last` is the last there is.
    pub fn runs(&self, last: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let value = move |bound: Bound| match bound {
            Bound::Number(number) => number,
            Bound::Last => last,
        };
        self.0.iter().map(move |&(from, to)| (value(from).min(value(to)), value(from).max(value(to))))
    }
}

impl Bound {
    fn read(cursor: &mut Cursor<'_>) -> Result<Bound, Wrong> {
        if cursor.eat(b'*') {
            return Ok(Bound::Last);
        }
        let number = u32::try_from(cursor.number()?).ok().filter(|&number| number > 0);
        number.map(Bound::Number).ok_or("Not a message")
    }
}

/// Flags of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// [`Flags::SYSTEM`], a bit each from the lowest.
    pub system: u64,
    /// Keywords, the flags that clients make up.
    pub keywords: Vec<String>,
}

impl Flags {
    /// The names of the system flags, in the order of their bits.
    pub const SYSTEM: [&'static str; 5] = ["\\Seen", "\\Answered", "\\Flagged", "\\Deleted", "\\Draft"];

    /// Adds one. `\Recent` is the server's own: no client sets it.
    pub(super) fn add(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Wrong> {
        let is_system = cursor.eat(b'\\');
        let name = core::str::from_utf8(cursor.while_(is_atom)).map_err(|_| "Not a flag")?;
        if name.is_empty() || !name.is_ascii() || name.len() > 128 {
            return Err("Not a flag");
        }
        if !is_system {
            if !self.keywords.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                self.keywords.push(name.into());
            }
            return Ok(());
        }
        let known = Flags::SYSTEM.iter().position(|flag| flag[1..].eq_ignore_ascii_case(name));
        match known {
            Some(bit) => self.system |= 1 << bit,
            None => return Err("Unknown flag"),
        }
        Ok(())
    }

    /// `(\Seen $x)`.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Flags, Wrong> {
        let mut flags = Flags::default();
        cursor.list(true, |cursor| flags.add(cursor))?;
        Ok(flags)
    }
}
