//! Who may log in: passwords are checked a few at a time, and who guesses waits.
//!
//! After a failure the next attempt from the same address, and for the same account, is answered later and later: a second,
//! two, four, up to [`WAIT_MAX`]. An unknown account takes as long as a wrong password. Who comes over the loopback comes through
//! somebody who stands for many: there only the account counts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::accounts::{self, Account, Accounts};

/// Passwords that are checked at the same time: each takes 19 MiB and a processor.
const AT_ONCE: usize = 2;

/// The longest wait before an attempt is answered.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// How long a failure is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Addresses and accounts whose failures are remembered; then those go that are forgotten soonest.
const FAILURES_MAX: usize = 20_000;

/// The longest password, in bytes.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// Attempts to log in.
pub struct Logins {
    accounts: Arc<Accounts>,
    permits: Semaphore,
    failures: Mutex<HashMap<Key, Failures>>,
    /// Has a hash that no password has.
    nobody: Arc<Account>,
    /// What keys of accounts that are not there are made of.
    secret: [u8; 32],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Address(IpAddr),
    Account(String),
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Logins {
    /// Nobody has tried yet.
    pub fn new(accounts: Arc<Accounts>) -> Logins {
        let password = accounts::random_password().unwrap_or_default();
        let hash = accounts::hash(password.as_bytes()).unwrap_or_default();
        let nobody = Account { name: String::new(), hash, scram: None, quota_bytes: 0, aliases: Vec::new() };
        let secret = accounts::random().unwrap_or_default();
        let (permits, failures) = (Semaphore::new(AT_ONCE), Mutex::default());
        Logins { accounts, permits, failures, nobody: Arc::new(nobody), secret }
    }

    /// The account, if this is its password. Answers late where there were failures before.
    pub async fn check(&self, client: Option<IpAddr>, name: &str, password: &[u8]) -> Option<Arc<Account>> {
        self.delay(client, name).await;
        let known = self.accounts.directory().named(name).cloned();
        let account = known.clone().filter(|account| !account.hash.is_empty()).unwrap_or(self.nobody.clone());
        let is_right = match self.permits.acquire().await {
            Ok(_permit) if password.len() <= PASSWORD_BYTES_MAX => {
                let password = password.to_vec();
                tokio::task::spawn_blocking(move || account.is_password(&password)).await.unwrap_or(false)
            }
            _ => false,
        };
        self.judge(client, name, known.filter(|_| is_right))
    }

    /// Waits as long as whoever guesses has to.
    pub(crate) async fn delay(&self, client: Option<IpAddr>, name: &str) {
        let wait = keys(client, name).iter().flatten().map(|key| self.wait(key)).max().unwrap_or_default();
        tokio::time::sleep(wait).await;
    }

    /// Remembers how an attempt came out: for whom it was right, if it was.
    pub(crate) fn judge(
        &self,
        client: Option<IpAddr>,
        name: &str,
        account: Option<Arc<Account>>,
    ) -> Option<Arc<Account>> {
        let keys = keys(client, name);
        match &account {
            Some(account) => {
                tracing::info!(account = account.name, client = ?client, "logged in");
                self.forget(&keys);
            }
            None => {
                tracing::warn!(account = name.chars().take(255).collect::<String>(), client = ?client, "login failed");
                keys.into_iter().flatten().for_each(|key| self.failed(key));
            }
        }
        account
    }

    /// The same in each process's life, and known to nobody else.
    pub(crate) fn secret(&self) -> &[u8] {
        &self.secret
    }

    fn wait(&self, key: &Key) -> Duration {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let found = failures.get(key).filter(|failures| failures.last.elapsed() < REMEMBERED);
        found.map_or(Duration::ZERO, |failures| {
            Duration::from_secs(1 << failures.count.saturating_sub(1).min(10)).min(WAIT_MAX)
        })
    }

    fn failed(&self, key: Key) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= FAILURES_MAX {
            failures.retain(|_, failures| failures.last.elapsed() < REMEMBERED);
        }
        if failures.len() >= FAILURES_MAX {
            let oldest = failures.iter().min_by_key(|(_, failures)| failures.last).map(|(key, _)| key.clone());
            oldest.map(|key| failures.remove(&key));
        }
        let entry = failures.entry(key).or_insert(Failures { count: 0, last: Instant::now() });
        *entry = Failures { count: entry.count.saturating_add(1), last: Instant::now() };
    }

    fn forget(&self, keys: &[Option<Key>]) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        // Who knows one password may still guess others: the address keeps its failures.
        for key in keys.iter().flatten().filter(|key| matches!(key, Key::Account(_))) {
            failures.remove(key);
        }
    }
}

/// What failures are remembered by.
fn keys(client: Option<IpAddr>, name: &str) -> [Option<Key>; 2] {
    let far = client.filter(|address| !address.is_loopback());
    [far.map(network).map(Key::Address), Some(Key::Account(name.to_ascii_lowercase()))]
}

/// Of IPv6 a subscriber has a whole network.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address => address,
    }
}

/// Name and password in the response of `PLAIN` (RFC 4616), in Base64; whoever would be somebody else is nobody.
pub(crate) fn plain(response: &[u8]) -> Option<(String, Vec<u8>)> {
    let decoded = text::base64::decode(response.iter().copied().take_while(|&digit| digit != b'='))?;
    let mut parts = decoded.splitn(3, |&byte| byte == 0);
    let (authorization, name, password) = (parts.next()?, parts.next()?, parts.next()?);
    let name = String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty())?;
    let is_self = authorization.is_empty() || authorization.eq_ignore_ascii_case(name.as_bytes());
    is_self.then(|| (name, password.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_guesses_waits_longer_and_longer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        std::fs::write(&path, format!("tim:{}:\n", accounts::hash(b"secret").unwrap())).unwrap();
        let logins = Logins::new(Arc::new(Accounts::open(&path).unwrap()));
        let guesser = Some("192.0.2.1".parse().unwrap());
        let mut waits = Vec::new();
        for name in ["tim", "nobody", "tim", "tim", "tim", "tim"] {
            let before = tokio::time::Instant::now();
            assert!(logins.check(guesser, name, b"guess").await.is_none());
            waits.push(before.elapsed().as_secs());
        }
        assert_eq!(waits, [0, 1, 2, 4, 8, 15]);
        // Who knows it is let in, and others are not kept waiting by those who guess elsewhere.
        assert!(logins.check(None, "Tim", b"secret").await.is_some());
        let before = tokio::time::Instant::now();
        assert!(logins.check(Some("192.0.2.2".parse().unwrap()), "tim", b"secret").await.is_some());
        assert_eq!(before.elapsed().as_secs(), 0);
    }

    #[test]
    fn responses_of_plain_are_read() {
        assert_eq!(plain(b"AHRpbQB0YW5zdGFhZnRhbnN0YWFm"), Some(("tim".into(), b"tanstaaftanstaaf".to_vec())));
        for wrong in [&b""[..], b"!", b"AHRpbQ==", b"YW5uAHRpbQBzZWNyZXQ="] {
            assert_eq!(plain(wrong), None);
        }
    }
}
