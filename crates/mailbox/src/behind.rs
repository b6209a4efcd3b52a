//! Accounts whose index is behind: who searches says so, and who makes indexes hears it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Those that wait to be brought up to date.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// By number; whether what there is of the index is damaged.
    accounts: Mutex<BTreeMap<u32, bool>>,
    /// One of them is being brought up to date.
    is_busy: AtomicBool,
    notify: Notify,
}

impl Behind {
    /// An account is behind, or has a damaged index.
    pub fn add(&self, account: u32, is_damaged: bool) {
        *self.accounts.lock().unwrap_or_else(PoisonError::into_inner).entry(account).or_default() |= is_damaged;
        self.notify.notify_one();
    }

    /// The next one; the one before is up to date.
    pub async fn next(&self) -> (u32, bool) {
        loop {
            let next = {
                let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
                self.is_busy.store(!accounts.is_empty(), Relaxed);
                accounts.pop_first()
            };
            match next {
                Some(account) => return account,
                None => self.notify.notified().await,
            }
        }
    }

    /// Whether nothing waits, and nothing is being done.
    pub fn is_idle(&self) -> bool {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.is_empty() && !self.is_busy.load(Relaxed)
    }
}
