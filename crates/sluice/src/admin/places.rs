//! Places for connections. When all are taken, a client that comes gets the place of the connection that has waited longest for its
//! own client: connections that say nothing keep nobody out, and a request that is being answered is not broken off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The places.
pub struct Places {
    free: Arc<Semaphore>,
    waiting: Arc<Mutex<Waiting>>,
    /// Tells that a connection has begun to wait.
    begun: Arc<Notify>,
}

/// Connections that wait for their clients, in the order in which they began to.
#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    all: BTreeMap<u64, Arc<Notify>>,
}

/// A place; dropping it makes it free.
pub struct Place {
    waiting: Arc<Mutex<Waiting>>,
    begun: Arc<Notify>,
    lost: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
}

/// A connection that waits, until this is dropped.
struct Wait<'a>(&'a Mutex<Waiting>, u64);

impl Places {
    /// So many places.
    pub fn new(most: usize) -> Places {
        Places { free: Arc::new(Semaphore::new(most)), waiting: Arc::default(), begun: Arc::default() }
    }

    /// A place for a client that has come.
    pub async fn take(&self) -> Place {
        let mut is_coming = false;
        let permit = loop {
            if let Ok(permit) = self.free.clone().try_acquire_owned() {
                break permit;
            }
            // Connections that came a moment ago have not begun to wait yet.
            is_coming = is_coming || self.displace();
            tokio::select! {
                permit = self.free.clone().acquire_owned() => break permit.expect("nobody closes it"),
                () = self.begun.notified(), if !is_coming => {}
            }
        };
        let (waiting, begun) = (self.waiting.clone(), self.begun.clone());
        Place { waiting, begun, lost: Arc::default(), _permit: permit }
    }

    /// Takes the place of the connection that has waited longest; false if none waits.
    fn displace(&self) -> bool {
        let first = locked(&self.waiting).all.pop_first();
        first.map(|(_, lost)| lost.notify_one()).is_some()
    }
}

impl Place {
    /// The outcome of a wait for the client; `None` if the place is lost to another by then.
    pub async fn wait<T>(&self, client: impl Future<Output = T>) -> Option<T> {
        let number = {
            let mut waiting = locked(&self.waiting);
            waiting.last += 1;
            let number = waiting.last;
            waiting.all.insert(number, self.lost.clone());
            number
        };
        self.begun.notify_one();
        let _wait = Wait(&self.waiting, number);
        tokio::select! {
            biased;
            done = client => Some(done),
            () = self.lost.notified() => None,
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        locked(self.0).all.remove(&self.1);
    }
}

fn locked(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn a_client_comes_in_when_a_connection_begins_to_wait() {
        let places = Places::new(1);
        let first = places.take().await;
        let busy = async move {
            tokio::task::yield_now().await;
            assert_eq!(first.wait(pending::<()>()).await, None);
        };
        tokio::join!(places.take(), busy);
    }

    #[tokio::test]
    async fn the_connection_that_has_waited_longest_makes_room() {
        let places = Places::new(2);
        let (first, second) = (places.take().await, places.take().await);
        let waits = |place: Place| tokio::spawn(async move { place.wait(pending::<()>()).await });
        let (first, second) = (waits(first), waits(second));
        tokio::task::yield_now().await;
        let third = places.take().await;
        assert_eq!(first.await.unwrap(), None);
        assert!(!second.is_finished());
        // One that is busy keeps its place, and one that begins to wait again waits from then on.
        assert_eq!(third.wait(async { 7 }).await, Some(7));
        let fourth = places.take().await;
        assert_eq!(second.await.unwrap(), None);
        let third = waits(third);
        tokio::task::yield_now().await;
        let _fifth = places.take().await;
        assert_eq!(third.await.unwrap(), None);
        drop(fourth);
        let _sixth = places.take().await;
    }
}
