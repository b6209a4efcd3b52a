//! The last login of each account, and with each of its app passwords: annotations of the account in the store, written behind the login.
//!
//! Logins are collected in memory and noted by [`LastLogins::keep`] now and then, so nobody who logs in waits for a flush, and an account
//! is noted again ten minutes after the last note at the earliest. A crash forgets the logins that were not noted yet. Bounds:
//! 10,000 accounts between two notes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::app_passwords;
use crate::writer::Handle;

/// The annotation: seconds since 1970, a blank, and the door.
const NAME: &[u8] = b"login/last";

/// Seconds from one note to the next.
const EVERY_SECONDS: i64 = 600;

/// Accounts whose logins wait to be noted.
const PENDING_MAX: usize = 10_000;

/// Logins that are not noted yet, by account and app password.
#[derive(Debug, Default)]
pub struct LastLogins(Mutex<HashMap<(String, Option<u32>), Login>>);

/// A login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// Seconds since 1970.
    pub seconds: i64,
    /// The protocol.
    pub door: String,
}

impl LastLogins {
    /// Collects a login of now, with the account's own password or an app password.
    pub fn note(&self, account: &str, app: Option<u32>, door: &str) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (account.to_owned(), app);
        if pending.len() < PENDING_MAX || pending.contains_key(&key) {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
            pending.insert(key, Login { seconds, door: door.into() });
        }
    }

    /// Notes all that were collected in the store. Accounts that are not in it are passed over.
    pub async fn keep(&self, store: &Handle) {
        let pending = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for ((name, app), login) in pending {
            let state = store.state();
            let Some((number, account)) = state.account_named(name.as_bytes()) else { continue };
            let before = match app {
                Some(id) => app_passwords::of(account).into_iter().find(|one| one.id == id).and_then(|one| one.used),
                None => noted(account).map(|noted| (noted.seconds, noted.door)),
            };
            if before.is_some_and(|(seconds, _)| login.seconds.saturating_sub(seconds) < EVERY_SECONDS) {
                continue;
            }
            let value = format!("{} {}", login.seconds, login.door).into_bytes();
            let note = async {
                match app {
                    Some(id) => app_passwords::note(store, number, id, (login.seconds, login.door)).await,
                    None => store.transact(move |all| all.annotate(number, None, NAME, Some(&value))).await,
                }
            };
            if let Err(error) = note.await {
                tracing::debug!(account = name, %error, "time of the last login not stored");
            }
        }
    }
}

/// The last login of an account, as far as it was noted.
pub fn noted(account: &store::Account) -> Option<Login> {
    let value = account.annotations.get(NAME)?;
    let (seconds, door) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    Some(Login { seconds: seconds.parse().ok()?, door: door.into() })
}
