//! Users of the web: the accounts of `[web]`, and the logins that are not checked again for a while.
//!
//! A browser sends name and password with each request. A pair that was right is remembered by a keyed digest, for
//! [`login_seconds`](crate::config::WebSettings::login_seconds) or until the file of accounts changes. Wrong ones are not
//! remembered: they are delayed by [`mailbox::Logins`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use edge::porch::login::{Checking, Denied, Logins, User};
use mailbox::accounts::{Account, Accounts, Directory};
use sha2::{Digest, Sha256};

use crate::config::{Config, WebSettings};
use crate::lookups::Lookups;
use crate::output::Failure;

/// The longest name, in bytes: failures are remembered by names.
const NAME_BYTES_MAX: usize = 255;

/// Logins that are remembered.
const KNOWN_MAX: usize = 10_000;

/// The digest of a name, a password and a secret.
type Key = [u8; 32];

/// All who may log in at doors of the web.
pub struct Users {
    settings: WebSettings,
    tables: Vec<lookup::Settings>,
    accounts: Arc<Accounts>,
    logins: mailbox::Logins,
    /// Hashed before each name and password, and known to nobody else.
    secret: [u8; 32],
    known: Mutex<Known>,
}

/// Logins that were right.
struct Known {
    /// The file as it was then.
    directory: Arc<Directory>,
    logins: HashMap<Key, (Arc<Account>, Instant)>,
}

impl Users {
    /// Users of a configuration; none where it names none. The cache of `old` stays unless the settings have changed.
    ///
    /// # Errors
    /// When the file of accounts cannot be read.
    pub fn load(config: &Config, lookups: &Lookups, old: Option<&Arc<Users>>) -> Result<Option<Arc<Users>>, Failure> {
        let Some(settings) = config.web.as_ref().filter(|web| web.has_users()) else { return Ok(None) };
        let is_named = |table: &&lookup::Settings| settings.lookups.contains(&table.name);
        let tables: Vec<lookup::Settings> = config.lookups.iter().filter(is_named).cloned().collect();
        if let Some(old) = old.filter(|old| old.settings == *settings && old.tables == tables) {
            return Ok(Some(old.clone()));
        }
        let accounts = match &settings.accounts {
            Some(path) => {
                Accounts::open_foreign(path).map_err(|error| format!("web.accounts: {}: {error}", path.display()))?
            }
            None => Accounts::without_file(),
        };
        let accounts = Arc::new(match lookups.accounts(&settings.lookups) {
            Some(elsewhere) => accounts.and(elsewhere),
            None => accounts,
        });
        let known = Known { directory: accounts.directory(), logins: HashMap::new() };
        Ok(Some(Arc::new(Users {
            settings: settings.clone(),
            tables,
            logins: mailbox::Logins::new(accounts.clone()),
            accounts,
            secret: mailbox::password::random()?,
            known: Mutex::new(known),
        })))
    }

    fn key(&self, name: &str, password: &[u8]) -> Key {
        let length = (name.len() as u64).to_be_bytes();
        let parts: [&[u8]; 4] = [&self.secret, &length, name.as_bytes(), password];
        parts.iter().fold(Sha256::new(), |digest, part| digest.chain_update(part)).finalize().into()
    }

    /// The account of a login that was right not long ago.
    fn known(&self, key: &Key) -> Option<Arc<Account>> {
        let directory = self.accounts.directory();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&known.directory, &directory) {
            *known = Known { directory, logins: HashMap::new() };
        }
        known.logins.get(key).filter(|(_, end)| Instant::now() < *end).map(|(account, _)| account.clone())
    }

    fn remember(&self, key: Key, account: &Arc<Account>) {
        let now = Instant::now();
        let end = now + Duration::from_secs(self.settings.login_seconds);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.logins.len() >= KNOWN_MAX {
            known.logins.retain(|_, (_, end)| now < *end);
        }
        if known.logins.len() < KNOWN_MAX {
            known.logins.insert(key, (account.clone(), end));
        }
    }

    async fn account(&self, client: IpAddr, name: &str, password: &[u8]) -> Result<Arc<Account>, Denied> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Denied::Wrong);
        }
        let key = self.key(name, password);
        if let Some(account) = self.known(&key) {
            return Ok(account);
        }
        let account = self.logins.log_in("http", client, (name, password), || self.known(&key)).await;
        let account = account.map_err(|why| match why {
            mailbox::Denied::Wrong => Denied::Wrong,
            mailbox::Denied::Away | mailbox::Denied::Busy | mailbox::Denied::Full => Denied::Away,
        })?;
        self.remember(key, &account);
        Ok(account)
    }
}

impl Logins for Users {
    fn realm(&self) -> &str {
        &self.settings.realm
    }

    fn check<'a>(&'a self, client: IpAddr, name: &'a str, password: &'a [u8]) -> Checking<'a> {
        Box::pin(async move {
            let account = self.account(client, name, password).await?;
            let group = account.group.as_deref().map(Into::into);
            Ok(Arc::new(User { name: account.name.as_str().into(), group }))
        })
    }
}
