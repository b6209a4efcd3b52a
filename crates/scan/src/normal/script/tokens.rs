//! The words, numbers, strings and signs of a script, with what can be said of constants.

use std::ops::Range;

/// One token.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Where its text is.
    range: Range<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    /// Without its quotes, its escapes undone.
    String,
    /// A string that a call came to.
    Constant,
    /// A single character.
    Sign,
}

impl Token {
    fn range(&self) -> Range<usize> {
        self.range.start as usize..self.range.end as usize
    }
}

/// The tokens of a script.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) all: Vec<Token>,
    /// The texts of all tokens, one after the other.
    texts: Vec<u8>,
}

impl Tokens {
    pub(super) fn text(&self, token: &Token) -> &[u8] {
        &self.texts[token.range()]
    }

    /// Whether a token is this word or sign.
    pub(super) fn is(&self, index: usize, text: &[u8]) -> bool {
        let token = self.all.get(index).filter(|token| matches!(token.kind, Kind::Word | Kind::Sign));
        token.is_some_and(|token| self.text(token) == text)
    }

    /// Reads a source, and what `eval` evaluates in it so many times deep.
    pub(super) fn read(&mut self, source: &[u8], depth: u32) {
        let mut rest = source;
        while let Some(&byte) = rest.first() {
            let taken = match byte {
                b'"' | b'\'' => self.string(rest),
                b'0'..=b'9' => self.number(rest),
                b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => {
                    let length = 1 + count(&rest[1..], |byte| byte.is_ascii_digit());
                    self.push(Kind::Sign, &rest[..length]);
                    length
                }
                b'/' if rest.starts_with(b"//") => count(rest, |byte| !byte.is_ascii_whitespace()),
                b'/' if rest.starts_with(b"/*") => {
                    memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |length| length + 4)
                }
                _ if is_of_word(byte) => {
                    let length = count(rest, is_of_word);
                    self.push(Kind::Word, &rest[..length]);
                    length
                }
                b'#' | b'@' | b'`' | b'\\' => 1,
                _ => {
                    if byte.is_ascii_punctuation() {
                        self.push(Kind::Sign, &[byte]);
                    }
                    1
                }
            };
            rest = &rest[taken..];
            if byte == b')' && self.call(depth) {
                // What is evaluated brings its own.
                rest = rest.strip_prefix(b";").unwrap_or(rest);
            }
        }
    }

    fn push(&mut self, kind: Kind, text: &[u8]) {
        let start = self.texts.len() as u32;
        self.texts.extend_from_slice(text);
        self.all.push(Token { kind, range: start..self.texts.len() as u32 });
    }

    /// A number: whole ones as 32 bits have them, others in six digits, as C writes them.
    fn number(&mut self, rest: &[u8]) -> usize {
        let whole = count(rest, |byte| byte.is_ascii_digit());
        let mut length = whole;
        if rest.get(whole) == Some(&b'.') {
            length += 1;
            length += count(&rest[length..], |byte| byte.is_ascii_digit());
            let exponent = rest.get(length..).unwrap_or_default();
            if let [b'e' | b'E', b'0'..=b'9', ..] = exponent {
                length += 1 + count(&exponent[1..], |byte| byte.is_ascii_digit());
            }
        }
        let text = String::from_utf8_lossy(&rest[..length]);
        let shown = match length == whole {
            true => (text.parse().unwrap_or(i64::MAX) as i32).to_string(),
            false => general(text.parse().unwrap_or(0.0)),
        };
        self.push(Kind::Number, shown.as_bytes());
        length
    }

    /// A string; one that is added to a string before it is appended to that.
    fn string(&mut self, rest: &[u8]) -> usize {
        let quote = rest[0];
        let mut end = 1;
        // As ClamAV has it, only the character before a quote says whether it ends the string.
        while end < rest.len() && (rest[end] != quote || rest[end - 1] == b'\\') {
            end += 1;
        }
        let text = unescaped(&rest[1..end]);
        match self.all.as_mut_slice() {
            [.., before, plus] if before.kind == Kind::String && self.texts[plus.range()] == *b"+" => {
                // The texts of these two are the last ones.
                self.texts.truncate(before.range.end as usize);
                self.texts.extend_from_slice(&text);
                before.range.end = self.texts.len() as u32;
                self.all.pop();
            }
            _ => self.push(Kind::String, &text),
        }
        (end + 1).min(rest.len())
    }

    /// A parenthesis was closed: a call of a function with one constant argument may be resolved; whether something was
    /// evaluated.
    fn call(&mut self, depth: u32) -> bool {
        let Some(first) = self.all.len().checked_sub(4) else { return false };
        let (argument, kind) = (self.all[first + 2].range(), self.all[first + 2].kind);
        let is_constant = matches!(kind, Kind::String | Kind::Constant);
        let is_method = first > 0 && self.is(first - 1, b".");
        if !is_constant || is_method || !self.is(first + 1, b"(") {
            return false;
        }
        let text = self.texts[argument].to_vec();
        if kind == Kind::String && self.is(first, b"unescape") {
            self.all.truncate(first);
            self.push(Kind::Constant, &percent_decoded(&text));
        } else if self.is(first, b"eval") && depth > 0 {
            self.all.truncate(first);
            self.read(&text, depth - 1);
            // A word at the very end of what is evaluated is lost, as in ClamAV.
            let ends_in_word = text.last().is_some_and(|&byte| is_of_word(byte));
            let last = self.all.get(first..).and_then(<[Token]>::last);
            if ends_in_word && last.is_some_and(|last| matches!(last.kind, Kind::Word | Kind::Number)) {
                self.all.pop();
            }
            return true;
        }
        false
    }
}

