//! `[trust]`: what a stranger who sends mail has to show before there is any work for it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::network::Network;

/// `[trust]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrustSettings {
    /// How long a client of which nothing is known waits for the greeting, in milliseconds; 0: it does not.
    pub greet_wait_ms: u64,
    /// How long it is remembered that a client has waited for it, in seconds.
    pub remember_seconds: u64,
    /// Clients that are not tested.
    pub permit: Vec<AccessEntry>,
    /// Clients that are refused.
    pub reject: Vec<AccessEntry>,
    /// The bits of an IPv4 address that make a prefix.
    pub prefix_ipv4_bits: u8,
    /// The bits of an IPv6 address that make a prefix.
    pub prefix_ipv6_bits: u8,
    /// Clients that are remembered; there are a fifth as many prefixes.
    pub clients_max: usize,
    /// The time in which messages, recipients and sessions are counted, in seconds.
    pub window_seconds: u64,
    /// Errors after which a session ends.
    pub errors_max: u32,
    /// Scores of failed tests.
    pub scores: Scores,
    /// Bounds of one client.
    pub client: Bounds,
    /// Bounds of one prefix.
    #[serde(with = "PrefixBounds")]
    pub prefix: Bounds,
    /// Limits against address harvesting.
    pub harvest: HarvestSettings,
    /// Answers that come late.
    pub tarpit: TarpitSettings,
    /// Block lists that are asked.
    pub dnsbl: DnsblSettings,
    /// The folder of the ledger of what was seen of clients; nobody named: it is kept in memory alone.
    pub reputation: Option<PathBuf>,
    /// How often what was seen is added to the ledger, and what others have done to it is read, in seconds.
    pub reputation_seconds: u64,
}

/// `[trust.scores]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scores {
    /// It spoke before it was greeted.
    pub pregreet: i32,
    /// It sent commands before it had the answer that it has to wait for.
    pub pipelining: i32,
    /// It ended a command by LF alone.
    pub bare_newline: i32,
    /// Our own reputation lists it.
    pub own: i32,
    /// From which sum on recipients are deferred.
    pub defer: i32,
    /// From which sum on they are refused.
    pub reject: i32,
}

/// `[trust.client]` and `[trust.prefix]`: bounds within the window; 0 means any number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// Sessions at a time.
    pub connections_max: u32,
    /// New sessions.
    pub arrivals_max: u32,
    /// Messages.
    pub messages_max: u32,
    /// Recipients.
    pub recipients_max: u32,
    /// Recipients that nobody knows.
    pub unknown_max: u32,
}

/// `[trust.prefix]`: what it does not name is as without it.
#[derive(Deserialize)]
#[serde(remote = "Bounds", deny_unknown_fields, default = "of_prefix")]
struct PrefixBounds {
    connections_max: u32,
    arrivals_max: u32,
    messages_max: u32,
    recipients_max: u32,
    unknown_max: u32,
}

fn of_prefix() -> Bounds {
    Bounds { connections_max: 500, ..Bounds::default() }
}

/// `[trust.harvest]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HarvestSettings {
    /// Unknown recipients of a client that make it a harvester; 0: none is.
    pub unknown_min: u32,
    /// If so many of a hundred are unknown.
    pub share_percent: u32,
    /// The same of a prefix, for clients in it that have sent no good mail.
    pub prefix_unknown_min: u32,
    /// The same of a prefix.
    pub prefix_share_percent: u32,
    /// How long a harvester is deferred, in seconds.
    pub seconds: u64,
    /// After how many seconds a recipient counts half.
    pub half_life_seconds: u64,
}

/// `[trust.tarpit]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TarpitSettings {
    /// Errors of a session that are answered at once.
    pub errors: u32,
    /// Delay added by each further one, in milliseconds; 0: nothing is delayed.
    pub step_ms: u64,
    /// The longest delay, in milliseconds.
    pub ms_max: u64,
    /// Sessions that are delayed at a time; beyond that none is.
    pub sessions_max: u32,
}

/// `[trust.dnsbl]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DnsblSettings {
    /// `DOMAIN[=FILTER][*WEIGHT]`, as postscreen has them.
    pub lists: Vec<String>,
    /// Resolvers; empty: those of `/etc/resolv.conf`.
    pub resolvers: Vec<SocketAddr>,
    /// `NAME:TYPE:FILE[,FILE]`: lists that are at hand, and asked of nobody.
    pub local: Vec<String>,
    /// How long after the beginning of the session the first recipient waits for the lists at the most, in milliseconds.
    pub wait_ms: u64,
}

