//! Accounts whose index is behind: who searches says so, and who makes indexes hears it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Accounts that wait to be indexed.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    queue: Mutex<Queue>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// By number, those that have waited longest first; and whether what there is of the index is damaged.
    accounts: VecDeque<(u32, bool)>,
    /// An account is being indexed.
    is_busy: bool,
}

impl Behind {
    /// An account is behind, or has a damaged index.
    pub fn add(&self, account: u32, is_damaged: bool) {
        let mut queue = self.queue();
        match queue.accounts.iter_mut().find(|(known, _)| *known == account) {
            Some((_, known)) => *known |= is_damaged,
            None => queue.accounts.push_back((account, is_damaged)),
        }
        drop(queue);
        self.notify.notify_one();
    }

    /// The next one; what was to be done for the one before is done.
    pub async fn next(&self) -> (u32, bool) {
        loop {
            let next = {
                let mut queue = self.queue();
                queue.is_busy = !queue.accounts.is_empty();
                queue.accounts.pop_front()
            };
            match next {
                Some(next) => return next,
                None => self.notify.notified().await,
            }
        }
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.queue().accounts.len()
    }

    /// Whether nothing waits, and nothing is being done.
    pub fn is_idle(&self) -> bool {
        let queue = self.queue();
        queue.accounts.is_empty() && !queue.is_busy
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
