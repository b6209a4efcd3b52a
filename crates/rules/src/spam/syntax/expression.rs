//! Perl's quoting of regular expressions: `/../flags`, `m{..}flags`, `m,..,flags`, `qr/../flags`.
//!
//! The expression is kept as it stands between its delimiters; the backslash before a delimiter stays, since it means the
//! same without. Its syntax is nothing to this module: an engine says what it thinks of it ([`Checker`]).

use std::sync::Arc;

use memchr::memmem;
use pattern::expression::{Expression as Compiled, Flags, Reader};

use crate::spam::problem::Fault;
use crate::spam::search::{Kept, Ready};

/// A regular expression as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// Text between the delimiters: bytes, in no charset.
    pub source: Box<[u8]>,
    /// The letters behind it: of `i`, `m`, `s`, `x`, `n`, `p`, `a`, `u`, `l`, `d`.
    pub flags: Box<str>,
    pub(crate) kept: Kept,
}

/// An engine for expressions, as far as the reader is concerned: it says which it takes.
pub trait Checker {
    /// Checks the expressions, in order: the error has the reason in words.
    fn check(&self, expressions: &[&Expression]) -> Vec<Result<(), String>>;
}

/// Takes every expression.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unchecked;

impl Checker for Unchecked {
    fn check(&self, expressions: &[&Expression]) -> Vec<Result<(), String>> {
        vec![Ok(()); expressions.len()]
    }
}

const FLAGS: &[u8] = b"imsxnpauld";
const UNQUOTED: &str = "write it as /.../ or m{...}, with flags right behind";

impl Expression {
    /// Reads a quoted expression; nothing may stand behind its flags.
    pub fn read(text: &[u8]) -> Result<Expression, Fault> {
        let quoted = text.strip_prefix(b"qr").or_else(|| text.strip_prefix(b"m")).unwrap_or(text);
        let plain = quoted.len() == text.len();
        let Some((&open, inner)) = quoted.split_first() else {
            return Err(Fault::new("the expression has no delimiters", UNQUOTED));
        };
        if (plain && open != b'/') || open.is_ascii_alphanumeric() || open.is_ascii_whitespace() || open == b'_' {
            return Err(Fault::new("the expression has no delimiters", UNQUOTED));
        }
        let close = closer(open);
        let end = inner.iter().rposition(|&byte| byte == close);
        let (source, flags) = match end {
            Some(end) => (&inner[..end], &inner[end + 1..]),
            None => return Err(Fault::new("the expression does not end", UNQUOTED)),
        };
        if !flags.iter().all(u8::is_ascii_alphabetic) {
            return Err(Fault::new("something stands behind the expression, or it ends too early", UNQUOTED));
        }
        if let Some(&flag) = flags.iter().find(|flag| !FLAGS.contains(flag)) {
            return Err(Fault::new(format!("expressions have no flag {}", char::from(flag)), "leave it away"));
        }
        if open == close && has_unescaped(source, close) {
            let reason = format!("{} stands in the expression without a backslash", char::from(close));
            return Err(Fault::new(reason, "escape it, or take other delimiters"));
        }
        if source.is_empty() {
            return Err(Fault::new("an empty expression matches everywhere", "say what it should match"));
        }
        let flags = flags.iter().map(|&flag| char::from(flag)).collect::<String>();
        Ok(Expression { source: source.into(), flags: flags.into(), kept: Kept::default() })
    }

    /// The compiled expression, made once.
    pub(crate) fn ready(&self) -> Result<Arc<Ready>, String> {
        self.ready_by(&mut Reader::default())
    }

    /// The same by a reader of many.
    pub(crate) fn ready_by(&self, reader: &mut Reader) -> Result<Arc<Ready>, String> {
        self.kept.ready(&self.source, &self.flags, reader)
    }

    /// The expression alone, for a search or two.
    pub(crate) fn alone(&self) -> Result<Compiled, String> {
        self.alone_by(&mut Reader::default())
    }

    /// The same by a reader of many.
    pub(crate) fn alone_by(&self, reader: &mut Reader) -> Result<Compiled, String> {
        let flags = Flags::of(&self.flags).map_err(|flag| format!("the flag {flag} is not supported"))?;
        reader.read_alone(&self.source, flags).map_err(|error| error.to_string())
    }

    /// Whether it uses what other rules have captured: `%{NAME}`.
    pub fn has_captured_tag(&self) -> bool {
        memmem::find_iter(&self.source, b"%{").any(|at| {
            let escaped = at.checked_sub(1).is_some_and(|before| self.source[before] == b'\\');
            !escaped && self.source[at + 2..].first().is_some_and(u8::is_ascii_uppercase)
        })
    }

