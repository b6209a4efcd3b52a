//! References to characters (`&amp;`, `&#38;`) as Perl's `HTML::Entities` undoes them.
//!
//! The names are those of HTML 4 and `apos`. A name of a character below U+0100 counts without its semicolon, and in text, not
//! in values of attributes, also where it is the beginning of a longer word. Numbers of no character stay as they are written;
//! two that are halves of a pair of UTF-16 are one character, half a pair is U+FFFD.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::entities::line_of;

/// `name code` in each line, the code in hexadecimal, in the order of the names.
const TEXT: &str = include_str!("html4.txt");

/// No name is longer.
const NAME_BYTES_MAX: usize = 8;

/// The character that a name stands for.
fn code(name: &str) -> Option<char> {
    char::from_u32(u32::from_str_radix(line_of(TEXT, name.as_bytes())?, 16).ok()?)
}

/// Decodes the references in `text`; in prose also those at the beginning of a longer word.
pub fn decode(text: &str, is_prose: bool) -> Cow<'_, str> {
    let Some(first) = text.find('&') else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = reference(rest, is_prose).unwrap_or(('&', 1));
        out.push(character);
        rest = &rest[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The reference that `text` begins with, and its length.
fn reference(text: &str, is_prose: bool) -> Option<(char, usize)> {
    if text.as_bytes().get(1) == Some(&b'#') {
        return number_or_pair(text);
    }
    let run = text.bytes().skip(1).take_while(u8::is_ascii_alphanumeric).count();
    if run <= NAME_BYTES_MAX
        && let Some(found) = code(&text[1..=run])
    {
        if text.as_bytes().get(run + 1) == Some(&b';') {
            return Some((found, run + 2));
        }
        if u32::from(found) < 0x100 {
            return Some((found, run + 1));
        }
    }
    let prefixes = (1..run.min(NAME_BYTES_MAX + 1)).rev().filter(|_| is_prose);
    prefixes
        .filter_map(|length| code(&text[1..=length]).map(|found| (found, length + 1)))
        .find(|(found, _)| u32::from(*found) < 0x100)
}

/// The length of the name that a run of letters begins with, of those that count without a semicolon; 0 if there is none.
pub fn unclosed(run: &[u8]) -> usize {
    let is_known = |length: &usize| {
        let name = core::str::from_utf8(&run[..*length]).ok();
        name.and_then(code).is_some_and(|found| u32::from(found) < 0x100)
    };
    (1..=run.len().min(NAME_BYTES_MAX)).rev().find(is_known).unwrap_or(0)
}

fn number_or_pair(text: &str) -> Option<(char, usize)> {
    let (value, length) = number(text)?;
    match value {
        0 | 0xFFFE | 0xFFFF => None,
        0xD800..=0xDBFF => {
            let low = number(&text[length..]).filter(|(low, _)| (0xDC00..=0xDFFF).contains(low));
            match low {
                Some((low, more)) => {
                    char::from_u32(0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)).map(|c| (c, length + more))
                }
                None => Some(('\u{fffd}', length)),
            }
        }
        0xDC00..=0xDFFF | 0xFDD0..=0xFDEF => Some(('\u{fffd}', length)),
        _ if value & 0xFFFE == 0xFFFE => Some(('\u{fffd}', length)),
        _ => char::from_u32(value).map(|found| (found, length)),
    }
}

/// A number, and the length of the reference with its semicolon.
fn number(text: &str) -> Option<(u32, usize)> {
    let digits = text.strip_prefix("&#")?;
    let (digits, radix, before) = match digits.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16, 3),
        None => (digits, 10, 2),
    };
    let count = digits.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count();
    let value = u32::from_str_radix(&digits[..count], radix).ok()?;
    let semicolon = usize::from(digits.as_bytes().get(count) == Some(&b';'));
    Some((value, before + count + semicolon))
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn references_are_undone_as_perl_undoes_them() {
        for (text, prose, value) in [
            ("&AMP; &amp;amp; &rarr; &rarr &apos; &eacute", "&AMP; &amp; → &rarr ' é", "&AMP; &amp; → &rarr ' é"),
            ("&notit; &copyx", "¬it; ©x", "&notit; &copyx"),
            ("&#65a &#x41g &#x; &#;", "Aa Ag &#x; &#;", "Aa Ag &#x; &#;"),
            ("&#0; &#x110000; &#99999999999;", "&#0; &#x110000; &#99999999999;", "&#0; &#x110000; &#99999999999;"),
            ("&#xd83d;&#xde00; &#xd83d; &#128;", "😀 \u{fffd} \u{80}", "😀 \u{fffd} \u{80}"),
            ("& && &", "& && &", "& && &"),
        ] {
            assert_eq!(decode(text, true), prose);
            assert_eq!(decode(text, false), value);
        }
    }
}
