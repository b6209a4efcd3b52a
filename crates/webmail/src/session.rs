//! Sessions of users: a table of bounded size by the hash of a random token, with an end when they are idle and an end at all.
//!
//! The host hashes the token, so that the table gives none away.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// Seconds after which an idle session ends.
pub const IDLE_SECONDS: i64 = 2 * 3_600;

/// Seconds after which any session ends.
pub const WHOLE_SECONDS: i64 = 24 * 3_600;

/// Sessions of all users.
const SESSIONS_MAX: usize = 10_000;

/// Sessions of one user: with one more the oldest ends.
const OF_ONE_MAX: usize = 20;

/// Bytes of a key that name its session.
const ID_BYTES: usize = 8;

/// The hash of a token.
pub type Key = [u8; 32];

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The number of the account.
    pub account: u32,
    /// The name that it has logged in by.
    pub name: String,
    /// The text that a form of this session has, and no other site knows.
    pub token: String,
    /// Digest of the stored password: the session ends when it changes.
    pub mark: Key,
    /// The name that its user sees: digits of its key, by which nobody gets in.
    pub id: String,
    /// The address that it has begun from, and the browser by its own words.
    pub client: String,
    /// When it has begun, seconds since 1970.
    pub begun: i64,
    /// When it was used last.
    pub used: i64,
}

/// Sessions of an account that end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending<'a> {
    /// The one with this id.
    One(&'a str),
    /// All but the one with this id.
    AllBut(&'a str),
}

impl Ending<'_> {
    fn has(self, id: &str) -> bool {
        match self {
            Ending::One(one) => one == id,
            Ending::AllBut(one) => one != id,
        }
    }
}

/// All sessions.
#[derive(Debug, Default)]
pub struct Sessions(BTreeMap<Key, Session>);

impl Session {
    /// A session that begins.
    pub fn new(account: u32, name: String, token: String, mark: Key, now: i64) -> Session {
        let (id, client) = (String::new(), String::new());
        Session { account, name, token, mark, id, client, begun: now, used: now }
    }

    fn is_over(&self, now: i64) -> bool {
        now.saturating_sub(self.used) > IDLE_SECONDS || now.saturating_sub(self.begun) > WHOLE_SECONDS
    }
}

impl Sessions {
    /// Begins a session.
    pub fn begin(&mut self, key: Key, session: Session, now: i64) {
        self.0.retain(|_, known| !known.is_over(now));
        let of_one = self.0.values().filter(|known| known.account == session.account).count();
        if of_one >= OF_ONE_MAX || self.0.len() >= SESSIONS_MAX {
            let mut known: Vec<(i64, Key)> = (self.0.iter())
                .filter(|(_, known)| of_one < OF_ONE_MAX || known.account == session.account)
                .map(|(key, known)| (known.used, *key))
                .collect();
            known.sort_unstable();
            if let Some((_, oldest)) = known.first() {
                self.0.remove(oldest);
            }
        }
        let id = hex(key.get(..ID_BYTES).unwrap_or_default());
        self.0.insert(key, Session { id, ..session });
    }

    /// The session of a token, which goes on.
    pub fn find(&mut self, key: &Key, now: i64) -> Option<Session> {
        let session = self.0.get_mut(key)?;
        if session.is_over(now) {
            self.0.remove(key);
            return None;
        }
        session.used = now;
        Some(session.clone())
    }

    /// Ends a session.
    pub fn end(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// The sessions of an account, the last used first.
    pub fn of(&self, account: u32, now: i64) -> Vec<Session> {
        let own = self.0.values().filter(|known| known.account == account && !known.is_over(now));
        let mut own: Vec<Session> = own.cloned().collect();
        own.sort_by_key(|session| core::cmp::Reverse(session.used));
        own
    }

    /// Ends sessions of an account.
    pub fn end_of(&mut self, account: u32, ending: Ending<'_>) {
        self.0.retain(|_, known| known.account != account || !ending.has(&known.id));
    }
}

/// A token of random bytes, as a cookie and a form have it.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| alloc::format!("{byte:02x}")).collect()
}

/// Whether two texts are the same, in a time that does not tell where they differ.
pub fn is_same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (one, other)| differ | (one ^ other));
    one.len() == other.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        core::array::from_fn(|at| number.to_le_bytes().get(at).copied().unwrap_or(0))
    }

    #[test]
    fn sessions_end_when_they_are_idle_and_when_they_are_old() {
        let mut all = Sessions::default();
        all.begin(key(1), Session::new(1, "ann".into(), "t".into(), [0; 32], 0), 0);
        assert!(all.find(&key(1), IDLE_SECONDS).is_some() && all.find(&key(2), 0).is_none());
        assert!(all.find(&key(1), 2 * IDLE_SECONDS + 1).is_none());
        all.begin(key(1), Session::new(1, "ann".into(), "t".into(), [0; 32], 0), 0);
        for now in (0..=WHOLE_SECONDS).step_by(3_600) {
            assert!(all.find(&key(1), now).is_some());
        }
        assert!(all.find(&key(1), WHOLE_SECONDS + 1).is_none());
    }

    #[test]
    fn sessions_of_an_account_are_listed_and_ended_and_those_of_others_stay() {
        let mut all = Sessions::default();
        for (number, account) in [(1, 1), (2, 1), (3, 2)] {
            let now = i64::try_from(number).unwrap();
            all.begin(key(number), Session::new(account, "x".into(), "t".into(), [0; 32], now), now);
        }
        let ids = |all: &Sessions| all.of(1, 3).into_iter().map(|session| session.id).collect::<Vec<_>>();
        assert_eq!(ids(&all), ["0200000000000000", "0100000000000000"]);
        all.end_of(1, Ending::One("0300000000000000"));
        assert!(all.find(&key(3), 3).is_some(), "another account's");
        all.end_of(1, Ending::AllBut("0100000000000000"));
        assert_eq!(ids(&all), ["0100000000000000"]);
        all.end_of(1, Ending::One("0100000000000000"));
        assert!(ids(&all).is_empty() && all.find(&key(3), 3).is_some());
    }

    #[test]
    fn a_user_has_so_many_and_others_keep_theirs() {
        let mut all = Sessions::default();
        all.begin(key(0), Session::new(2, "bob".into(), "t".into(), [0; 32], 0), 0);
        for number in 1..100 {
            all.begin(key(number), Session::new(1, "ann".into(), "t".into(), [0; 32], 1), 1);
        }
        assert_eq!(all.0.len(), OF_ONE_MAX + 1);
        assert!(all.find(&key(0), 1).is_some() && all.find(&key(99), 1).is_some());
        assert!(is_same("ab", "ab") && !is_same("ab", "abc") && !is_same("", "a"));
    }
}