fn count(bytes: &[u8], fits: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !fits(byte)).unwrap_or(bytes.len())
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// The digits of a hexadecimal number of that length at the front.
fn hexadecimal(bytes: &[u8], length: usize) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(..length)?).ok()?;
    let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| all)
}

fn push_character(code: u32, text: &mut Vec<u8>) {
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The text that stands in a string.
fn unescaped(string: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(string.len());
    let mut rest = string;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            text.push(if byte.is_ascii_whitespace() { b' ' } else { byte });
            continue;
        }
        let Some((&escape, after)) = rest.split_first() else { break };
        rest = after;
        match (escape, hexadecimal(rest, 2), hexadecimal(rest, 4)) {
            (b'x', Some(code), _) => {
                text.push((code as u8).max(1));
                rest = &rest[2..];
            }
            (b'u', _, Some(code)) => {
                push_character(code.max(1), &mut text);
                rest = &rest[4..];
            }
            (b'x' | b'u', ..) => text.push(b'\\'),
            (b'n' | b'r' | b't' | b'v' | b'f', ..) => text.push(b' '),
            (b'b', ..) => text.push(8),
            (b'0', ..) => text.push(1),
            (other, ..) => text.push(if other.is_ascii_whitespace() { b' ' } else { other }),
        }
    }
    text
}

/// Result of `unescape` for a text.
fn percent_decoded(string: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(string.len());
    let mut rest = string;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let wide = after.strip_prefix(b"u").and_then(|digits| hexadecimal(digits, 4));
        match (byte, hexadecimal(after, 2), wide) {
            (b'%', _, Some(code)) => {
                push_character(code.max(1), &mut text);
                rest = &after[5..];
            }
            (b'%', Some(code), _) => {
                text.push((code as u8).max(1));
                rest = &after[2..];
            }
            _ => text.push(byte),
        }
    }
    text
}

/// A number in six digits, as `%g` writes it.
fn general(value: f64) -> String {
    const DIGITS: i32 = 6;
    let scientific = format!("{:.*e}", DIGITS as usize - 1, value);
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        return trimmed(&format!("{value:.*}", (DIGITS - 1 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}
