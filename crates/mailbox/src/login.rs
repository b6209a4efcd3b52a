//! Who may log in: passwords are checked a few at a time, and who guesses waits.
//!
//! After a failure the next attempt from the same address, and for the same account, is answered later and later: a second,
//! two, four, up to [`WAIT_MAX`]. That the name or the password is wrong is said [`FAILURE_WAIT`] after it was asked, so that an
//! unknown account takes as long as a wrong password, wherever that is checked. Who comes over the loopback comes through
//! somebody who stands for many: there only the account counts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::accounts::{self, Account, Accounts, Login};
use crate::elsewhere::Away;
use crate::password::{self, Password};

/// Passwords that are checked at the same time: each takes 19 MiB and a processor.
const AT_ONCE: usize = 2;

/// When a failure is answered: later than any check takes.
const FAILURE_WAIT: Duration = Duration::from_secs(1);

/// The longest wait before an attempt is answered.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// How long a failure is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Addresses and accounts whose failures are remembered; then those go that are forgotten soonest.
const FAILURES_MAX: usize = 20_000;

/// The longest password, in bytes.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The name or the password is wrong.
    Wrong,
    /// It is not known whether they are: where accounts are kept cannot be asked now.
    Away,
}

/// Attempts to log in.
pub struct Logins {
    accounts: Arc<Accounts>,
    permits: Semaphore,
    failures: Mutex<HashMap<Key, Failures>>,
    /// A hash that no password has.
    nobody: Login,
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
        let hash = accounts::hash(password.as_bytes()).ok().and_then(|hash| Password::parse(&hash).ok());
        let nobody = hash.map_or(Login::Nobody, Login::Hash);
        let secret = password::random().unwrap_or_default();
        let (permits, failures) = (Semaphore::new(AT_ONCE), Mutex::default());
        Logins { accounts, permits, failures, nobody, secret }
    }

    /// The account, if this is its password. Answers late where there were failures before.
    ///
    /// # Errors
    /// When it is not, or nobody can say.
    pub async fn check(&self, client: Option<IpAddr>, name: &str, password: &[u8]) -> Result<Arc<Account>, Denied> {
        self.delay(client, name).await;
        let answered = tokio::time::Instant::now() + FAILURE_WAIT;
        let right = self.right(name, password).await;
        if matches!(right, Ok(None)) {
            tokio::time::sleep_until(answered).await;
        }
        self.judge(client, name, right)
    }

    /// The account that has this name and password, if there is one.
    async fn right(&self, name: &str, password: &[u8]) -> Result<Option<Arc<Account>>, Away> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Ok(None);
        }
        let known = self.accounts.named(name, false).await?;
        if self.is_password(known.as_deref(), password).await? {
            return Ok(known);
        }
        // What was remembered may have been changed since: the new password counts at once.
        let Some(before) = known else { return Ok(None) };
        let now = self.accounts.named(name, true).await?.filter(|now| *now != before);
        Ok(if now.is_some() && self.is_password(now.as_deref(), password).await? { now } else { None })
    }

    async fn is_password(&self, account: Option<&Account>, password: &[u8]) -> Result<bool, Away> {
        let login = match account.map(|account| &account.login) {
            None | Some(Login::Nobody) => &self.nobody,
            Some(login) => login,
        };
        match login {
            Login::Elsewhere { table, entry } => match std::str::from_utf8(password) {
                Ok(password) => self.accounts.is_password(table, entry, password).await,
                Err(_) => Ok(false),
            },
            Login::Hash(hash) => {
                let Ok(_permit) = self.permits.acquire().await else { return Ok(false) };
                let (hash, password) = (hash.clone(), password.to_vec());
                Ok(tokio::task::spawn_blocking(move || hash.is(&password)).await.unwrap_or(false))
            }
            Login::Nobody => Ok(false),
        }
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
        right: Result<Option<Arc<Account>>, Away>,
    ) -> Result<Arc<Account>, Denied> {
        let keys = keys(client, name);
        let name = || name.chars().take(255).collect::<String>();
        match right {
            Ok(Some(account)) => {
                tracing::info!(account = account.name, client = ?client, "logged in");
                self.forget(&keys);
                Ok(account)
            }
            Ok(None) => {
                tracing::warn!(account = name(), client = ?client, "login failed");
                keys.into_iter().flatten().for_each(|key| self.failed(key));
                Err(Denied::Wrong)
            }
            Err(why) => {
                tracing::warn!(account = name(), client = ?client, %why, "login cannot be checked");
                Err(Denied::Away)
            }
        }
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
    use crate::elsewhere::{Asking, Elsewhere};

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
            assert_eq!(logins.check(guesser, name, b"guess").await, Err(Denied::Wrong));
            waits.push(before.elapsed().as_secs());
        }
        assert_eq!(waits, [1, 2, 3, 5, 9, 16]);
        // Who knows it is let in, and others are not kept waiting by those who guess elsewhere.
        assert!(logins.check(None, "Tim", b"secret").await.is_ok());
        let before = tokio::time::Instant::now();
        assert!(logins.check(Some("192.0.2.2".parse().unwrap()), "tim", b"secret").await.is_ok());
        assert_eq!(before.elapsed().as_secs(), 0);
    }

    /// Accounts that are kept elsewhere; what is remembered of them is what they were before.
    struct Kept {
        before: Vec<Account>,
        now: Result<Vec<Account>, Away>,
    }

    impl Elsewhere for Kept {
        fn find<'a>(&'a self, name: &'a str, now: bool) -> Asking<'a, Vec<Account>> {
            let known = if now { self.now.clone() } else { Ok(self.before.clone()) };
            Box::pin(async move { known.map(|all| all.into_iter().filter(|known| known.name == name).collect()) })
        }

        fn is_password<'a>(&'a self, table: &'a str, entry: &'a str, password: &'a str) -> Asking<'a, bool> {
            Box::pin(async move { Ok((table, entry, password) == ("ldap", "uid=ann", "bound")) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_password_that_was_changed_elsewhere_counts_at_once_and_who_is_away_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        std::fs::write(&path, "").unwrap();
        let account = |name, login| Account { login, ..Account::new(name).unwrap() };
        let plain = |word: &str| Login::Hash(Password::parse(&format!("{{PLAIN}}{word}")).unwrap());
        let bound = Login::Elsewhere { table: "ldap".into(), entry: "uid=ann".into() };
        let tim =
            |word| vec![account("tim", plain(word)), account("ann", bound.clone()), account("nobody", Login::Nobody)];
        let logins = |now| {
            let kept = Kept { before: tim("old"), now };
            Logins::new(Arc::new(Accounts::open(&path).unwrap().and(Arc::new(kept))))
        };
        let (there, away) = (logins(Ok(tim("new"))), logins(Err(Away("away".into()))));
        for (name, password, wanted) in [
            ("tim", "new", true),
            ("Tim", "old", true),
            ("tim", "x", false),
            ("ann", "bound", true),
            ("ann", "x", false),
            ("nobody", "", false),
        ] {
            let found = there.check(None, name, password.as_bytes()).await;
            assert_eq!(found.is_ok(), wanted, "{name} {password}");
        }
        assert_eq!(away.check(None, "tim", b"new").await, Err(Denied::Away));
        let before = tokio::time::Instant::now();
        assert!(away.check(None, "tim", b"old").await.is_ok() && before.elapsed().is_zero(), "it was no guess");
    }

    #[test]
    fn responses_of_plain_are_read() {
        assert_eq!(plain(b"AHRpbQB0YW5zdGFhZnRhbnN0YWFm"), Some(("tim".into(), b"tanstaaftanstaaf".to_vec())));
        for wrong in [&b""[..], b"!", b"AHRpbQ==", b"YW5uAHRpbQBzZWNyZXQ="] {
            assert_eq!(plain(wrong), None);
        }
    }
}
