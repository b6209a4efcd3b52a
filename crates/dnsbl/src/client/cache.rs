//! What lists have answered: by prefix where they answer prefixes, by address where not.
//!
//! Two generations of half the size: what is asked for again moves to the younger one, and when that is full the older is
//! forgotten.

use std::collections::HashMap;

use crate::prefix::{Hosts, Networks, Prefix};

/// What is known or asked of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// Whether it answers prefixes.
    Capability,
    /// An IPv4 /24, shifted right.
    Prefix4(u32),
    /// An IPv6 /48, shifted right.
    Prefix6(u64),
    /// An IPv4 address.
    Address4(u32),
    /// An IPv6 address.
    Address6(u128),
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// For which families prefixes are answered.
    Capability {
        /// /24s of IPv4.
        ip4: bool,
        /// /48s of IPv6.
        ip6: bool,
    },
    /// A /24.
    Prefix4(Prefix<Hosts>),
    /// A /48.
    Prefix6(Prefix<Networks>),
    /// An address.
    Address(Vec<[u8; 4]>),
}

#[derive(Debug, Clone)]
struct Entry {
    known: Known,
    expires: u64,
    /// From when on it is asked for again before it expires.
    renew: u64,
}

/// What was found.
#[derive(Debug)]
pub struct Hit<'a> {
    /// What was answered.
    pub known: &'a Known,
    /// Whether it should be asked for again soon.
    pub is_old: bool,
}

/// Answers of all lists; a list is a number.
#[derive(Debug)]
pub struct Cache {
    young: HashMap<(usize, Key), Entry>,
    old: HashMap<(usize, Key), Entry>,
    half: usize,
}

impl Cache {
    /// For so many answers.
    pub fn new(entries_max: usize) -> Cache {
        Cache { young: HashMap::new(), old: HashMap::new(), half: (entries_max / 2).max(1) }
    }

    /// Keeps an answer from `now` on, in milliseconds, for some seconds.
    pub fn insert(&mut self, key: (usize, Key), known: Known, ttl: u32, now: u64) {
        let milliseconds = u64::from(ttl).saturating_mul(1_000);
        let expires = now.saturating_add(milliseconds);
        let renew = expires.saturating_sub(milliseconds / 10);
        self.old.remove(&key);
        self.add(key, Entry { known, expires, renew });
    }

    fn add(&mut self, key: (usize, Key), entry: Entry) {
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.old = core::mem::take(&mut self.young);
        }
        self.young.insert(key, entry);
    }

    /// What was answered, unless it has expired. An old answer is reported as old once.
    pub fn get(&mut self, key: (usize, Key), now: u64) -> Option<Hit<'_>> {
        if let Some(entry) = self.old.remove(&key) {
            self.add(key, entry);
        }
        let entry = self.young.get_mut(&key).filter(|entry| now < entry.expires)?;
        let is_old = now >= entry.renew;
        if is_old {
            entry.renew = u64::MAX;
        }
        Some(Hit { known: &entry.known, is_old })
    }
}
