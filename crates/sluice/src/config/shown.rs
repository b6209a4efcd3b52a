//! The keys that a configuration sets, with their places, and those that it does not, with their defaults: what `sluice config show`
//! prints.
//!
//! Values are as written: `file:PATH` stays what it is. Passwords that stand in the configuration itself are left out.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Key};
use super::source::{Source, are_tables, json};
use super::{Config, Error, is_secret};

/// Words of a fault that may name a key.
const WORDS_MAX: usize = 100;

/// A key that is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its tables and its name, with dots; tables of a list are numbered from 1.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// `FILE:LINE`, or `default`, or `not set`.
    pub place: String,
    /// A default in words, if it is not a value.
    pub words: Option<String>,
}

impl Source {
    /// All keys that are set, in the order of their names.
    ///
    /// # Errors
    /// When a file is no TOML, or two files set the same key.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let whole = self.parse().map_err(|fault| self.error(&fault))?;
        let mut entries = Vec::new();
        self.add_table(whole.get_ref(), "", &mut entries);
        Ok(entries)
    }

    /// The place that a fault is about which names tables and keys in front, as `store: queue: size is ...` does; else the file.
    pub fn place_of(&self, reason: &str) -> String {
        let entries = self.entries().unwrap_or_default();
        let within = |table: &str| {
            let below = |key: &str| key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
            entries.iter().find(|entry| below(&entry.key))
        };
        let (mut table, mut rest) = (String::new(), reason);
        while let Some((name, behind)) = rest.split_once(": ") {
            let listener = name.strip_prefix("listener ").and_then(|name| name.split(' ').next());
            let below = match listener {
                Some(number) if number.parse::<usize>().is_ok() => Some(format!("listener[{number}]")),
                Some(address) => entries.iter().find_map(|entry| {
                    let table = entry.key.strip_suffix(".address")?;
                    (table.starts_with("listener[") && entry.value == address).then(|| table.to_owned())
                }),
                None if table.is_empty() => Some(name.to_owned()),
                None => Some(format!("{table}.{name}")),
            };
            let Some(below) = below.filter(|below| within(below).is_some()) else { break };
            (table, rest) = (below, behind);
        }
        let dot = if table.is_empty() { "" } else { "." };
        let words = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let keys: Vec<String> = words.take(WORDS_MAX).map(|word| format!("{table}{dot}{word}")).collect();
        let named = keys.iter().find_map(|key| entries.iter().find(|entry| entry.key == *key));
        named.or_else(|| within(&table)).map_or_else(|| self.name().to_owned(), |entry| entry.place.clone())
    }

    fn add_table(&self, table: &DeTable<'_>, above: &str, entries: &mut Vec<Entry>) {
        for (name, value) in table {
            let key = format!("{above}{}", name.get_ref());
            match value.get_ref() {
                DeValue::Table(table) => self.add_table(table, &format!("{key}."), entries),
                DeValue::Array(array) if !array.is_empty() && are_tables(array) => {
                    for (at, table) in array.iter().enumerate() {
                        if let DeValue::Table(table) = table.get_ref() {
                            self.add_table(table, &format!("{key}[{}].", at + 1), entries);
                        }
                    }
                }
                _ => {
                    let value = if is_secret(name.get_ref()) { hidden(value) } else { json(value) };
                    entries.push(Entry { key, value, place: self.line(name.span().start), words: None });
                }
            }
        }
    }
}

/// A value without what stands before the host in its URLs: a password, or a token.
pub fn without_logins(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(without_login(&text)),
        Value::Array(values) => values.into_iter().map(without_logins).collect(),
        value => value,
    }
}

fn without_login(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{HIDDEN}{}", &rest[at..]),
        None => text.to_owned(),
    }
}

/// Keys in force: those that are set, and all others with their defaults. A table that is missing and has none is one line.
pub fn in_force(entries: Vec<Entry>, config: &Config) -> Vec<Entry> {
    let mut all = Vec::new();
    let missing = missing(config);
    for key in keys::all() {
        if let Some(table) = missing.iter().find(|table| is_within(key.name, table)) {
            if all.iter().all(|entry: &Entry| entry.key != *table) {
                all.push(Entry { key: (*table).into(), value: Value::Null, place: NOT_SET.into(), words: None });
            }
            continue;
        }
        for name in expanded(key.name, &entries) {
            let set = entries.iter().find(|entry| entry.key == name).cloned();
            all.push(set.unwrap_or_else(|| default(name, key, config)));
        }
    }
    // What overrides a table, and names that a site chooses, are in no list of keys.
    let others = entries.into_iter().filter(|entry| all.iter().all(|known| known.key != entry.key));
    let others: Vec<Entry> = others.collect();
    all.extend(others);
    all
}

/// The place of what has none.
const DEFAULT: &str = "default";
const NOT_SET: &str = "not set";

/// Whether a key that is set has another value than without it.
pub fn is_changed(entry: &Entry) -> bool {
    let name = without_numbers(&entry.key);
    let default = keys::all().find(|key| key.name == name).and_then(|key| key.value());
    default.is_none_or(|default| {
        default != entry.value && size_of(&default).is_none_or(|size| size_of(&entry.value) != Some(size))
    })
}

