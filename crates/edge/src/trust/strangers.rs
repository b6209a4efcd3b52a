//! Clients that have not logged in: a door has places for so many of them.
//!
//! When all are taken, the client that has most of them gives up the one that it has had longest. So a greeting never waits, and a
//! client that fills a door displaces itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::settings::Network;

/// The places of a door.
#[derive(Debug)]
pub struct Strangers<P> {
    most: usize,
    places: Mutex<Places<P>>,
}

#[derive(Debug)]
struct Places<P> {
    next: u64,
    /// By number, those that came first, first.
    taken: BTreeMap<u64, (Network, Arc<Notify>, P)>,
}

/// A place; dropping it gives it back.
#[derive(Debug)]
pub struct Stranger<P> {
    strangers: Arc<Strangers<P>>,
    number: u64,
    lost: Arc<Notify>,
}

impl<P> Strangers<P> {
    /// So many places, at least one.
    pub fn new(most: usize) -> Arc<Strangers<P>> {
        let places = Places { next: 0, taken: BTreeMap::new() };
        Arc::new(Strangers { most: most.max(1), places: Mutex::new(places) })
    }

    /// A place for a client, which may have been another's. `hold` gives what is held with it, and is dropped when it is lost.
    pub fn enter(self: &Arc<Strangers<P>>, client: Network, hold: impl FnOnce() -> Option<P>) -> Option<Stranger<P>> {
        let mut places = self.lock();
        while places.taken.len() >= self.most {
            places.clear_one();
        }
        Some(self.seat(&mut places, client, hold()?))
    }

    /// A place for a client, if one is free, and half of them are not its own already: nobody loses one.
    pub fn admit(self: &Arc<Strangers<P>>, client: Network, hold: impl FnOnce() -> Option<P>) -> Option<Stranger<P>> {
        let mut places = self.lock();
        let own = places.taken.values().filter(|(taker, ..)| *taker == client).count();
        if places.taken.len() >= self.most || own * 2 >= self.most.max(2) {
            return None;
        }
        Some(self.seat(&mut places, client, hold()?))
    }

    fn seat(self: &Arc<Strangers<P>>, places: &mut Places<P>, client: Network, held: P) -> Stranger<P> {
        let (number, lost) = (places.next, Arc::<Notify>::default());
        places.next += 1;
        places.taken.insert(number, (client, lost.clone(), held));
        Stranger { strangers: self.clone(), number, lost }
    }

    fn lock(&self) -> MutexGuard<'_, Places<P>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> Places<P> {
    /// Takes the oldest place of the client that has most.
    fn clear_one(&mut self) {
        let mut counts: HashMap<Network, usize> = HashMap::new();
        self.taken.values().for_each(|(client, ..)| *counts.entry(*client).or_default() += 1);
        let most = counts.values().max().copied().unwrap_or(0);
        let oldest = self.taken.iter().find(|(_, (client, ..))| counts.get(client) == Some(&most));
        let Some(number) = oldest.map(|(&number, _)| number) else { return };
        if let Some((_, lost, _)) = self.taken.remove(&number) {
            lost.notify_one();
        }
    }
}

impl<P> Stranger<P> {
    /// Notified when the place is lost.
    pub fn lost(&self) -> Arc<Notify> {
        self.lost.clone()
    }

    /// The client has logged in and needs no place any more: what was held with it, unless it was lost before.
    pub fn log_in(&self) -> Option<P> {
        self.strangers.lock().taken.remove(&self.number).map(|(_, _, held)| held)
    }
}

impl<P> Drop for Stranger<P> {
    fn drop(&mut self) {
        self.strangers.lock().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Network {
        Network::around([192, 0, 2, last].into(), 32)
    }

    fn is_there(stranger: &Stranger<()>) -> bool {
        stranger.strangers.lock().taken.contains_key(&stranger.number)
    }

    #[test]
    fn a_client_that_fills_a_door_displaces_itself() {
        let strangers = Strangers::new(10);
        let good = strangers.enter(client(1), || Some(())).unwrap();
        let many: Vec<Stranger<()>> = (0..1_000).filter_map(|_| strangers.enter(client(2), || Some(()))).collect();
        assert!(is_there(&good) && many.iter().filter(|stranger| is_there(stranger)).count() == 9);
        assert!(many[991..].iter().all(is_there), "the newest are left");
        let other = strangers.enter(client(3), || Some(())).unwrap();
        assert!(is_there(&other) && is_there(&good) && many[0].log_in().is_none());
        assert!(good.log_in().is_some() && !is_there(&good));
        drop((many, other));
        assert!(strangers.lock().taken.is_empty());
    }

    #[test]
    fn where_nobody_loses_a_place_half_of_them_are_for_others() {
        let strangers = Strangers::new(4);
        let all: Vec<Stranger<()>> = (0..9).filter_map(|_| strangers.admit(client(1), || Some(()))).collect();
        assert_eq!(all.len(), 2);
        let others: Vec<Stranger<()>> = (2..9).filter_map(|last| strangers.admit(client(last), || Some(()))).collect();
        assert_eq!(others.len(), 2);
        drop(all);
        assert!(strangers.admit(client(1), || Some(())).is_some());
    }
}
