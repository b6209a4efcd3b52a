//! Logins: passwords are checked a few at a time, those that were right a while ago at once ([`proven`]), and guesses are delayed
//! ([`guard`]).
//!
//! That the name or the password is wrong is said [`FAILURE_WAIT`] after it was asked, so that an unknown account takes as long as a
//! wrong password, wherever that is checked; for an unknown one nothing is computed.
//!
//! Doors of programs take the [app passwords](crate::app_passwords) of an account, too, and those alone where the account has closed them
//! to its own password. SCRAM proves the own password.

mod guard;
mod proven;

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::accounts::{Account, Accounts, Login};
use crate::app_passwords;
use crate::elsewhere::Away;
use crate::last_login::LastLogins;
use crate::password;
use crate::second;
use crate::writer::Handle;
pub use guard::{Attempt as Guarded, Guard};
use proven::Proven;

/// Passwords that are checked at the same time: each takes 19 MiB and a processor.
const AT_ONCE: usize = 2;

/// When a failure is answered: later than any check takes.
const FAILURE_WAIT: Duration = Duration::from_secs(1);

/// How long an attempt may wait for its turn.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a check may take where accounts are kept elsewhere.
const CHECK_WAIT: Duration = Duration::from_secs(60);

/// How long a client may take to answer a challenge before it keeps nobody else waiting.
const PROOF_WAIT: Duration = Duration::from_secs(5);

/// The door that asks for second steps.
pub(crate) const WEBMAIL: &str = "webmail";

/// The longest password, in bytes.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The name or the password is wrong.
    Wrong,
    /// It is not known whether they are: where accounts are kept cannot be asked now.
    Away,
    /// Too many try to log in to this account.
    Busy,
    /// The account has as many sessions as it may have.
    Full,
}

/// Attempts to log in.
pub struct Logins {
    accounts: Arc<Accounts>,
    permits: Semaphore,
    /// Passwords of accounts that have failures are checked one at a time, beside others.
    guesses: Semaphore,
    guard: Arc<Guard>,
    proven: Arc<Proven>,
    /// Secret from which SCRAM keys of unknown accounts are made.
    secret: [u8; 32],
    counts: Counts,
    /// Logins that are not in the store yet.
    pub last: LastLogins,
    /// The store, where there is one: it knows app passwords, and which accounts log in with their own at the webmail alone.
    store: OnceLock<Handle>,
}

/// The outcome of a check with a second step.
pub(crate) enum Checked {
    /// The account.
    Right(Arc<Account>),
    /// The password of the account is right, and a second step is needed.
    NeedsStep(Arc<Account>),
}

/// Outcomes of attempts.
#[derive(Debug, Default)]
pub struct Counts {
    /// Logins.
    pub logins: AtomicU64,
    /// Wrong names and passwords.
    pub failures: AtomicU64,
}

/// The place where a login comes in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// The protocol, for the log.
    pub door: &'static str,
    /// The address of the client.
    pub client: Option<IpAddr>,
}

/// An attempt to log in under a name.
pub(crate) struct Attempt {
    attempt: guard::Attempt,
    caller: Caller,
    name: String,
}

impl Logins {
    /// Starts without failed logins.
    pub fn new(accounts: Arc<Accounts>) -> Logins {
        Logins {
            accounts,
            permits: Semaphore::new(AT_ONCE),
            guesses: Semaphore::new(1),
            guard: Guard::new(),
            proven: Arc::new(Proven::new(password::random().unwrap_or_default())),
            secret: password::random().unwrap_or_default(),
            counts: Counts::default(),
            last: LastLogins::default(),
            store: OnceLock::new(),
        }
    }

    /// The account, if this is its password. Answers late where there were failures before.
    ///
    /// # Errors
    /// When it is not, or nobody can say.
    pub(crate) async fn check(&self, attempt: Attempt, password: &[u8]) -> Result<Arc<Account>, Denied> {
        match self.check_both(attempt, password, |_| false).await? {
            Checked::Right(account) => Ok(account),
            Checked::NeedsStep(_) => Err(Denied::Wrong),
        }
    }

    /// The same at a door that asks for a second step: a login that needs one has neither failed nor succeeded.
    ///
    /// # Errors
    /// As [`Logins::check`].
    pub(crate) async fn check_both(
        &self,
        attempt: Attempt,
        password: &[u8],
        needs_step: impl FnOnce(&Arc<Account>) -> bool,
    ) -> Result<Checked, Denied> {
        let answered = tokio::time::Instant::now() + FAILURE_WAIT;
        if let Ok(Some((account, app))) = self.by_app(&attempt, password).await {
            return self.conclude(attempt, Ok(Some(account)), Some(app)).map(Checked::Right);
        }
        let right = self.right(&attempt.name, password).await;
        if let Ok(Some(account)) = &right
            && needs_step(account)
        {
            attempt.attempt.give_up();
            return Ok(Checked::NeedsStep(account.clone()));
        }
        // A closed door takes as long as a wrong password.
        let right = right.map(|found| found.filter(|account| self.is_open(account, attempt.caller.door)));
        if matches!(right, Ok(None)) {
            tokio::time::sleep_until(answered).await;
        }
        self.judge(attempt, right).map(Checked::Right)
    }

