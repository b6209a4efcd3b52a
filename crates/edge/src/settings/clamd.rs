//! `[clamd]`: the settings of the door that speaks clamd's protocol.
//!
//! A table of its own and not a `[[listener]]`: nothing is handed on here, so that next hop, tags and quarantine would
//! mean nothing; and as with clamd, one set of settings serves all its addresses. `clamd_conf` fills it from a
//! `clamd.conf`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use flow::{Action, Policy};
use regex::bytes::Regex;
use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::address::{Address, SocketMode};
use super::network::Network;
use super::size::size;

/// `[clamd]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClamdSettings {
    /// Where: `IP:PORT`, or `unix:/PATH` for a UNIX socket. None: the door is closed.
    pub addresses: Vec<Address>,
    /// The permissions of UNIX sockets, in octal.
    pub socket_mode: SocketMode,
    /// The group of UNIX sockets; none: that of the program.
    pub socket_group: Option<String>,
    /// The folders that `SCAN` and its kind may look into.
    pub paths: Vec<PathBuf>,
    /// Paths that are passed over, as regular expressions.
    pub exclude: Vec<Pattern>,
    /// Whether symbolic links are followed, as far as `paths` allows.
    pub follow_symlinks: bool,
    /// Whether folders on other file systems are entered.
    pub cross_filesystems: bool,
    /// Folders within folders; 0 means any.
    pub directory_depth_max: usize,
    /// The longest stream, in bytes; 0 means any.
    #[serde(deserialize_with = "size")]
    pub stream_bytes_max: u64,
    /// Seconds for the first command of a connection.
    pub command_seconds_max: u64,
    /// Seconds for the next piece of a stream, and for the next command of a session.
    pub read_seconds_max: u64,
    /// Seconds for a client to read its reply.
    pub send_seconds_max: u64,
    /// Connections at a time; more wait to be accepted.
    pub connections_max: usize,
    /// Requests of one session under way.
    pub session_requests_max: u32,
    /// Files and streams scanned at a time; 0 means one for each core.
    pub scan_threads: usize,
    /// Clients that may send RELOAD.
    pub reload: Who,
    /// The networks that clients may come from over TCP; none: any.
    pub clients: Vec<Network>,
    /// Connections at a time of one client: an address, or a user of this machine.
    pub connections_per_client_max: usize,
    /// Seconds for one file that a client names; 0 means any.
    pub scan_seconds_max: u64,
    /// Whether clients may say SHUTDOWN.
    pub shutdown: bool,
    /// Whether clients may say STATS.
    pub stats: bool,
    /// Whether clients may say VERSION.
    pub version: bool,
    /// Whether clients may say ALLMATCHSCAN.
    pub all_matches: bool,
    /// Reply when a limit was reached.
    pub on_limit: Said,
    /// When two readers could disagree, and only one reading was inspected.
    pub on_ambiguous: Said,
    /// When content has a format without a reader.
    pub on_unopened: Said,
    /// When content needs a key.
    pub on_encrypted: Said,
    /// When all was inspected, except by signatures that need more of one object than is kept.
    pub on_partial: Said,
    /// When content is broken.
    pub on_malformed: Said,
}

impl Default for ClamdSettings {
    fn default() -> ClamdSettings {
        let pattern = |text| Pattern::from_str(text).expect("the pattern is right");
        ClamdSettings {
            addresses: Vec::new(),
            socket_mode: SocketMode(0o660),
            socket_group: None,
            paths: Vec::new(),
            exclude: vec![pattern("^/proc/"), pattern("^/sys/")],
            follow_symlinks: false,
            cross_filesystems: true,
            directory_depth_max: 15,
            stream_bytes_max: 0,
            command_seconds_max: 30,
            read_seconds_max: 120,
            send_seconds_max: 60,
            connections_max: 10_000,
            session_requests_max: 64,
            scan_threads: 0,
            reload: Who::Local,
            clients: Vec::new(),
            connections_per_client_max: 1_000,
            scan_seconds_max: 120,
            shutdown: false,
            stats: true,
            version: true,
            all_matches: true,
            on_limit: Said::Found,
            on_ambiguous: Said::Found,
            on_unopened: Said::Ok,
            on_encrypted: Said::Ok,
            on_partial: Said::Ok,
            on_malformed: Said::Ok,
        }
    }
}

impl ClamdSettings {
    /// Actions for findings: FOUND stands for reject, ERROR for tag.
    pub fn policy(&self) -> Policy {
        Policy {
            on_infected: Action::Reject,
            signatures: Arc::default(),
            on_forbidden: Action::Pass,
            on_limit: self.on_limit.action(),
            on_ambiguous: self.on_ambiguous.action(),
            on_unopened: self.on_unopened.action(),
            on_encrypted: self.on_encrypted.action(),
            on_external: Action::Pass,
            on_partial: self.on_partial.action(),
            on_malformed: self.on_malformed.action(),
        }
    }

    /// Whether they go together.
    ///
    /// # Errors
    /// When they do not; the message says why.
    pub fn check(&self) -> Result<(), String> {
        let used_twice = |(index, address): (usize, &Address)| {
            let fixed = !matches!(address, Address::Tcp(address) if address.port() == 0);
            fixed && self.addresses[..index].contains(address)
        };
        if let Some((_, address)) = self.addresses.iter().enumerate().find(|&place| used_twice(place)) {
            return Err(format!("clamd: the address {address} is used twice"));
        }
        let seconds = [self.command_seconds_max, self.read_seconds_max, self.send_seconds_max];
        let counts = [self.connections_max, self.connections_per_client_max];
        if counts.contains(&0) || self.session_requests_max == 0 || seconds.contains(&0) {
            return Err("clamd: a limit of 0 would refuse everything".into());
        }
        Ok(())
    }
}

/// Reply for a class of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Said {
    /// `NAME FOUND`.
    Found,
    /// `NAME ERROR`.
    Error,
    /// `OK`.
    Ok,
}

impl Said {
    fn action(self) -> Action {
        match self {
            Said::Found => Action::Reject,
            Said::Error => Action::Tag,
            Said::Ok => Action::Pass,
        }
    }
}

/// Clients that may use a command: `true`, `false`, or `"local"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// All of them.
    All,
    /// Clients of a UNIX socket or the loopback interface.
    Local,
    /// None.
    Nobody,
}

impl Who {
    /// Whether a client is one of them, who comes from that address; none: from a UNIX socket.
    pub fn holds(self, address: Option<IpAddr>) -> bool {
        match self {
            Who::All => true,
            Who::Local => address.is_none_or(|address| address.to_canonical().is_loopback()),
            Who::Nobody => false,
        }
    }
}

impl<'de> Deserialize<'de> for Who {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Who, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "true, false or \"local\"")]
        enum Said {
            Truth(bool),
            Word(Local),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Local {
            Local,
        }
        Ok(match Said::deserialize(deserializer)? {
            Said::Truth(true) => Who::All,
            Said::Truth(false) => Who::Nobody,
            Said::Word(Local::Local) => Who::Local,
        })
    }
}

/// A regular expression over the bytes of a path.
#[derive(Debug, Clone)]
pub struct Pattern(pub Regex);

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        Regex::new(text).map(Pattern).map_err(|error| error.to_string())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
