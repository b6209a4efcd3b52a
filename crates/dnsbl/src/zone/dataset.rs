//! Data sets: the content of a list of files, and its answers for a name. `loader.rs` reads them.

use std::sync::Arc;

use super::above;
use super::asked::Asked;
use super::generic;
use super::ip4;
use super::ip6;
use super::names;
use super::reader::Head;
use super::value::{Key, ValueId, Values};

/// Kind of data set in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// IPv4 ranges; all values of the longest of /32, /24, /16 and /8.
    Ip4Set,
    /// IPv4 networks; the longest counts.
    Ip4Trie,
    /// IPv4 addresses, all with one value.
    Ip4TrivialSet,
    /// IPv6 networks; the longest counts.
    Ip6Trie,
    /// IPv6 networks of 64 bits, all with one value, and addresses that are excluded.
    Ip6TrivialSet,
    /// Names.
    Names,
    /// Records.
    Generic,
    /// Several data sets with their subzones.
    Combined,
    /// Access of clients.
    Acl,
    /// Addresses and networks as threat feeds publish them.
    Feed,
}

impl Kind {
    /// The kind with this name, as zones are configured and `$DATASET` lines are written.
    pub fn from_name(name: &[u8]) -> Option<Kind> {
        Some(match name {
            b"ip4set" => Kind::Ip4Set,
            b"ip4trie" => Kind::Ip4Trie,
            b"ip4tset" => Kind::Ip4TrivialSet,
            b"ip6trie" => Kind::Ip6Trie,
            b"ip6tset" => Kind::Ip6TrivialSet,
            b"dnset" => Kind::Names,
            b"generic" => Kind::Generic,
            b"combined" => Kind::Combined,
            b"acl" => Kind::Acl,
            b"feed" => Kind::Feed,
            _ => return None,
        })
    }
}

/// Access of a client (the `acl` data set).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No answer at all.
    Ignore,
    /// REFUSED.
    Refuse,
    /// Answer as if nothing were listed.
    Empty,
    /// As usual.
    Pass,
    /// Everything is listed, with this value.
    Listed(ValueId),
}

/// A data set.
#[derive(Debug, Default)]
pub struct Dataset {
    /// Special entries.
    pub head: Head,
    /// Listed entries.
    pub body: Body,
    /// The values of listings.
    pub values: Values,
    /// The value of the whole set, where listings have none of their own.
    pub whole: Option<ValueId>,
    /// When the youngest file was changed, in seconds since 1970.
    pub changed: u64,
}

/// Listed entries.
#[derive(Debug)]
pub enum Body {
    /// `ip4set`, `ip4trie`, `ip4tset`.
    Ip4(ip4::Table),
    /// `ip6trie`.
    Ip6(ip6::Table),
    /// `ip6tset`: networks of 64 bits, and addresses that are excluded.
    Ip6Trivial {
        /// Upper halves of the listed addresses, sorted.
        networks: Vec<u64>,
        /// Excluded addresses, sorted.
        excluded: Vec<u128>,
    },
    /// `dnset`.
    Names(names::Table),
    /// `generic`.
    Generic(generic::Table),
    /// `combined`: data sets with their subzones.
    Combined(Vec<Section>),
    /// `acl`.
    Acl {
        /// By IPv4 address; values are numbers of actions.
        ip4: ip4::Table,
        /// By IPv6 address.
        ip6: ip6::Table,
        /// The actions.
        actions: Vec<Access>,
    },
    /// IPv4 and IPv6 networks together.
    Feed {
        /// IPv4.
        ip4: ip4::Table,
        /// IPv6.
        ip6: ip6::Table,
    },
}

impl Default for Body {
    fn default() -> Body {
        Body::Combined(Vec::new())
    }
}

/// A part of a combined data set.
#[derive(Debug)]
pub struct Section {
    /// Names relative to the zone, in wire form without root, in lower case; empty for the zone itself.
    pub subzones: Vec<Vec<u8>>,
    /// Data set at that place.
    pub dataset: Arc<Dataset>,
}

/// Receiver of a data set's entries for a name.
pub trait Sink {
    /// A listing.
    fn listed(&mut self, dataset: &Dataset, value: ValueId, key: Key<'_>);
    /// A record of a `generic` data set.
    fn record(&mut self, record: &generic::Record);
}

impl Dataset {
    /// Tells `sink` all about a name. Returns whether the name exists.
    pub fn find(&self, asked: &Asked<'_>, sink: &mut impl Sink) -> bool {
        match &self.body {
            Body::Ip4(table) => self.find_ip4(table, asked, sink),
            Body::Ip6(table) => self.find_ip6(table, asked, sink),
            Body::Ip6Trivial { networks, excluded } => {
                let Some(address) = asked.ip6 else { return false };
                let upper = (address >> 64) as u64;
                let listed = networks.binary_search(&upper).is_ok() && excluded.binary_search(&address).is_err();
                if let (true, Some(value)) = (listed, self.whole) {
                    sink.listed(self, value, Key::Ip6(address));
                }
                listed
            }
            Body::Names(table) => {
                let Some((name, values)) = table.find(asked.name) else { return false };
                tell(values, |value| sink.listed(self, value, Key::Name(name)))
            }
            Body::Generic(table) => {
                let records = table.find(asked.name);
                records.iter().for_each(|record| sink.record(record));
                !records.is_empty()
            }
            Body::Feed { ip4, ip6 } => self.find_ip4(ip4, asked, sink) || self.find_ip6(ip6, asked, sink),
            Body::Combined(_) | Body::Acl { .. } => false,
        }
    }

