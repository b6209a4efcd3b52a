//! The path of a mail: its relays, and how far they are trusted.
//!
//! Fields are read from the newest on. Relays are trusted as long as each is in `trusted_networks` (or, where no networks are
//! configured, has a private address) or its client was authenticated; they are internal as long as they are also in
//! `internal_networks`. What an authenticated or own user handed in (`msa_networks`) is trusted to the end.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use stream::Fuel;

use super::ip;
use super::received::{self, Read, Relay};
use crate::spam::message::Message;
use crate::spam::rule::Rules;
use crate::spam::syntax::value::{Network, Value};

/// The networks of a site, and where the address of a client may stand that no `Received` field has.
#[derive(Debug, Clone, Default)]
pub struct Networks {
    trusted: Option<Vec<Network>>,
    internal: Option<Vec<Network>>,
    msa: Vec<Network>,
    originating: Vec<Box<[u8]>>,
}

impl Networks {
    /// Networks of a configuration.
    pub fn of(rules: &Rules) -> Networks {
        let mut networks = Networks::default();
        for setting in &rules.settings {
            match (&*setting.name, &setting.value) {
                ("trusted_networks", Value::Networks(all)) => networks.trusted.get_or_insert_default().extend(all),
                ("internal_networks", Value::Networks(all)) => networks.internal.get_or_insert_default().extend(all),
                ("msa_networks", Value::Networks(all)) => networks.msa.extend(all),
                ("clear_trusted_networks", _) => networks.trusted = None,
                ("clear_internal_networks", _) => networks.internal = None,
                ("clear_msa_networks", _) => networks.msa.clear(),
                ("originating_ip_headers", Value::Words(words)) => networks.originating.extend(words.iter().cloned()),
                ("clear_originating_ip_headers", _) => networks.originating.clear(),
                _ => {}
            }
        }
        networks
    }

    /// Fields that say where an author's client is.
    pub(crate) fn originating(&self) -> &[Box<[u8]>] {
        &self.originating
    }

    fn is_configured(&self) -> bool {
        self.trusted.is_some() || self.internal.is_some()
    }

    pub(crate) fn is_trusted(&self, address: IpAddr) -> bool {
        has(self.trusted.as_ref().or(self.internal.as_ref()), address)
    }

    fn is_internal(&self, address: IpAddr) -> bool {
        has(self.internal.as_ref().or(self.trusted.as_ref()), address)
    }
}

/// Whether a list has an address. This host is in every list that leaves it not out.
fn has(list: Option<&Vec<Network>>, address: IpAddr) -> bool {
    named(list, address).unwrap_or_else(|| is_this_host(address))
}

/// What a list says of an address: the first network that fits counts.
fn named(list: Option<&Vec<Network>>, address: IpAddr) -> Option<bool> {
    let found = list.into_iter().flatten().find(|network| network.contains(address));
    found.map(|network| !network.excluded)
}

fn is_this_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[0] == Ipv4Addr::LOCALHOST.octets()[0],
        IpAddr::V6(address) => address == Ipv6Addr::LOCALHOST,
    }
}

/// The relays of a mail, the newest first.
#[derive(Debug, Clone, Default)]
pub struct Path {
    /// Trusted relays.
    pub trusted: Vec<Relay>,
    /// Untrusted relays.
    pub untrusted: Vec<Relay>,
    /// The site's own.
    pub internal: Vec<Relay>,
    /// All others.
    pub external: Vec<Relay>,
    /// How many fields are not understood.
    pub unknown: u32,
    /// How many `Received` fields, from the newest on, are trusted.
    pub trusted_fields: usize,
    /// How many are internal.
    pub internal_fields: usize,
}

/// Steps of all searches in the fields of one mail: ten thousand times what a field takes.
const STEPS_MAX: u64 = 50_000_000;

/// How far the path has been followed.
struct Follower<'n> {
    networks: &'n Networks,
    path: Path,
    in_trusted: bool,
    in_internal: bool,
    found_msa: bool,
    may_restart: bool,
}

