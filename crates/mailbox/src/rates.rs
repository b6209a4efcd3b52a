//! How many recipients a login sends to in an hour. Bounds: [`ACCOUNTS_MAX`] accounts; those that have sent least make room.
//!
//! A server that ends notes the counts in the store, as annotations of the accounts ([`Rates::keep`]), and the next one goes on from
//! them. A crash forgets the counts since then.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use store::State;

use crate::writer::Handle;

/// The annotation of an account: when its window began, in seconds since 1970, a blank, and the recipients since.
const NAME: &[u8] = b"rate/recipients";

/// Accounts of one transaction that notes counts.
const NOTED_AT_ONCE: usize = 500;

/// Accounts that are remembered.
const ACCOUNTS_MAX: usize = 100_000;

/// A window, in seconds.
const WINDOW: i64 = 3_600;

/// Recipients by account, in the window that began last.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<HashMap<String, (i64, u32)>>);

impl Rates {
    /// Counts recipients of an account; false, and nothing is counted, where that would be more than `most`. The count of an account
    /// that has sent nothing yet goes on from the one that was noted in the store.
    pub fn take(&self, state: &State, account: &str, count: u32, most: u32, now: i64) -> bool {
        if most == 0 {
            return true;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ACCOUNTS_MAX {
            all.retain(|_, (began, count)| now.saturating_sub(*began) < WINDOW && *count > 1);
        }
        let (began, sent) =
            all.entry(account.to_owned()).or_insert_with(|| noted(state, account, now).unwrap_or((now, 0)));
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

    /// Notes the counts of windows that are not over in the store. Accounts that are not in it are passed over.
    pub async fn keep(&self, store: &Handle, now: i64) {
        let counts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let is_open = |(began, sent): &(i64, u32)| *sent > 0 && now.saturating_sub(*began) < WINDOW;
        let state = store.state();
        let open = counts.into_iter().filter(|(_, count)| is_open(count)).filter_map(|(name, (began, sent))| {
            let (number, _) = state.account_named(name.as_bytes())?;
            Some((number, format!("{began} {sent}").into_bytes()))
        });
        let open: Vec<(u32, Vec<u8>)> = open.collect();
        for some in open.chunks(NOTED_AT_ONCE).map(<[_]>::to_vec) {
            let note = store.transact(move |all| {
                some.iter().try_for_each(|(number, value)| all.annotate(*number, None, NAME, Some(value)))
            });
            if let Err(error) = note.await {
                return tracing::warn!(%error, "counts of recipients not stored: the next process counts from none");
            }
        }
    }
}

/// The window that was noted of an account, if it is not over.
fn noted(state: &State, account: &str, now: i64) -> Option<(i64, u32)> {
    let (_, account) = state.account_named(account.as_bytes())?;
    let (began, sent) = std::str::from_utf8(account.annotations.get(NAME)?).ok()?.split_once(' ')?;
    let window: (i64, u32) = (began.parse().ok()?, sent.parse().ok()?);
    (0..WINDOW).contains(&now.saturating_sub(window.0)).then_some(window)
}

#[cfg(test)]
mod tests {
    use store::{Format, Options, Quota, Volume};

    use super::*;
    use crate::file::File;
    use crate::writer::Writer;

    #[test]
    fn an_account_sends_so_much_in_an_hour_and_others_are_not_counted() {
        let (rates, state) = (Rates::default(), State::default());
        let take = |account: &str, count: u32, most: u32, now: i64| rates.take(&state, account, count, most, now);
        assert!(take("ann", 3, 4, 0) && !take("ann", 2, 4, 10) && take("ann", 1, 4, 20));
        assert!(take("bob", 4, 4, 20) && !take("ann", 1, 4, 3_599));
        assert!(take("ann", 4, 4, 3_600) && take("ann", 9, 0, 3_600));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_next_server_goes_on_from_the_counts_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(&folder.path().join("volume"), 16 << 20).unwrap();
        let file = Volume::format(file, &Format { segment_bytes: 1 << 20, ..Format::new(7, 1_000) }).unwrap();
        let (writer, store) = Writer::start(Volume::open(file, Options::default()).unwrap()).unwrap();
        for name in [b"ann", b"bob", b"eve"] {
            store.transact(move |all| all.add_account(name, Quota::default())).await.unwrap();
        }
        let rates = Rates::default();
        let state = store.state();
        assert!(rates.take(&state, "ann", 3, 4, 5_000) && rates.take(&state, "bob", 4, 4, 1_000));
        assert!(rates.take(&state, "user 7", 4, 4, 5_000));
        rates.keep(&store, 5_010).await;
        let (next, state) = (Rates::default(), store.state());
        assert!(!next.take(&state, "ann", 2, 4, 8_000) && next.take(&state, "ann", 1, 4, 8_000));
        assert!(next.take(&state, "bob", 4, 4, 5_020) && next.take(&state, "eve", 4, 4, 5_020));
        // A window ends when it would have ended, and one in the future is none.
        assert!(next.take(&state, "ann", 4, 4, 8_600) && Rates::default().take(&state, "ann", 4, 4, 4_000));
        drop((store, state));
        assert_eq!(writer.join(), Ok(()));
    }
}
