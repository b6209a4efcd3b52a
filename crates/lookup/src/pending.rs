//! Questions in progress: further questions about the same key wait for the same answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::memory::Rows;
use crate::pattern::Key;
use crate::row::Error;

/// Channel to a caller that waits for an answer.
pub type Waiter = oneshot::Sender<Result<Rows, Error>>;

/// Waiting callers, by key.
#[derive(Debug, Default)]
pub struct Pending(Mutex<HashMap<Key, Vec<Waiter>>>);

impl Pending {
    /// Adds a waiting caller. Returns whether it is the first, and the question has to be asked.
    pub fn join(&self, key: &Key, waiter: Waiter) -> bool {
        let mut all = self.all();
        let waiting = all.entry(key.clone()).or_default();
        waiting.push(waiter);
        waiting.len() == 1
    }

    /// Returns whether a caller still waits; if not, the question is forgotten.
    pub fn is_wanted(&self, key: &Key) -> bool {
        let mut all = self.all();
        let is_wanted = all.get(key).is_some_and(|waiting| waiting.iter().any(|waiter| !waiter.is_closed()));
        if !is_wanted {
            all.remove(key);
        }
        is_wanted
    }

    /// Sends the answer to all waiting callers.
    pub fn answer(&self, key: &Key, answer: &Result<Rows, Error>) {
        let waiting = self.all().remove(key).unwrap_or_default();
        waiting.into_iter().for_each(|waiter| _ = waiter.send(answer.clone()));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, Vec<Waiter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_asked_for_all_and_all_are_told() {
        let (pending, key) = (Pending::default(), Key::of("tim@a.test").unwrap());
        let (mut told, first): (Vec<_>, Vec<_>) = (0..3)
            .map(|_| {
                let (waiter, told) = oneshot::channel();
                (told, pending.join(&key, waiter))
            })
            .unzip();
        assert_eq!(first, [true, false, false]);
        drop(told.remove(0));
        assert!(pending.is_wanted(&key), "the first has gone, others have not");
        pending.answer(&key, &Ok(Rows::default()));
        assert!(told.iter_mut().all(|told| told.try_recv() == Ok(Ok(Rows::default()))));
        let (waiter, gone) = oneshot::channel();
        assert!(pending.join(&key, waiter), "it was answered");
        drop(gone);
        assert!(!pending.is_wanted(&key));
        assert!(pending.join(&key, oneshot::channel().0), "nobody has waited for it");
    }
}