/// Tables that are an own thing to have, and are not there.
fn missing(config: &Config) -> Vec<&'static str> {
    let (spam, update) = (config.spam.as_ref(), &config.update);
    let tables = [
        ("spam", spam.is_some()),
        ("spam.bayes", spam.is_some_and(|spam| spam.bayes.is_some())),
        ("spam.reputation", spam.is_some_and(|spam| spam.reputation.is_some())),
        ("spam.fuzzy", spam.is_some_and(|spam| spam.fuzzy.is_some())),
        ("authentication", config.authentication.is_some()),
        ("store", config.store.is_some()),
        ("update", update.folder.is_some()),
        ("clamd", !config.clamd.addresses.is_empty()),
    ];
    tables.into_iter().filter(|(_, is_there)| !is_there).map(|(table, _)| table).collect()
}

fn is_within(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

fn default(name: String, key: Key, config: &Config) -> Entry {
    let value = match key.name {
        "hostname" => Some(config.hostname.as_str().into()),
        _ => key.value(),
    };
    let words = value.is_none().then(|| key.words());
    Entry { key: name, value: value.unwrap_or_default(), place: DEFAULT.into(), words }
}

/// The names that a key has in a configuration: one for each table of a list.
fn expanded(name: &str, entries: &[Entry]) -> Vec<String> {
    let Some((list, rest)) = name.split_once("[]") else { return vec![name.to_owned()] };
    let mut names = Vec::new();
    for number in 1.. {
        let table = format!("{list}[{number}]");
        if !entries.iter().any(|entry| entry.key.starts_with(&table)) {
            break;
        }
        names.extend(expanded(&format!("{table}{rest}"), entries));
    }
    names
}

fn without_numbers(key: &str) -> String {
    let mut name = String::new();
    for (at, part) in key.split(['[', ']']).enumerate() {
        // Every second part is a number.
        name.push_str(if at % 2 == 0 { part } else { "[]" });
    }
    name
}

/// Bytes, as a number or with a unit.
fn size_of(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => {
            let text = text.trim().trim_end_matches("iB").trim_end();
            crate::cli::values::size(text).ok()
        }
        value => value.as_u64(),
    }
}

/// The value that is shown for a secret.
pub const HIDDEN: &str = "(hidden)";

/// A secret is shown if it stands elsewhere.
fn hidden(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) if text.starts_with("file:") || text.starts_with("env:") => Value::from(&**text),
        DeValue::Array(array) => array.iter().map(hidden).collect(),
        _ => Value::from(HIDDEN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_the_place_of_what_it_names() {
        let text = "hostname = 'a'\n[store]\nfolder = 'x'\nsize = '1M'\n[store.queue]\nport = 0\n[[listener]]\naddress = '127.0.0.1:25'\n\
                    [[listener]]\naddress = '127.0.0.1:26'\nforward = 'x:'\n";
        let source = Source::single("a.toml", text);
        for (reason, place) in [
            ("store: size is less than 64 MiB", "a.toml:4"),
            ("store: queue: a limit or a port of 0", "a.toml:6"),
            ("listener 2 (127.0.0.1:26): the address is used twice", "a.toml:10"),
            ("listener 127.0.0.1:26: forward: needs a table [store]", "a.toml:11"),
            ("hostname: \"a b\" is no host", "a.toml:1"),
            ("nothing that it knows", "a.toml"),
        ] {
            assert_eq!(source.place_of(reason), place, "{reason}");
        }
    }

    #[test]
    fn logins_in_urls_are_not_shown() {
        let value = Value::from(vec![
            "postgresql://u:secret@[::1]:5/db",
            "https://token@a.test/b@c",
            "https://a.test/@x",
            "u:p@x",
        ]);
        let shown = ["postgresql://(hidden)@[::1]:5/db", "https://(hidden)@a.test/b@c", "https://a.test/@x", "u:p@x"];
        assert_eq!(without_logins(value), Value::from(shown.to_vec()));
    }

    #[test]
    fn keys_are_shown_with_their_places_and_secrets_are_not() {
        let text = "hostname = 'mx.test'\nthreads = 0x10\n[archives]\npasswords = ['one', 'file:more']\n\n[[listener]]\n\
                    address = '127.0.0.1:25'\n[[listener]]\naddress = '127.0.0.1:26'\n";
        let entries = Source::single("a.toml", text).entries().expect("a configuration");
        let lines: Vec<String> =
            entries.iter().map(|entry| format!("{} {} {}", entry.key, entry.value, entry.place)).collect();
        for wanted in [
            "hostname \"mx.test\" a.toml:1",
            "threads 16 a.toml:2",
            "archives.passwords [\"(hidden)\",\"file:more\"] a.toml:4",
            "listener[1].address \"127.0.0.1:25\" a.toml:7",
            "listener[2].address \"127.0.0.1:26\" a.toml:9",
        ] {
            assert!(lines.iter().any(|line| line == wanted), "{wanted}: {lines:#?}");
        }
        assert_eq!(lines.len(), 5);
    }
}
