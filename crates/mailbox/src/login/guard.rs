//! Delays against guessing: failures by address and by account, and attempts that are under way.
//!
//! Attempts on one account are checked one after the other, and after a failure the next one waits: a second, two, four, up to
//! [`WAIT_MAX`]. Addresses take turns at it, so a client waits behind one guess of each other address at most, however many
//! are sent at a time. An address that has failures waits the same before each attempt, whatever the account, and one attempt after the
//! other; attempts under way beyond [`UNDER_WAY_FREE`] count as failures. A client that has logged in from its address before waits for neither. Clients of the
//! loopback stand for many: there only the account counts.
//!
//! An attempt whose client leaves before the answer has failed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::turns::{Key, Turn, Turns};

/// The longest wait before an attempt.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// How long a failure is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Addresses and accounts whose failures are remembered, and pairs of them that have logged in; then those go that are the oldest.
const ENTRIES_MAX: usize = 20_000;

/// Attempts of one address at a time that cost it no wait: as many as clients make at their start.
const UNDER_WAY_FREE: u32 = 8;

/// How far ahead an address has its attempts: later ones wait longer than anybody does ([`Login`](super::Login) gives up before).
const AHEAD_MAX: Duration = Duration::from_secs(60);

/// Failures and successes so far.
pub struct Guard {
    places: Mutex<HashMap<Place, Failures>>,
    /// Addresses that have logged in to an account, and when.
    proven: Mutex<HashMap<(IpAddr, String), Instant>>,
    attempts: Arc<Turns<Source>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Address(IpAddr),
    Account(String),
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    under_way: u32,
    last: Instant,
    /// When the last of the attempts that wait may begin.
    next: tokio::time::Instant,
}

/// The account of an attempt, and the address that it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Source {
    account: String,
    address: Option<IpAddr>,
}

impl Key for Source {
    type Alone = String;

    fn alone(&self) -> String {
        self.account.clone()
    }
}

/// An attempt under way. If it is dropped it has failed.
pub struct Attempt {
    guard: Arc<Guard>,
    source: Source,
    /// Holds the turn of the account until the attempt ends.
    turn: Option<oneshot::Sender<Outcome>>,
    is_decided: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Right,
    Wrong,
}

impl Guard {
    /// Starts without failed logins.
    pub fn new() -> Arc<Guard> {
        Arc::new(Guard { places: Mutex::default(), proven: Mutex::default(), attempts: Turns::new(usize::MAX) })
    }

