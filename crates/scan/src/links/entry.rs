//! Links of a mail that show one address and lead to another.
//!
//! After the ClamAV manual, "Phishing signatures"; what it leaves open was learnt by trying it out with clamscan 1.4.
//! Hosts that are worth imitating stand in display lists (`.pdb`), pairs that are no fraud in allow lists (`.wdb`).
//! A link is told if the address that it shows is of such a host, no pair allows it, and
//! - the address that it leads to has a NUL in its host: `Cloaked.Null`;
//! - it shows `https` and leads elsewhere: `SSL-Spoof`;
//! - the domain that it shows is not the one that it leads to: `SpoofedDomain`.
//!
//! Expressions of the lists are matched over the two hosts, each with a dot before it, and a colon between them.
//!
//! Where a link leads is looked up in lists of digests of addresses besides (`.gdb`).

mod address;
pub(crate) mod digests;
mod page;

use std::io;
use std::sync::{Arc, OnceLock};

use fancy_regex::Regex;
use pattern::flat::{Flat, Reader, Unfit, Writer};
use stream::{Class, Finding};

use crate::syntax::body::number;
use crate::syntax::pcre;
use crate::syntax::signature::{FUNCTIONALITY_LEVEL, Reject};
use crate::table::database::{Database, Name};

use address::Address;
pub use page::Links;

/// An entry of a list.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The number of its name.
    pub(crate) name: u32,
    /// The line that it was read from, behind a letter for its list.
    line: Box<str>,
    /// Whether it is of an allow list.
    allows: bool,
    means: Means,
}

impl Entry {
    /// The same under another number of its name.
    pub(crate) fn named(self, name: u32) -> Entry {
        Entry { name, ..self }
    }
}

#[derive(Debug, Clone)]
enum Means {
    /// This host, and those in it, are shown; whatever it leads to.
    Shown(Box<str>),
    /// It leads to this host, or to one in it, and shows that one.
    Pair(Box<str>, Box<str>),
    /// The two hosts match an expression.
    Expression(Box<str>, OnceLock<Option<Box<Regex>>>),
}

impl Entry {
    /// Reads a line of a display list, or of an allow list.
    pub(crate) fn parse(line: &str, allows: bool) -> Result<Entry, Reject> {
        let mut fields = split(line);
        if let Some(levels) = fields.last().filter(|_| fields.len() > 2).and_then(|last| levels(last)) {
            fields.pop();
            let (min, max) = levels?;
            if !(min..=max).contains(&FUNCTIONALITY_LEVEL) {
                return Err(Reject::OtherEngine);
            }
        }
        let [kind, rest @ ..] = fields.as_slice() else {
            return Err(Reject::Malformed("an empty entry".to_owned()));
        };
        let kind = kind.trim_end_matches(|digit: char| digit.is_ascii_hexdigit() && !digit.is_ascii_uppercase());
        let means = match (kind, rest, allows) {
            ("H", [host], false) => Means::Shown(host.to_ascii_lowercase().into()),
            ("M", [real, shown], true) => {
                Means::Pair(real.to_ascii_lowercase().into(), shown.to_ascii_lowercase().into())
            }
            ("R", [real, shown], false) | ("X", [real, shown], true) => {
                let text = format!("^(?:{real}:{shown})$");
                pcre::compile_plain(&text).map_err(Reject::Unsupported)?;
                Means::Expression(text.into(), OnceLock::new())
            }
            ("Y", [_], true) => {
                return Err(Reject::Unsupported("addresses that no list of digests counts for".to_owned()));
            }
            _ => return Err(Reject::Unsupported(format!("no entry of this list: {line:?}"))),
        };
        let list = if allows { 'w' } else { 'p' };
        Ok(Entry { name: 0, line: format!("{list}{line}").into(), allows, means })
    }

    fn means(&self, real: &Address, shown: &Address) -> bool {
        match &self.means {
            Means::Shown(host) => shown.lies_in(host),
            Means::Pair(to, host) => real.lies_in(to) && *shown.host == **host,
            Means::Expression(text, compiled) => {
                let compiled = compiled.get_or_init(|| pcre::compile_plain(text).ok().map(Box::new));
                let pair = format!(".{}:.{}", real.host, shown.host);
                compiled.as_ref().is_some_and(|regex| regex.is_match(&pair).unwrap_or(false))
            }
        }
    }
}

/// The fields of a line: between colons, but not escaped ones.
fn split(line: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in line.bytes().enumerate() {
        if byte == b':' && !escaped {
            fields.push(&line[start..at]);
            start = at + 1;
        }
        escaped = byte == b'\\' && !escaped;
    }
    fields.push(&line[start..]);
    fields
}

/// Reads `min-` or `min-max`; nothing if it is something else.
fn levels(text: &str) -> Option<Result<(u32, u32), Reject>> {
    let (min, max) = text.split_once('-')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if min.is_empty() || !is_number(min) || !is_number(max) {
        return None;
    }
    let max = if max.is_empty() { Ok(u32::MAX) } else { number(max) };
    Some(number(min).and_then(|min| Ok((min, max?))).map_err(Reject::Malformed))
}

