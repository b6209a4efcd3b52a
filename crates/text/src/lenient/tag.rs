//! Tags, declarations and marked sections, each recognised as a whole.

use memchr::{memchr, memmem};

use super::{ATTRIBUTES_MAX, Attributes, Extent, Section, Token};
use crate::references;

/// Whether text begins as a tag, a comment or a declaration does.
pub(super) fn is_markup(text: &str) -> bool {
    let Some(behind) = text.strip_prefix('<') else { return false };
    behind.bytes().next().is_none_or(|byte| is_name_first(byte) || b"/!?".contains(&byte))
}

/// A comment up to the next `>`, made of a piece with invalid syntax.
pub(super) fn bogus(page: &str, at: usize, tell: &mut impl FnMut(Token<'_>)) -> Extent {
    let Some(end) = memchr(b'>', &page.as_bytes()[at..]) else { return Extent::Incomplete };
    tell(Token::Comment(&page[at..at + end + 1]));
    Extent::End(at + end + 1)
}

/// Where the end of the element stands, and what is behind it.
pub(super) fn closing(page: &str, begin: usize, name: &str) -> Option<(usize, usize)> {
    if name == "plaintext" {
        return None;
    }
    let bytes = page.as_bytes();
    let mut at = begin;
    while let Some(found) = memmem::find(bytes.get(at..)?, b"</") {
        let tag = at + found;
        let behind = tag + 2 + name.len();
        at = tag + 2;
        if !bytes.get(tag + 2..behind).is_some_and(|bytes| bytes.eq_ignore_ascii_case(name.as_bytes())) {
            continue;
        }
        let blanks = bytes[behind..].iter().take_while(|byte| is_blank(**byte)).count();
        if bytes.get(behind + blanks) == Some(&b'>') {
            return Some((tag, behind + blanks + 1));
        }
        at = behind + blanks;
    }
    None
}

/// A tag's name, its attributes, and where it ends; none if it is incomplete.
pub(super) fn tag(page: &str, at: usize) -> Option<(&str, Attributes, usize)> {
    let bytes = page.as_bytes();
    let run = |from: usize, stops: &[u8]| {
        from + bytes[from..].iter().take_while(|byte| !is_blank(**byte) && !stops.contains(byte)).count()
    };
    let blanks = |from: usize| from + bytes[from..].iter().take_while(|byte| is_blank(**byte)).count();
    let name_end = run(at, b">");
    let mut attributes = Attributes::new();
    let mut next = blanks(name_end);
    loop {
        if *bytes.get(next)? == b'>' {
            return Some((&page[at..name_end], attributes, next + 1));
        }
        // Whatever it is, it begins a name.
        let begin = next;
        let first = page[begin..].chars().next()?.len_utf8();
        let end = run(begin + first, b"=>");
        let name = page[begin..end].to_lowercase();
        next = blanks(end);
        let mut value = None;
        if *bytes.get(next)? == b'=' {
            next = blanks(next + 1);
            let quote = *bytes.get(next)?;
            let (from, to) = if matches!(quote, b'"' | b'\'') {
                let length = memchr(quote, &bytes[next + 1..])?;
                (next + 1, next + 1 + length)
            } else {
                (next, run(next, b">"))
            };
            value = Some(references::decode(&page[from..to], false).into_owned());
            next = blanks(if from > next { to + 1 } else { to });
        }
        // Few attributes: a walk costs less than a table.
        if attributes.len() < ATTRIBUTES_MAX && !attributes.iter().any(|(known, _)| *known == name) {
            let value = value.unwrap_or_else(|| page[begin..end].into());
            attributes.push((name, value));
        }
    }
}

/// The name of a tag that closes an element, and where the tag ends. Quotes count in it behind a space or `=`.
pub(super) fn closing_tag(page: &str, at: usize) -> Option<(&str, usize)> {
    let bytes = page.as_bytes();
    let name_end = at + bytes[at..].iter().take_while(|byte| !is_blank(**byte) && **byte != b'>').count();
    let mut next = name_end;
    loop {
        let byte = *bytes.get(next)?;
        if byte == b'>' {
            return Some((&page[at..name_end], next + 1));
        }
        if matches!(byte, b'"' | b'\'') && matches!(bytes[next - 1], b' ' | b'=') {
            next += memchr(byte, &bytes[next + 1..])? + 1;
        }
        next += 1;
    }
}

/// Where a document type ends, behind its first word: quotes and comments are passed over.
pub(super) fn doctype_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'>' => return Some(at + 1),
            b'"' | b'\'' => at += memchr(byte, bytes.get(at + 1..)?)? + 2,
            b'-' if bytes[at..].starts_with(b"--") => at += memmem::find(bytes.get(at + 2..)?, b"--")? + 4,
            _ if is_blank(byte) => at += 1,
            _ => at += bytes[at..].iter().take_while(|byte| !is_blank(**byte) && **byte != b'>').count(),
        }
    }
    None
}

/// Kind of a marked section, and the place where its content begins.
pub(super) fn marked(page: &str, at: usize) -> Option<(Section, usize)> {
    let bytes = page.as_bytes();
    if !bytes.get(at..)?.starts_with(b"<![") {
        return None;
    }
    let begin = at + 3;
    let length = bytes[begin..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || is_blank(**byte)).count();
    if bytes.get(begin + length) != Some(&b'[') {
        return None;
    }
    let words = page[begin..begin + length].split_ascii_whitespace();
    let kind = |word: &str| match word.to_ascii_uppercase().as_str() {
        "CDATA" => Section::Cdata,
        "RCDATA" => Section::Rcdata,
        "IGNORE" => Section::Ignore,
        "INCLUDE" | "TEMP" => Section::Include,
        _ => Section::Unknown,
    };
    Some((words.map(kind).max().unwrap_or(Section::Unknown), begin + length + 1))
}

pub(super) fn is_name_first(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b':'
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}
