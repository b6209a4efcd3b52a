//! Memory of scripts, as annotations of the account: senders answered by `vacation`, who get no second answer before
//! a date (RFC 5230, section 4.2), and mails that came (`duplicate`, RFC 7352). Each is a digest and its expiry, 24
//! bytes.
//!
//! At most [`REMEMBERED_MAX`] of each are known. Where that many were answered nobody else is, so that whoever forges many senders has
//! not as many answered; of mails the one is forgotten that would be first.

use sha2::{Digest as _, Sha256};
use sieve::{Seen, Vacation};
use store::Account;

/// The annotation with those who were answered.
pub(crate) const ANSWERED: &[u8] = b"sieve/answered";
/// The one with the mails that came.
pub(crate) const SEEN: &[u8] = b"sieve/seen";

/// Entries of each kind.
const REMEMBERED_MAX: usize = 1_000;

const KEY_BYTES: usize = 16;
const ENTRY_BYTES: usize = KEY_BYTES + 8;

type Key = [u8; KEY_BYTES];

pub(crate) struct Remembered {
    now: i64,
    /// Digests, each with its expiry.
    entries: Vec<(Key, i64)>,
}

impl Remembered {
    /// Entries of an annotation that have not expired.
    pub fn of(account: &Account, name: &[u8], now: i64) -> Remembered {
        let value = account.annotations.get(name).map(|value| &**value).unwrap_or_default();
        let entries = value.chunks_exact(ENTRY_BYTES).filter_map(|entry| {
            let (key, until) = entry.split_at(KEY_BYTES);
            Some((key.try_into().ok()?, i64::from_le_bytes(until.try_into().ok()?)))
        });
        Remembered { now, entries: entries.filter(|(_, until)| *until > now).collect() }
    }

    /// Whether an answer is to be sent; if so, that is noted.
    pub fn is_due(&mut self, vacation: &Vacation) -> bool {
        let key = key(vacation.to.to_ascii_lowercase().as_bytes(), vacation.handle.as_ref());
        if self.entries.iter().any(|(known, _)| *known == key) || self.entries.len() >= REMEMBERED_MAX {
            return false;
        }
        self.entries.push((key, self.until(vacation.seconds)));
        true
    }

    /// Whether a mail came before.
    pub fn has(&self, handle: &str, id: &str) -> bool {
        let key = key(handle.as_bytes(), id.as_bytes());
        self.entries.iter().any(|(known, _)| *known == key)
    }

    /// A mail has come.
    pub fn note(&mut self, seen: &Seen) {
        let key = key(seen.handle.as_bytes(), seen.id.as_bytes());
        self.entries.retain(|(known, _)| *known != key);
        if self.entries.len() >= REMEMBERED_MAX {
            let first = self.entries.iter().enumerate().min_by_key(|(_, (_, until))| *until).map(|(at, _)| at);
            first.map(|at| self.entries.swap_remove(at));
        }
        self.entries.push((key, self.until(seen.seconds)));
    }

    fn until(&self, seconds: u64) -> i64 {
        self.now.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX))
    }

    pub fn encode(&self) -> Vec<u8> {
        self.entries.iter().flat_map(|(key, until)| key.iter().copied().chain(until.to_le_bytes())).collect()
    }
}

fn key(first: &[u8], second: &[u8]) -> Key {
    let mut hash = Sha256::new();
    hash.update(first);
    hash.update([0]);
    hash.update(second);
    let mut key = Key::default();
    key.copy_from_slice(&hash.finalize()[..KEY_BYTES]);
    key
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn vacation(to: &str, handle: &str) -> Vacation {
        let (from, subject, reason, message) = Default::default();
        Vacation { to: to.into(), from, subject, reason, seconds: 10, handle: handle.into(), message, withheld: None }
    }

    #[test]
    fn who_was_answered_is_not_answered_again_until_it_is_time() {
        let mut account = Account::default();
        let mut due = |vacation: &Vacation, now| {
            let mut answered = Remembered::of(&account, ANSWERED, now);
            let is_due = answered.is_due(vacation);
            Arc::make_mut(&mut account.annotations).insert(ANSWERED.into(), answered.encode().into());
            is_due
        };
        assert!(due(&vacation("Ann@example.org", "x"), 100));
        assert!(!due(&vacation("ann@example.org", "x"), 109));
        assert!(due(&vacation("ann@example.org", "y"), 109), "another answer");
        assert!(due(&vacation("ann@example.org", "x"), 110));
        // Whoever forges many senders.
        let answered = (0..5_000).filter(|at| due(&vacation(&format!("{at}@example.org"), "x"), 115)).count();
        assert_eq!(answered, REMEMBERED_MAX - 2);
        assert!(due(&vacation("bob@example.org", "x"), 200), "all of them are forgotten");
    }

    #[test]
    fn of_many_mails_the_first_to_be_forgotten_goes() {
        let mut seen = Remembered { now: 100, entries: Vec::new() };
        let mail = |id: usize, seconds| Seen { handle: "h".into(), id: id.to_string(), seconds };
        seen.note(&mail(0, 5));
        (1..=REMEMBERED_MAX).for_each(|id| seen.note(&mail(id, 10)));
        assert!(!seen.has("h", "0") && seen.has("h", "1") && seen.has("h", "1000") && !seen.has("", "1"));
        seen.note(&mail(1, 20));
        let mut account = Account::default();
        Arc::make_mut(&mut account.annotations).insert(SEEN.into(), seen.encode().into());
        let later = Remembered::of(&account, SEEN, 115);
        assert!(later.has("h", "1") && !later.has("h", "2"));
    }
}
