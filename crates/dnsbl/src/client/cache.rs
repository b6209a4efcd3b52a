//! Answers of lists: by prefix where they answer prefixes, by address where not.
//!
//! Two generations of half the size: what is asked for again moves to the younger one, and when that is full the older is
//! forgotten.

use core::net::IpAddr;
use std::collections::HashMap;

use crate::prefix::{Hosts, Networks, Prefix};

/// Question to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// Whether it answers prefixes.
    Capability,
    /// An IPv4 /24, shifted right.
    Prefix4(u32),
    /// An IPv6 /48, shifted right.
    Prefix6(u64),
    /// An IPv4 address.
    Address4(u32),
    /// An IPv6 address.
    Address6(u128),
}

/// Answer of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// For which families prefixes are answered.
    Capability {
        /// /24s of IPv4.
        ip4: bool,
        /// /48s of IPv6.
        ip6: bool,
    },
    /// A /24.
    Prefix4(Prefix<Hosts>),
    /// A /48.
    Prefix6(Prefix<Networks>),
    /// An address.
    Address(Vec<[u8; 4]>),
}

impl Key {
    /// Key of an address alone.
    pub fn single(address: IpAddr) -> Key {
        match address {
            IpAddr::V4(address) => Key::Address4(address.to_bits()),
            IpAddr::V6(address) => Key::Address6(address.to_bits()),
        }
    }

    /// Key of the prefix that an address is in.
    pub fn prefix(address: IpAddr) -> Key {
        match address {
            IpAddr::V4(address) => Key::Prefix4(address.to_bits() >> 8),
            IpAddr::V6(address) => Key::Prefix6(u64::try_from(address.to_bits() >> 80).unwrap_or(0)),
        }
    }
}

impl Known {
    /// That the addresses of a prefix are to be asked for one by one.
    pub const fn ask_single(key: Key) -> Known {
        match key {
            Key::Prefix6(_) => Known::Prefix6(Prefix::AskSingle),
            _ => Known::Prefix4(Prefix::AskSingle),
        }
    }

    /// Whether it says so.
    pub const fn says_ask_single(&self) -> bool {
        matches!(self, Known::Prefix4(Prefix::AskSingle) | Known::Prefix6(Prefix::AskSingle))
    }

    /// Answer for an address; `None` if it has to be queried by itself.
    pub fn read(&self, address: IpAddr) -> Option<Vec<[u8; 4]>> {
        match (self, address) {
            (Known::Address(addresses), _) => Some(addresses.clone()),
            (Known::Prefix4(Prefix::Classes(classes)), IpAddr::V4(address)) => {
                let [.., host] = address.octets();
                Some(listing(classes, |hosts| hosts.contains(host)))
            }
            (Known::Prefix6(Prefix::Classes(classes)), IpAddr::V6(address)) => {
                let network = address.segments()[3];
                Some(listing(classes, |networks| networks.contains(network)))
            }
            _ => None,
        }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    known: Known,
    expires: u64,
    /// From when on it is asked for again before it expires.
    renew: u64,
}

/// A cached answer.
#[derive(Debug)]
pub struct Hit<'a> {
    /// The answer.
    pub known: &'a Known,
    /// Whether it should be asked for again soon.
    pub is_old: bool,
}

/// Answers of all lists; a list is a number.
#[derive(Debug)]
pub struct Cache {
    young: HashMap<(usize, Key), Entry>,
    old: HashMap<(usize, Key), Entry>,
    half: usize,
}

impl Cache {
    /// For so many answers.
    pub fn new(entries_max: usize) -> Cache {
        Cache { young: HashMap::new(), old: HashMap::new(), half: (entries_max / 2).max(1) }
    }

    /// Keeps an answer from `now` on, in milliseconds, for some seconds.
    pub fn insert(&mut self, key: (usize, Key), known: Known, ttl: u32, now: u64) {
        let milliseconds = u64::from(ttl).saturating_mul(1_000);
        let expires = now.saturating_add(milliseconds);
        let renew = expires.saturating_sub(milliseconds / 10);
        self.old.remove(&key);
        self.add(key, Entry { known, expires, renew });
    }

    fn add(&mut self, key: (usize, Key), entry: Entry) {
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.old = core::mem::take(&mut self.young);
        }
        self.young.insert(key, entry);
    }

    /// The answer, unless it has expired. An old answer is reported as old once.
    pub fn get(&mut self, key: (usize, Key), now: u64) -> Option<Hit<'_>> {
        if let Some(entry) = self.old.remove(&key) {
            self.add(key, entry);
        }
        let entry = self.young.get_mut(&key).filter(|entry| now < entry.expires)?;
        let is_old = now >= entry.renew;
        if is_old {
            entry.renew = u64::MAX;
        }
        Some(Hit { known: &entry.known, is_old })
    }
}

/// The answers of classes that an address is in. As of classic answers, those outside of 127.0.0.0/8 are no listings.
fn listing<H>(classes: &[([u8; 4], H)], is_in: impl Fn(&H) -> bool) -> Vec<[u8; 4]> {
    let counts =
        |(address, hosts): &&([u8; 4], H)| address[0] == 127 && address[..3] != [127, 255, 255] && is_in(hosts);
    classes.iter().filter(counts).map(|(address, _)| *address).collect()
}
