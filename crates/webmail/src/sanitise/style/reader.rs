//! The reader of a declaration: its name and its values.

use alloc::vec::Vec;

use super::sheet::Quotes;
use super::{FUNCTIONS, Number, UNITS, Value, WORD_BYTES_MAX};

/// Values of one declaration: the fonts of a system are a dozen.
const VALUES_MAX: usize = 48;

/// Bytes of a `calc`.
const CALC_BYTES_MAX: usize = 60;

/// A declaration that is read.
pub(super) struct Reader<'a> {
    pub rest: &'a str,
}

impl<'a> Reader<'a> {
    /// The declaration, if all of it is understood: its name, and its values behind those that are there.
    pub fn declaration(&mut self, values: &mut Vec<Value<'a>>) -> Option<&'a str> {
        let name = self.word()?;
        self.rest = self.rest.trim_ascii_start().strip_prefix(':')?;
        let passes = |one: &str| name.eq_ignore_ascii_case(one);
        loop {
            self.rest = self.rest.trim_ascii_start();
            let before = self.rest;
            match self.rest.chars().next() {
                None => break,
                Some('!') => {
                    self.rest = self.rest.get(1..)?.trim_ascii_start();
                    if !self.word()?.eq_ignore_ascii_case("important") {
                        return None;
                    }
                }
                Some(_) if values.len() >= VALUES_MAX => return None,
                Some(_) => match self.value() {
                    Some(value) => values.push(value),
                    None if passes("background") || passes("list-style") => {
                        self.rest = before;
                        self.skip(|c| c == ',' || c.is_ascii_whitespace());
                    }
                    None if passes("font-family") => {
                        self.rest = before;
                        // A name of several words goes as a whole.
                        while values.last().is_some_and(|last| *last != Value::Comma) {
                            values.pop();
                        }
                        self.skip(|c| c == ',' || c == '!');
                    }
                    None => return None,
                },
            }
        }
        Some(name)
    }

    fn value(&mut self) -> Option<Value<'a>> {
        let mut characters = self.rest.chars();
        let first = characters.next()?;
        match first {
            ',' => self.single(Value::Comma),
            '/' => self.single(Value::Slash),
            '#' => {
                self.rest = &self.rest[1..];
                let digits = self.run(|c| c.is_ascii_hexdigit());
                matches!(digits.len(), 3 | 4 | 6 | 8).then_some(Value::Digits(digits))
            }
            '"' | '\'' => self.name(first),
            '0'..='9' | '.' | '+' => self.length(),
            '-' if characters.next().is_some_and(|c| c.is_ascii_digit() || c == '.') => self.length(),
            _ if first.is_ascii_alphabetic() || first == '-' => self.word_or_colour(),
            _ => None,
        }
    }

    fn single(&mut self, value: Value<'a>) -> Option<Value<'a>> {
        self.rest = self.rest.get(1..)?;
        Some(value)
    }

    fn run(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !fits(c)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }

    /// A word, also one of a browser's own (`-webkit-center`).
    fn word(&mut self) -> Option<&'a str> {
        let word = self.run(|c| c.is_ascii_alphanumeric() || c == '-');
        let letters = word.strip_prefix('-').unwrap_or(word);
        (letters.starts_with(|c: char| c.is_ascii_alphabetic()) && word.len() <= WORD_BYTES_MAX).then_some(word)
    }