    /// Waits as long as this client has to, and begins an attempt. It has to be decided within `patience`, or counts as failed.
    pub async fn begin(self: &Arc<Guard>, client: Option<IpAddr>, name: &str, patience: Duration) -> Attempt {
        let address = client.filter(|address| !address.is_loopback()).map(network);
        let source = Source { account: name.to_ascii_lowercase(), address };
        if self.is_proven(&source) {
            return Attempt { guard: self.clone(), source, turn: None, is_decided: false };
        }
        let _under_way = address.map(|address| UnderWay::new(self.clone(), Place::Address(address)));
        let wait = address.map(|address| self.place_in_line(&Place::Address(address))).unwrap_or_default();
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let turn = self.attempts.turn(source.clone()).await;
        let (decide, decided) = oneshot::channel();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(self.clone().hold(turn, source.account.clone(), decided, patience));
        }
        Attempt { guard: self.clone(), source, turn: Some(decide), is_decided: false }
    }

    /// Holds the turn of an account until an attempt is decided, and after a failure as long as the next one has to wait.
    async fn hold(
        self: Arc<Guard>,
        _turn: Turn<Source>,
        account: String,
        decided: oneshot::Receiver<Outcome>,
        patience: Duration,
    ) {
        if tokio::time::timeout(patience, decided).await.is_ok_and(|outcome| outcome == Ok(Outcome::Right)) {
            return;
        }
        tokio::time::sleep(self.wait(&Place::Account(account)).max(Duration::from_secs(1))).await;
    }

    fn is_proven(&self, source: &Source) -> bool {
        let Some(address) = source.address else { return false };
        locked(&self.proven).contains_key(&(address, source.account.clone()))
    }

    /// True if an account has failures.
    pub fn has_failures(&self, name: &str) -> bool {
        !self.wait(&Place::Account(name.to_ascii_lowercase())).is_zero()
    }

    fn wait(&self, place: &Place) -> Duration {
        let places = locked(&self.places);
        let Some(found) = places.get(place) else { return Duration::ZERO };
        let failed = if found.last.elapsed() < REMEMBERED { found.count } else { 0 };
        match failed.saturating_add(found.under_way.saturating_sub(UNDER_WAY_FREE)) {
            0 => Duration::ZERO,
            count => Duration::from_secs(1 << (count - 1).min(10)).min(WAIT_MAX),
        }
    }

    /// How long an attempt of an address waits behind its others.
    fn place_in_line(&self, place: &Place) -> Duration {
        let wait = self.wait(place);
        let mut places = locked(&self.places);
        let Some(found) = places.get_mut(place).filter(|_| !wait.is_zero()) else { return wait };
        let now = tokio::time::Instant::now();
        let begins = found.next.max(now) + wait;
        if begins > now + AHEAD_MAX {
            return 4 * AHEAD_MAX;
        }
        found.next = begins;
        begins - now
    }

    fn failed(&self, source: &Source) {
        if let Some(address) = source.address {
            locked(&self.proven).remove(&(address, source.account.clone()));
        }
        let mut places = locked(&self.places);
        let address = source.address.map(Place::Address);
        for place in address.into_iter().chain([Place::Account(source.account.clone())]) {
            let entry = entry(&mut places, place);
            let count = if entry.last.elapsed() < REMEMBERED { entry.count } else { 0 };
            (entry.count, entry.last) = (count.saturating_add(1), Instant::now());
        }
    }

    /// The address keeps its failures: whoever knows one password may still guess others.
    fn succeeded(&self, source: &Source) {
        locked(&self.places).remove(&Place::Account(source.account.clone()));
        let Some(address) = source.address else { return };
        let mut proven = locked(&self.proven);
        let pair = (address, source.account.clone());
        if proven.len() >= ENTRIES_MAX && !proven.contains_key(&pair) {
            let oldest = proven.iter().min_by_key(|(_, when)| **when).map(|(pair, _)| pair.clone());
            oldest.map(|pair| proven.remove(&pair));
        }
        proven.insert(pair, Instant::now());
    }
}

impl Attempt {
    /// The password was right.
    pub fn succeed(mut self) {
        self.guard.succeeded(&self.source);
        self.end(Outcome::Right);
    }

    /// The password could not be checked; nothing is remembered.
    pub fn give_up(mut self) {
        self.end(Outcome::Right);
    }

    fn end(&mut self, outcome: Outcome) {
        self.is_decided = true;
        self.turn.take().map(|decide| decide.send(outcome));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_decided {
            self.guard.failed(&self.source);
            self.end(Outcome::Wrong);
        }
    }
}

/// An attempt of an address that is counted.
struct UnderWay {
    guard: Arc<Guard>,
    place: Place,
}

impl UnderWay {
    fn new(guard: Arc<Guard>, place: Place) -> UnderWay {
        let mut places = locked(&guard.places);
        let entry = entry(&mut places, place.clone());
        entry.under_way = entry.under_way.saturating_add(1);
        drop(places);
        UnderWay { guard, place }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut places = locked(&self.guard.places);
        if let Some(found) = places.get_mut(&self.place) {
            found.under_way = found.under_way.saturating_sub(1);
            if found.under_way == 0 && found.count == 0 {
                places.remove(&self.place);
            }
        }
    }
}

