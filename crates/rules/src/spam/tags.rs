//! Tags of templates: `_NAME_` and `_NAME(ARGUMENT)_` in reports, header fields and names that are looked up, `%{NAME}` in
//! expressions.
//!
//! [`of_mail`] has the tags whose values are known before a rule runs. Results of a check are in [`report`](super::run::Report).

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use super::authentic::Authentic;
use super::eval::Context;
use super::header::{Path, reversed};
use super::message::ascii;

/// A tag of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Its name begins with the text and ends here.
    pub(super) name_end: usize,
    /// What stands in parentheses.
    pub(super) argument: Option<Range<usize>>,
    /// End of the tag, with its last underscore.
    pub(super) end: usize,
}

/// Finds the tag of which a text has all behind the first underscore: the longest name, of words in capitals and digits with one
/// underscore between them.
pub(super) fn find(text: &[u8]) -> Option<Found> {
    let is_of_word = |at: usize| text.get(at).is_some_and(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let word_end = |mut at: usize| {
        while is_of_word(at) {
            at += 1;
        }
        at
    };
    text.first().filter(|byte| byte.is_ascii_uppercase())?;
    let (mut before, mut end) = (None, word_end(0));
    while text.get(end) == Some(&b'_') && is_of_word(end + 1) {
        before = Some(end);
        end = word_end(end + 1);
    }
    let plain = |end: usize| Found { name_end: end, argument: None, end: end + 1 };
    match text.get(end) {
        Some(b'_') => return Some(plain(end)),
        Some(b'(') => {
            let line = text[end..].split(|&byte| byte == b'\n').next().unwrap_or_default();
            if let Some(close) = memchr::memmem::find(line, b")_") {
                return Some(Found { name_end: end, argument: Some(end + 1..end + close), end: end + close + 2 });
            }
        }
        _ => {}
    }
    before.map(plain)
}

/// The name of a tag as expressions write it, `NAME` or `NAME(ARGUMENT)`, and its argument.
pub(super) fn parts(text: &str) -> (&str, Option<&str>) {
    let with_argument = text.strip_suffix(')').and_then(|text| text.split_once('('));
    with_argument.map_or((text, None), |(name, argument)| (name, Some(argument)))
}

/// The values of a tag that a mail alone decides; `None` if it is another, or is not set. `hosts` has the hosts of its
/// addresses that are looked up.
pub(super) fn of_mail(
    context: &Context<'_>,
    hosts: impl Fn() -> BTreeMap<Box<[u8]>, Box<[u8]>>,
    tag: &str,
    argument: Option<&str>,
) -> Option<Vec<Vec<u8>>> {
    let path = context.path;
    let external = path.external.first();
    let trusted = path.trusted.last();
    let one = |text: Option<Vec<u8>>| Some(vec![text.unwrap_or_default()]);
    match tag {
        "LASTEXTERNALIP" => one(external.map(|relay| relay.ip.to_vec())),
        "LASTEXTERNALREVIP" => one(external.and_then(|relay| reversed(&relay.ip))),
        "LASTEXTERNALRDNS" => one(external.map(|relay| relay.rdns.to_vec())),
        "LASTEXTERNALHELO" => one(external.map(|relay| relay.helo.to_vec())),
        "FIRSTTRUSTEDIP" => one(trusted.map(|relay| relay.ip.to_vec())),
        "FIRSTTRUSTEDREVIP" => one(trusted.and_then(|relay| reversed(&relay.ip))),
        "RELAYSTRUSTED" => one(Some(Path::text(&path.trusted))),
        "RELAYSUNTRUSTED" => one(Some(Path::text(&path.untrusted))),
        "RELAYSINTERNAL" => one(Some(Path::text(&path.internal))),
        "RELAYSEXTERNAL" => one(Some(Path::text(&path.external))),
        "SENDERDOMAIN" => {
            let host = context.fields.text("EnvelopeFrom:first:addr:host").filter(|host| !host.is_empty())?;
            one(Some(ascii(&host)))
        }
        "AUTHORDOMAIN" => {
            let mut domains: Vec<Vec<u8>> = Vec::new();
            for host in context.fields.values("From:addr:host").iter().map(|host| ascii(host)) {
                if !domains.contains(&host) {
                    domains.push(host);
                }
            }
            Some(domains).filter(|domains| !domains.is_empty())
        }
        "URIHOSTS" => Some(hosts().keys().map(|host| host.to_vec()).collect()),
        "URIDOMAINS" => {
            let domains: BTreeSet<_> = hosts().into_values().collect();
            Some(domains.into_iter().map(|domain| domain.to_vec()).collect())
        }
        "HEADER" => one(argument.map(|name| context.fields.get(name))),
        _ => None,
    }
}

/// The values of a tag that says who has signed; `None` if it is another.
pub(super) fn signed(authentic: &Authentic, tag: &str) -> Option<Vec<Vec<u8>>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for signature in authentic.valid() {
        let value = match tag {
            "DKIMDOMAIN" => &signature.domain,
            "DKIMIDENTITY" => &signature.identity,
            "DKIMSELECTOR" => &signature.selector,
            _ => return None,
        };
        let value = value.as_bytes().to_vec();
        if !found.contains(&value) {
            found.push(value);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_the_longest_name_and_the_shortest_argument() {
        for (text, expected) in [
            ("A_ x", Some((1, None, 2))),
            ("A_B__", Some((3, None, 4))),
            ("A_B", Some((1, None, 2))),
            ("A__B_", Some((1, None, 2))),
            ("A1(x)y)_z)_", Some((2, Some(3..6), 8))),
            ("A()_", Some((1, Some(2..2), 4))),
            ("A(x\n)_", None),
            ("A_B(x) ", Some((1, None, 2))),
            ("1A_", None),
            ("a_", None),
            ("", None),
        ] {
            let found = find(text.as_bytes()).map(|found| (found.name_end, found.argument, found.end));
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!((parts("HEADER(From:addr)"), parts("A_B")), (("HEADER", Some("From:addr")), ("A_B", None)));
    }
}
