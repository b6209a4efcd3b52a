//! Addresses in a header field, with the names beside them, as SpamAssassin's relaxed reader finds them.
//!
//! It takes one address after the other off the front: a phrase and an address in angles, an address alone, a phrase alone, each
//! with a comment behind it, up to a comma or a semicolon. Where it is stuck with an `@` left, addresses in angles count.
//!
//! Known wrongs: comments within comments are read by another parser there; here they are not kept apart.

use super::host;
use super::perl::{is_blank, trim_end, trim_start};

/// An address and the name beside it; one of the two at least.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mailbox {
    /// The name.
    pub phrase: Option<Vec<u8>>,
    /// The address.
    pub address: Option<Vec<u8>>,
}

/// A bound of what is found in one field.
const MAILBOXES_MAX: usize = 4096;

/// The addresses in the value of a field, which may be decoded or not; at most 4,096.
pub fn mailboxes(value: &[u8]) -> Vec<Mailbox> {
    let whole = value;
    let value = without_pairs(trim_end(value));
    let mut rest = without_group(&value);
    let mut out = Vec::new();
    if trim_start(rest).is_empty() {
        return out;
    }
    while out.len() < MAILBOXES_MAX
        && let Some((raw, behind)) = entry(rest)
    {
        out.push(raw.mailbox());
        rest = behind;
    }
    if rest.contains(&b'@') {
        in_angles(rest, &mut out);
    }
    let is_time = rest.is_empty()
        && !value.contains(&b';')
        && out.len() == 1
        && !value.contains(&b'@')
        && without_group(&value).len() < value.len();
    match out.is_empty() {
        true => out.extend(unclosed(&value)),
        // What is no list of addresses is a name for each of its commas.
        false if is_time && value.contains(&b',') => {
            let count = value.iter().filter(|byte| **byte == b',').count() + 1;
            out = vec![Mailbox { phrase: Some(whole.to_vec()), address: None }; count.min(MAILBOXES_MAX)];
        }
        false => {}
    }
    out
}

/// Reads an address whose angle is not closed, or not properly.
fn unclosed(value: &[u8]) -> Option<Mailbox> {
    let at = memchr::memchr(b'<', value)?;
    let name = trim_end(trim_start(&value[..at]));
    let text = without_comments(trim_start(&value[at + 1..]));
    // Blanks may stand around the sign and dots.
    let mut address = Vec::new();
    for word in text.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty()) {
        let joins = |byte: Option<&u8>| matches!(byte, None | Some(b'@' | b'.'));
        if !joins(address.last()) && !joins(word.first()) {
            break;
        }
        address.extend_from_slice(word);
    }
    let end = address.iter().position(|byte| *byte == b'>').unwrap_or(address.len());
    address.truncate(end);
    let address = Some(address).filter(|address| is_address(address));
    let phrase = (!name.is_empty()).then(|| name.to_vec());
    (address.is_some() || phrase.is_some()).then_some(Mailbox { phrase, address })
}

/// Without backslashes that are escaped.
fn without_pairs(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, behind)) = rest.split_first() {
        if rest.starts_with(b"\\\\") {
            rest = &rest[2..];
            continue;
        }
        out.push(byte);
        rest = behind;
    }
    out
}

/// Without the name of a group before its members.
fn without_group(value: &[u8]) -> &[u8] {
    let end = value.iter().take_while(|byte| !b"\"()<>".contains(byte)).count();
    let Some(colon) = value[..end].iter().rposition(|byte| *byte == b':').filter(|at| *at > 0) else { return value };
    let rest = trim_start(&value[colon + 1..]);
    if rest.first() == Some(&b';') { &[] } else { rest }
}

/// Piece cut off the front.
#[derive(Debug, Default)]
struct Raw<'a> {
    phrase: Option<&'a [u8]>,
    /// In angles.
    angles: Option<&'a [u8]>,
    /// Alone.
    plain: Option<&'a [u8]>,
    comment: Option<&'a [u8]>,
}

/// The first entry, and what is behind it.
fn entry(text: &[u8]) -> Option<(Raw<'_>, &[u8])> {
    let text = trim_start(text);
    with_angles(text).or_else(|| alone(text)).or_else(|| phrase_alone(text))
}

