//! Rules about objects, and the names that they go by.

use std::borrow::Cow;

use flow::{Out, Rule, Spotted, Way};
use stream::{Class, FileType, Finding, Kind, Object};

use super::Inspection;
use crate::node::{Node, Seed};

/// The most names that the content of a compressed stream inherits.
const INHERITED_MAX: usize = 12;

/// Suffixes of compressed archives, and the suffix of what they hold.
const SHORT_SUFFIXES: [(&str, &str); 13] = [
    ("tgz", "tar"),
    ("taz", "tar"),
    ("tbz", "tar"),
    ("tbz2", "tar"),
    ("tb2", "tar"),
    ("tz2", "tar"),
    ("txz", "tar"),
    ("tlz", "tar"),
    ("tzst", "tar"),
    ("cpgz", "cpio"),
    ("svgz", "svg"),
    ("wmz", "wmf"),
    ("emz", "emf"),
];

/// Suffixes of files that hold another one as text, or signed.
const TEXT_SUFFIXES: [&str; 8] = ["asc", "b32", "b64", "base64", "hex", "p7m", "p7s", "pem"];

impl Inspection {
    /// The rule for an object; the object that is fed has none.
    pub(super) fn rule(&self, node: &Node, file_type: FileType) -> Option<&Rule> {
        node.source?;
        self.context.rules.iter().find(|rule| rule.matches(&node.object, file_type))
    }

    /// Reports a mail or multipart within a mail whose name a rule forbids. Rules without names are for objects with content.
    pub(super) fn forbid_container(&mut self, seed: &Seed) {
        if !matches!(seed.object.kind, Kind::Multipart | Kind::Message) {
            return;
        }
        let mut rules = self.context.rules.iter().filter(|rule| !rule.names.is_empty());
        let rule = rules.find(|rule| rule.matches(&seed.object, FileType::Mail));
        let Some(rule) = rule.filter(|rule| rule.way == Way::Forbid) else { return };
        let finding = Finding { class: Class::Forbidden, name: forbids(&rule.label), offset: 0 };
        self.ledger.unblankable |= self.context.policy.action(&finding) == flow::Action::Blank;
        let spotted = Spotted { finding, path: seed.path.clone(), object: seed.id };
        if self.ledger.note(&spotted, &self.context.policy) {
            self.out.push_back(Out::Finding(spotted));
        }
    }
}

/// Name of the finding that a rule forbids an object.
pub(super) fn forbids(label: &str) -> Cow<'static, str> {
    format!("Policy.Forbidden.{label}").into()
}

/// Adds to the content of a compressed stream, or of a file in Base64 or signed, the names of the stream without their last suffix, by which most programs
/// write it, whatever name the stream gives itself.
pub(super) fn inherit_names(object: &mut Object, outer: &Object) {
    let is_named = object.name.is_some() && object.name == outer.name;
    let is_text = matches!(object.kind, Kind::Embedded | Kind::Member) && object.name.is_none();
    if !(is_text || object.kind == Kind::Stream) || is_named || object.media_type.is_some() {
        return;
    }
    let mut names = object.other_names.to_vec();
    for name in outer.names().filter_map(|name| content_name(name, is_text)) {
        if names.len() < INHERITED_MAX && !object.names().any(|known| known == &*name) && !names.contains(&name) {
            names.push(name);
        }
    }
    object.other_names = names.into();
}

/// The name of a file's content; `None` of a name without suffix, or without one of a text.
fn content_name(name: &str, is_text: bool) -> Option<Box<str>> {
    let file = name.trim_end_matches(|c: char| matches!(c, '.' | '/' | '\\') || c.is_whitespace() || c.is_control());
    let (stem, suffix) = file.rsplit_once('.')?;
    if is_text && !TEXT_SUFFIXES.iter().any(|known| suffix.eq_ignore_ascii_case(known)) {
        return None;
    }
    let short = SHORT_SUFFIXES.iter().find(|(short, _)| suffix.eq_ignore_ascii_case(short));
    let name = match short {
        Some((_, full)) => format!("{stem}.{full}").into(),
        None => stem.into(),
    };
    (!stem.is_empty() && !suffix.contains(['/', '\\'])).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_of_a_stream_loses_the_last_suffix() {
        for (name, wanted) in [
            ("a.exe.gz", Some("a.exe")),
            ("x/a.exe.BZ2. ", Some("x/a.exe")),
            ("a.TGZ", Some("a.tar")),
            ("a", None),
            ("a.b/c", None),
            (".gz", None),
        ] {
            assert_eq!(content_name(name, false).as_deref(), wanted, "{name}");
        }
        assert_eq!(content_name("a.exe.B64", true).as_deref(), Some("a.exe"));
        assert_eq!(content_name("a.exe.txt", true), None);
        let signed = Object { name: Some("a.exe.p7m".into()), ..Object::default() };
        let mut content = Object { kind: Kind::Member, ..Object::default() };
        inherit_names(&mut content, &signed);
        assert_eq!(content.names().collect::<Vec<_>>(), ["a.exe"]);
        let outer =
            Object { name: Some("a.exe.gz".into()), other_names: ["b.js.gz".into()].into(), ..Object::default() };
        let mut stream = Object { kind: Kind::Stream, name: Some("b.js".into()), ..Object::default() };
        inherit_names(&mut stream, &outer);
        assert_eq!(stream.names().collect::<Vec<_>>(), ["b.js", "a.exe"]);
        let mut coded = Object { kind: Kind::Stream, ..outer.clone() };
        inherit_names(&mut coded, &outer);
        assert_eq!(coded.names().collect::<Vec<_>>(), ["a.exe.gz", "b.js.gz"]);
    }
}