    fn name(&mut self, quote: char) -> Option<Value<'a>> {
        self.rest = self.rest.get(1..)?;
        let is_plain =
            |c: char| c.is_ascii_alphanumeric() || " -_.+&".contains(c) || c.is_alphabetic() && !c.is_ascii();
        let name = self.run(is_plain);
        self.rest = self.rest.strip_prefix(quote)?;
        let name = name.trim();
        (!name.is_empty() && name.len() <= 80).then_some(Value::Name(name))
    }

    fn length(&mut self) -> Option<Value<'a>> {
        let number = self.number()?;
        Some(Value::Length(number, self.unit()?))
    }

    fn unit(&mut self) -> Option<&'static str> {
        let unit = match self.percent() {
            "" => self.run(|c| c.is_ascii_alphabetic()),
            percent => percent,
        };
        UNITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(unit)).map(|(known, _)| *known)
    }

    /// A number of at most five digits before the point and three behind it.
    fn number(&mut self) -> Option<Number<'a>> {
        let is_negative = self.rest.starts_with('-');
        self.rest = self.rest.strip_prefix(['+', '-']).unwrap_or(self.rest);
        let digits = self.run(|c| c.is_ascii_digit());
        let mut fraction = "";
        if let Some(rest) = self.rest.strip_prefix('.') {
            self.rest = rest;
            fraction = self.run(|c| c.is_ascii_digit());
        }
        let whole = digits.trim_start_matches('0');
        if whole.len() > 5 || digits.is_empty() && fraction.is_empty() {
            return None;
        }
        Some(Number { is_negative, whole, fraction: fraction.get(..fraction.len().min(3)).unwrap_or_default() })
    }

    fn percent(&mut self) -> &'static str {
        let Some(rest) = self.rest.strip_prefix('%') else { return "" };
        self.rest = rest;
        "%"
    }

    fn word_or_colour(&mut self) -> Option<Value<'a>> {
        let word = self.word()?;
        let Some(rest) = self.rest.strip_prefix('(') else { return Some(Value::Word(word)) };
        self.rest = rest;
        if word.eq_ignore_ascii_case("calc") {
            return self.calc();
        }
        let function = FUNCTIONS.iter().find(|known| known.eq_ignore_ascii_case(word))?;
        let (mut parts, mut count) = ([None; 4], 0usize);
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',' || c == '/');
            if let Some(rest) = self.rest.strip_prefix(')') {
                self.rest = rest;
                break;
            }
            let number = self.number()?;
            let unit = match self.percent() {
                "" => ["", "deg"].into_iter().find(|unit| unit.eq_ignore_ascii_case(self.peeked_unit()))?,
                percent => percent,
            };
            self.rest = self.rest.get(if unit == "deg" { 3 } else { 0 }..)?;
            *parts.get_mut(count)? = Some((number, unit));
            count = count.saturating_add(1);
        }
        (count >= 3).then_some(Value::Function(function, parts))
    }

    fn peeked_unit(&self) -> &'a str {
        (Reader { rest: self.rest }).run(|c| c.is_ascii_alphabetic())
    }

    /// The terms of a `calc`: lengths, with an operator between each two.
    fn calc(&mut self) -> Option<Value<'a>> {
        let (terms, rest) = self.rest.split_once(')')?;
        self.rest = rest;
        if terms.len() > CALC_BYTES_MAX {
            return None;
        }
        let mut reader = Reader { rest: terms.trim_ascii_start() };
        loop {
            reader.length()?;
            reader.rest = reader.rest.trim_ascii_start();
            if reader.rest.is_empty() {
                return Some(Value::Calc(terms));
            }
            reader.rest = reader.rest.strip_prefix(['+', '-', '*', '/'])?.trim_ascii_start();
        }
    }

    /// Passes over a value that is not understood, with its quotes and brackets, up to one of these characters.
    fn skip(&mut self, ends: impl Fn(char) -> bool) {
        let (mut quotes, mut depth) = (Quotes::default(), 0u32);
        for (at, character) in self.rest.char_indices() {
            match character {
                _ if !quotes.passes(character) => {}
                '(' => depth = depth.saturating_add(1),
                ')' => depth = depth.saturating_sub(1),
                _ if depth == 0 && at > 0 && ends(character) => {
                    self.rest = self.rest.get(at..).unwrap_or_default();
                    return;
                }
                _ => {}
            }
        }
        self.rest = "";
    }
}
