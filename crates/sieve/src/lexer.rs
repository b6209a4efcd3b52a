//! Words of a script (RFC 5228, section 8.1). Line ends may be CRLF or LF; within strings they become CRLF.

use alloc::format;
use alloc::string::String;

use crate::error::{Error, Place};

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Identifier(&'a str),
    /// Without its colon.
    Tag(&'a str),
    Number(u64),
    Text(String),
    /// One of `()[]{},;`.
    Mark(char),
    End,
}

/// Reads words one after the other.
pub(crate) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(source: &'a str) -> Lexer<'a> {
        // Some editors begin a file so.
        let at = if source.starts_with('\u{feff}') { 3 } else { 0 };
        Lexer { source, at, line: 1, line_start: at }
    }

    /// The next word, and where it begins.
    pub fn next(&mut self) -> Result<(Place, Token<'a>), Error> {
        self.blanks()?;
        let place = self.place();
        let Some(first) = self.peek() else { return Ok((place, Token::End)) };
        let token = match first {
            '"' => Token::Text(self.quoted(place)?),
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' => {
                self.take(first);
                Token::Mark(first)
            }
            ':' => {
                self.take(first);
                let name = self.identifier();
                if name.is_empty() {
                    return Err(Error::new(place, "a tag has a name behind its colon"));
                }
                Token::Tag(name)
            }
            '0'..='9' => self.number(place)?,
            'a'..='z' | 'A'..='Z' | '_' => {
                let name = self.identifier();
                if name.eq_ignore_ascii_case("text") && self.peek() == Some(':') {
                    self.take(':');
                    return Ok((place, Token::Text(self.lines(place)?)));
                }
                Token::Identifier(name)
            }
            other => return Err(Error::new(place, format!("{other:?} has no meaning here"))),
        };
        Ok((place, token))
    }

    fn place(&self) -> Place {
        let before = self.source.get(self.line_start..self.at).unwrap_or_default().chars().count();
        Place { line: self.line, column: u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1) }
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, character: char) {
        self.at = self.at.saturating_add(character.len_utf8());
        if character == '\n' {
            self.line = self.line.saturating_add(1);
            self.line_start = self.at;
        }
    }

    /// White space and comments.
    fn blanks(&mut self) -> Result<(), Error> {
        loop {
            let place = self.place();
            match self.peek() {
                Some(blank @ (' ' | '\t' | '\r' | '\n')) => self.take(blank),
                Some('#') => self.line_rest(),
                Some('/') if self.rest().starts_with("/*") => {
                    let Some(length) = self.rest().find("*/") else {
                        return Err(Error::new(place, "this comment does not end"));
                    };
                    let comment = self.rest().get(..length).unwrap_or_default();
                    comment.chars().chain(['*', '/']).for_each(|character| self.take(character));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips the rest of a line, without its end.
    fn line_rest(&mut self) {
        let length = self.rest().find('\n').unwrap_or(self.rest().len());
        self.at = self.at.saturating_add(length);
    }

    fn identifier(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
        let name = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.at = self.at.saturating_add(name.len());
        name
    }

    fn number(&mut self, place: Place) -> Result<Token<'a>, Error> {
        let word = self.identifier();
        let digits = word.trim_end_matches(|character: char| !character.is_ascii_digit());
        let scale: u64 = match word.get(digits.len()..).unwrap_or_default() {
            "" => 1,
            "k" | "K" => 1 << 10,
            "m" | "M" => 1 << 20,
            "g" | "G" => 1 << 30,
            _ => return Err(Error::new(place, format!("{word:?} is no number"))),
        };
        let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
        number.map(Token::Number).ok_or_else(|| Error::new(place, format!("{word:?} is not a number that fits")))
    }

    fn quoted(&mut self, place: Place) -> Result<String, Error> {
        self.take('"');
        let mut text = String::new();
        while let Some(character) = self.peek() {
            self.take(character);
            match character {
                '"' => return Ok(text),
                '\\' => match self.peek() {
                    Some(escaped) => {
                        self.take(escaped);
                        push(&mut text, escaped);
                    }
                    None => break,
                },
                '\0' => return Err(Error::new(place, "a string has no NUL")),
                character => push(&mut text, character),
            }
        }
        Err(Error::new(place, "this string does not end"))
    }

    /// Reads the string after `text:`.
    fn lines(&mut self, place: Place) -> Result<String, Error> {
        while let Some(blank @ (' ' | '\t' | '\r')) = self.peek() {
            self.take(blank);
        }
        if self.peek() == Some('#') {
            self.line_rest();
        }
        if self.peek() != Some('\n') {
            return Err(Error::new(self.place(), "a line end follows text:"));
        }
        self.take('\n');
        let mut text = String::new();
        while !self.rest().is_empty() {
            let rest = self.rest();
            let length = rest.find('\n').unwrap_or(rest.len());
            let line = rest.get(..length).unwrap_or_default();
            let line = line.strip_suffix('\r').unwrap_or(line);
            self.at = self.at.saturating_add(length);
            let is_whole = self.peek() == Some('\n');
            if is_whole {
                self.take('\n');
            }
            if line == "." {
                return Ok(text);
            }
            if !is_whole {
                break;
            }
            text.push_str(line.strip_prefix('.').filter(|rest| rest.starts_with('.')).unwrap_or(line));
            text.push_str("\r\n");
        }
        Err(Error::new(place, "no line that is a dot ends this text"))
    }
}

fn push(text: &mut String, character: char) {
    match character {
        '\n' if !text.ends_with('\r') => text.push_str("\r\n"),
        character => text.push(character),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    fn read(source: &str) -> Result<Vec<Token<'_>>, Error> {
        let mut lexer = Lexer::new(source);
        let mut tokens = Vec::new();
        loop {
            match lexer.next()?.1 {
                Token::End => return Ok(tokens),
                token => tokens.push(token),
            }
        }
    }

    #[test]
    fn words_are_read() {
        let tokens = read("if /* a\nb */ :Is 10K \"a\\\"\\x\nb\" # c\n[text: # d\r\n..x\r\n.y\r\n.\r\n];").unwrap();
        let wanted = [
            Token::Identifier("if"),
            Token::Tag("Is"),
            Token::Number(10_240),
            Token::Text("a\"x\r\nb".to_string()),
            Token::Mark('['),
            Token::Text(".x\r\n.y\r\n".to_string()),
            Token::Mark(']'),
            Token::Mark(';'),
        ];
        assert_eq!(tokens, wanted);
    }

    #[test]
    fn errors_name_their_place() {
        for (source, place) in [
            ("keep;\n  ü", (2, 3)),
            ("\"ü\" \"x", (1, 5)),
            ("/*", (1, 1)),
            ("99999999999999999999", (1, 1)),
            ("1x", (1, 1)),
            ("text:\na\n", (1, 1)),
            (" : x", (1, 2)),
        ] {
            let error = read(source).unwrap_err();
            assert_eq!((error.place.line, error.place.column), place, "{source:?}: {error}");
        }
    }
}