impl Path {
    /// Reads the path of a mail: at most so many fields.
    pub fn read(mail: &Message, networks: &Networks, fields_max: usize) -> Path {
        let mut follower = Follower {
            networks,
            path: Path::default(),
            in_trusted: true,
            in_internal: true,
            found_msa: false,
            may_restart: true,
        };
        let received = mail.fields().iter().filter(|field| field.is(b"Received")).take(fields_max);
        let mut fuel = Fuel::new(STEPS_MAX);
        let mut sender = None;
        for field in received {
            sender = follower.take(received::read(&field.value, &mut fuel), sender);
        }
        for name in &networks.originating {
            let field = mail.fields().iter().rev().find(|field| field.is(name));
            let Some(address) = field.and_then(|field| first_address(&field.value)) else { continue };
            let line = [b"from X-Originating-IP: ", address].concat();
            sender = follower.take(received::read(&line, &mut fuel), sender);
        }
        follower.path
    }

    /// Relays as rules look at them, one after the other.
    pub fn text(relays: &[Relay]) -> Vec<u8> {
        let mut out = Vec::new();
        for relay in relays {
            if !out.is_empty() {
                out.push(b' ');
            }
            relay.append_to(&mut out);
        }
        out
    }
}

/// The first address in a text, whatever stands around it.
fn first_address(text: &[u8]) -> Option<&[u8]> {
    ip::find(text)
}

impl Follower<'_> {
    /// Takes the next field; the sender that it tells of the one behind.
    fn take(&mut self, read: Read, sender: Option<Box<[u8]>>) -> Option<Box<[u8]>> {
        let relay = match read {
            Read::Relay(relay) => relay,
            other => {
                if other == Read::Unknown {
                    self.path.unknown += 1;
                }
                if other == Read::Fetched && self.may_restart {
                    self.path.trusted.clear();
                    self.path.internal.clear();
                    self.path.external.clear();
                }
                self.path.trusted_fields += usize::from(self.in_trusted);
                self.path.internal_fields += usize::from(self.in_internal);
                return match other {
                    Read::LocalFrom(sender) => sender,
                    _ => None,
                };
            }
        };
        let mut relay = *relay;
        relay.envelope_from = sender.filter(|sender| !sender.is_empty()).or(relay.envelope_from);
        if self.in_trusted && !self.found_msa {
            self.judge(&mut relay);
        }
        relay.is_internal = self.in_internal;
        self.may_restart = self.in_trusted;
        self.path.trusted_fields += usize::from(self.in_trusted);
        self.path.internal_fields += usize::from(self.in_internal);
        let list = if self.in_internal { &mut self.path.internal } else { &mut self.path.external };
        list.push(relay.clone());
        let list = if self.in_trusted { &mut self.path.trusted } else { &mut self.path.untrusted };
        list.push(relay);
        None
    }

    /// Decides whether trust goes on to this relay.
    fn judge(&mut self, relay: &mut Relay) {
        let is_authenticated = !relay.auth.is_empty();
        if !self.networks.is_configured() {
            if !relay.is_private && !is_authenticated {
                self.in_trusted = false;
                self.in_internal = false;
            }
            return;
        }
        let address = ip::parse(&relay.ip);
        let within = |test: &dyn Fn(IpAddr) -> bool| address.is_some_and(test);
        if !is_authenticated && !within(&|address| self.networks.is_trusted(address)) {
            self.in_trusted = false;
            self.in_internal = false;
            return;
        }
        if self.in_internal && !is_authenticated && !within(&|address| self.networks.is_internal(address)) {
            self.in_internal = false;
        }
        // This host is none unless it is named: content filters hand mail in from it, whoever sent it.
        if within(&|address| named(Some(&self.networks.msa), address) == Some(true)) {
            self.found_msa = true;
            relay.is_msa = true;
        }
    }
}
