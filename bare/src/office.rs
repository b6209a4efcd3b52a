//! State that all connections share: the store, the settings, the sessions of browsers, and failed logins.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use keep::Keep;
use keep::volume::Own;
use keep::webmail::User;
use sha2::{Digest, Sha256};
use store::{Device, Format, Options, Volume};
use webmail::session::{Key, Session, Sessions, hex};
use webmail::{Call, Denial};

use crate::disk::Disk;
use crate::machine::{clock, random, say};
use crate::site::{Account, Site};
use crate::tls::Tls;

/// The store of this machine.
pub type Store = Own<Disk, Site>;

/// Wrong passwords for one account from one address in [`FORGOTTEN_SECONDS`].
const FAILURES_MAX: u32 = 10;
const FORGOTTEN_SECONDS: i64 = 600;
/// Accounts and addresses that are remembered for that.
const ADDRESSES_MAX: usize = 1_000;

/// A segment of the store on a disk of this size or more, in bytes.
const LARGE_DISK_BYTES: u64 = 1 << 30;

/// All that connections share.
pub struct Office {
    pub store: Store,
    sessions: Sessions,
    failures: BTreeMap<([u8; 4], Key), (u32, i64)>,
    pub counts: Counts,
    pub tls: Tls,
}

/// Counters since the start.
#[derive(Default)]
pub struct Counts {
    pub requests: u64,
    pub mails: u64,
    pub refused: u64,
}

impl Office {
    /// Opens the store of a disk. An empty disk is made one.
    pub fn open(disk: Disk, site: Site) -> Result<Office, &'static str> {
        let mut head = [0; 512];
        disk.read_at(0, &mut head).map_err(|_| "the disk of the store cannot be read")?;
        let disk = if head.iter().all(|&byte| byte == 0) { format(disk)? } else { disk };
        let volume = Volume::open(disk, Options::default()).map_err(|error| {
            say!("store: {error}");
            "the store cannot be opened"
        })?;
        say!("store: {} messages", volume.usage().messages);
        let (sessions, failures, counts) = Default::default();
        let mut store = Own::new(volume, site);
        let tls = Tls::new(&mut store)?;
        Ok(Office { store, sessions, failures, counts, tls })
    }

    pub fn site(&self) -> &Site {
        &self.store.machine
    }

    /// The user whose session a request belongs to.
    pub fn user(&mut self, call: &Call) -> Option<(Session, User)> {
        let key = hash(call.cookie.as_ref()?.as_bytes());
        let session = self.sessions.find(&key, clock::seconds())?;
        let account = self.site().account(&session.name)?;
        let (own, name) = (address(account, self.site()), account.name.clone());
        let addresses = [own].into_iter().chain(account.aliases.iter().filter(|alias| alias.contains('@')).cloned());
        let user = User { number: session.account, name, addresses: addresses.collect() };
        Some((session, user))
    }

    /// Ends the session of a request.
    pub fn leave(&mut self, call: &Call) {
        if let Some(cookie) = &call.cookie {
            self.sessions.end(&hash(cookie.as_bytes()));
        }
    }

    /// Makes room among the failures: the oldest goes, so that many names do not keep others out.
    fn forget(&mut self) {
        if self.failures.len() >= ADDRESSES_MAX {
            let oldest = self.failures.iter().min_by_key(|(_, (_, since))| *since).map(|(tried, _)| *tried);
            oldest.and_then(|tried| self.failures.remove(&tried));
        }
    }

    /// Checks a password, and begins a session: its token, or why there is none.
    pub fn enter(&mut self, client: [u8; 4], name: &str, password: &str) -> Result<String, Denial> {
        let now = clock::seconds();
        self.failures.retain(|_, (_, since)| now.saturating_sub(*since) < FORGOTTEN_SECONDS);
        // Behind a proxy all are one client: so failures count for the account that was tried.
        let tried = (client, hash(name.to_ascii_lowercase().as_bytes()));
        let failed = self.failures.get(&tried).map_or(0, |(count, _)| *count);
        if failed >= FAILURES_MAX {
            return Err(Denial::Busy);
        }
        if self.site().account(name).is_some_and(|account| !account.password.has_memory()) {
            return Err(Denial::Away);
        }
        let Some(account) = self.site().account(name).filter(|account| account.password.is(password)).cloned() else {
            self.forget();
            self.failures.entry(tried).or_insert((0, now)).0 += 1;
            return Err(Denial::Wrong);
        };
        let (name, quota) = (account.name.clone(), account.quota_bytes);
        let number = self.store.transact(move |transaction| keep::ensure(transaction, &name, quota));
        let number = number.map_err(|_| Denial::Away)?;
        let (token, form) = (hex(&random::bytes::<32>()), hex(&random::bytes::<16>()));
        let session = Session::new(number, account.name, form, account.password.mark(), now);
        self.sessions.begin(hash(token.as_bytes()), session, now);
        Ok(token)
    }
}

fn format(disk: Disk) -> Result<Disk, &'static str> {
    let mut format = Format::new(u128::from_le_bytes(random::bytes()), clock::seconds().try_into().unwrap_or(1));
    if disk.len() < LARGE_DISK_BYTES {
        format.segment_bytes = 1 << 20;
    }
    say!("store: the disk is empty, and is made a store");
    Volume::format(disk, &format).map_err(|error| {
        say!("store: {error}");
        "the disk cannot be made a store"
    })
}

fn address(account: &Account, site: &Site) -> String {
    match account.name.contains('@') {
        true => account.name.clone(),
        false => format!("{}@{}", account.name, site.hostname),
    }
}

fn hash(bytes: &[u8]) -> Key {
    Sha256::digest(bytes).into()
}
