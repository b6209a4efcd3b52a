//! Names made of what is known of a mail: `_SENDERDOMAIN_.list.example`.

use flow::RecordKind;

use super::subtest::Subtest;
use crate::spam::message::{ascii, is_host};
use crate::spam::rule::Rule;
use crate::spam::syntax::dns::AskDns;
use crate::spam::tags;

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

    /// Its tags.
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

/// A tag at the beginning, and its length.
fn tag(text: &[u8]) -> Option<(Piece, usize)> {
    let inner = text.strip_prefix(b"_")?;
    let found = tags::find(inner)?;
    let text = |range: core::ops::Range<usize>| Box::from(String::from_utf8_lossy(&inner[range]));
    Some((Piece::Tag(text(0..found.name_end), found.argument.map(text)), found.end + 1))
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
