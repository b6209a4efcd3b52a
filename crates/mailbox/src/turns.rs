//! Turns: a few at a time, one or a few for each key, and keys take turns however many of a key wait.
//!
//! Keys may exclude each other ([`Key::alone`]): sources of one account, say, of which each has its turn and none at the same time.
//!
//! Whoever gives up waiting is passed over. A [`Turn`] ends when it is dropped. Memory: a waiter is a few words, and there are no
//! more of them than sessions and deliveries.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Turns that are given, and the queue for the next.
pub(crate) struct Turns<K: Key> {
    most: usize,
    most_of_one: usize,
    queue: Mutex<Queue<K>>,
}

/// A holder of turns.
pub(crate) trait Key: Clone + Eq + Hash + Send {
    /// The part of a key that has one turn at a time.
    type Alone: Eq + Hash + Send;

    fn alone(&self) -> Self::Alone;
}

impl Key for u32 {
    type Alone = u32;

    fn alone(&self) -> u32 {
        *self
    }
}

impl Key for String {
    type Alone = String;

    fn alone(&self) -> String {
        self.clone()
    }
}

struct Queue<K: Key> {
    /// Turns that are given, of each key that has any.
    busy: HashMap<K::Alone, usize>,
    /// The sum of them.
    given: usize,
    /// Turns that were ever given.
    ever: u64,
    /// Keys that wait, in the order in which they are next, and who waits of each.
    order: VecDeque<K>,
    waiting: HashMap<K, VecDeque<oneshot::Sender<Turn<K>>>>,
}

/// A turn.
pub(crate) struct Turn<K: Key> {
    /// None once it is given back.
    of: Option<(Arc<Turns<K>>, K)>,
}

impl<K: Key> Turns<K> {
    /// So many turns at a time.
    pub fn new(most: usize) -> Arc<Turns<K>> {
        Turns::with(most, 1)
    }

    /// So many turns at a time, and so many of one key.
    pub fn with(most: usize, most_of_one: usize) -> Arc<Turns<K>> {
        let queue = Queue { busy: HashMap::new(), given: 0, ever: 0, order: VecDeque::new(), waiting: HashMap::new() };
        Arc::new(Turns { most, most_of_one, queue: Mutex::new(queue) })
    }

    /// A turn, if it is free at once.
    pub fn at_once(self: &Arc<Self>, key: K) -> Option<Turn<K>> {
        let mut queue = self.lock();
        let is_free = self.has_room(&queue, &key) && !queue.waiting.contains_key(&key);
        is_free.then(|| queue.give(&key)).map(|()| Turn { of: Some((self.clone(), key)) })
    }

    /// Waits for a turn.
    pub async fn turn(self: &Arc<Self>, key: K) -> Turn<K> {
        let told = {
            let mut queue = self.lock();
            if self.has_room(&queue, &key) && !queue.waiting.contains_key(&key) {
                queue.give(&key);
                return Turn { of: Some((self.clone(), key)) };
            }
            let (tell, told) = oneshot::channel();
            if !queue.waiting.contains_key(&key) {
                queue.order.push_back(key.clone());
            }
            queue.waiting.entry(key.clone()).or_default().push_back(tell);
            told
        };
        match told.await {
            Ok(turn) => turn,
            // Nobody drops a sender that has not sent: a turn of nobody's would be no harm.
            Err(_) => Turn { of: None },
        }
    }

    /// Turns that were ever given.
    pub fn count(&self) -> u64 {
        self.lock().ever
    }

    fn give_back(self: &Arc<Self>, key: &K) {
        let mut queue = self.lock();
        queue.take_back(key);
        while queue.given < self.most {
            let Some(at) = queue.order.iter().position(|key| self.has_room(&queue, key)) else { return };
            let Some(next) = queue.order.remove(at) else { return };
            let Some(waiter) = queue.waiter(&next) else { continue };
            let turn = Turn { of: Some((self.clone(), next.clone())) };
            match waiter.send(turn) {
                Ok(()) => queue.give(&next),
                // It has given up. What comes back must not end a turn, for which the queue would be locked.
                Err(mut turn) => turn.of = None,
            }
        }
    }

