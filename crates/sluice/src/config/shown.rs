//! The keys that a configuration sets, with their places: what `sluice config show` prints.
//!
//! Values are as written: `file:PATH` stays what it is. Passwords that stand in the configuration itself are left out.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::{Source, are_tables};
use super::{Error, is_secret};

/// A key that is set.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its tables and its name, with dots; tables of a list are numbered from 1.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// `FILE:LINE`.
    pub place: String,
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
                    let value = if is_secret(name.get_ref()) { hidden(value) } else { shown(value) };
                    entries.push(Entry { key, value, place: self.line(name.span().start) });
                }
            }
        }
    }
}

fn shown(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::from(&**text),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(value) => Value::from(*value),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(array) => array.iter().map(shown).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(name, value)| (name.get_ref().to_string(), shown(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// A secret is shown if it stands elsewhere.
fn hidden(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) if text.starts_with("file:") || text.starts_with("env:") => Value::from(&**text),
        DeValue::Array(array) => array.iter().map(hidden).collect(),
        _ => Value::from("(hidden)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