    /// Ends an attempt that a code or a passkey decides: for whom it is right, if it is.
    ///
    /// # Errors
    /// When it is not, or nobody can say.
    pub(crate) async fn check_other(
        &self,
        attempt: Attempt,
        check: impl Future<Output = Result<Option<Arc<Account>>, Away>>,
    ) -> Result<Arc<Account>, Denied> {
        let answered = tokio::time::Instant::now() + FAILURE_WAIT;
        let right = check.await;
        if matches!(right, Ok(None)) {
            tokio::time::sleep_until(answered).await;
        }
        self.judge(attempt, right)
    }

    /// The account that has this password as an app password for the door, and the number of that.
    async fn by_app(&self, attempt: &Attempt, password: &[u8]) -> Result<Option<(Arc<Account>, u32)>, Away> {
        let Some(store) = self.store.get() else { return Ok(None) };
        let known = self.accounts.named(&attempt.name, false).await?.filter(|account| !account.is_disabled);
        let Some(account) = known else { return Ok(None) };
        let state = store.state();
        let stored = state.account_named(account.name.as_bytes());
        let app = stored.and_then(|(_, stored)| app_passwords::find(stored, attempt.caller.door, password));
        Ok(app.map(|app| (account, app)))
    }

    /// Whether this is the password of an account, checked as an attempt to log in is; `None` when nobody can say now.
    pub(crate) async fn is_right(&self, name: &str, password: &str) -> Option<bool> {
        let check = async { self.right(name, password.as_bytes()).await.map(|found| found.is_some()) };
        self.guarded(name, check).await?.ok()
    }

    /// A check that waits as an attempt to log in does, and has failed as one where it is not right; `None` when too many wait.
    pub(crate) async fn guarded<E>(
        &self,
        name: &str,
        check: impl Future<Output = Result<bool, E>>,
    ) -> Option<Result<bool, E>> {
        let Attempt { attempt, .. } = self.attempt(Caller { door: WEBMAIL, client: None }, name).await.ok()?;
        let outcome = check.await;
        match outcome {
            Ok(false) => {
                tracing::warn!(account = name, "wrong password or code within a session");
                drop(attempt);
            }
            Ok(true) | Err(_) => attempt.give_up(),
        }
        Some(outcome)
    }

    /// Looks from here on which accounts log in at the webmail alone.
    pub(crate) fn look_in(&self, store: Handle) {
        let _ = self.store.set(store);
    }

    fn is_open(&self, account: &Account, door: &str) -> bool {
        let Some(store) = self.store.get().filter(|_| door != WEBMAIL) else { return true };
        let state = store.state();
        !state.account_named(account.name.as_bytes()).is_some_and(|(_, account)| second::is_alone(account))
    }

    /// The account of a name and a password that come in at a door. A login that is `known` when its turn has come is not checked
    /// again.
    ///
    /// # Errors
    /// When they are wrong, or nobody can say.
    pub async fn log_in(
        &self,
        door: &'static str,
        client: IpAddr,
        (name, password): (&str, &[u8]),
        known: impl FnOnce() -> Option<Arc<Account>>,
    ) -> Result<Arc<Account>, Denied> {
        let attempt = self.attempt(Caller { door, client: Some(client) }, name).await?;
        match known() {
            Some(account) => {
                attempt.attempt.succeed();
                Ok(account)
            }
            None => self.check(attempt, password).await,
        }
    }

    /// Begins an attempt when its turn has come.
    ///
    /// # Errors
    /// When too many wait.
    pub(crate) async fn attempt(&self, caller: Caller, name: &str) -> Result<Attempt, Denied> {
        self.begin(caller, name, CHECK_WAIT).await
    }

    /// Begins an attempt that waits for the client's proof.
    pub(crate) async fn begin_proof(&self, caller: Caller, name: &str) -> Result<Attempt, Denied> {
        self.begin(caller, name, PROOF_WAIT).await
    }

