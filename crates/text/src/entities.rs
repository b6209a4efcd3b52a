//! Named character references: those of HTML 4 and of the sets of ISO 8879, as ClamAV knows them, read off
//! `sigtool --html-normalise` 1.4.

use alloc::borrow::Cow;
use alloc::vec::Vec;

/// `name code` in each line, the code in hexadecimal, in the order of the names.
const TEXT: &str = include_str!("entities.txt");

/// The character that a name stands for, without its `&` and `;`. Case counts.
pub fn code(name: &[u8]) -> Option<u32> {
    u32::from_str_radix(line_of(TEXT, name)?, 16).ok()
}

/// The rest of the line that begins with a name, in a table of lines in the order of their names.
pub(crate) fn line_of(table: &'static str, name: &[u8]) -> Option<&'static str> {
    let mut lines = table;
    while !lines.is_empty() {
        // The line that the middle is in.
        let middle = lines.len() / 2;
        let start = lines.as_bytes()[..middle].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let end =
            lines.as_bytes()[middle..].iter().position(|&byte| byte == b'\n').map_or(lines.len(), |at| middle + at);
        let (known, rest) = lines[start..end].split_once(' ')?;
        match name.cmp(known.as_bytes()) {
            core::cmp::Ordering::Less => lines = &lines[..start],
            core::cmp::Ordering::Greater => lines = lines.get(end + 1..).unwrap_or_default(),
            core::cmp::Ordering::Equal => return Some(rest),
        }
    }
    None
}

/// Returns the character of a reference, without its `&` and `;`: a name, or `#` and a number, hexadecimal after `x`.
/// Invalid numbers are U+FFFD, and those of control characters are read as Windows-1252 (WHATWG HTML, 13.2.5.80).
pub fn character(reference: &[u8]) -> Option<char> {
    let Some(number) = reference.strip_prefix(b"#") else {
        return char::from_u32(code(reference)?);
    };
    let (digits, radix) = match number {
        [b'x' | b'X', digits @ ..] => (digits, 16),
        digits => (digits, 10),
    };
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().try_fold(0u32, |number, &byte| {
        Some(number.saturating_mul(radix).saturating_add(char::from(byte).to_digit(radix)?))
    })?;
    let number = match number {
        0x80..=0x9f => u32::from(WINDOWS_1252[number as usize - 0x80]),
        0 => 0xfffd,
        number => number,
    };
    Some(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Characters of Windows-1252 at the control characters of ISO 8859-1; its holes stay.
const WINDOWS_1252: [u16; 32] = [
    0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8d, 0x017d,
    0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,
    0x017e, 0x0178,
];

/// The longest reference that is looked for, without its `&` and `;`.
const REFERENCE_BYTES_MAX: usize = 32;

/// Decodes the references in a text to UTF-8; unknown ones stay unchanged. The `;` may be missing after a number.
pub fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    decode_by(text, |behind, plain| {
        let (character, bytes) = reference(behind)?;
        plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Some(bytes)
    })
}

/// Decodes references by `read`, which reads one behind its `&`, adds its characters and returns its length.
pub(crate) fn decode_by(text: &[u8], read: impl Fn(&[u8], &mut Vec<u8>) -> Option<usize>) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'&', text) else { return Cow::Borrowed(text) };
    let (before, mut rest) = text.split_at(first);
    let mut plain = Vec::with_capacity(text.len());
    plain.extend_from_slice(before);
    while let Some((&byte, behind)) = rest.split_first() {
        let length = if byte == b'&' { read(behind, &mut plain) } else { None };
        rest = match length {
            Some(length) => &behind[length..],
            None => {
                plain.push(byte);
                let next = memchr::memchr(b'&', behind).unwrap_or(behind.len());
                plain.extend_from_slice(&behind[..next]);
                &behind[next..]
            }
        };
    }
    Cow::Owned(plain)
}

/// Reads a reference after an `&`. Returns its character and its length.
fn reference(behind: &[u8]) -> Option<(char, usize)> {
    let is_part = |(at, byte): &(usize, &u8)| {
        *at < REFERENCE_BYTES_MAX && (byte.is_ascii_alphanumeric() || *at == 0 && **byte == b'#')
    };
    let length = behind.iter().enumerate().take_while(is_part).count();
    let (name, rest) = behind.split_at(length);
    match rest.first() {
        Some(b';') => Some((character(name)?, length + 1)),
        _ => {
            // As many digits as there are.
            let start = match name {
                [b'#', b'x' | b'X', ..] => 2,
                [b'#', ..] => 1,
                _ => return None,
            };
            let is_digit = |byte: &&u8| if start == 2 { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
            let length = start + name[start..].iter().take_while(is_digit).count();
            Some((character(&name[..length])?, length))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_the_list_is_found_and_what_stands_between_two_is_not() {
        for line in TEXT.lines() {
            let (name, hex) = line.split_once(' ').expect("a name and a code");
            assert_eq!(code(name.as_bytes()), u32::from_str_radix(hex, 16).ok(), "{name}");
            assert_eq!(code(format!("{name}\0").as_bytes()), None, "{name}");
        }
        assert!(TEXT.lines().map(|line| line.split(' ').next()).is_sorted());
    }

    #[test]
    fn references_are_decoded_and_what_is_none_stays() {
        for (text, plain) in [
            ("a", "a"),
            ("a&amp;b&lt;&eacute;", "a&b<\u{e9}"),
            ("&#65;&#x42;&#X43;&#68 &#69x&#x46g", "ABCD ExFg"),
            ("&#128;&#0;&#xd800;&#99999999999;", "\u{20ac}\u{fffd}\u{fffd}\u{fffd}"),
            ("&", "&"),
            ("&;&#;&#x;&#x &no;&amp & &&amp;", "&;&#;&#x;&#x &no;&amp & &&"),
        ] {
            assert_eq!(String::from_utf8_lossy(&decode(text.as_bytes())), plain, "{text}");
        }
        assert!(matches!(decode(b"plain"), Cow::Borrowed(b"plain")));
    }

    #[test]
    fn what_is_no_name_is_nothing() {
        assert_eq!((code(b"amp"), code(b"AMP")), (Some(0x26), None));
        for name in ["", " ", "a", "zzz", "amp 26", "amp\n", "\u{e9}", "0"] {
            assert_eq!(code(name.as_bytes()), None, "{name:?}");
        }
    }
}
