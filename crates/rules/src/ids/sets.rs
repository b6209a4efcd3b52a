//! Data sets: texts and digests that rules ask for and add to, and reputations of texts.
//!
//! Sets that rules add to are kept by the host, apart from those of the files.

use core::net::IpAddr;
use std::collections::{HashMap, HashSet};

use super::buffer::Buffer;
use super::digests::Kinds;
use super::lexer::{negated, text};
use super::limits::Limits;
use super::rule::{Order, Section, SetChange, Test};
use super::transform::hex;

/// The kind of the values of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    String,
    Md5,
    Sha1,
    Sha256,
    /// Addresses, in 16 bytes.
    Address,
}

impl Kind {
    /// Whether a value may be in a set: digests are what `to_md5` and `to_sha256` make.
    fn takes(self, value: &[u8]) -> bool {
        match self {
            Kind::String => true,
            Kind::Md5 => value.len() == 16,
            Kind::Sha1 => value.len() == 20,
            Kind::Sha256 => value.len() == 32,
            Kind::Address => value.len() == 16,
        }
    }
}

/// One set.
#[derive(Debug, Clone, Default)]
struct Set {
    kind: Kind,
    entries: HashMap<Vec<u8>, i64>,
}

/// The sets of some rules, by number.
#[derive(Debug, Clone, Default)]
pub(super) struct Sets {
    names: HashMap<String, usize>,
    sets: Vec<Set>,
    /// Files whose content has come, and those that are still wanted.
    files: HashMap<String, Option<Vec<u8>>>,
}

/// Entries that rules have added to sets and removed from them.
#[derive(Debug, Default)]
pub(super) struct Added {
    added: HashSet<(usize, Vec<u8>)>,
    removed: HashSet<(usize, Vec<u8>)>,
}

impl Sets {
    /// Hands in the content of a file that rules name.
    pub fn put_file(&mut self, name: &str, content: Vec<u8>) {
        self.files.insert(name.into(), Some(content));
    }

    /// Reads `dataset` or `datarep`.
    pub fn read(&mut self, keyword: &str, value: &[u8], limits: &Limits) -> Result<Test, String> {
        let value = text(value);
        let mut list = value.split(',').map(str::trim);
        let mut next = || list.next().filter(|item| !item.is_empty()).ok_or("values are missing");
        if keyword == "datarep" {
            let (name, order, amount) = (next()?, next()?, next()?);
            let order = Order::named(order.as_bytes()).ok_or("an order that is not known")?;
            let value = amount.parse().map_err(|_| "no number")?;
            let set = self.set(name, list, limits)?;
            return Ok(Test::Reputation { set, order, value });
        }
        let change = match next()? {
            "set" => SetChange::Set,
            "unset" => SetChange::Unset,
            "isset" => SetChange::IsSet,
            "isnotset" => SetChange::IsNotSet,
            verb => return Err(format!("no verb {verb}")),
        };
        let name = next()?;
        Ok(Test::Set { set: self.set(name, list, limits)?, change })
    }

    /// Reads `filemd5`, `filesha1` or `filesha256`: the list of digests that has the one of the file, or has it not.
    pub fn read_digests(&mut self, keyword: &str, value: &[u8], limits: &Limits) -> Result<Test, String> {
        let (is_negated, file) = negated(value);
        let (file, name) = (text(file), format!("{keyword} {}", text(file)));
        let kind = match keyword {
            "filemd5" => Kind::Md5,
            "filesha1" => Kind::Sha1,
            _ => Kind::Sha256,
        };
        let change = if is_negated { SetChange::IsNotSet } else { SetChange::IsSet };
        if let Some(&set) = self.names.get(&name) {
            return Ok(Test::Set { set, change });
        }
        let content = self.files.get(&file).cloned().flatten().ok_or_else(|| format!("{file} cannot be read"))?;
        let mut set = Set { kind, entries: HashMap::new() };
        fill(&mut set, &content, limits)?;
        self.sets.push(set);
        self.names.insert(name, self.sets.len() - 1);
        Ok(Test::Set { set: self.sets.len() - 1, change })
    }

