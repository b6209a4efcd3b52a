//! Answers that are kept: as long as they say, within bounds, and as many as there is room for.

use std::collections::{BTreeMap, HashMap};

use flow::{Outcome, Question, Record};

use super::lookup::Found;

/// How long an answer is kept at the least and at the most, in seconds: one that says less is asked once for the mails of a
/// moment, and one that says more is looked at again every day.
const SECONDS: [u32; 2] = [5, 86_400];

/// The same of an answer that there is nothing (RFC 2308 section 5: hours, and not days).
const NOTHING_SECONDS: [u32; 2] = [5, 3_600];

/// How long it is believed that nobody can answer (RFC 9520 section 3.2: 5 minutes at the most).
const UNAVAILABLE_SECONDS: u32 = 5;

/// Bytes of an entry besides its text.
const ENTRY_BYTES: usize = 256;

/// The answers.
pub struct Cache {
    bytes_max: usize,
    bytes: usize,
    entries: HashMap<Question, Entry>,
    /// The questions by the end of their answers, in milliseconds, and a number.
    ends: BTreeMap<(u64, u64), Question>,
    number: u64,
}

struct Entry {
    found: Found,
    end: (u64, u64),
    bytes: usize,
}

impl Cache {
    /// An empty one of this size.
    pub fn new(bytes_max: usize) -> Cache {
        Cache { bytes_max, bytes: 0, entries: HashMap::new(), ends: BTreeMap::new(), number: 0 }
    }

    /// Answer that is valid at this time, in milliseconds.
    pub fn get(&self, question: &Question, now: u64) -> Option<&Found> {
        self.entries.get(question).filter(|entry| now < entry.end.0).map(|entry| &entry.found)
    }

    /// Keeps an answer. Those that end soonest make room.
    pub fn insert(&mut self, question: Question, found: Found, now: u64) {
        self.forget(&question);
        let bytes = ENTRY_BYTES.saturating_add(2 * question.name.len()).saturating_add(bytes_of(&found.outcome));
        let end = now.saturating_add(1_000 * u64::from(seconds(&found)));
        while self.bytes.saturating_add(bytes) > self.bytes_max {
            let Some((_, soonest)) = self.ends.pop_first() else { return };
            self.forget(&soonest);
        }
        self.number += 1;
        let end = (end, self.number);
        self.bytes += bytes;
        self.ends.insert(end, question.clone());
        self.entries.insert(question, Entry { found, end, bytes });
    }

    fn forget(&mut self, question: &Question) {
        if let Some(entry) = self.entries.remove(question) {
            self.bytes -= entry.bytes;
            self.ends.remove(&entry.end);
        }
    }
}

fn seconds(found: &Found) -> u32 {
    match &found.outcome {
        Outcome::Records(_) => found.seconds.clamp(SECONDS[0], SECONDS[1]),
        Outcome::NoData | Outcome::NoName => found.seconds.clamp(NOTHING_SECONDS[0], NOTHING_SECONDS[1]),
        Outcome::Unavailable => UNAVAILABLE_SECONDS,
    }
}

fn bytes_of(outcome: &Outcome) -> usize {
    let Outcome::Records(records) = outcome else { return 0 };
    let text = |record: &Record| match record {
        Record::Mx(_, name) | Record::Srv(_, name) | Record::Ns(name) | Record::Ptr(name) => name.len(),
        Record::Txt(bytes) | Record::Tlsa(bytes) => bytes.len(),
        Record::A(_) | Record::Aaaa(_) => 0,
    };
    records.iter().map(|record| size_of::<Record>() + text(record)).sum()
}

#[cfg(test)]
mod tests {
    use flow::{RecordKind, Security};

    use super::*;

    fn question(name: &str) -> Question {
        Question { name: name.into(), kind: RecordKind::Txt }
    }

    fn found(outcome: Outcome, seconds: u32) -> Found {
        Found { outcome, security: Security::Unknown, seconds }
    }

    #[test]
    fn answers_are_kept_as_long_as_they_say_within_bounds() {
        let mut cache = Cache::new(1 << 20);
        let records = || Outcome::Records(vec![Record::Txt(b"x".as_slice().into())]);
        for (outcome, seconds, kept) in [
            (records(), 60, 60),
            (records(), 0, 5),
            (records(), u32::MAX, 86_400),
            (Outcome::NoName, 86_400, 3_600),
            (Outcome::Unavailable, 60, 5),
        ] {
            cache.insert(question("a"), found(outcome, seconds), 1_000);
            assert!(cache.get(&question("a"), 1_000 + kept * 1_000 - 1).is_some(), "{kept}");
            assert!(cache.get(&question("a"), 1_000 + kept * 1_000).is_none(), "{kept}");
        }
        assert_eq!(cache.entries.len(), 1);
        assert!(cache.get(&Question { kind: RecordKind::A, ..question("a") }, 1_000).is_none());
    }

    #[test]
    fn those_that_end_soonest_make_room() {
        let mut cache = Cache::new(3 * (ENTRY_BYTES + 2));
        for (name, seconds) in [("a", 300), ("b", 100), ("c", 200), ("d", 400)] {
            cache.insert(question(name), found(Outcome::NoData, seconds), 0);
        }
        let kept = |cache: &Cache| ["a", "b", "c", "d"].map(|name| cache.get(&question(name), 0).is_some());
        assert_eq!(kept(&cache), [true, false, true, true]);
        let huge = Outcome::Records(vec![Record::Txt(vec![b'x'; 10_000].into())]);
        cache.insert(question("e"), found(huge, 60), 0);
        assert_eq!((kept(&cache), cache.bytes, cache.ends.len()), ([false; 4], 0, 0), "more than there is room for");
    }
}
