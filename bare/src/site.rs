//! Settings, on a disk of their own that is read only: lines of text, as
//!
//! ```text
//! hostname = mail.example.org
//! # else DHCP
//! address  = 192.0.2.7/24
//! gateway  = 192.0.2.1
//! connections = 256
//! account  = ann@example.org:$argon2id$v=19$...:quota=1000000000 aliases=info@example.org
//! -----BEGIN CERTIFICATE-----
//! ```
//!
//! Behind them may be a certificate and its key, as PEM. An account is a line of the store's accounts file, with a hash of Argon2, or `{PLAIN}` and the password.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Display;
use core::net::Ipv4Addr;

use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params};
use keep::volume::Machine;
use sha2::{Digest, Sha256};
use smoltcp::wire::Ipv4Cidr;
use store::Device;

use crate::disk::Disk;
use crate::machine::{clock, random, say};

/// Bytes of settings.
const BYTES_MAX: u64 = 1 << 20;

/// The most connections, each way in.
const CONNECTIONS_MAX: usize = 4_096;

/// An account.
#[derive(Clone)]
pub struct Account {
    pub name: String,
    pub password: Password,
    pub quota_bytes: u64,
    pub aliases: Vec<String>,
}

/// A password, or its hash.
#[derive(Clone)]
pub enum Password {
    Plain(String),
    Argon2(String),
}

impl Password {
    /// Whether this is it.
    pub fn is(&self, given: &str) -> bool {
        match self {
            // Of digests, so that it takes as long wherever they differ.
            Password::Plain(password) => Sha256::digest(password) == Sha256::digest(given),
            Password::Argon2(hash) => PasswordHash::new(hash)
                .is_ok_and(|hash| Argon2::default().verify_password(given.as_bytes(), &hash).is_ok()),
        }
    }

    /// Whether there is the memory that the hash takes, in one piece.
    pub fn has_memory(&self) -> bool {
        let Password::Argon2(hash) = self else { return true };
        let bytes = PasswordHash::new(hash).ok().and_then(|hash| Params::try_from(&hash).ok());
        let bytes = bytes.map_or(0, |parameters| (parameters.m_cost() as usize) << 10);
        let mut room = Vec::<u8>::new();
        let has_memory = room.try_reserve_exact(bytes).is_ok();
        // Else the compiler sees that nobody needs it, and asks nobody.
        core::hint::black_box(&room);
        has_memory
    }

    /// A mark that a session is compared with: it ends with the password that it began with.
    pub fn mark(&self) -> [u8; 32] {
        let (Password::Plain(text) | Password::Argon2(text)) = self;
        Sha256::digest(text).into()
    }
}

/// A mail server's settings.
#[derive(Default)]
pub struct Site {
    pub hostname: String,
    pub address: Option<Ipv4Cidr>,
    pub gateway: Option<Ipv4Addr>,
    /// Connections of browsers; those of mail servers are a quarter of it.
    pub connections: usize,
    pub accounts: Vec<Account>,
    /// Whether port 80 shows pages, and does not send browsers to port 443.
    pub is_plain: bool,
    /// The certificate and its key, if there are any.
    pub pem: String,
}

impl Site {
    /// Reads the settings.
    pub fn read(disk: &Disk) -> Result<Site, &'static str> {
        let mut bytes = vec![0; disk.len().min(BYTES_MAX) as usize];
        disk.read_at(0, &mut bytes).map_err(|_| "the disk with the settings cannot be read")?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let text = core::str::from_utf8(bytes.get(..end).unwrap_or_default());
        Site::parse(text.map_err(|_| "the settings are no text")?)
    }

    fn parse(text: &str) -> Result<Site, &'static str> {
        let mut site = Site { hostname: "localhost".into(), connections: 256, ..Site::default() };
        let (text, pem) = text.split_at(text.find("-----BEGIN").unwrap_or(text.len()));
        site.pem = pem.into();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let set = line.split_once('=').ok_or("a name, = and a value are needed");
            if let Err(why) = set.and_then(|(name, value)| site.set(name.trim(), value.trim())) {
                say!("settings, line {number}: {why}");
                return Err("the settings are wrong");
            }
        }
        Ok(site)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        match name {
            "hostname" => self.hostname = value.to_string(),
            "address" => self.address = Some(value.parse().map_err(|()| "an address as 192.0.2.7/24 is needed")?),
            "gateway" => self.gateway = Some(value.parse().map_err(|_| "an address as 192.0.2.1 is needed")?),
            "connections" => {
                let count = value.parse().map_err(|_| "a number is needed")?;
                if !(4..=CONNECTIONS_MAX).contains(&count) {
                    return Err("4 to 4,096 connections are possible");
                }
                self.connections = count;
            }
            "plain" => self.is_plain = flag(value)?,
            "account" => self.accounts.push(account(value)?),
            _ => return Err("this is not a setting"),
        }
        Ok(())
    }

    /// The account that logs in by a name.
    pub fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.name.eq_ignore_ascii_case(name))
    }

    fn owner_of(&self, address: &str) -> Option<&Account> {
        let (local, domain) = address.rsplit_once('@')?;
        let is_here = domain.eq_ignore_ascii_case(&self.hostname);
        self.accounts.iter().find(|account| {
            let known =
                |name: &String| name.eq_ignore_ascii_case(address) || (is_here && name.eq_ignore_ascii_case(local));
            known(&account.name) || account.aliases.iter().any(known)
        })
    }
}

fn flag(value: &str) -> Result<bool, &'static str> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no is needed"),
    }
}

fn account(line: &str) -> Result<Account, &'static str> {
    let mut fields = line.splitn(3, ':');
    let (Some(name), Some(hash)) = (fields.next(), fields.next()) else {
        return Err("a name, a colon and a hash of a password are needed");
    };
    let password = match (hash.strip_prefix("{PLAIN}"), hash.strip_prefix("{ARGON2ID}").unwrap_or(hash)) {
        (Some(password), _) => Password::Plain(password.into()),
        (None, hash) if hash.starts_with("$argon2") => Password::Argon2(hash.into()),
        _ => return Err("of passwords a hash of Argon2 is known, and {PLAIN}"),
    };
    if name.is_empty() {
        return Err("the account has no name");
    }
    let mut account = Account { name: name.to_ascii_lowercase(), password, quota_bytes: 0, aliases: Vec::new() };
    for setting in fields.next().unwrap_or_default().split_ascii_whitespace() {
        match setting.split_once('=') {
            Some(("quota", bytes)) => account.quota_bytes = bytes.parse().map_err(|_| "quota= takes bytes")?,
            Some(("aliases", names)) => account.aliases = names.split(',').map(str::to_ascii_lowercase).collect(),
            // Of the store's accounts file, and not used here.
            Some(("scram", _)) => {}
            _ => return Err("of an account quota= and aliases= are known"),
        }
    }
    Ok(account)
}

impl Machine for Site {
    fn now(&self) -> i64 {
        clock::seconds()
    }

    fn random(&mut self) -> [u8; 16] {
        random::bytes()
    }

    fn hostname(&self) -> &str {
        &self.hostname
    }

    fn owner(&self, address: &str) -> Option<(&str, u64)> {
        self.owner_of(address).map(|account| (&*account.name, account.quota_bytes))
    }

    fn log(&self, what: &str, error: &dyn Display) {
        say!("{what}: {error}");
    }
}
