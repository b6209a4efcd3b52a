//! Names made of what is known of a mail: `_SENDERDOMAIN_.list.example`.

use flow::RecordKind;

use super::hosts::Hosts;
use super::relays::reversed;
use super::subtest::Subtest;
use crate::spam::authentic::Authentic;
use crate::spam::eval::Context;
use crate::spam::message::{ascii, is_host};
use crate::spam::rule::Rule;
use crate::spam::syntax::dns::AskDns;

/// Names that one template may come to.
const NAMES_MAX: usize = 32;

/// A rule with `askdns`.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) rule: u32,
    pieces: Vec<Piece>,
    pub(super) kinds: Vec<RecordKind>,
    pub(super) subtest: Subtest,
    pub(super) hits_max: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Box<[u8]>),
    /// A tag, and what stands behind it in parentheses.
    Tag(Box<str>, Option<Box<str>>),
}

impl Template {
    /// None where the filter cannot be read, or there are records among those asked for that are not looked up.
    pub(super) fn new(rule: u32, of: &Rule, asked: &AskDns) -> Option<Template> {
        let kinds: Option<Vec<RecordKind>> = asked.records.iter().map(|record| kind(record)).collect();
        let subtest = Subtest::of_template(asked.filter.as_deref())?;
        Some(Template { rule, pieces: pieces(&asked.template), kinds: kinds?, subtest, hits_max: of.flags.hits_max() })
    }

    /// Whether it needs to know who has signed the mail.
    pub(super) fn needs_signatures(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Tag(name, _) if name.starts_with("DKIM")))
    }

    /// Whether some tag of it is one whose values are known.
    pub(super) fn tags(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Tag(name, argument) => Some((&**name, argument.as_deref())),
            Piece::Text(_) => None,
        })
    }

    /// The names, with the values of each tag in its place; none where one has no value.
    pub(super) fn names(&self, values: impl Fn(&str, Option<&str>) -> Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        // Names so far, with what was chosen for each tag: a tag that stands twice has one value.
        type Chosen = Vec<(Piece, Vec<u8>)>;
        let mut names: Vec<(Vec<u8>, Chosen)> = vec![Default::default()];
        for piece in &self.pieces {
            let mut next = Vec::new();
            for (name, chosen) in names {
                let options: Vec<Vec<u8>> = match (piece, chosen.iter().find(|(tag, _)| tag == piece)) {
                    (Piece::Text(text), _) => vec![text.to_vec()],
                    (_, Some((_, value))) => vec![value.clone()],
                    (Piece::Tag(tag, argument), None) => values(tag, argument.as_deref()),
                };
                for option in options.into_iter().filter(|option| !option.is_empty()) {
                    let mut chosen = chosen.clone();
                    if matches!(piece, Piece::Tag(..)) {
                        chosen.push((piece.clone(), option.clone()));
                    }
                    next.push(([&name[..], &option].concat(), chosen));
                }
            }
            next.truncate(NAMES_MAX);
            names = next;
        }
        let names = names.into_iter().map(|(name, _)| ascii(&name));
        names.filter(|name| is_host(name)).collect()
    }
}

fn kind(record: &str) -> Option<RecordKind> {
    Some(match record {
        "A" => RecordKind::A,
        "AAAA" => RecordKind::Aaaa,
        "MX" => RecordKind::Mx,
        "NS" => RecordKind::Ns,
        "PTR" => RecordKind::Ptr,
        "TXT" => RecordKind::Txt,
        _ => return None,
    })
}

fn pieces(template: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut rest = template;
    while let Some((&first, behind)) = rest.split_first() {
        match tag(rest) {
            Some((piece, length)) => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text).into()));
                }
                pieces.push(piece);
                rest = &rest[length..];
            }
            None => {
                text.push(first);
                rest = behind;
            }
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text.into()));
    }
    pieces
}

/// `_NAME_` or `_NAME(argument)_` at the beginning, and its length.
fn tag(text: &[u8]) -> Option<(Piece, usize)> {
    let inner = text.strip_prefix(b"_")?;
    let fits = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let run = inner.iter().take_while(|byte| fits(byte)).count();
    let name = |end: usize| {
        let name = core::str::from_utf8(inner.get(..end)?).ok()?;
        let is_name = name.starts_with(|first: char| first.is_ascii_uppercase()) && !name.split('_').any(str::is_empty);
        is_name.then(|| Box::from(name))
    };
    if inner.get(run) == Some(&b'(') {
        let argument = &inner[run + 1..];
        let close = argument.windows(2).position(|window| window == b")_")?;
        let told = String::from_utf8_lossy(&argument[..close]).into();
        return Some((Piece::Tag(name(run)?, Some(told)), run + close + 4));
    }
    let end = inner[..run].iter().rposition(|&byte| byte == b'_')?;
    Some((Piece::Tag(name(end)?, None), end + 2))
}

