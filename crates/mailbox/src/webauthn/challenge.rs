//! Challenges: random, good for a few minutes, for one session or login, and once.
//!
//! A challenge is its own proof: a random number and the time, with a keyed hash of both and of what it is for. So who asks for many of
//! them takes no memory; only those that were answered rightly are remembered, until they are too old. When as many are remembered as may
//! be, no other one is taken. A restart ends all.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::base64;
use crate::password::random;

/// Seconds for which a challenge is good.
const SECONDS: i64 = 300;

/// Challenges that are remembered.
const TAKEN_MAX: usize = 10_000;

type Nonce = [u8; 16];
type Tag = [u8; 16];

/// The challenges of a server. Without randomness there are none.
pub struct Challenges {
    key: Option<Hmac<Sha256>>,
    /// Challenges that were taken, with their times.
    taken: Mutex<BTreeMap<Nonce, i64>>,
}

impl Default for Challenges {
    fn default() -> Challenges {
        random::<32>().map_or(Challenges { key: None, taken: Mutex::default() }, |key| Challenges::of(&key))
    }
}

impl Challenges {
    pub(super) fn of(key: &[u8; 32]) -> Challenges {
        Challenges { key: Hmac::new_from_slice(key).ok(), taken: Mutex::default() }
    }

    /// A challenge, as text. It is good for what has the same text as `purpose`.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn make(&self, purpose: &str, now: i64) -> io::Result<String> {
        let nonce = random()?;
        let tag = self.tag(&nonce, now, purpose).ok_or_else(|| io::Error::other("there is no randomness"))?;
        Ok(base64::encode(&[&nonce[..], &now.to_be_bytes(), &tag].concat()))
    }

    /// Whether a challenge is of this server, for this purpose, not too old, and not taken.
    pub fn is_good(&self, challenge: &str, purpose: &str, now: i64) -> bool {
        let Some((nonce, since)) = self.read(challenge, purpose) else { return false };
        (since..=since.saturating_add(SECONDS)).contains(&now) && !self.taken().contains_key(&nonce)
    }

    /// The same, and it is taken: it is not good again.
    pub fn take(&self, challenge: &str, purpose: &str, now: i64) -> bool {
        if !self.is_good(challenge, purpose, now) {
            return false;
        }
        let Some((nonce, since)) = self.read(challenge, purpose) else { return false };
        let mut taken = self.taken();
        taken.retain(|_, since| since.saturating_add(SECONDS) >= now);
        taken.len() < TAKEN_MAX && taken.insert(nonce, since).is_none()
    }

    /// The number and the time of a challenge that was made here.
    fn read(&self, challenge: &str, purpose: &str) -> Option<(Nonce, i64)> {
        let bytes = base64::decode(challenge)?;
        let (nonce, rest) = bytes.split_first_chunk()?;
        let (since, tag) = rest.split_first_chunk()?;
        let since = i64::from_be_bytes(*since);
        let expected = self.tag(nonce, since, purpose)?;
        let differ = expected.iter().zip(tag).fold(0, |differ, (one, other)| differ | (one ^ other));
        (tag.len() == expected.len() && differ == 0).then_some((*nonce, since))
    }

    fn tag(&self, nonce: &Nonce, since: i64, purpose: &str) -> Option<Tag> {
        let mut mac = self.key.clone()?;
        mac.update(nonce);
        mac.update(&since.to_be_bytes());
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().first_chunk().copied()
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<Nonce, i64>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_good_for_its_purpose_once_and_for_a_while() {
        let all = Challenges::default();
        let one = all.make("register a", 1_000).unwrap();
        assert!(all.is_good(&one, "register a", 1_000) && all.is_good(&one, "register a", 1_000 + SECONDS));
        assert!(!all.is_good(&one, "register a", 1_001 + SECONDS) && !all.is_good(&one, "register a", 999));
        assert!(!all.is_good(&one, "register b", 1_000) && !all.is_good("", "", 0) && !all.is_good("AAAA", "", 0));
        assert!(!all.is_good(&one[..one.len() - 2], "register a", 1_000));
        assert!(!Challenges::default().is_good(&one, "register a", 1_000), "of another server");
        assert!(!all.take(&one, "register b", 1_000));
        assert!(all.take(&one, "register a", 1_000) && !all.take(&one, "register a", 1_000));
        assert!(!all.is_good(&one, "register a", 1_000));
        assert!(all.is_good(&all.make("register a", 1_000).unwrap(), "register a", 1_000));
    }

    #[test]
    fn those_that_were_taken_are_bounded_and_forgotten_when_they_are_old() {
        let all = Challenges::default();
        for _ in 0..TAKEN_MAX {
            assert!(all.take(&all.make("x", 0).unwrap(), "x", 0));
        }
        assert!(!all.take(&all.make("x", 1).unwrap(), "x", 1));
        assert!(all.take(&all.make("x", SECONDS + 1).unwrap(), "x", SECONDS + 1));
        assert_eq!(all.taken().len(), 1);
    }
}
