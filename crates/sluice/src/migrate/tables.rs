//! Postfix's tables: `TYPE:NAME` in a list, the lines of those that are text, and the settings of those that are elsewhere.
//!
//! Of indexed files the text is read that they were made of. Bounds: [`FILE_BYTES_MAX`] of a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::parameters::{Place, logical_lines, words};

/// The longest file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// A table of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The word of the configuration, `kind:name`.
    pub whole: String,
    /// `hash`, `mysql`, `regexp`; empty for a bare word or path.
    pub kind: String,
    /// The file, or what stands there in its place.
    pub name: String,
}

/// An entry of a table of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands.
    pub place: Place,
    /// Key of the entry.
    pub key: String,
    /// Value of the entry.
    pub value: String,
}

/// The contents of a table.
#[derive(Debug)]
pub enum Contents {
    /// Keys and values.
    Entries(Vec<Entry>),
    /// Patterns and values.
    Patterns(Vec<Entry>),
    /// A query of a database or directory.
    Query(BTreeMap<String, String>),
    /// The table is not read; the reason.
    Unread(String),
}

impl Table {
    /// Reads a word of a list.
    pub fn parse(word: &str) -> Table {
        let word = word.strip_prefix("proxy:").unwrap_or(word);
        let (kind, name) = match word.split_once(':') {
            Some((kind, name)) if kind.chars().all(|letter| letter.is_ascii_alphanumeric()) => (kind, name),
            _ => ("", word),
        };
        Table { whole: word.into(), kind: kind.into(), name: name.into() }
    }

    /// The file of a table that is text.
    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(&self.name)
    }

    /// Whether Sluice reads the same text format.
    pub fn is_text(&self) -> bool {
        matches!(self.kind.as_str(), "hash" | "btree" | "dbm" | "cdb" | "lmdb" | "texthash" | "sdbm")
    }

    /// Reads it.
    pub fn read(&self, folder: &Path) -> Contents {
        let path = self.path(folder);
        match self.kind.as_str() {
            "inline" => Contents::Entries(inline(&self.name)),
            "static" => {
                let (key, value) = ("*".into(), self.name.trim_matches(['{', '}', ' ']).to_owned());
                Contents::Entries(vec![Entry { place: Place::default(), key, value }])
            }
            "regexp" | "pcre" => {
                read(&path).map_or_else(Contents::Unread, |text| Contents::Patterns(patterns(&path, &text)))
            }
            "mysql" | "pgsql" | "ldap" | "sqlite" => read(&path).map_or_else(Contents::Unread, |text| {
                let lines = logical_lines(&shown(&path), &text);
                let pairs = lines.iter().filter_map(|(_, line)| line.split_once('='));
                // As Postfix reads them: a dollar sign stands for itself.
                Contents::Query(pairs.map(|(key, text)| (key.trim().to_owned(), text.trim().to_owned())).collect())
            }),
            "cidr" => read(&path).map_or_else(Contents::Unread, |text| Contents::Entries(entries(&path, &text))),
            _ if self.is_text() => {
                read(&path).map_or_else(Contents::Unread, |text| Contents::Entries(entries(&path, &text)))
            }
            kind => Contents::Unread(format!("tables of the type {kind:?} are not read")),
        }
    }
}

/// A path as it is shown.
pub fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The text of a file.
///
/// # Errors
/// Why it cannot be read.
pub fn read(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!("{}: not a file", path.display()));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(format!("{}: longer than 16 MiB", path.display())),
        false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// `KEY VALUE`; of aliases `KEY: VALUE`, with a key in quotes or without.
fn entries(path: &Path, text: &str) -> Vec<Entry> {
    let entry = |(place, line): (Place, String)| {
        let (key, value) = match line.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            Some((key, rest)) => (key, rest.trim_start().strip_prefix(':').unwrap_or(rest)),
            None => line.split_once(char::is_whitespace).unwrap_or((&line, "")),
        };
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => (key, value),
            None => (key, value.trim_start().strip_prefix(": ").unwrap_or(value)),
        };
        // `name:value` without a blank, as files of aliases may have it.
        let (key, value) = match key.split_once(':').filter(|_| value.trim().is_empty()) {
            Some((key, value)) if !key.is_empty() && !value.contains(':') => (key, value),
            _ => (key, value),
        };
        Entry { place, key: key.into(), value: value.trim().into() }
    };
    logical_lines(&shown(path), text).into_iter().map(entry).collect()
}

/// `/PATTERN/FLAGS VALUE`.
fn patterns(path: &Path, text: &str) -> Vec<Entry> {
    let entry = |(place, line): (Place, String)| {
        let letter = line.trim_start_matches('!').chars().next().unwrap_or('/');
        let end = line.rfind(letter).unwrap_or(0);
        let value =
            line.get(end..).and_then(|rest| rest.split_once(char::is_whitespace)).map_or("", |(_, value)| value);
        let key = line.get(..line.len() - value.len()).unwrap_or(&line);
        Entry { place, key: key.trim().into(), value: value.trim().into() }
    };
    logical_lines(&shown(path), text).into_iter().map(entry).collect()
}

/// `{ KEY = VALUE, ... }` or `{ { KEY = VALUE }, ... }`.
fn inline(text: &str) -> Vec<Entry> {
    let inner = text.trim().trim_start_matches('{').trim_end_matches('}');
    let spaced = inner.replace(" = ", "=");
    let pairs = words(&spaced);
    let entry = |pair: &String| {
        let (key, value) = pair.trim_matches(['{', '}', ' ']).split_once('=')?;
        Some(Entry { place: Place::default(), key: key.trim().into(), value: value.trim().into() })
    };
    pairs.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_text_are_read() {
        let found = |text: &str| {
            let found = entries(Path::new("t"), text);
            found.into_iter().map(|entry| (entry.place.line, entry.key, entry.value)).collect::<Vec<_>>()
        };
        let text = "# x\na@b  c@d,\n  e@f\nroot: ann\n\"a b\": |prog\nempty\npostmaster:root\n2001:db8::/32 OK\n";
        let wanted = [
            (2, "a@b", "c@d, e@f"),
            (4, "root", "ann"),
            (5, "a b", "|prog"),
            (6, "empty", ""),
            (7, "postmaster", "root"),
            (8, "2001:db8::/32", "OK"),
        ];
        assert_eq!(found(text), wanted.map(|(line, key, value)| (line, key.to_owned(), value.to_owned())));
    }

    #[test]
    fn words_of_lists_are_tables() {
        let table = Table::parse("proxy:mysql:/etc/postfix/x.cf");
        assert_eq!((table.kind.as_str(), table.name.as_str(), table.is_text()), ("mysql", "/etc/postfix/x.cf", false));
        assert_eq!(Table::parse("example.org").kind, "");
        assert_eq!(Table::parse("/etc/postfix/domains").name, "/etc/postfix/domains");
        let found = inline("{ a = b, c=d }");
        assert_eq!(
            found.iter().map(|entry| (&*entry.key, &*entry.value)).collect::<Vec<_>>(),
            [("a", "b"), ("c", "d")]
        );
        let found = patterns(Path::new("t"), "/^Subject: (a b)/i REJECT no\n!/x/ OK\n");
        assert_eq!((&*found[0].key, &*found[0].value), ("/^Subject: (a b)/i", "REJECT no"));
    }
}