    /// The digests of files that sections ask for.
    pub fn digests<'s>(&self, sections: impl Iterator<Item = &'s Section>) -> Kinds {
        let of_files = sections.filter(|section| section.buffer == Buffer::FileDigest);
        let mut kinds = Kinds::default();
        for test in of_files.flat_map(|section| &section.tests) {
            let Test::Set { set, .. } = test else { continue };
            match self.sets.get(*set).map(|set| set.kind) {
                Some(Kind::Md5) => kinds.md5 = true,
                Some(Kind::Sha1) => kinds.sha1 = true,
                Some(Kind::Sha256) => kinds.sha256 = true,
                _ => {}
            }
        }
        kinds
    }

    /// The number of a set; it is made where it is named with its type first.
    fn set<'v>(&mut self, name: &str, words: impl Iterator<Item = &'v str>, limits: &Limits) -> Result<usize, String> {
        let (mut kind, mut file, mut is_needed) = (None, None, false);
        for word in words {
            let (word, rest) = word.split_once(char::is_whitespace).unwrap_or((word, ""));
            match (word, rest.trim()) {
                ("type", "string") => kind = Some(Kind::String),
                ("type", "md5") => kind = Some(Kind::Md5),
                ("type", "sha256") => kind = Some(Kind::Sha256),
                ("type", "ip" | "ipv4") => kind = Some(Kind::Address),
                ("load", name) => (file, is_needed) = (Some(name.to_string()), true),
                ("state", name) => file = Some(name.to_string()),
                ("save" | "memcap" | "hashsize", _) => {}
                (word, rest) => return Err(format!("{word} {rest} is not supported")),
            }
        }
        if let Some(&known) = self.names.get(name) {
            return Ok(known);
        }
        let kind = kind.ok_or("a set without a type that no rule before it has named")?;
        let mut set = Set { kind, entries: HashMap::new() };
        if let Some(file) = file {
            // A file of states is made by what it is kept for.
            match self.files.get(&file).cloned().flatten() {
                Some(content) => fill(&mut set, &content, limits)?,
                None if is_needed => return Err(format!("{file} cannot be read")),
                None => {}
            }
        }
        self.sets.push(set);
        self.names.insert(name.into(), self.sets.len() - 1);
        Ok(self.sets.len() - 1)
    }

    /// The name of a set.
    pub fn name(&self, set: usize) -> &str {
        self.names.iter().find(|(_, number)| **number == set).map_or("", |(name, _)| name)
    }

    fn contains(&self, set: usize, key: &[u8], added: &Added) -> bool {
        let entry = (set, key.to_vec());
        let is_listed = self.sets.get(set).is_some_and(|set| set.entries.contains_key(key));
        (is_listed || added.added.contains(&entry)) && !added.removed.contains(&entry)
    }

    /// Asks and changes a set. A value that cannot be in it matches nothing.
    pub fn try_value(&self, set: usize, change: SetChange, value: &[u8], added: &mut Added, limits: &Limits) -> bool {
        if !self.sets.get(set).is_some_and(|set| set.kind.takes(value)) {
            return false;
        }
        let key = value.to_vec();
        let is_set = self.contains(set, &key, added);
        match change {
            SetChange::IsSet => is_set,
            SetChange::IsNotSet => !is_set,
            SetChange::Set => {
                added.removed.remove(&(set, key.clone()));
                if !is_set && added.added.len() < limits.set_entries_max.min(limits.bits_max) {
                    added.added.insert((set, key));
                }
                !is_set
            }
            SetChange::Unset => {
                added.added.remove(&(set, key.clone()));
                if is_set && added.removed.len() < limits.bits_max {
                    added.removed.insert((set, key));
                }
                is_set
            }
        }
    }

    /// Asks and changes a set by an address.
    pub fn has_address(&self, test: &Test, address: IpAddr, added: &mut Added, limits: &Limits) -> bool {
        let key = address_key(address);
        match test {
            Test::Set { set, change } => self.try_value(*set, *change, &key, added, limits),
            Test::Reputation { set, order, value } => {
                self.reputation(*set, &key).is_some_and(|reputation| order.holds(reputation, *value))
            }
            _ => false,
        }
    }

    /// The reputation of a value.
    pub fn reputation(&self, set: usize, value: &[u8]) -> Option<i64> {
        let set = self.sets.get(set)?;
        set.entries.get(value).filter(|_| set.kind.takes(value)).copied()
    }
}

/// An address as sets have it: that of version 4 is the same in version 6.
fn address_key(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Lines: an address, Base64 of a text or a digest, and a reputation behind a comma.
fn fill(set: &mut Set, content: &[u8], limits: &Limits) -> Result<(), String> {
    for line in content.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
        if set.entries.len() >= limits.set_entries_max {
            return Err("a file with too many values".into());
        }
        let (value, reputation) = match line.iter().position(|&byte| byte == b',') {
            Some(comma) => (&line[..comma], text(&line[comma + 1..]).trim().parse().unwrap_or(0)),
            None => (line, 0),
        };
        let key = match set.kind {
            Kind::String => text::base64::decode_loosely(&text(value)),
            Kind::Address => match text(value).trim().parse() {
                Ok(address) => address_key(address).to_vec(),
                Err(_) => continue,
            },
            Kind::Md5 | Kind::Sha1 | Kind::Sha256 => {
                value.chunks(2).map_while(|pair| Some(hex(pair[0])? << 4 | hex(*pair.get(1)?)?)).collect()
            }
        };
        set.entries.insert(key, reputation);
    }
    Ok(())
}