    fn has_room(&self, queue: &Queue<K>, key: &K) -> bool {
        queue.given < self.most && queue.busy.get(&key.alone()).is_none_or(|&given| given < self.most_of_one)
    }

    fn lock(&self) -> MutexGuard<'_, Queue<K>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> Queue<K> {
    fn give(&mut self, key: &K) {
        *self.busy.entry(key.alone()).or_default() += 1;
        self.given += 1;
        self.ever += 1;
    }

    fn take_back(&mut self, key: &K) {
        let Some(given) = self.busy.get_mut(&key.alone()) else { return };
        *given -= 1;
        self.given -= 1;
        if *given == 0 {
            self.busy.remove(&key.alone());
        }
    }

    /// The next that waits of a key, which comes last from here on if more of it wait.
    fn waiter(&mut self, key: &K) -> Option<oneshot::Sender<Turn<K>>> {
        let all = self.waiting.get_mut(key)?;
        let waiter = loop {
            match all.pop_front() {
                Some(waiter) if waiter.is_closed() => {}
                waiter => break waiter,
            }
        };
        match all.is_empty() {
            true => _ = self.waiting.remove(key),
            false => self.order.push_back(key.clone()),
        }
        waiter
    }
}

impl<K: Key> Drop for Turn<K> {
    fn drop(&mut self) {
        if let Some((turns, key)) = self.of.take() {
            turns.give_back(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = Turn<u32>>>>;

    fn wait(turns: &Arc<Turns<u32>>, key: u32) -> Waiting {
        let turns = turns.clone();
        let mut waiting: Waiting = Box::pin(async move { turns.turn(key).await });
        assert!(poll(&mut waiting).is_none(), "{key} has its turn at once");
        waiting
    }

    fn poll(waiting: &mut Waiting) -> Option<Turn<u32>> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    fn at_once(turns: &Arc<Turns<u32>>, key: u32) -> Turn<u32> {
        match pin!(turns.turn(key)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => turn,
            Poll::Pending => panic!("{key} has to wait"),
        }
    }

    #[test]
    fn keys_take_turns_however_many_of_a_key_wait() {
        let turns = Turns::new(1);
        let first = at_once(&turns, 1);
        let mut ones: Vec<Waiting> = (0..100).map(|_| wait(&turns, 1)).collect();
        let mut two = wait(&turns, 2);
        drop(first);
        let second = poll(&mut ones[0]).expect("the next of 1");
        assert!(poll(&mut two).is_none());
        drop(second);
        let third = poll(&mut two).expect("2 comes before 99 of 1");
        drop(third);
        assert!(poll(&mut ones[1]).is_some());
    }

    #[test]
    fn a_key_has_one_turn_at_a_time_and_leaves_the_others_to_others() {
        let turns = Turns::new(2);
        let first = at_once(&turns, 1);
        let mut again = wait(&turns, 1);
        let other = at_once(&turns, 2);
        let mut third = wait(&turns, 3);
        drop(first);
        assert!(poll(&mut again).is_some_and(|turn| turn.of.is_some()), "it has waited longest");
        assert!(poll(&mut third).is_some());
        drop(other);
    }

    #[test]
    fn a_key_may_have_a_few_turns_and_no_more() {
        let turns = Turns::with(3, 2);
        let (first, second) = (at_once(&turns, 1), at_once(&turns, 1));
        let mut third = wait(&turns, 1);
        let other = at_once(&turns, 2);
        assert!(turns.at_once(3).is_none(), "three of all");
        drop(other);
        assert!(poll(&mut third).is_none());
        drop(first);
        assert!(poll(&mut third).is_some());
        drop(second);
        assert!(turns.lock().busy.len() <= 1);
    }

    #[test]
    fn whoever_gives_up_costs_nobody_a_turn() {
        let turns = Turns::new(1);
        let first = at_once(&turns, 1);
        let (gone, mut there) = (wait(&turns, 1), wait(&turns, 1));
        drop(gone);
        drop(first);
        let second = poll(&mut there).expect("the one that stayed");
        // It was given the turn and never looked.
        let given = wait(&turns, 2);
        drop(second);
        drop(given);
        drop(at_once(&turns, 3));
        let queue = turns.lock();
        assert!(queue.busy.is_empty() && queue.order.is_empty() && queue.waiting.is_empty());
    }
}
