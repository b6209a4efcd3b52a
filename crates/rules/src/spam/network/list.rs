//! A list of hosts in the header, as a rule names it.

use flow::RecordKind;

use super::subtest::Subtest;
use crate::spam::rule::Rule;

/// Hosts of the header that a list is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum About {
    /// Relays, by the name of the set.
    Relays,
    /// Relays, if the mail names an accreditor.
    Accredited(Box<[u8]>),
    /// The hosts of all senders.
    FromHosts,
    /// Their registered domains.
    FromDomains,
    /// The host of the envelope's sender.
    Envelope,
    /// The name servers of that host.
    NameServers,
    /// Hosts in these fields.
    Fields(Vec<Box<str>>),
    /// The oldest relay that is not trusted, by its address and all its names.
    Oldest,
}

/// A list of hosts in the header.
#[derive(Debug)]
pub(super) struct HostList {
    pub(super) rule: u32,
    pub(super) about: About,
    pub(super) set: Box<[u8]>,
    pub(super) zone: Box<[u8]>,
    pub(super) kind: RecordKind,
    pub(super) subtest: Subtest,
    /// A list of whom to trust: trusted relays are asked about too.
    pub(super) is_nice: bool,
    pub(super) only: Only,
}

/// Hosts that a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Only {
    /// All of them.
    Any,
    /// Addresses only (`ips_only`).
    Addresses,
    /// Names only (`domains_only`).
    Names,
}

impl Only {
    pub(super) fn of(rule: &Rule) -> Only {
        match () {
            () if rule.flags.has("ips_only") => Only::Addresses,
            () if rule.flags.has("domains_only") => Only::Names,
            () => Only::Any,
        }
    }

    pub(super) fn takes(self, is_address: bool) -> bool {
        match self {
            Only::Any => true,
            Only::Addresses => is_address,
            Only::Names => !is_address,
        }
    }
}

/// A zone as questions have it.
pub(super) fn zone(text: &[u8]) -> Box<[u8]> {
    let end = text.iter().rposition(|&byte| byte != b'.').map_or(0, |last| last + 1);
    text[..end].to_ascii_lowercase().into()
}

/// The fields whose hosts are asked about.
pub(super) fn fields(named: Option<&[u8]>) -> Vec<Box<str>> {
    const USUAL: &[u8] = b"EnvelopeFrom,Reply-To,Disposition-Notification-To,X-WebmailclientIP,X-Source-IP";
    let text = named.unwrap_or(USUAL);
    text.split(|&byte| byte == b',').map(|name| String::from_utf8_lossy(name.trim_ascii()).into()).collect()
}
