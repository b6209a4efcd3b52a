//! The client: queries lists about an address and adds up their weights, with as few queries as possible.
//!
//! It has no socket. The host passes [`lookup`](Client::lookup)s, received packets ([`handle`](Client::handle)) and
//! time ([`advance`](Client::advance)), and afterwards takes packets to send ([`transmit`](Client::transmit)) and
//! verdicts ([`verdict`](Client::verdict)). Times are milliseconds of any clock that only goes forward.
//!
//! - If a list answers prefixes, one query covers all neighbours; otherwise, and until the capability is known, single
//!   addresses are queried. The capability is queried once a day. A list whose prefixes mostly say "query each address"
//!   is queried by address: prefixes must not cost more queries than they save.
//! - Equal questions are sent once. Answers used near their expiry are refreshed ahead of time.
//! - If a resolver is late, the second is asked too; a list without answers is left alone for a while.
//! - Every hour each list has to list 127.0.0.2 and not 127.0.0.1 (RFC 5782 section 5). A list that fails is off until
//!   it passes again: one that lists everything is as useless as one that lists nothing.
//! - An answer that must not be cached (a time to live of 0) is kept for a second.
//! - An answer in 127.255.255.0/24 is a refusal, and one outside of 127.0.0.0/8 means another owner of the domain:
//!   neither is a listing.

mod cache;
mod exchange;
mod list;
pub mod sites;
mod wire;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cache::{Cache, Key, Known};
use exchange::Question;
use list::{List, Local, TEST_CLEAN, TEST_LISTED, WASTE_MAX, local};
use proto::dns::Name;
use sites::Site;

use crate::zone::Zones;
use crate::zone::asked::Asked;

/// How many addresses of an answer count.
const ADDRESSES_MAX: usize = 16;

/// Bounds and times, in milliseconds where nothing else is said.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How many answers are kept.
    pub answers_max: usize,
    /// Maximum number of waiting lookups; further ones get the cached results.
    pub lookups_max: usize,
    /// When the second resolver is asked too.
    pub hedge_ms: u64,
    /// When a question is given up.
    pub timeout_ms: u64,
    /// After how many questions given up in a row a list is left alone.
    pub failures_max: u32,
    /// For how long.
    pub rest_ms: u64,
    /// How often a list is probed.
    pub probe_ms: u64,
    /// The longest that an answer is kept, in seconds.
    pub ttl_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            answers_max: 200_000,
            lookups_max: 20_000,
            hedge_ms: 400,
            timeout_ms: 3_000,
            failures_max: 5,
            rest_ms: 60_000,
            probe_ms: 3_600_000,
            ttl_max: 86_400,
        }
    }
}

/// A packet to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// To which resolver: 0 or 1. A host with one only sends both there.
    pub resolver: usize,
    /// Whether by TCP: the answer did not fit a packet.
    pub tcp: bool,
    /// The packet. Each should leave from a port of its own.
    pub packet: Vec<u8>,
}

/// Answer of the lists for an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Sum of the weights of the lists that list it.
    pub score: i32,
    /// Zones that list it, as numbers in the order of the sites, with their answers.
    pub listed: Vec<(usize, Vec<[u8; 4]>)>,
    /// Whether a list could not be asked.
    pub is_partial: bool,
}

/// Counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Lists asked about addresses by callers.
    pub asked: u64,
    /// Questions answered from the cache.
    pub hits: u64,
    /// Packets sent because of lookups.
    pub queries: u64,
    /// Packets sent for capabilities and probes.
    pub upkeep: u64,
    /// Packets sent again, to the second resolver or by TCP.
    pub repeated: u64,
    /// Packets that answered nothing.
    pub strays: u64,
}

/// Asks lists. See the module.
#[derive(Debug)]
pub struct Client {
    limits: Limits,
    sites: Vec<(usize, Site)>,
    zones: Vec<List>,
    cache: Cache,
    questions: HashMap<(usize, Key), Question>,
    by_id: HashMap<u16, (usize, Key)>,
    lookups: HashMap<u64, Lookup>,
    transmits: VecDeque<Transmit>,
    verdicts: VecDeque<(u64, Verdict)>,
    random: u64,
    counts: Counts,
}

#[derive(Debug)]
struct Lookup {
    address: IpAddr,
    waits_for: Vec<usize>,
    found: Vec<(usize, Vec<[u8; 4]>)>,
    is_partial: bool,
}

impl Client {
    /// Makes a client of these sites. `seed` has to be unpredictable.
    pub fn new(sites: Vec<Site>, seed: u64, limits: Limits) -> Client {
        let mut zones: Vec<List> = Vec::new();
        let sites = sites.into_iter().map(|site| {
            let index = zones.iter().position(|list| list.name == site.zone).unwrap_or_else(|| {
                zones.push(List::new(site.zone.clone()));
                zones.len() - 1
            });
            (index, site)
        });
        Client {
            sites: sites.collect(),
            zones,
            cache: Cache::new(limits.answers_max),
            limits,
            questions: HashMap::new(),
            by_id: HashMap::new(),
            lookups: HashMap::new(),
            transmits: VecDeque::new(),
            verdicts: VecDeque::new(),
            random: seed | 1,
            counts: Counts::default(),
        }
    }

