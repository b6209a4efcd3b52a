//! A client of a door: where it comes from, and the place that it takes there.
//!
//! Until it has logged in it may lose its place to another client. From then on it counts as a session of its account, of which there
//! are at most [`SESSIONS_MAX`].

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::wire::{Stream, Wire};

/// Sessions of one account: ten clients with ten connections.
const SESSIONS_MAX: u32 = 100;

/// A client.
pub struct Guest {
    /// Its address; none on a UNIX socket.
    pub client: Option<IpAddr>,
    place: Option<Place>,
}

/// The place of a client that has not logged in.
struct Place {
    /// Notified when another client is to have it.
    lost: Arc<Notify>,
    log_in: Box<dyn FnOnce() -> bool + Send + Sync>,
}

impl Guest {
    /// A client that loses its place when `lost` is notified. `log_in` is called when it has logged in, and returns false if the place
    /// was lost before.
    pub fn new(
        client: Option<IpAddr>,
        lost: Arc<Notify>,
        log_in: impl FnOnce() -> bool + Send + Sync + 'static,
    ) -> Guest {
        Guest { client, place: Some(Place { lost, log_in: Box::new(log_in) }) }
    }

    /// It has logged in; whether it keeps its place.
    pub(crate) fn log_in(&mut self) -> bool {
        self.place.take().is_none_or(|place| (place.log_in)())
    }

    /// Resolves when the place is lost.
    pub async fn lost(&self) {
        match &self.place {
            Some(place) => place.lost.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Waits for `work` as long as the client is there and has its place.
    pub(crate) async fn wait<S: Stream, T>(&self, wire: &mut Wire<S>, work: impl Future<Output = T>) -> io::Result<T> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.lost() => Err(io::Error::other("another client has the place")),
            gone = wire.hung_up() => Err(gone),
        }
    }
}

impl From<Option<IpAddr>> for Guest {
    /// A client whose place is its own.
    fn from(client: Option<IpAddr>) -> Guest {
        Guest { client, place: None }
    }
}

/// Sessions by account.
#[derive(Debug, Default)]
pub(crate) struct Seats(Mutex<HashMap<u32, u32>>);

/// A session of an account; dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    account: u32,
}

impl Seats {
    /// A session more; none if there are as many as may be.
    pub fn take(self: &Arc<Seats>, account: u32) -> Option<Seat> {
        let mut taken = self.lock();
        let count = taken.entry(account).or_default();
        if *count >= SESSIONS_MAX {
            return None;
        }
        *count += 1;
        Some(Seat { seats: self.clone(), account })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        let Some(count) = taken.get_mut(&self.account) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            taken.remove(&self.account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_its_share_of_sessions_and_others_theirs() {
        let seats = Arc::<Seats>::default();
        let taken: Vec<Seat> = (0..SESSIONS_MAX).filter_map(|_| seats.take(1)).collect();
        assert!(seats.take(1).is_none() && seats.take(2).is_some());
        drop(taken);
        assert!(seats.lock().is_empty() && seats.take(1).is_some());
    }
}
