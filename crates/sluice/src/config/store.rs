//! `[store]`: the mail store of the gateway itself.

use std::path::{Path, PathBuf};

use edge::settings::{Address, Asks, Forward, Listener, Network, size, some_size};
use mailbox::Protocol;
use mailbox::scripts::SiteScripts;
use serde::Deserialize;

use super::{Config, Outward, QueueSettings};

/// How large a store is made if nothing is said.
const SIZE: u64 = 1 << 30;

/// Room for a few segments.
const SIZE_MIN: u64 = 64 << 20;

/// How long others keep a policy of MTA-STS: a week.
const STS_SECONDS: u32 = 604_800;

/// A door of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    Lmtp,
    Pop3,
    Pop3s,
    Imap,
    Imaps,
    Sieve,
    Webmail,
    Webmails,
}

impl Door {
    const ALL: [Door; 8] =
        [Door::Lmtp, Door::Pop3, Door::Pop3s, Door::Imap, Door::Imaps, Door::Sieve, Door::Webmail, Door::Webmails];

    /// The door of a name.
    pub fn named(name: &str) -> Option<Door> {
        Door::ALL.into_iter().find(|door| door.name() == name)
    }

    /// As in a URL.
    pub const fn name(self) -> &'static str {
        match self {
            Door::Lmtp => "lmtp",
            Door::Pop3 => "pop3",
            Door::Pop3s => "pop3s",
            Door::Imap => "imap",
            Door::Imaps => "imaps",
            Door::Sieve => "sieve",
            Door::Webmail => "webmail",
            Door::Webmails => "webmails",
        }
    }

    /// Whether TLS begins with the connection.
    pub const fn is_encrypted(self) -> bool {
        matches!(self, Door::Pop3s | Door::Imaps | Door::Webmails)
    }

    /// Protocol of the door, with TLS or without.
    pub const fn protocol(self) -> Protocol {
        match self {
            Door::Lmtp => Protocol::Lmtp,
            Door::Pop3 | Door::Pop3s => Protocol::Pop3,
            Door::Imap | Door::Imaps => Protocol::Imap,
            Door::Sieve => Protocol::Sieve,
            Door::Webmail | Door::Webmails => Protocol::Webmail,
        }
    }
}

/// The policy that other servers are told of this one (MTA-STS, RFC 8461).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StsPolicy {
    /// None.
    #[default]
    Off,
    /// Failures are reported, and mail is sent all the same.
    Testing,
    /// Mail comes in TLS with a certificate for the name of this server, or not at all.
    Enforce,
}

impl StsPolicy {
    /// Its text for a server.
    pub fn text(self, hostname: &str) -> Option<String> {
        let mode = match self {
            StsPolicy::Off => return None,
            StsPolicy::Testing => "testing",
            StsPolicy::Enforce => "enforce",
        };
        Some(format!("version: STSv1\r\nmode: {mode}\r\nmx: {hostname}\r\nmax_age: {STS_SECONDS}\r\n"))
    }
}