/// Text after an address: a comment, then a separator or the end.
fn ending(rest: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let after = |rest: &'_ [u8]| -> Option<usize> {
        let trimmed = trim_start(rest);
        match trimmed.first() {
            None => Some(rest.len()),
            Some(b',' | b';') => Some(rest.len() - trimmed.len() + 1),
            Some(_) => None,
        }
    };
    if let Some((inner, behind)) = comment(trim_start(rest))
        && let Some(length) = after(behind)
    {
        return Some((Some(inner), &behind[length..]));
    }
    after(rest).map(|length| (None, &rest[length..]))
}

/// A comment without others in it.
fn comment(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"(")?;
    let mut at = 0;
    loop {
        match inner.get(at)? {
            b')' => return Some((&inner[..at], &inner[at + 1..])),
            b'(' => return None,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The length of a quoted string that the text begins with.
fn quoted(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The length of the phrase that the text begins with.
fn phrase(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let length = quoted(rest).unwrap_or_else(|| rest.iter().take_while(|byte| !b"\",;<".contains(byte)).count());
        if length == 0 {
            return at;
        }
        at += length;
    }
}

fn with_angles(text: &[u8]) -> Option<(Raw<'_>, &[u8])> {
    let length = phrase(text);
    let inner = text[length..].strip_prefix(b"<")?;
    let named = (length > 0).then(|| &text[..length]);
    let begin = inner.len() - trim_start(inner).len();
    let before = begin + inner[begin..].iter().take_while(|byte| !matches!(byte, b'>' | b'@')).count();
    let last = inner[begin..before].iter().rposition(|byte| !is_blank(*byte)).map(|at| begin + at);
    for start in [Some(before), last].into_iter().flatten() {
        let run = inner[start..].iter().take_while(|byte| !is_blank(**byte)).count();
        let closes = |end: &usize| trim_start(&inner[*end..]).first() == Some(&b'>');
        for end in (start + 1..=start + run).rev().filter(closes) {
            let behind = &trim_start(&inner[end..])[1..];
            if let Some((comment, rest)) = behind_angles(behind) {
                let raw = Raw { phrase: named, angles: Some(&inner[begin..end]), comment, ..Raw::default() };
                return Some((raw, rest));
            }
        }
    }
    let behind = trim_start(inner).strip_prefix(b">")?;
    let (comment, rest) = behind_angles(behind)?;
    Some((Raw { phrase: named, angles: Some(b""), comment, ..Raw::default() }, rest))
}

/// Skips further angles after the first, which do not count.
fn behind_angles(text: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    const ANGLES_MAX: usize = 16;
    let mut places = vec![text];
    while places.len() < ANGLES_MAX
        && let Some(next) = places.last().and_then(|text| angles(text))
    {
        places.push(next);
    }
    places.into_iter().rev().find_map(ending)
}

/// Text after angles that the text begins with.
fn angles(text: &[u8]) -> Option<&[u8]> {
    let inner = trim_start(trim_start(text).strip_prefix(b"<")?);
    let begin = quoted(inner).unwrap_or(0);
    let run = inner[begin..].iter().take_while(|byte| !is_blank(**byte)).count();
    let closing = (begin + 1..=begin + run).rev().find_map(|end| trim_start(&inner[end..]).strip_prefix(b">"));
    closing.or_else(|| inner.strip_prefix(b">"))
}

/// The length of the address that the text begins with.
fn address(text: &[u8]) -> Option<usize> {
    let user = quoted(text)
        .filter(|length| text.get(*length) == Some(&b'@'))
        .unwrap_or_else(|| text.iter().take_while(|byte| !is_blank(**byte) && !b"@<>()[],:;".contains(byte)).count());
    if user == 0 || text.get(user) != Some(&b'@') {
        return None;
    }
    let host = &text[user + 1..];
    let plain = host.iter().take_while(|byte| !is_blank(**byte) && !b"\"<>()[],:;".contains(byte)).count();
    if plain > 0 {
        return Some(user + 1 + plain);
    }
    let literal = host.strip_prefix(b"[")?;
    let digits = literal.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.')).count();
    (digits > 0 && literal.get(digits) == Some(&b']')).then_some(user + 1 + digits + 2)
}

fn alone(text: &[u8]) -> Option<(Raw<'_>, &[u8])> {
    let length = address(text)?;
    let (comment, rest) = ending(&text[length..])?;
    Some((Raw { plain: Some(&text[..length]), comment, ..Raw::default() }, rest))
}

fn phrase_alone(text: &[u8]) -> Option<(Raw<'_>, &[u8])> {
    let length = phrase(text);
    if length == 0 {
        return None;
    }
    let (comment, rest) = ending(&text[length..])?;
    Some((Raw { phrase: Some(&text[..length]), comment, ..Raw::default() }, rest))
}

/// Whether a text is an address from the first to the last byte.
fn is_address(text: &[u8]) -> bool {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    address(text) == Some(text.len())
}

/// Whether an address is not one of some common mistakes.
fn is_sound(address: &[u8]) -> bool {
    !address.starts_with(b"\"\"@") && address.iter().filter(|byte| **byte == b'"').count() != 1
}

fn is_host(host: &[u8]) -> bool {
    host::is_host(&host::ascii(host).to_ascii_lowercase())
}

impl Raw<'_> {
    fn mailbox(&self) -> Mailbox {
        let mut address = self.plain.map(<[u8]>::to_vec);
        if let Some(angles) = self.angles {
            address = Some(without_comments(angles)).filter(|address| is_address(address));
        }
        address = address.filter(|address| is_sound(address));
        let mut name = self.phrase.map(unquoted);
        if let Some(text) = &name {
            let host = text.splitn(3, |byte| *byte == b'@').nth(1);
            if address.is_none() && is_address(text) && is_sound(text) && host.is_some_and(is_host) {
                address = name.take();
            } else if text.is_empty() || address.as_ref() == Some(text) {
                name = None;
            }
        }
        Mailbox {
            phrase: name.or_else(|| self.comment.map(<[u8]>::to_vec)),
            address: address.map(|address| first_host(&address).to_vec()),
        }
    }
}

/// An address up to its second `@`.
fn first_host(address: &[u8]) -> &[u8] {
    let mut signs = address.iter().enumerate().filter(|(_, byte)| **byte == b'@').map(|(at, _)| at);
    signs.nth(1).map_or(address, |at| &address[..at])
}

fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        if let Some((_, behind)) = comment(rest) {
            rest = behind;
            continue;
        }
        out.push(byte);
        rest = behind;
    }
    out
}

