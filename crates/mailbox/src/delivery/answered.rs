//! Who was answered by `vacation`, and until when there is no second answer (RFC 5230, section 4.2): an annotation of the account.
//!
//! At most [`ANSWERED_MAX`] senders are known; where that many would be, nobody else is answered, so that whoever forges many
//! senders has not as many answered.

use sha2::{Digest as _, Sha256};
use sieve::Vacation;
use store::Account;

/// The annotation.
pub(super) const NAME: &[u8] = b"sieve/answered";

/// Senders that are known.
const ANSWERED_MAX: usize = 1_000;

const KEY_BYTES: usize = 16;
const ENTRY_BYTES: usize = KEY_BYTES + 8;

type Key = [u8; KEY_BYTES];

pub(super) struct Answered {
    now: i64,
    /// Sender and answer, and until when.
    entries: Vec<(Key, i64)>,
}

impl Answered {
    /// Those of an account who are not forgotten by now.
    pub fn of(account: &Account, now: i64) -> Answered {
        let value = account.annotations.get(NAME).map(|value| &**value).unwrap_or_default();
        let entries = value.chunks_exact(ENTRY_BYTES).filter_map(|entry| {
            let (key, until) = entry.split_at(KEY_BYTES);
            Some((key.try_into().ok()?, i64::from_le_bytes(until.try_into().ok()?)))
        });
        Answered { now, entries: entries.filter(|(_, until)| *until > now).collect() }
    }

    /// Whether an answer is to be sent; if so, that is noted.
    pub fn is_due(&mut self, vacation: &Vacation) -> bool {
        let key = key(vacation);
        if self.entries.iter().any(|(known, _)| *known == key) || self.entries.len() >= ANSWERED_MAX {
            return false;
        }
        let seconds = i64::try_from(vacation.seconds).unwrap_or(i64::MAX);
        self.entries.push((key, self.now.saturating_add(seconds)));
        true
    }

    pub fn encode(&self) -> Vec<u8> {
        self.entries.iter().flat_map(|(key, until)| key.iter().copied().chain(until.to_le_bytes())).collect()
    }
}

fn key(vacation: &Vacation) -> Key {
    let mut hash = Sha256::new();
    hash.update(vacation.to.to_ascii_lowercase());
    hash.update([0]);
    hash.update(&vacation.handle);
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
            let mut answered = Answered::of(&account, now);
            let is_due = answered.is_due(vacation);
            Arc::make_mut(&mut account.annotations).insert(NAME.into(), answered.encode().into());
            is_due
        };
        assert!(due(&vacation("Ann@example.org", "x"), 100));
        assert!(!due(&vacation("ann@example.org", "x"), 109));
        assert!(due(&vacation("ann@example.org", "y"), 109), "another answer");
        assert!(due(&vacation("ann@example.org", "x"), 110));
        // Whoever forges many senders.
        let answered = (0..5_000).filter(|at| due(&vacation(&format!("{at}@example.org"), "x"), 115)).count();
        assert_eq!(answered, ANSWERED_MAX - 2);
        assert!(due(&vacation("bob@example.org", "x"), 200), "all of them are forgotten");
    }
}