    /// Replaces the local zones, whose lists are never queried. A zone whose data is invalid at `now`, in seconds since
    /// 1970, lists nothing, and is not queried either.
    pub fn set_local(&mut self, zones: &Arc<Zones>, now: u64) {
        for list in &mut self.zones {
            let zone = zones.zones().iter().find(|zone| zone.name == list.name);
            list.local = match zone {
                None => Local::No,
                Some(zone) if zone.is_served(now) => Local::Yes(zones.clone()),
                Some(_) => Local::Stale,
            };
        }
    }

    /// Does not probe a zone without test points, as lists of IPv6 networks or allow lists may be.
    pub fn expect_no_test_points(&mut self, zone: usize) {
        if let Some(list) = self.zones.get_mut(zone) {
            list.next_probe = u64::MAX;
        }
    }

    /// The counters.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether a zone is in use: not turned off by its probe.
    pub fn is_on(&self, zone: usize) -> bool {
        self.zones.get(zone).is_some_and(|list| !list.is_off)
    }

    /// The name of a zone for logs: long labels, such as the keys of commercial lists, are left out.
    pub fn shown(&self, zone: usize) -> String {
        sites::shown(&self.zones.get(zone).map_or_else(String::new, |list| list.name.to_string()))
    }

    /// Asks about an address. The verdict comes at once if everything is known, and later under this number if not.
    pub fn lookup(&mut self, number: u64, address: IpAddr, now: u64) -> Option<Verdict> {
        self.look_up(number, 0..self.zones.len(), address, now)
    }

    /// Queries one zone. Answers and queries in progress of a [`lookup`](Client::lookup) are reused: rules that look an
    /// address up in a list find the result from the start of the connection.
    pub fn lookup_in(&mut self, number: u64, zone: usize, address: IpAddr, now: u64) -> Option<Verdict> {
        if zone >= self.zones.len() {
            return Some(Verdict { is_partial: true, ..Verdict::default() });
        }
        self.look_up(number, zone..zone + 1, address, now)
    }

    /// The zones that are asked, in the order of their numbers.
    pub fn zones(&self) -> impl Iterator<Item = &Name> {
        self.zones.iter().map(|list| &list.name)
    }

    fn look_up(&mut self, number: u64, zones: Range<usize>, address: IpAddr, now: u64) -> Option<Verdict> {
        let address = address.to_canonical();
        let mut lookup = Lookup { address, waits_for: Vec::new(), found: Vec::new(), is_partial: false };
        let full = self.lookups.len() >= self.limits.lookups_max;
        for zone in zones {
            self.counts.asked += 1;
            self.probe(zone, now);
            match self.ask(zone, address, (!full).then_some(number), now) {
                Reply::Known(addresses) => {
                    self.counts.hits += 1;
                    lookup.add(zone, addresses);
                }
                Reply::Waiting => lookup.waits_for.push(zone),
                Reply::Unknown => lookup.is_partial = true,
            }
        }
        if lookup.waits_for.is_empty() {
            return Some(self.judge(lookup));
        }
        self.lookups.insert(number, lookup);
        None
    }

    /// Ends a lookup with the results so far, when its time is up.
    pub fn conclude(&mut self, number: u64) -> Option<Verdict> {
        let mut lookup = self.lookups.remove(&number)?;
        lookup.is_partial |= !lookup.waits_for.is_empty();
        Some(self.judge(lookup))
    }

    /// The next verdict that was waited for, with its number.
    pub fn verdict(&mut self) -> Option<(u64, Verdict)> {
        self.verdicts.pop_front()
    }

    /// Queries a zone, or finds the result in the cache.
    fn ask(&mut self, zone: usize, address: IpAddr, waiting: Option<u64>, now: u64) -> Reply {
        let list = &self.zones[zone];
        match &list.local {
            Local::Yes(zones) => return Reply::Known(local(zones, &list.name, address)),
            Local::Stale => return Reply::Unknown,
            Local::No => {}
        }
        if list.is_off {
            return Reply::Unknown;
        }
        let single = Key::single(address);
        if let Some(known) = self.cached((zone, single), address, now) {
            return Reply::Known(known);
        }
        let key = match self.capability(zone, address, now) {
            true => match self.cached((zone, Key::prefix(address)), address, now) {
                Some(known) => return Reply::Known(known),
                None if self.says_ask_single((zone, Key::prefix(address)), now) => single,
                None => Key::prefix(address),
            },
            false => single,
        };
        if self.zones[zone].rests_until > now {
            return Reply::Unknown;
        }
        let Some(number) = waiting else {
            return Reply::Unknown;
        };
        if self.question((zone, key), now) {
            self.counts.queries += 1;
        }
        if let Some(question) = self.questions.get_mut(&(zone, key)) {
            question.waiting.push(number);
        }
        Reply::Waiting
    }