/// The failures of a place. For a new one the oldest goes when there are too many.
fn entry(places: &mut HashMap<Place, Failures>, place: Place) -> &mut Failures {
    if places.len() >= ENTRIES_MAX && !places.contains_key(&place) {
        places.retain(|_, failures| failures.under_way > 0 || failures.last.elapsed() < REMEMBERED);
    }
    if places.len() >= ENTRIES_MAX && !places.contains_key(&place) {
        let oldest = places.iter().min_by_key(|(_, failures)| failures.last).map(|(place, _)| place.clone());
        oldest.map(|place| places.remove(&place));
    }
    let new = || Failures { count: 0, under_way: 0, last: Instant::now(), next: tokio::time::Instant::now() };
    places.entry(place).or_insert_with(new)
}

/// The network of a client: of IPv6 a subscriber has a whole one.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address => address,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn address(last: u8) -> Option<IpAddr> {
        Some([192, 0, 2, last].into())
    }

    #[tokio::test(start_paused = true)]
    async fn guesses_sent_at_a_time_are_checked_four_a_minute() {
        for client in [None, address(1)] {
            let guard = Guard::new();
            let guesses = (0..300).map(|_| {
                let guard = guard.clone();
                tokio::spawn(async move {
                    drop(guard.begin(client, "ann", PATIENCE).await);
                    tokio::time::Instant::now()
                })
            });
            let (began, guesses) = (tokio::time::Instant::now(), guesses.collect::<Vec<_>>());
            tokio::time::sleep(Duration::from_secs(300)).await;
            let minute = |guess: &tokio::task::JoinHandle<_>| guess.is_finished();
            let checked = guesses.iter().filter(|guess| minute(guess)).count();
            assert!((15..=25).contains(&checked), "{checked} in {:?}", began.elapsed());
            guesses.iter().for_each(tokio::task::JoinHandle::abort);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn guesses_of_an_address_over_many_accounts_are_checked_one_after_the_other() {
        let guard = Guard::new();
        let guess = |guard: &Arc<Guard>, number: usize| {
            let guard = guard.clone();
            tokio::spawn(async move { drop(guard.begin(address(1), &format!("user-{number}"), PATIENCE).await) })
        };
        // So many failures that each waits the longest.
        for number in 0..5 {
            guess(&guard, number).await.unwrap();
        }
        let guesses: Vec<_> = (5..205).map(|number| guess(&guard, number)).collect();
        tokio::time::sleep(AHEAD_MAX).await;
        let checked = guesses.iter().filter(|guess| guess.is_finished()).count();
        assert!((2..=5).contains(&checked), "{checked}");
        guesses.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_behind_the_guesses_of_others_but_for_one() {
        let guard = Guard::new();
        guard.begin(address(9), "ann", PATIENCE).await.succeed();
        for _ in 0..300 {
            let guard = guard.clone();
            tokio::spawn(async move { drop(guard.begin(address(1), "ann", PATIENCE).await) });
        }
        tokio::time::sleep(Duration::from_secs(100)).await;
        let began = tokio::time::Instant::now();
        guard.begin(address(2), "bob", PATIENCE).await.succeed();
        guard.begin(address(9), "ann", PATIENCE).await.succeed();
        assert!(began.elapsed().is_zero(), "another account, and an address that is known");
        guard.begin(address(3), "ann", PATIENCE).await.succeed();
        assert!(began.elapsed() <= WAIT_MAX, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_is_not_decided_holds_up_others_for_its_patience() {
        let guard = Guard::new();
        let silent = guard.begin(None, "ann", Duration::from_secs(5)).await;
        let began = tokio::time::Instant::now();
        guard.begin(None, "ann", PATIENCE).await.succeed();
        assert!((5..=7).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        silent.succeed();
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_counted_is_forgotten() {
        let guard = Guard::new();
        guard.begin(address(1), "ann", PATIENCE).await.succeed();
        guard.begin(None, "bob", PATIENCE).await.give_up();
        assert!(locked(&guard.places).is_empty() && !guard.has_failures("ann"));
        drop(guard.begin(None, "Bob", PATIENCE).await);
        assert!(guard.has_failures("bob"));
    }
}
