//! References to characters as browsers decode them (WHATWG HTML, 13.2.5.72 to 13.2.5.80): all names of the standard, of which those
//! of old need no semicolon. Signatures read them as ClamAV does ([`entities`](crate::entities)), rules as Perl does
//! ([`references`](crate::references)).

use alloc::borrow::Cow;

use crate::entities::{character, decode_by, line_of};

/// `name codes` in each line, in the order of the names: codes in hexadecimal with `+` between two, and `*` behind them if the name counts
/// without its semicolon. Made from <https://html.spec.whatwg.org/entities.json>.
const TEXT: &str = include_str!("references.txt");

/// The longest name, without its semicolon.
const NAME_BYTES_MAX: usize = 31;

/// The longest name that counts without a semicolon.
const OPEN_NAME_BYTES_MAX: usize = 6;

/// A place of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Between tags.
    Page,
    /// In a value of an attribute, where a name without its semicolon is no beginning of a longer word.
    Value,
}

/// Decodes the references in a text to UTF-8; unknown ones stay unchanged.
pub fn decode(text: &[u8], place: Place) -> Cow<'_, [u8]> {
    decode_by(text, |behind, plain| {
        let mut add = |found: char| plain.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
        if behind.first() == Some(&b'#') {
            let (found, length) = number(behind)?;
            add(found);
            return Some(length);
        }
        let (codes, length) = named(behind, place)?;
        let codes = codes.trim_end_matches('*').split('+').filter_map(|code| u32::from_str_radix(code, 16).ok());
        codes.filter_map(char::from_u32).for_each(add);
        Some(length)
    })
}

/// The character of a number, and its length with a semicolon.
fn number(behind: &[u8]) -> Option<(char, usize)> {
    let is_hexadecimal = matches!(behind.get(1), Some(b'x' | b'X'));
    let is_digit = |byte: &&u8| if is_hexadecimal { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    let start = 1 + usize::from(is_hexadecimal);
    let end = start + behind.get(start..)?.iter().take_while(is_digit).count();
    let semicolon = usize::from(behind.get(end) == Some(&b';'));
    Some((character(behind.get(..end)?)?, end + semicolon))
}

/// The codes of the longest name, and its length with a semicolon.
fn named(behind: &[u8], place: Place) -> Option<(&'static str, usize)> {
    let run = behind.iter().take(NAME_BYTES_MAX + 1).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    if behind.get(run) == Some(&b';')
        && let Some(codes) = line_of(TEXT, &behind[..run])
    {
        return Some((codes, run + 1));
    }
    let open = |&length: &usize| line_of(TEXT, &behind[..length]).is_some_and(|codes| codes.ends_with('*'));
    let length = (2..=run.min(OPEN_NAME_BYTES_MAX)).rev().find(open)?;
    let goes_on = |byte: &u8| *byte == b'=' || byte.is_ascii_alphanumeric();
    if place == Place::Value && behind.get(length).is_some_and(goes_on) {
        return None;
    }
    line_of(TEXT, &behind[..length]).map(|codes| (codes, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_standard_are_found() {
        let names = || TEXT.lines().filter_map(|line| line.split_once(' '));
        let open = || names().filter(|(_, codes)| codes.ends_with('*'));
        assert_eq!((names().count(), open().count()), (2_125, 106));
        assert_eq!(names().map(|(name, _)| name.len()).max(), Some(NAME_BYTES_MAX));
        assert_eq!(open().map(|(name, _)| name.len()).max(), Some(OPEN_NAME_BYTES_MAX));
        assert!(names().map(|(name, _)| name).is_sorted());
        assert!(names().all(|(name, codes)| line_of(TEXT, name.as_bytes()) == Some(codes)));
    }

    #[test]
    fn references_are_decoded_as_browsers_decode_them() {
        for (text, page, value) in [
            ("a&nbsp|b &copy 2002 &eacute", "a\u{a0}|b © 2002 é", "a\u{a0}|b © 2002 é"),
            ("&lt3 &copy=x &notit; &notin;", "<3 ©=x ¬it; ∉", "&lt3 &copy=x &notit; ∉"),
            ("&Tab;&NewLine;&checkmark;&lang;&NotEqualTilde;", "\t\n✓⟨≂̸", "\t\n✓⟨≂̸"),
            ("&checkmark &x; &; & &ampamp;", "&checkmark &x; &; & &amp;", "&checkmark &x; &; & &ampamp;"),
            ("&#65a; &#x41g &#x; &#; &#150;", "Aa; Ag &#x; &#; –", "Aa; Ag &#x; &#; –"),
            (
                "&CounterClockwiseContourIntegral; &CounterClockwiseContourIntegralx;",
                "∳ &CounterClockwiseContourIntegralx;",
                "∳ &CounterClockwiseContourIntegralx;",
            ),
        ] {
            let decoded = |place| String::from_utf8_lossy(&decode(text.as_bytes(), place)).into_owned();
            assert_eq!((decoded(Place::Page).as_str(), decoded(Place::Value).as_str()), (page, value), "{text}");
        }
        assert!(matches!(decode(b"plain", Place::Page), Cow::Borrowed(_)));
    }
}
