//! A translation under way: what is read, what is made of it, and what has been dealt with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::draft::{Draft, Part};
use super::parameters::{Parameters, Place};
use super::services::Service;
use super::tables::{self, Table};

/// A translation under way.
pub struct Translation<'a> {
    /// The folder of the configuration.
    pub folder: &'a Path,
    /// `main.cf`.
    pub parameters: &'a Parameters,
    /// `master.cf`.
    pub services: &'a [Service],
    /// The outcome.
    pub draft: Draft,
    /// Parameters that are dealt with.
    pub done: BTreeSet<String>,
    /// Tables that have become a `[[lookup]]`.
    pub lookups: Vec<Lookup>,
    /// Mail has a way out.
    pub has_way: bool,
    /// Domains are relayed to, and their recipients are in a table.
    pub has_recipients: bool,
}

/// A table that has become a `[[lookup]]`.
pub struct Lookup {
    /// Its name there.
    pub name: String,
    /// The file of its settings.
    pub path: PathBuf,
    /// It finds accounts of aliases, with another query.
    pub is_alias: bool,
}

/// The shape of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Recipients have accounts here.
    Server,
    /// All domains go to this next hop.
    Gateway(String),
}

impl Translation<'_> {
    /// The place of a parameter.
    pub fn place(&self, name: &str) -> Option<Place> {
        self.parameters.place(name).cloned()
    }

    /// A parameter is dealt with.
    pub fn done(&mut self, name: &str) {
        self.done.insert(name.to_owned());
    }

    /// Notes that a parameter is not translated, and why.
    pub fn note(&mut self, name: &str, why: impl Into<String>) {
        self.done(name);
        let Some(place) = self.place(name) else { return };
        let setting = told(name, &self.parameters.value(name));
        self.draft.note(Some(&place), setting, why);
    }

    /// Sets a key to what becomes of a parameter, if a line sets that.
    pub fn set(&mut self, part: Part, key: &str, name: &str, make: impl Fn(&str) -> Option<Value>) {
        self.done(name);
        let Some(place) = self.place(name).filter(|_| self.parameters.is_set(name)) else { return };
        match make(&self.parameters.value(name)) {
            Some(value) => self.draft.key(part, key, &value, Some(&place)),
            None => self.note(name, "the value is not understood"),
        }
    }

    /// `myorigin`, which may be the first line of a file.
    pub fn origin(&self) -> String {
        let value = self.parameters.value("myorigin");
        let in_file = value.starts_with('/').then(|| tables::read(Path::new(&value)).ok()).flatten();
        let line = in_file.as_deref().unwrap_or(&value).lines().next().unwrap_or_default().trim().to_owned();
        if line.is_empty() || line.starts_with('/') { self.parameters.value("myhostname") } else { line }
    }

    /// The tables of a list.
    pub fn tables(&self, name: &str) -> Vec<Table> {
        self.parameters.list(name).iter().map(|word| Table::parse(word)).collect()
    }

    /// Words of a list of names, in which a path stands for the lines of its file and a table for its keys.
    pub fn names(&mut self, name: &str) -> Vec<String> {
        let words = self.parameters.list(name);
        self.listed(name, words)
    }

    /// The names that words of a parameter stand for. What is excluded from networks is among them, with its `!`.
    pub fn listed(&mut self, name: &str, words: Vec<String>) -> Vec<String> {
        self.done(name);
        let mut found = Vec::new();
        for word in words {
            let table = Table::parse(&word);
            if table.kind.is_empty() && !word.starts_with('/') {
                match word.strip_prefix('!') {
                    Some(_) if name == "mynetworks" => found.push(word),
                    Some(word) => self.note(name, format!("{word} is left out of the list there, and is not here")),
                    None => found.push(word),
                }
                continue;
            }
            let table = if table.kind.is_empty() { Table { kind: "texthash".into(), ..table } } else { table };
            match table.read(self.folder) {
                tables::Contents::Entries(entries) => found.extend(entries.into_iter().map(|entry| entry.key)),
                tables::Contents::Unread(why) => self.note(name, why),
                _ => self.note(name, format!("{word}: its names cannot be listed")),
            }
        }
        found
    }
}

/// A setting as it is shown: of one with passwords only that it is there, since a table may stand in it as a whole.
pub fn told(name: &str, value: &str) -> String {
    if name.ends_with("_password_maps") { format!("{name} = ...") } else { format!("{name} = {value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        assert_eq!(told("smtp_sasl_password_maps", "static:user:secret"), "smtp_sasl_password_maps = ...");
        assert_eq!(told("relayhost", "[a]"), "relayhost = [a]");
    }
}
