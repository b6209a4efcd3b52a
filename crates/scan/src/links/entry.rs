//! An entry of a list of hosts that links may show falsely (`.pdb`), or of pairs that are no fraud (`.wdb`).

use std::io;
use std::sync::{Arc, OnceLock};

use fancy_regex::Regex;
use pattern::flat::{Flat, Reader, Unfit, Writer};

use crate::links::address::Address;
use crate::syntax::line::number;
use crate::syntax::line::{FUNCTIONALITY_LEVEL, Reject};
use crate::syntax::pcre;

/// An entry of a list.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The number of its name.
    pub(crate) name: u32,
    /// The line that it was read from, behind a letter for its list.
    line: Box<str>,
    /// Whether it is of an allow list.
    pub(crate) allows: bool,
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
        if fields.len() > 2 && fields.last() == Some(&"") {
            fields.pop();
        }
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
        let kind = kind.trim_end_matches(|flag| matches!(flag, '0'..='9' | 'a'..='f' | ',' | '-'));
        let means = match (kind, rest, allows) {
            ("H", [host], false) => Means::Shown(in_ascii(host)),
            ("M", [real, shown], true) => Means::Pair(in_ascii(real), in_ascii(shown)),
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

    pub(crate) fn means(&self, real: &Address, shown: &Address) -> bool {
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

/// The name of a host in lower case and ASCII.
fn in_ascii(host: &str) -> Box<str> {
    let name = if host.is_ascii() { None } else { text::host::mapped(host) };
    name.unwrap_or_else(|| host.to_ascii_lowercase()).into()
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
pub(crate) fn levels(text: &str) -> Option<Result<(u32, u32), Reject>> {
    let (min, max) = text.split_once('-')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if min.is_empty() || !is_number(min) || !is_number(max) {
        return None;
    }
    let max = if max.is_empty() { Ok(u32::MAX) } else { number(max) };
    Some(number(min).and_then(|min| Ok((min, max?))).map_err(Reject::Malformed))
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

    #[test]
    fn hosts_beyond_ascii_are_those_of_links() {
        let entry = Entry::parse("H:b\u{fc}cher.example", false).expect("an entry");
        let address = |text: &str| Address::parse(text).expect("an address");
        let real = address("http://evil.example");
        for shown in
            ["http://B\u{fc}cher.example", "http://www.xn--bcher-kva.example", "http://b%C3%BCcher\u{3002}example"]
        {
            assert!(entry.means(&real, &address(shown)), "{shown}");
        }
        assert!(!entry.means(&real, &address("http://bucher.example")));
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
