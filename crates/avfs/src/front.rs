//! Inspections that somebody waits for go before those in the background.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Inspections that somebody waits for: whatever nobody waits for lets them pass.
#[derive(Default)]
pub struct Front {
    state: Mutex<Waiting>,
    is_free: Condvar,
}

#[derive(Default)]
struct Waiting {
    count: usize,
    is_over: bool,
}

/// A foreground request that waits, until it is dropped.
pub struct Waits<'a>(&'a Front);

impl Front {
    fn state(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody waits from here on.
    pub fn enter(&self) -> Waits<'_> {
        self.state().count += 1;
        Waits(self)
    }

    /// Waits until nobody else does; not, if all is over.
    pub fn pass(&self) -> bool {
        let waiting = |state: &mut Waiting| state.count > 0 && !state.is_over;
        !self.is_free.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner).is_over
    }

    /// All is over.
    pub fn end(&self) {
        self.state().is_over = true;
        self.is_free.notify_all();
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.count -= 1;
        if state.count == 0 {
            self.0.is_free.notify_all();
        }
    }
}
