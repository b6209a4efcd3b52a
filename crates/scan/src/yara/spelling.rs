//! Spelling of regular expressions: from YARA's syntax to that of `regex-syntax`.
//!
//! Known to YARA 4.2 and followed here: braces that hold no interval stand for themselves, and so does a letter behind a
//! backslash that has no meaning; a range in a class begins and ends with a byte even where an escape looks like a class
//! (`[\d-z]` is `d` to `z`).

use crate::syntax::line::Reject;

/// The letters behind a backslash that `regex-syntax` reads as YARA does, and the backslash.
const SHARED_ESCAPES: &[char] = &['w', 'W', 's', 'S', 'd', 'D', 'b', 'B', '\\'];

/// Rewrites an expression.
///
/// # Errors
/// Escapes and ranges that YARA refuses.
pub(super) fn translated(text: &str) -> Result<String, Reject> {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        rest = match next {
            '\\' if rest[1..].starts_with(SHARED_ESCAPES) => {
                out.push_str(&rest[..2]);
                &rest[2..]
            }
            '\\' => escape(rest, &mut out)?,
            '[' => class(&rest[1..], &mut out)?,
            '{' => match interval(rest) {
                Some(length) => {
                    out.push_str(if rest.starts_with("{,") { "{0" } else { "{" });
                    out.push_str(&rest[1..length]);
                    &rest[length..]
                }
                None => {
                    out.push_str("\\{");
                    &rest[1..]
                }
            },
            '}' => {
                out.push_str("\\}");
                &rest[1..]
            }
            _ => {
                out.push(next);
                &rest[next.len_utf8()..]
            }
        };
    }
    Ok(out)
}

/// An escape outside of classes that stands for a byte.
fn escape<'a>(rest: &'a str, out: &mut String) -> Result<&'a str, Reject> {
    let letter = rest[1..].chars().next().ok_or_else(|| "a backslash at the end".to_owned())?;
    if letter.is_ascii_digit() {
        return Err(Reject::Malformed("a reference back".to_owned()));
    }
    if !letter.is_ascii() {
        out.push(letter);
        return Ok(&rest[1 + letter.len_utf8()..]);
    }
    let (byte, after) = escaped(rest)?;
    push(byte, out);
    Ok(after)
}

/// The class whose bracket was just read.
fn class<'a>(text: &'a str, out: &mut String) -> Result<&'a str, Reject> {
    let mut rest = text.strip_prefix('^').unwrap_or(text);
    out.push_str(if rest.len() < text.len() { "[^" } else { "[" });
    if let Some(after) = rest.strip_prefix(']') {
        push(b']', out);
        rest = after;
    }
    loop {
        if let Some(after) = rest.strip_prefix(']') {
            out.push(']');
            return Ok(after);
        }
        let (first, after) = member(rest)?;
        let is_range = after.starts_with('-') && !after[1..].starts_with(']') && after.len() > 1;
        if is_range {
            let (last, after) = member(&after[1..])?;
            if last < first {
                return Err(Reject::Malformed("a range that ends before it begins".to_owned()));
            }
            push(first, out);
            out.push('-');
            push(last, out);
            rest = after;
        } else if rest.starts_with('\\') && b"wWsSdD".contains(&first) && after.len() + 2 == rest.len() {
            out.push_str(&rest[..2]);
            rest = after;
        } else {
            push(first, out);
            rest = after;
        }
    }
}

/// A byte of a class, and the text behind it.
fn member(rest: &str) -> Result<(u8, &str), Reject> {
    match rest.as_bytes() {
        [] => Err(Reject::Malformed("a class without an end".to_owned())),
        [b'\\', ..] => escaped(rest),
        [byte, ..] if byte.is_ascii() => Ok((*byte, &rest[1..])),
        _ => Err(Reject::Malformed("a character beyond ASCII in a class".to_owned())),
    }
}

/// The byte of an escape, and the text behind it.
fn escaped(rest: &str) -> Result<(u8, &str), Reject> {
    let malformed = || Reject::Malformed("an illegal escape".to_owned());
    let byte = match rest.as_bytes().get(1).ok_or_else(malformed)? {
        b'x' => {
            let digits = rest.as_bytes().get(2..4).ok_or_else(malformed)?;
            return match *digits {
                [high, low] => Ok((text::hex::pair(high, low).ok_or_else(malformed)?, &rest[4..])),
                _ => Err(malformed()),
            };
        }
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'f' => 0x0c,
        b'a' => 0x07,
        byte if byte.is_ascii() => *byte,
        _ => return Err(malformed()),
    };
    Ok((byte, &rest[2..]))
}

fn push(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push_str("\\x");
    out.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
}

/// The length of an interval that begins here: `{3}`, `{3,}`, `{,3}`, `{3,5}` or `{,}`.
fn interval(rest: &str) -> Option<usize> {
    let (inside, _) = rest[1..].split_once('}')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_one = match inside.split_once(',') {
        Some((least, most)) => is_number(least) && is_number(most),
        None => !inside.is_empty() && is_number(inside),
    };
    is_one.then_some(inside.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_classes_and_escapes_are_those_of_yara() {
        for (text, wanted) in [
            ("z{,}", "z{0,}"),
            ("z{,3}", "z{0,3}"),
            ("a\\\\{2}", "a\\\\{2}"),
            ("z{1,2,3}{}", "z\\{1,2,3\\}\\{\\}"),
            (r"[\d-z]", r"[\x64-\x7a]"),
            (r"[\d\w]", r"[\d\w]"),
            (r"[^]-a]", r"[^\x5d\x2d\x61]"),
            (r"[\0-9]\q", r"[\x30-\x39]\x71"),
            (r"\v\f", r"\x76\x0c"),
        ] {
            assert_eq!(translated(text), Ok(wanted.to_owned()), "{text}");
        }
        for text in [r"\x{41}", r"\x4", "[a--b]", "[]", "[a", r"[\x4g]", "[é]", r"(a)\1", r"\", r"[\"] {
            assert!(translated(text).is_err(), "{text}");
        }
    }
}
