//! Author of a mail: the domains of `From` (RFC 5322 sections 3.4, 3.6.2).
//!
//! Everything is read that some mail reader reads: comments, quoted strings, groups, routes, and addresses where there should
//! be none. What matters is the domain alone.

use crate::domain;
use crate::header::Header;

/// The author's domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    /// The only domain.
    Domain(Box<str>),
    /// No single author domain; the reason.
    Unclear(&'static str),
}

impl Author {
    /// The author of a mail.
    pub fn of(header: &Header) -> Author {
        let mut fields = header.values("from");
        let (Some(field), None) = (fields.next(), fields.next()) else {
            return Author::Unclear(if header.named("from").is_empty() { "no From" } else { "several From" });
        };
        let domains = domains(field);
        match &domains[..] {
            [domain] => Author::Domain(domain.clone()),
            [] => Author::Unclear("no domain in From"),
            _ => Author::Unclear("several domains in From"),
        }
    }

    /// The domain, if there is one.
    pub fn domain(&self) -> Option<&str> {
        match self {
            Author::Domain(domain) => Some(domain),
            Author::Unclear(_) => None,
        }
    }
}

/// Different domains that are kept: with two of them it is unclear.
const DOMAINS_MAX: usize = 2;

/// The different domains of a list of addresses, two at most.
fn domains(value: &[u8]) -> Vec<Box<str>> {
    let mut domains: Vec<Box<str>> = Vec::new();
    for address in addresses(value) {
        // The local part may be anything: bytes of an old charset do not hide the domain.
        let domain = address.rsplit(|&byte| byte == b'@').next().filter(|domain| domain.len() < address.len());
        let domain = domain.and_then(|domain| core::str::from_utf8(domain).ok()).and_then(domain::host);
        if let Some(domain) = domain.filter(|domain| !domains.contains(domain)) {
            domains.push(domain);
            if domains.len() >= DOMAINS_MAX {
                break;
            }
        }
    }
    domains
}

/// The addresses of a list: the text in angle brackets, else the whole item, without comments and white space.
fn addresses(value: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    // Text between commas, or within open brackets. Text outside of an item's brackets is ignored.
    let (mut item, mut bracket, mut had) = (Vec::new(), None::<Vec<u8>>, false);
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        at += 1;
        match byte {
            b'(' => at += comment(&value[at..]),
            b'"' => {
                let len = quoted(&value[at..]);
                bracket.as_mut().unwrap_or(&mut item).extend_from_slice(&value[at - 1..at + len]);
                at += len;
            }
            b'<' => bracket = Some(Vec::new()),
            b'>' => {
                found.extend(bracket.take());
                had = true;
            }
            // A route ends, or the name of a group.
            b':' => bracket.as_mut().unwrap_or(&mut item).clear(),
            b',' | b';' if bracket.is_none() => {
                let item = core::mem::take(&mut item);
                found.extend((!core::mem::take(&mut had)).then_some(item));
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => bracket.as_mut().unwrap_or(&mut item).push(byte),
        }
    }
    found.extend(bracket);
    found.extend((!had).then_some(item));
    found
}

/// How long the rest of a comment is; comments nest.
fn comment(text: &[u8]) -> usize {
    let (mut depth, mut at) = (1usize, 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

/// How long the rest of a quoted string is, its last quote included.
fn quoted(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'"' => break,
            _ => {}
        }
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author(fields: &str) -> Author {
        Author::of(&Header::new(fields.as_bytes().to_vec()))
    }

    #[test]
    fn the_domain_of_an_author_is_found_however_it_is_written() {
        for field in [
            "a@B.example",
            "<a@b.example>",
            "\"x@y.example\" <a@b.example>",
            "x@y.example <a@b.example>",
            "A (x@y.example) <a@b.example>",
            "a@b.example (A, B)",
            "\"a, <x@y>\" <\"q@x, y\"@b.example>",
            "<@r.example,@s.example:a@b.example>",
            "group: a@b.example, c@B.EXAMPLE;",
            "<a@b.example",
            "a@b.example.",
            "a\r\n @\r\n b.example",
            "x (nested (\\) <x@y>)) <a@b.example>",
        ] {
            assert_eq!(author(&format!("From: {field}\r\n")), Author::Domain("b.example".into()), "{field}");
        }
    }

    #[test]
    fn letters_of_an_old_charset_do_not_hide_the_domain() {
        for field in [&b"From: \xc4\xe3\xba\xc3@b.example\r\n"[..], b"From: \xc4\xe3 <\xff@B.example>\r\n"] {
            assert_eq!(Author::of(&Header::new(field.to_vec())), Author::Domain("b.example".into()));
        }
    }

    #[test]
    fn no_author_or_several_are_unclear() {
        for field in ["", "a", "a@", "a@b c <>", "a@[192.0.2.1]", "a@b..c"] {
            let author = author(&format!("From: {field}\r\n"));
            assert!(matches!(author, Author::Unclear("no domain in From")), "{field} {author:?}");
        }
        assert_eq!(author("From: a@b.c, a@d.e\r\n"), Author::Unclear("several domains in From"));
        assert_eq!(author("From: <a@b.c> <a@d.e>\r\n"), Author::Unclear("several domains in From"));
        assert_eq!(author("From: a@b.c\r\nfrom: a@b.c\r\n"), Author::Unclear("several From"));
        assert_eq!(author("To: a@b.c\r\n"), Author::Unclear("no From"));
    }
}