/// The values that a tag has before it is known who has signed the mail.
pub(super) fn value(context: &Context<'_>, hosts: &Hosts, tag: &str, argument: Option<&str>) -> Vec<Vec<u8>> {
    let path = context.path;
    let one = |text: Option<Vec<u8>>| text.into_iter().filter(|text| !text.is_empty()).collect();
    let external = path.external.first();
    let trusted = path.trusted.last();
    match tag {
        "LASTEXTERNALIP" => one(external.map(|relay| relay.ip.to_vec())),
        "LASTEXTERNALREVIP" => one(external.and_then(|relay| reversed(&relay.ip))),
        "LASTEXTERNALRDNS" => one(external.map(|relay| relay.rdns.to_vec())),
        "LASTEXTERNALHELO" => one(external.map(|relay| relay.helo.to_vec())),
        "FIRSTTRUSTEDIP" => one(trusted.map(|relay| relay.ip.to_vec())),
        "FIRSTTRUSTEDREVIP" => one(trusted.and_then(|relay| reversed(&relay.ip))),
        "SENDERDOMAIN" => one(context.fields.text("EnvelopeFrom:first:addr:host").map(|host| ascii(&host))),
        "AUTHORDOMAIN" => {
            let mut domains: Vec<Vec<u8>> = Vec::new();
            for host in context.fields.values("From:addr:host").iter().map(|host| ascii(host)) {
                if !domains.contains(&host) {
                    domains.push(host);
                }
            }
            domains
        }
        "URIHOSTS" => hosts.keys().map(|host| host.to_vec()).collect(),
        "URIDOMAINS" => {
            let domains: std::collections::BTreeSet<_> = hosts.values().collect();
            domains.into_iter().map(|domain| domain.to_vec()).collect()
        }
        "HEADER" => {
            let values = argument.map(|name| context.fields.get(name)).unwrap_or_default();
            one(Some(values.trim_ascii().to_vec()))
        }
        _ => Vec::new(),
    }
}

/// The values of a tag that says who has signed.
pub(super) fn signed(authentic: &Authentic, tag: &str) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for signature in authentic.valid() {
        let value = match tag {
            "DKIMDOMAIN" => &signature.domain,
            "DKIMIDENTITY" => &signature.identity,
            "DKIMSELECTOR" => &signature.selector,
            _ => continue,
        };
        let value = value.as_bytes().to_vec();
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        let rule = Rule::default();
        Template::new(0, &rule, &AskDns::read(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn tags_are_found_where_they_are_whole() {
        let tag = |name: &str, argument: Option<&str>| Piece::Tag(name.into(), argument.map(Into::into));
        let text = |text: &str| Piece::Text(text.as_bytes().into());
        for (template, expected) in [
            ("_A_.x.example", vec![tag("A", None), text(".x.example")]),
            ("_vouch._A_", vec![text("_vouch."), tag("A", None)]),
            ("_A_B_._C_", vec![tag("A_B", None), text("."), tag("C", None)]),
            ("_A._B.example", vec![text("_A._B.example")]),
            ("_HEADER(X-Y:addr)_.x", vec![tag("HEADER", Some("X-Y:addr")), text(".x")]),
        ] {
            assert_eq!(pieces(template.as_bytes()), expected, "{template}");
        }
    }

    #[test]
    fn each_value_is_a_name_and_a_tag_without_one_makes_none() {
        let values = |tag: &str, _: Option<&str>| match tag {
            "TWO" => vec![b"a.example".to_vec(), b"b.example".to_vec()],
            "ODD" => vec![b"-".to_vec()],
            _ => Vec::new(),
        };
        let names = |text: &str| {
            let names = template(text).names(values);
            names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names("_TWO_.l.test"), ["a.example.l.test", "b.example.l.test"]);
        assert_eq!(names("_TWO_._TWO_.l.test"), ["a.example.a.example.l.test", "b.example.b.example.l.test"]);
        assert!(names("_NONE_.l.test").is_empty() && names("_ODD_.l.test").is_empty());
        assert_eq!(names("plain.test"), ["plain.test"]);
    }
}