    async fn begin(&self, caller: Caller, name: &str, decided: Duration) -> Result<Attempt, Denied> {
        let begun = timeout(PATIENCE, self.guard.begin(caller.client, name, decided)).await;
        let attempt = begun.map_err(|_| Denied::Busy)?;
        Ok(Attempt { attempt, caller, name: name.into() })
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
        let Some(account) = account.filter(|account| !account.is_disabled) else { return Ok(false) };
        match &account.login {
            Login::Elsewhere { table, entry } => match std::str::from_utf8(password) {
                Ok(password) => self.accounts.is_password(table, entry, password).await,
                Err(_) => Ok(false),
            },
            Login::Hash(hash) if self.proven.has(hash.as_str(), password) => Ok(true),
            Login::Hash(hash) => {
                let _guess = match self.guard.has_failures(&account.name) {
                    true => self.guesses.acquire().await.ok(),
                    false => None,
                };
                let Ok(_permit) = self.permits.acquire().await else { return Ok(false) };
                let (hash, password, proven) = (hash.clone(), password.to_vec(), self.proven.clone());
                let check = move || {
                    let is_right = hash.is(&password);
                    if is_right {
                        proven.note(hash.as_str(), &password);
                    }
                    is_right
                };
                Ok(tokio::task::spawn_blocking(check).await.unwrap_or(false))
            }
            Login::Nobody => Ok(false),
        }
    }

    /// Remembers how an attempt came out: for whom it was right, if it was.
    pub(crate) fn judge(
        &self,
        attempt: Attempt,
        right: Result<Option<Arc<Account>>, Away>,
    ) -> Result<Arc<Account>, Denied> {
        let right = right.map(|found| found.filter(|account| self.is_open(account, attempt.caller.door)));
        self.conclude(attempt, right, None)
    }

    /// The same for a login that is open to the account, with the number of its app password.
    fn conclude(
        &self,
        attempt: Attempt,
        right: Result<Option<Arc<Account>>, Away>,
        app: Option<u32>,
    ) -> Result<Arc<Account>, Denied> {
        let Attempt { attempt, caller: Caller { door, client }, name } = attempt;
        let client = client.map(tracing::field::display);
        let name = || name.chars().take(255).collect::<String>();
        match right {
            Ok(Some(account)) => {
                tracing::info!(account = account.name, door, client, app_password = app, "logged in");
                self.counts.logins.fetch_add(1, Relaxed);
                app.into_iter().for_each(|app| self.last.note(&account.name, Some(app), door));
                self.last.note(&account.name, None, door);
                attempt.succeed();
                Ok(account)
            }
            Ok(None) => {
                tracing::warn!(account = name(), door, client, "login failed");
                self.counts.failures.fetch_add(1, Relaxed);
                drop(attempt);
                Err(Denied::Wrong)
            }
            Err(why) => {
                tracing::warn!(account = name(), door, client, %why, "login cannot be checked");
                attempt.give_up();
                Err(Denied::Away)
            }
        }
    }

    /// Outcomes of attempts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The same in each process's life, and known to nobody else.
    pub(crate) fn secret(&self) -> &[u8] {
        &self.secret
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
    use crate::accounts;
    use crate::elsewhere::{Asking, Elsewhere};
    use crate::password::Password;

    async fn check(logins: &Logins, client: Option<IpAddr>, name: &str, word: &[u8]) -> Result<Arc<Account>, Denied> {
        let attempt = logins.attempt(Caller { door: "imap", client }, name).await?;
        logins.check(attempt, word).await
    }

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
            assert_eq!(check(&logins, guesser, name, b"guess").await, Err(Denied::Wrong));
            waits.push(before.elapsed().as_secs());
        }
        assert_eq!(waits, [1, 2, 3, 5, 9, 16]);
        // Who knows it is let in, and others are not kept waiting by those who guess elsewhere.
        assert!(check(&logins, None, "Tim", b"secret").await.is_ok());
        let before = tokio::time::Instant::now();
        assert!(check(&logins, Some("192.0.2.2".parse().unwrap()), "tim", b"secret").await.is_ok());
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
            let found = check(&there, None, name, password.as_bytes()).await;
            assert_eq!(found.is_ok(), wanted, "{name} {password}");
        }
        assert_eq!(check(&away, None, "tim", b"new").await, Err(Denied::Away));
        let before = tokio::time::Instant::now();
        assert!(check(&away, None, "tim", b"old").await.is_ok() && before.elapsed().is_zero(), "it was no guess");
    }

    #[test]
    fn responses_of_plain_are_read() {
        assert_eq!(plain(b"AHRpbQB0YW5zdGFhZnRhbnN0YWFm"), Some(("tim".into(), b"tanstaaftanstaaf".to_vec())));
        for wrong in [&b""[..], b"!", b"AHRpbQ==", b"YW5uAHRpbQBzZWNyZXQ="] {
            assert_eq!(plain(wrong), None);
        }
    }
}
