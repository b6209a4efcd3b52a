//! How many recipients a login sends to in an hour. Bounds: [`ACCOUNTS_MAX`] accounts; those that have sent least make room.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Accounts that are remembered.
const ACCOUNTS_MAX: usize = 100_000;

/// A window, in seconds.
const WINDOW: i64 = 3_600;

/// Recipients by account, in the window that began last.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<String, (i64, u32)>>);

impl Rates {
    /// Counts recipients of an account; false, and nothing is counted, where that would be more than `most`.
    pub fn take(&self, account: &str, count: u32, most: u32, now: i64) -> bool {
        if most == 0 {
            return true;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ACCOUNTS_MAX {
            all.retain(|_, (began, count)| now.saturating_sub(*began) < WINDOW && *count > 1);
        }
        let (began, sent) = all.entry(account.to_owned()).or_insert((now, 0));
        if now.saturating_sub(*began) >= WINDOW {
            (*began, *sent) = (now, 0);
        }
        let sum = sent.saturating_add(count);
        let fits = sum <= most;
        if fits {
            *sent = sum;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_sends_so_much_in_an_hour_and_others_are_not_counted() {
        let rates = Rates::default();
        assert!(rates.take("ann", 3, 4, 0) && !rates.take("ann", 2, 4, 10) && rates.take("ann", 1, 4, 20));
        assert!(rates.take("bob", 4, 4, 20) && !rates.take("ann", 1, 4, 3_599));
        assert!(rates.take("ann", 4, 4, 3_600) && rates.take("ann", 9, 0, 3_600));
    }
}