/// A phrase without quotes and comments.
fn unquoted(phrase: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(phrase.len());
    let mut rest = phrase;
    while !rest.is_empty() {
        if let Some(length) = quoted(rest) {
            let inner = &rest[1..length - 1];
            // What is escaped, without what escapes it.
            out.extend(
                inner
                    .iter()
                    .enumerate()
                    .filter(|(at, byte)| **byte != b'\\' || inner.get(at + 1) == Some(&b'\\'))
                    .map(|(_, byte)| *byte),
            );
            rest = &rest[length..];
            continue;
        }
        let length = rest.iter().take_while(|byte| **byte != b'"').count();
        out.extend_from_slice(&without_comments(&rest[..length]));
        rest = &rest[length.max(1)..];
    }
    out
}

/// Addresses in angles in what nothing else could be made of.
fn in_angles(text: &[u8], out: &mut Vec<Mailbox>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at + 1..];
        let Some(length) = address(rest).filter(|length| rest.get(*length) == Some(&b'>')) else { continue };
        let found = &rest[..length];
        rest = &rest[length + 1..];
        if is_sound(found) && out.len() < MAILBOXES_MAX {
            out.push(Mailbox { phrase: None, address: Some(first_host(found).to_vec()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Vec<(String, String)> {
        let text = |text: &Option<Vec<u8>>| String::from_utf8_lossy(text.as_deref().unwrap_or(b"-")).into_owned();
        mailboxes(value.as_bytes()).iter().map(|mailbox| (text(&mailbox.phrase), text(&mailbox.address))).collect()
    }

    #[test]
    fn addresses_and_names_are_found() {
        let one = |value: &str, phrase: &str, address: &str| {
            assert_eq!(read(value), [(phrase.to_owned(), address.to_owned())], "{value}");
        };
        one("a@b.c", "-", "a@b.c");
        one("A <a@b.c>", "A ", "a@b.c");
        one("\"A, B\" <a@b.c>", "A, B ", "a@b.c");
        one("<a@b.c> (A)", "A", "a@b.c");
        one("group: a@b.c", "-", "a@b.c");
        one("\"a@b.com\"", "-", "a@b.com");
        one("A < a@b.c >", "A ", "a@b.c");
        one("A <a@b.c", "A", "a@b.c");
        one("<1 @ b(x) .c>", "-", "1@b.c");
        assert_eq!(read("Fri, 20 Apr 2001 19:35:02")[1].0, "Fri, 20 Apr 2001 19:35:02");
        assert_eq!(read("a@b.c, D <d@e.f>").len(), 2);
        assert_eq!(read("=?x?Q?\"F\"_<a@b.c>?=").last().unwrap().1, "a@b.c");
    }
}