    /// Cached answer for an address under a key.
    fn cached(&mut self, key: (usize, Key), address: IpAddr, now: u64) -> Option<Vec<[u8; 4]>> {
        let hit = self.cache.get(key, now)?;
        let found = hit.known.read(address)?;
        if hit.is_old && self.zones[key.0].rests_until <= now && self.question(key, now) {
            self.counts.queries += 1;
        }
        Some(found)
    }

    fn says_ask_single(&mut self, key: (usize, Key), now: u64) -> bool {
        let hit = self.cache.get(key, now);
        hit.is_some_and(|hit| hit.known.says_ask_single())
    }

    /// Whether a zone answers prefixes of an address's family, as far as is known; if it is not known, it is asked.
    fn capability(&mut self, zone: usize, address: IpAddr, now: u64) -> bool {
        match self.cache.get((zone, Key::Capability), now).map(|hit| hit.known) {
            Some(&Known::Capability { ip4, ip6 }) => {
                let capable = if address.is_ipv4() { ip4 } else { ip6 };
                capable && self.zones[zone].waste < WASTE_MAX
            }
            _ => {
                if self.zones[zone].rests_until <= now && self.question((zone, Key::Capability), now) {
                    self.counts.upkeep += 1;
                }
                false
            }
        }
    }

    fn probe(&mut self, zone: usize, now: u64) {
        let list = &mut self.zones[zone];
        if !matches!(list.local, Local::No) || now < list.next_probe {
            return;
        }
        list.next_probe = now.saturating_add(self.limits.probe_ms);
        list.waste /= 2;
        list.probed = [None; 2];
        for address in [TEST_LISTED, TEST_CLEAN] {
            let key = (zone, Key::Address4(address));
            if self.question(key, now) {
                self.counts.upkeep += 1;
            }
            if let Some(question) = self.questions.get_mut(&key) {
                question.is_probe = true;
            }
        }
    }

    /// Informs waiting lookups. If a prefix answer says nothing about single addresses, these are queried.
    fn settle(&mut self, key: (usize, Key), now: u64) {
        for number in self.close(key) {
            let Some(address) = self.lookups.get(&number).map(|lookup| lookup.address) else { continue };
            let known = self.cache.get(key, now).and_then(|hit| hit.known.read(address));
            match known {
                Some(addresses) => self.finish(number, key.0, addresses),
                // Also where the answer may not be kept.
                None => match self.ask(key.0, address, Some(number), now) {
                    Reply::Known(addresses) => self.finish(number, key.0, addresses),
                    Reply::Waiting => {}
                    Reply::Unknown => self.finish(number, key.0, Vec::new()),
                },
            }
        }
    }

    fn finish(&mut self, number: u64, zone: usize, addresses: Vec<[u8; 4]>) {
        let Some(lookup) = self.lookups.get_mut(&number) else { return };
        lookup.waits_for.retain(|&waiting| waiting != zone);
        lookup.add(zone, addresses);
        if lookup.waits_for.is_empty()
            && let Some(lookup) = self.lookups.remove(&number)
        {
            let verdict = self.judge(lookup);
            self.verdicts.push_back((number, verdict));
        }
    }

    /// Adds up the weights.
    fn judge(&self, lookup: Lookup) -> Verdict {
        let score = self.sites.iter().fold(0_i32, |score, (zone, site)| {
            let answers = lookup.found.iter().filter(|(found, _)| found == zone).flat_map(|(_, addresses)| addresses);
            let counts = |address: &[u8; 4]| site.filter.as_ref().is_none_or(|filter| filter.matches(*address));
            if answers.into_iter().any(counts) { score.saturating_add(site.weight) } else { score }
        });
        Verdict { score, listed: lookup.found, is_partial: lookup.is_partial }
    }
}

/// Zone and address in the name of a classic question (RFC 5782 sections 2.1 and 2.4), for [`Client::lookup_in`];
/// `None` if the name is below none of the zones, or not an address.
pub fn subject<'z>(zones: impl IntoIterator<Item = &'z Name>, name: &Name) -> Option<(usize, IpAddr)> {
    let wire = name.to_lowercase();
    let of_zone = |(index, zone): (usize, &Name)| {
        let labels = name.labels().count().checked_sub(zone.labels().count())?;
        let zone = Name::from_labels(name.labels().skip(labels)).ok().filter(|own| own == zone)?;
        let below = wire.as_wire().len().checked_sub(zone.as_wire().len())?;
        let asked = Asked::new(wire.as_wire().get(..below)?);
        let address = asked.ip6.map(|address| Ipv6Addr::from(address).into());
        Some((index, address.or(asked.ip4.map(|address| Ipv4Addr::from(address).into()))?))
    };
    zones.into_iter().enumerate().find_map(of_zone)
}

/// Immediate answer of a zone.
enum Reply {
    Known(Vec<[u8; 4]>),
    Waiting,
    Unknown,
}

impl Lookup {
    fn add(&mut self, zone: usize, addresses: Vec<[u8; 4]>) {
        if !addresses.is_empty() {
            self.found.push((zone, addresses));
        }
    }
}