    fn find_ip4(&self, table: &ip4::Table, asked: &Asked<'_>, sink: &mut impl Sink) -> bool {
        let Some(address) = asked.ip4 else { return false };
        tell(table.find(address), |value| sink.listed(self, value, Key::Ip4(address)))
    }

    fn find_ip6(&self, table: &ip6::Table, asked: &Asked<'_>, sink: &mut impl Sink) -> bool {
        let Some(address) = asked.ip6 else { return false };
        tell(table.find(address).into_iter(), |value| sink.listed(self, value, Key::Ip6(address)))
    }

    /// Returns whether a listing or a record exists below a name.
    pub fn is_above(&self, asked: &Asked<'_>) -> bool {
        let six = above::nibbles(asked.name);
        let of_ip6 = |table: &ip6::Table| six.is_some_and(|prefix| table.lists_within(prefix));
        let of_ip4 = |table: &ip4::Table| {
            let embedded = six.into_iter().flat_map(above::embedded);
            above::octets(asked.name).into_iter().chain(embedded).any(|prefix| table.lists_within(prefix))
        };
        match &self.body {
            Body::Ip4(table) => of_ip4(table),
            Body::Ip6(table) => of_ip6(table),
            Body::Feed { ip4, ip6 } => of_ip4(ip4) || of_ip6(ip6),
            Body::Ip6Trivial { networks, .. } => six.is_some_and(|prefix| {
                let (first, last) = ((prefix.first >> 64) as u64, (prefix.last() >> 64) as u64);
                networks.get(networks.partition_point(|&network| network < first)).is_some_and(|&found| found <= last)
            }),
            Body::Names(table) => table.is_above(asked.name),
            Body::Generic(table) => table.is_above(asked.name),
            Body::Combined(_) | Body::Acl { .. } => false,
        }
    }

    /// Whether names in it are found as addresses of a family: IPv4, IPv6.
    pub const fn families(&self) -> (bool, bool) {
        match &self.body {
            Body::Ip4(_) => (true, false),
            Body::Ip6(_) | Body::Ip6Trivial { .. } => (false, true),
            Body::Feed { .. } => (true, true),
            _ => (false, false),
        }
    }

    /// Access of a client: of an `acl` alone.
    pub fn access(&self, client: core::net::IpAddr) -> Option<Access> {
        let Body::Acl { ip4, ip6, actions } = &self.body else {
            return None;
        };
        let number = match client.to_canonical() {
            core::net::IpAddr::V4(address) => ip4.find(address.to_bits()).next(),
            core::net::IpAddr::V6(address) => ip6.find(address.to_bits()),
        };
        actions.get(usize::try_from(number?.0.checked_sub(1)?).ok()?).copied()
    }

    /// How many listings it has.
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Ip4(table) => table.count(),
            Body::Ip6(table) => table.count(),
            Body::Ip6Trivial { networks, excluded } => networks.len() + excluded.len(),
            Body::Names(table) => table.count(),
            Body::Generic(table) => table.records().len(),
            Body::Combined(sections) => sections.iter().map(|section| section.dataset.len()).sum(),
            Body::Acl { ip4, ip6, .. } | Body::Feed { ip4, ip6 } => ip4.count() + ip6.count(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes it takes, about.
    pub fn memory_bytes(&self) -> usize {
        let body = match &self.body {
            Body::Ip4(table) => table.memory_bytes(),
            Body::Ip6(table) => table.memory_bytes(),
            Body::Ip6Trivial { networks, excluded } => networks.capacity() * 8 + excluded.capacity() * 16,
            Body::Names(table) => table.memory_bytes(),
            Body::Generic(table) => table.memory_bytes(),
            Body::Combined(sections) => sections.iter().map(|section| section.dataset.memory_bytes()).sum(),
            Body::Acl { ip4, ip6, .. } | Body::Feed { ip4, ip6 } => ip4.memory_bytes() + ip6.memory_bytes(),
        };
        body + self.values.memory_bytes()
    }
}

/// Passes values on, unless one says that nothing is listed. Returns whether there is any.
fn tell(values: impl Iterator<Item = ValueId>, mut each: impl FnMut(ValueId)) -> bool {
    let mut any = false;
    for value in values {
        if value == ValueId::EXCLUDED {
            return false;
        }
        any = true;
        each(value);
    }
    any
}
