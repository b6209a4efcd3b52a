//! Passwords that were right a while ago: whoever comes back with one is let in without a hash that is made to be slow. Clients open
//! connection after connection, each with the same login.
//!
//! Nothing is kept but digests under a key that this process alone has, each of a stored hash and a password: a changed password is
//! another one. Bounds: [`PROVEN_MAX`] digests, each for [`PROVEN_FOR`].

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// How long a password counts from when it was checked.
const PROVEN_FOR: Duration = Duration::from_secs(600);

/// Digests that are kept; beyond them all are forgotten.
const PROVEN_MAX: usize = 10_000;

type Mark = [u8; 32];

/// Passwords that were right.
pub(super) struct Proven {
    key: [u8; 32],
    until: Mutex<HashMap<Mark, Instant>>,
}

impl Proven {
    /// Starts without proven logins. `key` is a secret.
    pub fn new(key: [u8; 32]) -> Proven {
        Proven { key, until: Mutex::default() }
    }

    /// Whether this password was right for this stored hash not long ago.
    pub fn has(&self, hash: &str, password: &[u8]) -> bool {
        self.lock().get(&self.mark(hash, password)).is_some_and(|&until| until > Instant::now())
    }

    /// It is right.
    pub fn note(&self, hash: &str, password: &[u8]) {
        let (mark, now) = (self.mark(hash, password), Instant::now());
        let mut all = self.lock();
        if all.len() >= PROVEN_MAX {
            all.retain(|_, until| *until > now);
        }
        if all.len() >= PROVEN_MAX {
            all.clear();
        }
        all.insert(mark, now + PROVEN_FOR);
    }

    /// Lengths stand before what they measure, so that no two pairs come to the same bytes.
    fn mark(&self, hash: &str, password: &[u8]) -> Mark {
        let mut digest = Sha256::new();
        digest.update(self.key);
        digest.update((hash.len() as u64).to_le_bytes());
        digest.update(hash);
        digest.update(password);
        Sha256::new().chain_update(self.key).chain_update(digest.finalize()).finalize().into()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Mark, Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_password_counts_for_its_hash_and_for_a_while() {
        let proven = Proven::new([7; 32]);
        proven.note("$a", b"secret");
        assert!(proven.has("$a", b"secret"));
        for (hash, password) in [("$a", &b"Secret"[..]), ("$b", b"secret"), ("$as", b"ecret"), ("", b"$asecret")] {
            assert!(!proven.has(hash, password), "{hash}");
        }
        tokio::time::advance(PROVEN_FOR).await;
        assert!(!proven.has("$a", b"secret"));
        (0..=PROVEN_MAX).for_each(|at| proven.note("$a", &at.to_le_bytes()));
        assert!(proven.lock().len() <= PROVEN_MAX && proven.has("$a", &PROVEN_MAX.to_le_bytes()));
    }
}