impl Default for TrustSettings {
    fn default() -> TrustSettings {
        TrustSettings {
            greet_wait_ms: 2_000,
            remember_seconds: 7 * 86_400,
            permit: Vec::new(),
            reject: Vec::new(),
            prefix_ipv4_bits: 24,
            prefix_ipv6_bits: 48,
            clients_max: 100_000,
            window_seconds: 3_600,
            errors_max: 20,
            scores: Scores::default(),
            client: Bounds::default(),
            prefix: of_prefix(),
            harvest: HarvestSettings::default(),
            tarpit: TarpitSettings::default(),
            dnsbl: DnsblSettings::default(),
            reputation: None,
            reputation_seconds: 30,
        }
    }
}

impl Default for Scores {
    fn default() -> Scores {
        Scores { pregreet: 4, pipelining: 4, bare_newline: 1, own: 4, defer: 8, reject: 12 }
    }
}

impl Default for HarvestSettings {
    fn default() -> HarvestSettings {
        HarvestSettings {
            unknown_min: 20,
            share_percent: 80,
            prefix_unknown_min: 200,
            prefix_share_percent: 95,
            seconds: 600,
            half_life_seconds: 3_600,
        }
    }
}

impl Default for TarpitSettings {
    fn default() -> TarpitSettings {
        TarpitSettings { errors: 5, step_ms: 500, ms_max: 5_000, sessions_max: 1_000 }
    }
}

impl Default for DnsblSettings {
    fn default() -> DnsblSettings {
        DnsblSettings { lists: Vec::new(), resolvers: Vec::new(), local: Vec::new(), wait_ms: 2_000 }
    }
}

impl TrustSettings {
    /// The files that are named.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.permit.iter().chain(&self.reject).filter_map(|entry| match entry {
            AccessEntry::File(path) => Some(path),
            AccessEntry::Network(_) => None,
        })
    }

    /// Whether everything goes together.
    ///
    /// # Errors
    /// When it does not; the message names the key.
    pub fn check(&self) -> Result<(), String> {
        if self.prefix_ipv4_bits > 32 || self.prefix_ipv6_bits > 128 {
            return Err("trust: an address has fewer bits than prefix_ipv4_bits or prefix_ipv6_bits".into());
        }
        if [self.errors_max.into(), self.window_seconds, self.reputation_seconds].contains(&0) || self.clients_max == 0
        {
            return Err("trust: errors_max, clients_max, window_seconds and reputation_seconds are 1 or more".into());
        }
        if self.reputation.as_ref().is_some_and(|folder| !folder.is_absolute()) {
            return Err("trust: reputation is the absolute path of a folder".into());
        }
        if self.greet_wait_ms > 60_000 || self.dnsbl.wait_ms > 60_000 || self.tarpit.ms_max > 120_000 {
            return Err("trust: clients lose patience: greet_wait_ms and dnsbl.wait_ms are 60000 at the most, tarpit.ms_max 120000".into());
        }
        if self.scores.defer > self.scores.reject || self.scores.defer <= 0 {
            return Err("trust: scores.defer is more than 0, and no more than scores.reject".into());
        }
        if self.harvest.share_percent > 100 || self.harvest.prefix_share_percent > 100 {
            return Err("trust: a share is no more than 100 percent".into());
        }
        Ok(())
    }
}

/// Entry of an access list: a network, or a file with one a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessEntry {
    /// A network.
    Network(Network),
    /// The absolute path of a file.
    File(PathBuf),
}

impl FromStr for AccessEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<AccessEntry, String> {
        if text.starts_with('/') {
            return Ok(AccessEntry::File(text.into()));
        }
        let network = text.parse().map(AccessEntry::Network);
        network.map_err(|_| {
            format!("{text:?} is neither a network, ADDRESS or ADDRESS/BITS, nor the absolute path of a file")
        })
    }
}

impl<'de> Deserialize<'de> for AccessEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AccessEntry, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Clients whose trust a listener tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tested {
    /// Nobody's.
    Off,
    /// That of all but this machine, those who speak for others, and those in `clients`.
    Strangers,
    /// Everybody's.
    All,
}
