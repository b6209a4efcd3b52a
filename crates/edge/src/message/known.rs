//! Results of messages inspected before, by the permanent names that a mailbox gives them.
//!
//! Nothing of a message is kept: a digest of its name, and what was to be overwritten in it. A reload forgets it all, for
//! what was clean need not be so for new signatures. Bounds: `ENTRIES_MAX` messages, the oldest go first; of each
//! `BLANKS_MAX` places.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use flow::Blank;
use sha2::{Digest, Sha256};

/// Messages remembered.
const ENTRIES_MAX: usize = 50_000;

/// Places remembered in one message; one with more is not remembered.
const BLANKS_MAX: usize = 64;

/// Result for a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fate {
    /// Ranges to overwrite.
    pub blanks: Vec<Blank>,
    /// Why it is not handed out at all.
    pub refusal: Option<String>,
    /// It is in the quarantine.
    pub kept: bool,
    /// Identity of the message that had the name, if known.
    pub identity: Option<Identity>,
}

impl Fate {
    /// Nothing is to be done about it.
    pub fn is_clean(&self) -> bool {
        self.blanks.is_empty() && self.refusal.is_none()
    }
}

/// Identity of a message, in case its name is reused against the rules: 16 bytes of a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity([u8; 16]);

impl Identity {
    /// Makes the identity of these parts.
    pub fn new(parts: &[&[u8]]) -> Identity {
        Identity(digest(0, parts))
    }
}

/// A message's name, and which message it is, where that can be known.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    /// Its name.
    pub key: Key,
    /// Identity of the message.
    pub identity: Option<Identity>,
}

/// A message's name: 16 bytes of a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 16]);

impl Key {
    /// The name that these parts make together: door, hop, mailbox, folder, message.
    pub fn new(generation: u64, parts: &[&[u8]]) -> Key {
        Key(digest(generation, parts))
    }
}

fn digest(generation: u64, parts: &[&[u8]]) -> [u8; 16] {
    let mut digest = Sha256::new();
    digest.update(generation.to_le_bytes());
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let digest: [u8; 32] = digest.finalize().into();
    let mut short = [0; 16];
    short.copy_from_slice(&digest[..16]);
    short
}

/// All that is known; shared by all event loops.
#[derive(Debug, Default)]
pub struct Known(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    fates: HashMap<Key, Arc<Fate>>,
    oldest_first: VecDeque<Key>,
}

impl Known {
    /// Result for a message; none if another message had the name.
    pub fn fate(&self, named: &Named) -> Option<Arc<Fate>> {
        let fate = self.0.lock().expect("no holder panics").fates.get(&named.key).cloned()?;
        let another = named.identity.is_some() && fate.identity.is_some() && named.identity != fate.identity;
        (!another).then_some(fate)
    }

    /// Remembers it.
    pub fn remember(&self, key: Key, fate: Fate) {
        if fate.blanks.len() > BLANKS_MAX {
            return;
        }
        let mut entries = self.0.lock().expect("no holder panics");
        if entries.fates.insert(key, Arc::new(fate)).is_some() {
            return;
        }
        entries.oldest_first.push_back(key);
        if entries.oldest_first.len() > ENTRIES_MAX
            && let Some(oldest) = entries.oldest_first.pop_front()
        {
            entries.fates.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(Key::new(1, &[b"ab", b"c"]), Key::new(1, &[b"a", b"bc"]));
        assert_ne!(Key::new(1, &[b"a"]), Key::new(2, &[b"a"]));
    }

    #[test]
    fn another_message_of_the_same_name_is_not_known() {
        let known = Known::default();
        let key = Key::new(1, &[b"a"]);
        let named = |date: Option<&[u8]>| Named { key, identity: date.map(|date| Identity::new(&[date])) };
        known.remember(key, Fate { identity: named(Some(b"1")).identity, ..Fate::default() });
        assert!(known.fate(&named(Some(b"1"))).is_some() && known.fate(&named(None)).is_some());
        assert!(known.fate(&named(Some(b"2"))).is_none());
        known.remember(key, Fate::default());
        assert!(known.fate(&named(Some(b"2"))).is_some_and(|fate| fate.identity.is_none()));
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let known = Known::default();
        let fate = |key| known.fate(&Named { key, identity: None });
        let key = |number: usize| Key::new(1, &[&number.to_le_bytes()]);
        (0..=ENTRIES_MAX).for_each(|number| known.remember(key(number), Fate::default()));
        assert_eq!(fate(key(0)), None);
        assert!(fate(key(1)).is_some() && fate(key(ENTRIES_MAX)).is_some());
    }
}
