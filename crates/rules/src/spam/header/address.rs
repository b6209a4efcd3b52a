//! Mail addresses in header fields, as SpamAssassin reads them: tolerant, never failing, and not RFC 5322's grammar.
//!
//! A field is read from its front, one mailbox after the other: a phrase with an address in `<>`, an address alone, or a
//! phrase alone, each with a comment behind it, ended by `,`, `;` or the end. Where none of these stands, reading ends; of
//! what is left, addresses in `<>` are taken.

use crate::spam::message::{ascii, is_host};

/// What stands for one mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mailbox {
    /// The display name, or else the comment.
    pub phrase: Option<Vec<u8>>,
    /// The address.
    pub address: Option<Vec<u8>>,
}

/// The mailboxes of a field, at most so many.
pub fn parse(field: &[u8], mailboxes_max: usize) -> Vec<Mailbox> {
    let text = without_double_backslashes(field.trim_ascii_end());
    let mut rest = without_group(&text);
    let mut found = Vec::new();
    while found.len() < mailboxes_max {
        let Some((mailbox, behind)) = one(rest) else { break };
        found.push(mailbox);
        if behind.len() == rest.len() {
            break;
        }
        rest = behind;
    }
    in_brackets(rest, &mut found, mailboxes_max);
    found
}

fn without_double_backslashes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(b"\\\\") {
            rest = behind;
            continue;
        }
        out.push(byte);
        rest = behind;
    }
    out
}

/// Takes the name of a group from the front: everything up to the last colon before a quote, parenthesis or bracket.
fn without_group(text: &[u8]) -> &[u8] {
    let plain = text.iter().take_while(|byte| !b"\"()<>".contains(byte)).count();
    match text[..plain].iter().rposition(|&byte| byte == b':') {
        Some(at) if at > 0 => {
            let behind = text[at + 1..].trim_ascii_start();
            if behind.starts_with(b";") { &[] } else { behind }
        }
        _ => text,
    }
}

/// The first mailbox and what is behind it.
fn one(text: &[u8]) -> Option<(Mailbox, &[u8])> {
    if text.trim_ascii().is_empty() {
        return None;
    }
    let text = text.trim_ascii_start();
    let phrase = phrase(text);
    if let Some(found) = bracketed(text, phrase) {
        return Some(found);
    }
    if let Some(length) = address(text)
        && let Some((comment, behind)) = ending(&text[length..])
    {
        return Some((mailbox(None, Some(&text[..length]), comment, false), behind));
    }
    if phrase > 0
        && let Some((comment, behind)) = ending(&text[phrase..])
    {
        return Some((mailbox(Some(&text[..phrase]), None, comment, false), behind));
    }
    None
}

/// How long the phrase is that begins here: quoted strings, and runs without quotes, commas, semicolons and `<`.
fn phrase(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let run = text[at..].iter().take_while(|byte| !b"\",;<".contains(byte)).count();
        at += run;
        match quoted(&text[at..]) {
            Some(length) => at += length,
            None => return at,
        }
    }
}

/// How long the quoted string is that begins here, with its quotes.
fn quoted(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' if text.get(at + 1).is_some_and(|&byte| byte != b'\n') => at += 2,
            b'\\' => return None,
            _ => at += 1,
        }
    }
}

/// A phrase, or none, and an address in `<>`.
fn bracketed(text: &[u8], phrase: usize) -> Option<(Mailbox, &[u8])> {
    let inner = text[phrase..].strip_prefix(b"<")?;
    let blank = inner.len() - inner.trim_ascii_start().len();
    let content = &inner[blank..];
    for end in closings(content) {
        let behind = repeated(&content[end + 1..]);
        if let Some((comment, behind)) = ending(behind) {
            // Blanks in front of the bracket belong to the name.
            let phrase = (phrase > 0).then(|| &text[..phrase]);
            return Some((mailbox(phrase, Some(content[..end].trim_ascii_end()), comment, true), behind));
        }
    }
    None
}

