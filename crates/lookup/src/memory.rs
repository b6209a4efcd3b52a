//! Cache of answers, bounded in time and memory.
//!
//! Answers with rows and answers without are kept apart, so that guessed names displace no existing ones. Each half has
//! two generations: when the young one is full it replaces the old one, whose answers are dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::pattern::Key;
use crate::row::Row;

/// Rows of an answer.
pub type Rows = Arc<[Row]>;

/// Answers by keys.
#[derive(Debug)]
pub struct Memory {
    found: Half,
    missing: Half,
}

#[derive(Debug)]
struct Half {
    keep: Duration,
    most: usize,
    young: HashMap<Key, (Instant, Rows)>,
    old: HashMap<Key, (Instant, Rows)>,
}

impl Memory {
    /// Makes a cache of at most `most` answers of each kind, each valid for its duration.
    pub fn new(found: Duration, missing: Duration, most: usize) -> Memory {
        let half = |keep| Half { keep, most: most.div_ceil(2), young: HashMap::new(), old: HashMap::new() };
        Memory { found: half(found), missing: half(missing) }
    }

    /// Returns the cached answer.
    pub fn find(&self, key: &Key, now: Instant) -> Option<Rows> {
        self.found.find(key, now).or_else(|| self.missing.find(key, now))
    }

    /// Stores an answer, in place of an earlier one.
    pub fn learn(&mut self, key: &Key, rows: &Rows, now: Instant) {
        let (half, other) = match rows.is_empty() {
            true => (&mut self.missing, &mut self.found),
            false => (&mut self.found, &mut self.missing),
        };
        other.forget(key);
        half.forget(key);
        half.put(key, (now, rows.clone()));
    }
}

impl Half {
    fn find(&self, key: &Key, now: Instant) -> Option<Rows> {
        let (at, rows) = self.young.get(key).or_else(|| self.old.get(key))?;
        (now.saturating_duration_since(*at) < self.keep).then(|| rows.clone())
    }

    fn forget(&mut self, key: &Key) {
        self.young.remove(key);
        self.old.remove(key);
    }

    fn put(&mut self, key: &Key, known: (Instant, Rows)) {
        if self.keep.is_zero() || self.most == 0 {
            return;
        }
        if self.young.len() >= self.most {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key.clone(), known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_hold_for_their_time_and_the_last_one_counts() {
        let (mut memory, now) = (Memory::new(Duration::from_secs(60), Duration::from_secs(10), 10), Instant::now());
        let key = |number: u32| Key::of(&format!("k{number}@d")).unwrap();
        let (some, none): (Rows, Rows) = (Arc::new([Row::default()]), Arc::new([]));
        memory.learn(&key(1), &some, now);
        memory.learn(&key(2), &none, now);
        let known = |memory: &Memory, number, seconds| {
            memory.find(&key(number), now + Duration::from_secs(seconds)).map(|rows| rows.len())
        };
        assert_eq!([known(&memory, 1, 59), known(&memory, 1, 60), known(&memory, 3, 0)], [Some(1), None, None]);
        assert_eq!([known(&memory, 2, 9), known(&memory, 2, 10)], [Some(0), None]);
        memory.learn(&key(1), &none, now);
        assert_eq!(known(&memory, 1, 0), Some(0));
        for number in 10..10_000 {
            memory.learn(&key(number), &none, now);
            assert!(memory.missing.young.len() + memory.missing.old.len() <= 10);
        }
        memory.learn(&key(1), &some, now);
        assert_eq!(known(&memory, 1, 0), Some(1));
    }
}