/// `[store]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSettings {
    /// Where the store, and unless they are elsewhere the accounts are: files `mail` and `accounts`.
    pub folder: PathBuf,
    /// How large the store is; one that is there grows to it.
    #[serde(deserialize_with = "some_size")]
    pub size: Option<u64>,
    /// File of accounts. Default: `accounts` in the folder.
    pub accounts: Option<PathBuf>,
    /// Accounts that are in no line of that file: tables of databases and directories, `[[lookup]]`, by their names.
    pub lookups: Vec<String>,
    /// Where mail is given out by IMAP.
    pub imap: Vec<Address>,
    /// The same within TLS.
    pub imaps: Vec<Address>,
    /// Where it is given out by POP3.
    pub pop3: Vec<Address>,
    /// The same within TLS.
    pub pop3s: Vec<Address>,
    /// Where users keep their scripts by ManageSieve; with a certificate STARTTLS is offered, and asked for from elsewhere.
    pub sieve: Vec<Address>,
    /// Where users read and write mail in a browser, by HTTP.
    pub webmail: Vec<Address>,
    /// The same within TLS, by HTTPS.
    pub webmails: Vec<Address>,
    /// The policy of MTA-STS, which `webmails` serve at `mta-sts.DOMAIN`.
    pub mta_sts_policy: StsPolicy,
    /// Where it comes in by LMTP, not inspected.
    pub lmtp: Vec<Address>,
    /// The way of what clients submit, what users write in the webmail, what their scripts redirect, and their answers: `mx` for the mail
    /// servers of the recipients, or one next hop, `smtp://HOST:PORT`, `smtps://HOST:PORT` or `smtp:/PATH`. Without it, nothing is
    /// submitted, mail that a script redirects stays in the INBOX, and nobody is answered.
    pub relay: Option<Outward>,
    /// How mail waits that goes out.
    pub queue: QueueSettings,
    /// The folder that `sluice sendmail` puts mail into, for the way of `relay`.
    pub maildrop: Option<PathBuf>,
    /// Users of this machine whose commands may send as anybody, and without a bound.
    pub maildrop_trusted: Vec<String>,
    /// A script that runs over each mail for each account before its own, and one that runs after it: each runs if the one before it
    /// keeps the mail. Read at the start, as the next.
    pub sieve_before: Option<PathBuf>,
    /// See `sieve_before`.
    pub sieve_after: Option<PathBuf>,
    /// A folder with scripts, `NAME.sieve`, that all may include: `include :global "NAME"`.
    pub sieve_global: Option<PathBuf>,
    /// Whether mail that is spam by its score goes to the mailbox for junk, where no script says otherwise.
    pub junk: bool,
    /// Whether an account in which is searched gets an index of what is in its mails, attachments too.
    pub search_index: bool,
    /// Whether the webmail asks other servers when a user wants the pictures of a mail that lie there, or leaves a list in one step.
    pub remote_content: bool,
    /// Networks of this machine and behind it that are asked for that, at any port.
    pub remote_destinations: Vec<Network>,
    /// The largest message.
    #[serde(deserialize_with = "size")]
    pub message_bytes_max: u64,
    /// Clients at a time; further ones are turned away.
    pub sessions_max: usize,
}

impl Default for StoreSettings {
    fn default() -> StoreSettings {
        StoreSettings {
            folder: PathBuf::new(),
            size: None,
            accounts: None,
            lookups: Vec::new(),
            imap: Vec::new(),
            imaps: Vec::new(),
            pop3: Vec::new(),
            pop3s: Vec::new(),
            sieve: Vec::new(),
            webmail: Vec::new(),
            webmails: Vec::new(),
            mta_sts_policy: StsPolicy::Off,
            lmtp: Vec::new(),
            relay: None,
            queue: QueueSettings::default(),
            maildrop: None,
            maildrop_trusted: vec!["root".into()],
            sieve_before: None,
            sieve_after: None,
            sieve_global: None,
            junk: true,
            search_index: true,
            remote_content: true,
            remote_destinations: Vec::new(),
            message_bytes_max: 100 << 20,
            sessions_max: 4_096,
        }
    }
}

impl StoreSettings {
    /// How large a store is that has to be made.
    pub fn new_size(&self) -> u64 {
        self.size.unwrap_or(SIZE)
    }

    /// The store itself.
    pub fn volume(&self) -> PathBuf {
        self.folder.join("mail")
    }

    /// The file of accounts.
    pub fn accounts(&self) -> PathBuf {
        self.accounts.clone().unwrap_or_else(|| self.folder.join("accounts"))
    }

    /// The file of keys that mail is signed with.
    pub fn dkim(&self) -> PathBuf {
        self.folder.join("dkim")
    }

    /// The settings of a configuration; none if there is no such file.
    ///
    /// # Errors
    /// When it cannot be read, or has no table `[store]`.
    pub fn read(config: &Path) -> Result<Option<StoreSettings>, String> {
        if config.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let store = Config::read(config).map_err(|error| error.to_string())?.store;
        store.map(Some).ok_or_else(|| format!("{}: no table [store]", config.display()))
    }

