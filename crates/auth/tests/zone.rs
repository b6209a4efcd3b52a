//! A zone in memory that answers what is asked, in an order that a seed decides.

use std::collections::BTreeMap;
use std::net::IpAddr;

use auth::Inquiry;
use flow::{Answer, Ask, Outcome, Record, RecordKind, Security};

/// Records of names. A name that is not here does not exist.
#[derive(Debug, Clone, Default)]
pub struct Zone {
    names: BTreeMap<String, Vec<Entry>>,
}

/// Entry of a name.
#[derive(Debug, Clone)]
pub enum Entry {
    Record(Record),
    Alias(String),
    /// Entry of an unavailable name.
    Silence,
}

impl Zone {
    pub fn add(&mut self, name: &str, entry: Entry) {
        self.names.entry(name.trim_end_matches('.').to_ascii_lowercase()).or_default().push(entry);
    }

    pub fn add_address(&mut self, name: &str, address: &str) {
        let record = match address.parse().unwrap() {
            IpAddr::V4(address) => Record::A(address),
            IpAddr::V6(address) => Record::Aaaa(address),
        };
        self.add(name, Entry::Record(record));
    }

    pub fn text(mut self, name: &str, text: &str) -> Zone {
        self.add(name, Entry::Record(Record::Txt(text.as_bytes().into())));
        self
    }

    /// Looks a name up, with at most ten aliases.
    pub fn outcome(&self, ask: &Ask) -> Outcome {
        let mut name = ask.question.name.to_string();
        for _ in 0..10 {
            let Some(entries) = self.names.get(&name) else { return Outcome::NoName };
            let records: Vec<Record> = entries.iter().filter_map(|entry| entry.record(ask.question.kind)).collect();
            if !records.is_empty() {
                return Outcome::Records(records);
            }
            let alias = entries.iter().find_map(|entry| match entry {
                Entry::Alias(target) => Some(target.trim_end_matches('.').to_ascii_lowercase()),
                _ => None,
            });
            match alias {
                Some(target) => name = target,
                None if entries.iter().any(|entry| matches!(entry, Entry::Silence)) => return Outcome::Unavailable,
                None => return Outcome::NoData,
            }
        }
        Outcome::Unavailable
    }

    pub fn answer(&self, ask: &Ask) -> Answer {
        Answer { id: ask.id, outcome: self.outcome(ask), security: Security::Unknown }
    }

    /// Answers everything that has been asked, last first where `backwards`.
    pub fn answer_all(&self, inquiry: &mut Inquiry, backwards: bool) {
        let mut asks: Vec<Ask> = std::iter::from_fn(|| inquiry.ask()).collect();
        assert!(!asks.is_empty(), "waiting for nothing");
        if backwards {
            asks.reverse();
        }
        asks.iter().for_each(|ask| inquiry.answer(self.answer(ask)));
    }
}

impl Entry {
    fn record(&self, kind: RecordKind) -> Option<Record> {
        let Entry::Record(record) = self else { return None };
        let is_of_kind = matches!(
            (record, kind),
            (Record::A(_), RecordKind::A)
                | (Record::Aaaa(_), RecordKind::Aaaa)
                | (Record::Mx(..), RecordKind::Mx)
                | (Record::Ptr(_), RecordKind::Ptr)
                | (Record::Txt(_), RecordKind::Txt)
        );
        is_of_kind.then(|| record.clone())
    }
}