/// Where the `>` may stand that ends an address: behind the first run of blanks behind the first `@` or `>`, or before it.
fn closings(content: &[u8]) -> impl Iterator<Item = usize> {
    let head = content.iter().position(|byte| b"@>".contains(byte)).unwrap_or(content.len());
    let run = content[head..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
    let last = head + run;
    let blank = content[last..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let spaced = (blank > 0 && content.get(last + blank) == Some(&b'>')).then_some(last + blank);
    let from = content[..last].trim_ascii_end().len();
    let inside = (0..from.max(last)).rev().filter(move |&at| content[at] == b'>');
    spaced.into_iter().chain(inside)
}

/// Brackets that are written twice.
fn repeated(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(inner) = rest.trim_ascii_start().strip_prefix(b"<") {
        let inner = inner.trim_ascii_start();
        let run = inner.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        let Some(end) = inner[..run].iter().rposition(|&byte| byte == b'>') else { return rest };
        rest = &inner[end + 1..];
    }
    rest
}

/// A comment, if there is one, and what ends a mailbox; what stands behind.
fn ending(text: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let start = text.trim_ascii_start();
    if let Some(length) = comment(start)
        && let Some(behind) = end(&start[length..])
    {
        return Some((Some(&start[1..length - 1]), behind));
    }
    end(start).map(|behind| (None, behind))
}

fn end(text: &[u8]) -> Option<&[u8]> {
    match text.trim_ascii_start().split_first() {
        None => Some(&[]),
        Some((b',' | b';', behind)) => Some(behind),
        Some(_) => None,
    }
}

/// How long the comment is that begins here, with its parentheses; none stand within it.
fn comment(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'(') {
        return None;
    }
    let mut at = 1;
    loop {
        match text.get(at)? {
            b')' => return Some(at + 1),
            b'(' => return None,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// How long the address is that begins here.
fn address(text: &[u8]) -> Option<usize> {
    let stops = |byte: &u8| byte.is_ascii_whitespace() || b"<>()[],:;".contains(byte);
    let plain = text.iter().take_while(|byte| !stops(byte) && **byte != b'@').count();
    let user = match quoted(text) {
        Some(length) if text.get(length) == Some(&b'@') => length,
        _ if plain > 0 => plain,
        _ => return None,
    };
    let host = text.get(user..)?.strip_prefix(b"@")?;
    let length = match host.strip_prefix(b"[") {
        Some(inner) => {
            let digits = inner.iter().take_while(|byte| byte.is_ascii_digit() || b":.".contains(byte)).count();
            (digits > 0 && inner.get(digits) == Some(&b']')).then_some(digits + 2)?
        }
        None => host.iter().take_while(|byte| !stops(byte) && **byte != b'"').count(),
    };
    (length > 0).then_some(user + 1 + length)
}

fn is_address(text: &[u8]) -> bool {
    address(text) == Some(text.len())
}

fn is_odd(address: &[u8]) -> bool {
    address.starts_with(b"\"\"@") || address.iter().filter(|&&byte| byte == b'"').count() == 1
}

/// Puts together what was found: `bracketed` addresses are looked at closer.
fn mailbox(phrase: Option<&[u8]>, address: Option<&[u8]>, comment: Option<&[u8]>, bracketed: bool) -> Mailbox {
    let mut address = address.map(|address| if bracketed { without_comments(address) } else { address.to_vec() });
    address = address.filter(|address| (!bracketed || is_address(address)) && !is_odd(address));
    let mut phrase = phrase.map(unquoted);
    if let Some(text) = &phrase {
        let host = text.splitn(2, |&byte| byte == b'@').nth(1).map(|host| {
            let end = host.iter().position(|&byte| byte == b'@').unwrap_or(host.len());
            &host[..end]
        });
        if address.is_none() && is_address(text) && !is_odd(text) && host.is_some_and(|host| is_host(&ascii(host))) {
            address = phrase.take();
        } else if text.is_empty() || address.as_ref() == Some(text) {
            phrase = None;
        }
    }
    if phrase.is_none() {
        phrase = comment.map(<[u8]>::to_vec);
    }
    // Of several hosts the first counts.
    if let Some(address) = &mut address {
        let mut signs = address.iter().enumerate().filter(|(_, byte)| **byte == b'@').map(|(at, _)| at);
        if let Some(second) = signs.nth(1) {
            address.truncate(second);
        }
    }
    Mailbox { phrase, address }
}

fn without_comments(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        if let Some(length) = comment(rest) {
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        out.push(byte);
        rest = behind;
    }
    out
}

/// A phrase without its quotes, the backslashes in them, and the comments outside of them.
fn unquoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(length) = quoted(rest) {
            out.extend(rest[1..length - 1].iter().filter(|&&byte| byte != b'\\'));
            rest = &rest[length..];
            continue;
        }
        let run = rest.iter().take_while(|&&byte| byte != b'"').count();
        if run == 0 {
            // A quote that nothing closes is left out.
            rest = &rest[1..];
            continue;
        }
        out.extend(without_comments(&rest[..run]));
        rest = &rest[run..];
    }
    out
}

/// Addresses in `<>` in what nothing else could be made of.
fn in_brackets(text: &[u8], found: &mut Vec<Mailbox>, mailboxes_max: usize) {
    if !text.contains(&b'@') {
        return;
    }
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'<') {
        rest = &rest[at + 1..];
        let Some(length) = address(rest).filter(|&length| rest.get(length) == Some(&b'>')) else { continue };
        if found.len() >= mailboxes_max {
            return;
        }
        if !is_odd(&rest[..length]) {
            found.push(mailbox(None, Some(&rest[..length]), None, false));
        }
        rest = &rest[length + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let shown = |text: Option<Vec<u8>>| text.map_or("-".into(), |text| String::from_utf8(text).unwrap());
        parse(text.as_bytes(), 100).into_iter().map(|one| (shown(one.phrase), shown(one.address))).collect()
    }

    #[test]
    fn mailboxes_are_read_as_they_are_written() {
        for (text, expected) in [
            ("a@b.c", &[("-", "a@b.c")][..]),
            (" Foo Bar <a@b.c>\n", &[("Foo Bar ", "a@b.c")]),
            ("\"Foo, B\\\"ar\" <a@b.c>", &[("Foo, B\"ar ", "a@b.c")]),
            ("a@b.c (Foo Bar)", &[("Foo Bar", "a@b.c")]),
            ("a@b.c, \"x\" <d@e.f>; g@h.i", &[("-", "a@b.c"), ("x ", "d@e.f"), ("-", "g@h.i")]),
            ("Foo, Bar <a@b.c>", &[("Foo", "-"), ("Bar ", "a@b.c")]),
            ("\"a@b.com\" <a@b.com>", &[("a@b.com ", "a@b.com")]),
            ("\"a@b.com\"", &[("-", "a@b.com")]),
            ("group: a@b.c, d@e.f;", &[("-", "a@b.c"), ("-", "d@e.f")]),
            ("undisclosed-recipients:;", &[]),
            ("<>", &[("-", "-")]),
            ("Foo < a@b.c >", &[("Foo ", "a@b.c")]),
            ("Foo <<a@b.c>>", &[("Foo ", "-")]),
            ("x \" <a@b.c>", &[("-", "a@b.c")]),
            ("Foo", &[("Foo", "-")]),
            ("", &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn long_fields_are_read_in_bounded_time() {
        for text in ["<".repeat(8000), "\"".repeat(8001), "a@b,".repeat(4000), "(".repeat(8000), "<a>".repeat(3000)] {
            assert!(parse(text.as_bytes(), 100).len() <= 100);
        }
    }
}