impl Database {
    /// Whether links are looked at at all: some host may be imitated, or some address is told.
    fn wants_links(&self) -> bool {
        let wants = |layer: &Database| layer.links.iter().any(|entry| !entry.allows) || !layer.addresses.is_empty();
        self.layers().any(wants)
    }

    /// What is wrong with a link that leads to an address and shows another.
    fn judge(&self, real: &str, shown: &str) -> Option<Finding> {
        let (real, shown) = (Address::parse(real)?, Address::shown(shown)?);
        let layers = self.layers().enumerate();
        let all = layers.flat_map(|(layer, database)| database.links.iter().map(move |entry| (layer, entry)));
        let counts = |(layer, entry): &(usize, &Entry)| self.name(Name { layer: *layer, number: entry.name }).is_some();
        let of_list = |allows: bool| {
            let mut of_list = all.clone().filter(|(_, entry)| entry.allows == allows);
            of_list.any(|one| one.1.means(&real, &shown) && counts(&one))
        };
        if !of_list(false) || of_list(true) {
            return None;
        }
        let name = match () {
            () if real.is_cloaked => "Heuristics.Phishing.Email.Cloaked.Null",
            () if shown.is_secure && !real.is_secure => "Heuristics.Phishing.Email.SSL-Spoof",
            () if real.domain() == shown.domain() => return None,
            () => "Heuristics.Phishing.Email.SpoofedDomain",
        };
        Some(Finding::new(Class::Match, name, 0))
    }
}

/// Writes entries: they are kept as the lines that they were read from.
pub(crate) fn store(all: &[Entry], writer: &mut Writer<'_>) -> io::Result<()> {
    writer.texts(all.iter().map(|one| &*one.line))?;
    writer.array(&all.iter().map(|one| one.name).collect::<Vec<_>>())
}

/// Stored entries, whose names are numbered below `names_end`.
pub(crate) fn load(reader: &mut Reader, names_end: u32) -> Result<Arc<[Entry]>, Unfit> {
    let (lines, names): (_, Flat<u32>) = (reader.texts()?, reader.array()?);
    let read = |(line, &name): (String, &u32)| {
        let (list, line) = line.split_at_checked(1)?;
        let one = Entry::parse(line, list == "w").ok().filter(|_| name < names_end)?;
        Some(Entry { name, ..one })
    };
    if lines.len() != names.len() {
        return Err(Unfit::Malformed);
    }
    lines.into_iter().zip(names.iter()).map(read).collect::<Option<_>>().ok_or(Unfit::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    fn judge(lists: &[(&str, &str)], real: &str, shown: &str) -> Option<String> {
        let mut builder = Builder::new();
        for (name, text) in lists {
            builder.add(name, text.as_bytes()).expect("a list");
        }
        builder.build().judge(real, shown).map(|finding| finding.name.rsplit('.').next().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_link_is_told_if_it_shows_a_host_of_the_list_and_leads_elsewhere() {
        let lists = [("a.pdb", "H:bank.com\n")];
        for (real, shown, told) in [
            ("http://evil.net/", "bank.com", Some("SpoofedDomain")),
            ("http://evil.net/", "www.bank.com/login", Some("SpoofedDomain")),
            ("http://evil.net/", "mybank.com", None),
            ("http://www2.bank.com/", "bank.com", None),
            ("http://bank.com.evil.net", "http://bank.com", Some("SpoofedDomain")),
            ("http://bank.com", "https://bank.com", Some("SSL-Spoof")),
            ("https://evil.net", "https://bank.com", Some("SpoofedDomain")),
            ("http://bank.com%00.evil.net", "http://bank.com", Some("Null")),
            ("mailto:a@evil.net", "bank.com", None),
        ] {
            assert_eq!(judge(&lists, real, shown).as_deref(), told, "{real} {shown}");
        }
        assert_eq!(judge(&[], "http://evil.net", "bank.com"), None);
    }

    #[test]
    fn pairs_are_allowed_by_host_and_by_expression() {
        let told = |allow: &str, real: &str, shown: &str| {
            judge(&[("a.pdb", "H:bank.com\n"), ("a.wdb", allow)], real, shown).is_some()
        };
        assert!(!told("M:ok.net:bank.com", "http://sub.ok.net/x", "http://bank.com/y"));
        assert!(told("M:ok.net:bank.com", "http://ok.net/x", "http://www.bank.com/y"));
        assert!(told("M:ok.net:bank.com:500-", "http://ok.net/x", "http://bank.com/y"));
        assert!(!told(
            "X:.+\\.ok\\.net([/?].*)?:.+\\.bank\\.com([/?].*)?:17-",
            "http://a.ok.net",
            "http://www.bank.com"
        ));
        assert!(told("X:.+\\.ok\\.net:.+\\.bank\\.com", "http://ok.net", "http://bank.com"));
    }

    #[test]
    fn what_is_no_entry_is_said() {
        assert!(matches!(Entry::parse("Y:a.com", true), Err(Reject::Unsupported(_))));
        assert!(matches!(Entry::parse("H:a.com:500-600", false), Err(Reject::OtherEngine)));
        for (line, allows) in [("H", false), ("H:a.com", true), ("M:a.com", true), ("Z:a", false), ("X:a:b", false)] {
            assert!(matches!(Entry::parse(line, allows), Err(Reject::Unsupported(_))), "{line}");
        }
    }
}