    /// The expression with each `%{NAME}` as one of `values` of that name; `None` where there is none, or where it becomes too
    /// long.
    pub(crate) fn filled(&self, mut values: impl FnMut(&str) -> Option<Vec<Box<[u8]>>>) -> Option<Expression> {
        self.replaced(|name| {
            let quoted: Vec<Vec<u8>> = values(name)?.iter().map(|value| quote(value)).collect();
            Some([b"(?:", &*quoted.join(&b'|'), b")"].concat())
        })
    }

    /// The expression with anything in the place of each `%{NAME}`: it matches wherever one does that is filled.
    pub(crate) fn loosened(&self) -> Option<Expression> {
        self.replaced(|_| Some(b"(?s:.*)".to_vec()))
    }

    /// The expression with an expression for each `%{NAME}`.
    fn replaced(&self, mut by: impl FnMut(&str) -> Option<Vec<u8>>) -> Option<Expression> {
        const BYTES_MAX: usize = 1 << 16;
        let mut out = Vec::new();
        let mut rest = &self.source[..];
        while let Some((&byte, behind)) = rest.split_first() {
            let name = rest.strip_prefix(b"%{").and_then(|inner| {
                let end = inner.iter().position(|&byte| byte == b'}')?;
                Some((core::str::from_utf8(&inner[..end]).ok()?, &inner[end + 1..]))
            });
            match name.filter(|(name, _)| name.starts_with(|letter: char| letter.is_ascii_uppercase())) {
                Some((name, behind)) if out.last() != Some(&b'\\') => {
                    out.extend(by(name)?);
                    rest = behind;
                }
                _ => {
                    out.push(byte);
                    rest = behind;
                }
            }
            if out.len() > BYTES_MAX {
                return None;
            }
        }
        Some(Expression { source: out.into(), flags: self.flags.clone(), kept: Kept::default() })
    }

    /// Whether it captures a tag that other rules can use: `(?<NAME>...)` with a name in capitals.
    pub fn captures_tag(&self) -> bool {
        let source = &self.source;
        let behind = |at: usize| source.get(at..).unwrap_or_default();
        memmem::find_iter(source, b"(?").any(|at| {
            let rest = behind(at + 2);
            let rest = rest.strip_prefix(b"P").unwrap_or(rest);
            let name = rest.strip_prefix(b"<").or_else(|| rest.strip_prefix(b"'")).unwrap_or_default();
            let end =
                name.iter().position(|byte| !(byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_'));
            let closed = end.and_then(|end| name.get(end)).is_some_and(|byte| b">'".contains(byte));
            closed && name.first().is_some_and(u8::is_ascii_uppercase)
        })
    }
}

/// Escapes every character with a meaning in expressions.
fn quote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if byte.is_ascii() && !byte.is_ascii_alphanumeric() && byte != b'_' {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

fn closer(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        b'{' => b'}',
        b'<' => b'>',
        other => other,
    }
}

fn has_unescaped(source: &[u8], delimiter: u8) -> bool {
    let mut escaped = false;
    for &byte in source {
        if byte == delimiter && !escaped {
            return true;
        }
        escaped = byte == b'\\' && !escaped;
    }
    // The last backslash escapes the delimiter behind.
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, String)> {
        let expression = Expression::read(text.as_bytes()).ok()?;
        Some((String::from_utf8(expression.source.into()).unwrap(), expression.flags.into()))
    }

    #[test]
    fn delimiters_are_those_of_perl() {
        for (text, source, flags) in [
            ("/a/i", "a", "i"),
            (r"/a\/b/", r"a\/b", ""),
            ("m{a/b}x", "a/b", "x"),
            ("m{a{2}b}", "a{2}b", ""),
            ("m{x}}", "x}", ""),
            (r"m,a\,b/,i", r"a\,b/", "i"),
            ("m'abc'", "abc", ""),
            ("qr/x/", "x", ""),
            ("m<x>i", "x", "i"),
            ("m(x(y))", "x(y)", ""),
            ("m#x#", "x", ""),
            ("/x/xx", "x", "xx"),
        ] {
            assert_eq!(read(text), Some((source.into(), flags.into())), "{text}");
        }
    }

    #[test]
    fn tags_are_captured_and_used() {
        let read = |text: &str| Expression::read(text.as_bytes()).unwrap();
        for (text, captures, uses) in [
            ("/(?<FOO>x)/", true, false),
            ("/(?'BAZ_2'x)/", true, false),
            ("/(?<lower>x)/", false, false),
            ("/(?<!X)x/", false, false),
            ("/%{FOO}/", false, true),
            (r"/\%{FOO}%{foo}/", false, false),
            ("/(?</", false, false),
        ] {
            assert_eq!((read(text).captures_tag(), read(text).has_captured_tag()), (captures, uses), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in [
            "", "abc", "\"abc\"", "/x", "//", "/a/b/", r"/a\/", "/x/ i", "/x/ junk", "m {x}", "m", "!x!i", "/x/g",
            "/x/o", "/x/z",
        ] {
            assert!(Expression::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