    /// The scripts of the site.
    ///
    /// # Errors
    /// What cannot be read, or is wrong.
    pub fn scripts(&self) -> Result<SiteScripts, String> {
        let [global, before, after] = [&self.sieve_global, &self.sieve_before, &self.sieve_after].map(Option::as_deref);
        SiteScripts::read(global, before, after).map_err(|error| format!("sieve: {error}"))
    }

    /// All doors.
    pub fn doors(&self) -> impl Iterator<Item = (Door, &Address)> {
        let all = [
            (Door::Imap, &self.imap),
            (Door::Imaps, &self.imaps),
            (Door::Pop3, &self.pop3),
            (Door::Pop3s, &self.pop3s),
            (Door::Sieve, &self.sieve),
            (Door::Webmail, &self.webmail),
            (Door::Webmails, &self.webmails),
            (Door::Lmtp, &self.lmtp),
        ];
        all.into_iter().flat_map(|(door, addresses)| addresses.iter().map(move |address| (door, address)))
    }

    /// Relative paths count from this folder.
    pub fn count_paths_from(&mut self, folder: &Path) {
        let scripts = [&mut self.sieve_before, &mut self.sieve_after, &mut self.sieve_global].into_iter().flatten();
        let folders = std::iter::once(&mut self.folder).chain(&mut self.maildrop);
        let secrets = self.queue.srs_secret.iter_mut().chain(&mut self.queue.logins);
        for path in folders.chain(secrets).chain(&mut self.accounts).chain(scripts) {
            if !path.as_os_str().is_empty() {
                *path = folder.join(&path);
            }
        }
    }

    fn check(&self, config: &Config) -> Result<(), String> {
        if self.folder.as_os_str().is_empty() {
            return Err("folder is missing".into());
        }
        if self.new_size() < SIZE_MIN {
            return Err("size is less than 64 MiB".into());
        }
        if self.message_bytes_max == 0 || self.sessions_max == 0 {
            return Err("a limit of 0 would refuse everything".into());
        }
        self.queue.check().map_err(|reason| format!("queue: {reason}"))?;
        if self.mta_sts_policy != StsPolicy::Off && self.webmails.is_empty() {
            return Err("mta_sts_policy: the policy is served by store.webmails, and there are none".into());
        }
        if self.maildrop.is_some() && self.relay.is_none() {
            return Err("maildrop: mail from commands needs store.relay".into());
        }
        if !self.queue.relay_domains.is_empty() && self.relay.is_none() {
            return Err("queue: relay_domains: relayed mail needs store.relay".into());
        }
        let relays = |listener: &Listener| listener.smtp().is_some_and(|own| !own.relay_clients.is_empty());
        if let Some(listener) = config.listeners.iter().find(|listener| relays(listener) && self.relay.is_none()) {
            let address = &listener.place.address;
            return Err(format!("listener {address}: relay_clients: their mail needs store.relay"));
        }
        self.scripts()?;
        let listeners = config.listeners.iter().map(|listener| &listener.place.address);
        let mut taken: Vec<&Address> = listeners.chain(&config.clamd.addresses).collect();
        for (door, address) in self.doors() {
            if taken.iter().any(|other| other.is_taken_by(address)) {
                return Err(format!("{address} is used twice"));
            }
            taken.push(address);
            if door.is_encrypted() && config.tls.certificates.is_empty() {
                return Err(format!("{address}: tls needs a [[tls.certificate]]"));
            }
            if door.is_encrypted() && address.tcp().is_none() {
                return Err(format!("{address}: there is no TLS on a UNIX socket"));
            }
        }
        Ok(())
    }
}

impl Config {
    /// Whether there is a store, where one is needed.
    pub(super) fn check_store(&self) -> Result<(), String> {
        let moves = self.spam.as_ref().and_then(|spam| spam.bayes.as_ref()).is_some_and(|bayes| bayes.moves);
        if moves && self.store.is_none() {
            return Err("spam.bayes.moves: moved mail needs a table [store]".into());
        }
        if let Some(store) = &self.store {
            return store.check(self).map_err(|reason| format!("store: {reason}"));
        }
        if let Some(listener) = self.listeners.iter().find(|listener| listener.hop.forward == Forward::Store) {
            return Err(format!("listener {}: store: needs a table [store]", listener.place.address));
        }
        let asked = self.recipients.iter().flat_map(|table| &table.call_ahead);
        match asked.into_iter().any(|ahead| ahead.server == Asks::Server(Forward::Store)) {
            true => Err("recipients.call_ahead: store: needs a table [store]".into()),
            false => Ok(()),
        }
    }

