//! From Postfix's configuration to one of Sluice: what is the same is set, and all else is noted.
//!
//! Two shapes are made: a mail server, whose recipients are accounts of the store, and a gateway, where all domains are relayed to
//! one next hop.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::draft::{Draft, Part};
use super::parameters::{Parameters, Place};
use super::services::Service;
use super::tables::{self, Table};
use super::{access, doors, people, reasons, ways};

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
    done: BTreeSet<String>,
}

/// The shape of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Recipients have accounts here.
    Server,
    /// All domains go to this next hop.
    Gateway(String),
}

/// Translates a configuration.
pub fn translate(folder: &Path, parameters: &Parameters, services: &[Service]) -> Draft {
    let (draft, done) = (Draft::default(), BTreeSet::new());
    let mut translation = Translation { folder, parameters, services, draft, done };
    translation.all();
    translation.draft
}

impl Translation<'_> {
    fn all(&mut self) {
        self.set(Part::Top, "hostname", "myhostname", |value| Some(json!(value)));
        if self.parameters.place("myhostname").is_none() {
            let host = self.parameters.value("myhostname");
            self.draft.key(Part::Top, "hostname", &json!(host), None);
        }
        let has_tls = self.tls();
        let shape = ways::shape(self);
        match &shape {
            Shape::Server => {
                let at = json!("/var/lib/sluice/store");
                self.draft.key(Part::Store, "folder", &at, None);
                ways::relay(self);
                people::accounts(self);
            }
            Shape::Gateway(_) => people::of_gateway(self),
        }
        ways::queue(self, &shape);
        access::trust(self);
        doors::listeners(self, &shape, has_tls);
        self.rest();
    }

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
        let value = self.parameters.value(name);
        self.draft.note(Some(&place), format!("{name} = {value}"), why);
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

    /// The tables of a list.
    pub fn tables(&self, name: &str) -> Vec<Table> {
        self.parameters.list(name).iter().map(|word| Table::parse(word)).collect()
    }

    /// Words of a list of names, in which a path stands for the lines of its file and a table for its keys.
    pub fn names(&mut self, name: &str) -> Vec<String> {
        self.done(name);
        let mut found = Vec::new();
        for word in self.parameters.list(name) {
            let table = Table::parse(&word);
            if table.kind.is_empty() && !word.starts_with('/') {
                found.push(word.trim_start_matches('!').to_owned());
                continue;
            }
            let table = if table.kind.is_empty() { Table { kind: "texthash".into(), ..table } } else { table };
            match table.read(self.folder, self.parameters) {
                tables::Contents::Entries(entries) => found.extend(entries.into_iter().map(|entry| entry.key)),
                tables::Contents::Unread(why) => self.note(name, why),
                _ => self.note(name, format!("{word}: its names cannot be listed")),
            }
        }
        found
    }

    /// Certificates and versions; whether a certificate is at hand.
    fn tls(&mut self) -> bool {
        let minimum = |value: &str| {
            let only_3 = value.contains(">=TLSv1.3") || value.contains("!TLSv1.2");
            Some(json!(if only_3 { "1.3" } else { "1.2" }))
        };
        let protocols = ["smtpd_tls_protocols", "smtpd_tls_mandatory_protocols"];
        let strictest = protocols.into_iter().find(|name| self.parameters.is_set(name));
        protocols.iter().for_each(|name| self.done(name));
        if let Some(name) = strictest {
            self.set(Part::Tls, "minimum", name, minimum);
        }
        let chains = self.parameters.list("smtpd_tls_chain_files");
        let mut pairs: Vec<(&str, String, String)> =
            chains.iter().map(|file| ("smtpd_tls_chain_files", file.clone(), file.clone())).collect();
        self.done("smtpd_tls_chain_files");
        for kind in ["", "ec", "d"] {
            let [chain, key] = ["cert", "key"].map(|part| format!("smtpd_tls_{kind}{part}_file"));
            let (chain_file, key_file) = (self.parameters.value(&chain), self.parameters.value(&key));
            let key_file = if key_file.is_empty() || key_file.starts_with('$') { chain_file.clone() } else { key_file };
            [&chain, &key].into_iter().for_each(|name| self.done(name));
            if chain_file.is_empty() || chain_file == "none" {
                continue;
            }
            match kind {
                "" => pairs.push(("smtpd_tls_cert_file", chain_file, key_file)),
                "ec" => pairs.push(("smtpd_tls_eccert_file", chain_file, key_file)),
                _ => self.note(&chain, "certificates with DSA keys are not used any more"),
            }
        }
        let mut has_one = false;
        for (name, chain, key) in pairs {
            let [chain, key] = [chain, key].map(|file| self.folder.join(file));
            if let Some(missing) = [&chain, &key].into_iter().find(|file| std::fs::File::open(file).is_err()) {
                let why = format!("{} cannot be read here: without a certificate there is no TLS", missing.display());
                self.note(name, why);
                continue;
            }
            has_one = true;
            let place = self.place(name);
            self.draft.line(Part::Certificates, "[[tls.certificate]]");
            self.draft.key(Part::Certificates, "chain", &json!(tables::shown(&chain)), place.as_ref());
            self.draft.key(Part::Certificates, "key", &json!(tables::shown(&key)), None);
        }
        has_one
    }

    /// What no other part has dealt with.
    fn rest(&mut self) {
        for (place, line) in &self.parameters.void {
            self.draft.note(Some(place), line.clone(), "this line sets nothing, or a later one sets it again");
        }
        let names: Vec<String> = self.parameters.all().map(|(name, _, _)| name.to_owned()).collect();
        for name in names.iter().filter(|name| !self.done.contains(*name)).cloned().collect::<Vec<_>>() {
            let value = self.parameters.value(&name);
            let is_empty = value.is_empty() || value == "0" && name.ends_with("_limit");
            match reasons::reason(&name) {
                Some(None) => {}
                _ if is_empty || self.parameters.is_named(&name) => {}
                Some(Some(why)) => self.note(&name, why),
                None => self.note(&name, "there is no such setting"),
            }
        }
    }
}