    /// Doors of the store where passwords can be read by others.
    pub(super) fn store_warnings(&self) -> impl Iterator<Item = String> {
        let doors = self.store.iter().flat_map(StoreSettings::doors);
        let has_tls = !self.tls.certificates.is_empty();
        let is_exposed =
            |address: &Address| address.tcp().is_some_and(|address| !address.ip().to_canonical().is_loopback());
        doors.filter(move |(_, address)| is_exposed(address)).filter_map(move |(door, address)| match door {
            Door::Imap | Door::Pop3 | Door::Webmail => {
                Some(format!("store: {address}: passwords without TLS; {}s has TLS", door.name()))
            }
            Door::Lmtp => Some(format!("store: {address}: every client can deliver uninspected mail to all accounts")),
            // The one asks for STARTTLS where there is a certificate.
            Door::Sieve if !has_tls => {
                Some(format!("store: {address}: passwords without TLS: there is no [[tls.certificate]]"))
            }
            Door::Imaps | Door::Pop3s | Door::Sieve | Door::Webmails => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENER: &str = "[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:2525'\nforward='store:'\n";

    #[test]
    fn mail_is_relayed_by_a_store_with_a_way_out_and_not_for_everybody() {
        let check = |store: &str, forward: &str, clients: &str| {
            let listener = LISTENER.replace("store:", forward);
            Config::parse(&format!("{store}\n{listener}relay_clients=[{clients}]\n"), "test").map_err(|e| e.to_string())
        };
        let (store, relay) = ("[store]\nfolder='x'", "[store]\nfolder='x'\nrelay='mx'");
        assert!(check(relay, "store:", "'10.0.0.0/8', 'unix'").is_ok());
        for (store, forward, clients, wanted) in [
            (relay, "discard:", "'10.0.0.0/8'", "by the queue of the store"),
            (relay, "store:", "'10.0.0.0/8', '::/0'", "open relay"),
            (store, "store:", "'10.0.0.0/8'", "needs store.relay"),
        ] {
            let error = check(store, forward, clients).unwrap_err();
            assert!(error.contains(wanted), "{forward} {clients}: {error}");
        }
    }

    #[test]
    fn a_store_is_checked_before_it_is_used() {
        for (text, wanted) in [
            ("", "store: needs a table [store]"),
            ("[spam.bayes]\nledger='x'\nmoves=true", "spam.bayes.moves: moved mail"),
            ("[store]", "folder is missing"),
            ("[store]\nfolder='x'\nsize='1M'", "size is less"),
            ("[store]\nfolder='x'\nsessions_max=0", "a limit of 0"),
            ("[store]\nfolder='x'\nimap=['127.0.0.1:2525']", "used twice"),
            ("[store]\nfolder='x'\nimaps=['127.0.0.1:993']", "needs a [[tls.certificate]]"),
            ("[store]\nfolder='x'\nfodler='y'", "unknown field `fodler`"),
            ("[store]\nfolder='x'\nimap=['nowhere']", "is not an address"),
            ("[store]\nfolder='x'\nmaildrop='y'", "needs store.relay"),
            ("[store]\nfolder='x'\nmta_sts_policy='testing'", "store.webmails"),
            ("[store]\nfolder='x'\n[store.queue]\nrelay_domains=['a.test']", "needs store.relay"),
        ] {
            let error = Config::parse(&format!("{text}\n{LISTENER}"), "test").unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        let text = format!("[store]\nfolder='x'\nimap=['127.0.0.1:143', '0.0.0.0:143']\n{LISTENER}");
        let config = Config::parse(&text, "test").unwrap();
        assert_eq!(config.store.as_ref().unwrap().accounts(), PathBuf::from("x/accounts"));
        assert_eq!(config.store_warnings().count(), 1);
    }
}
