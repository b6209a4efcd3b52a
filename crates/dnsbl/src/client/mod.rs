//! The client: asks lists about an address and adds up their weights, with as few queries as can be.
//!
//! It has no socket. The host tells it of a [`lookup`](Client::lookup), of packets that came ([`handle`](Client::handle))
//! and of time ([`advance`](Client::advance)), and afterwards takes packets to send ([`transmit`](Client::transmit)) and
//! verdicts ([`verdict`](Client::verdict)). Times are milliseconds of any clock that only goes forward.
//!
//! - Where a list answers prefixes, its neighbours are known with the first of them; where it does not, addresses are
//!   asked for one by one. Which, is asked once a day; until that is known addresses are asked for.
//!   A list whose prefixes mostly say that one has to ask for each address is not asked for them: nothing is to cost more
//!   queries than it would without.
//! - A question is under way once, whoever waits for it. Answers that are asked for near their end are asked for again
//!   ahead of time.
//! - A resolver that does not answer in time is helped out by the second; a list that does not answer is left alone for a
//!   while.
//! - Each hour each list has to list 127.0.0.2 and not 127.0.0.1 (RFC 5782 section 5). One that does not is off until it
//!   does: one that lists the world is as useless as one that lists nobody.
//! - What is not to be kept (a time to live of 0) is kept for a second.
//! - An answer of 127.255.255.0/24 says that we may not ask, and one outside of 127.0.0.0/8 that somebody else has the
//!   domain: neither is a listing.

mod cache;
pub mod sites;

use core::net::IpAddr;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use cache::{Cache, Key, Known};
use proto::dns::{Data, Message, Name, Request, class, flag, kind, rcode};
use sites::Site;

use crate::prefix::{Prefix, read4, read6};
use crate::zone::Zones;
use crate::zone::asked::Asked;
use crate::zone::dataset::{Dataset, Sink};
use crate::zone::generic::Record;
use crate::zone::value::ValueId;

/// How many addresses of an answer count.
const ADDRESSES_MAX: usize = 16;

/// For how many seconds addresses are asked for one by one after an error in the answer to a prefix.
const PREFIX_FAILED_TTL: u32 = 60;

/// What a prefix adds that says that one has to ask for each address; one that says more takes one off.
const WASTE: u32 = 2;

/// From what sum on prefixes are not asked for; each probe halves it.
const WASTE_MAX: u32 = 32;

/// How many aliases are followed within an answer.
const ALIASES_MAX: usize = 8;

/// Bounds and times, in milliseconds where nothing else is said.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How many answers are kept.
    pub answers_max: usize,
    /// How many lookups wait at once; further ones are answered with what is known.
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

/// What the lists say of an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// The sum of the weights of those that list it.
    pub score: i32,
    /// Which zones list it, as numbers in the order in which sites name them, and what they answer.
    pub listed: Vec<(usize, Vec<[u8; 4]>)>,
    /// Whether a list could not be asked.
    pub is_partial: bool,
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Lists asked about addresses by callers.
    pub asked: u64,
    /// Of these, what was known.
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

/// A zone that is asked.
#[derive(Debug)]
struct List {
    name: Name,
    local: Local,
    failures: u32,
    rests_until: u64,
    is_off: bool,
    /// Prefixes that were asked for in vain: see [`WASTE_MAX`].
    waste: u32,
    next_probe: u64,
    /// What the probes under way have said: of 127.0.0.2, of 127.0.0.1.
    probed: [Option<bool>; 2],
}

/// Whether a zone is at hand.
#[derive(Debug)]
enum Local {
    No,
    Yes(Arc<Zones>),
    /// It is, but its data does not count any more.
    Stale,
}

#[derive(Debug)]
struct Question {
    request: Request,
    sent_at: u64,
    is_hedged: bool,
    by_tcp: bool,
    ids: Vec<u16>,
    waiting: Vec<u64>,
    is_probe: bool,
}

#[derive(Debug)]
struct Lookup {
    address: IpAddr,
    waits_for: Vec<usize>,
    found: Vec<(usize, Vec<[u8; 4]>)>,
    is_partial: bool,
}

impl Client {
    /// Asks these sites. `seed` is anything that nobody can guess.
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

    /// Has zones at hand, and no others: what they hold is not asked of anybody. A zone whose data does not count at `now`, in
    /// seconds since 1970, says nothing, and is not asked of anybody either.
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

    /// Does not probe a zone: it has no test points, as lists of IPv6 networks or of whom to trust may have none.
    pub fn expect_no_test_points(&mut self, zone: usize) {
        if let Some(list) = self.zones.get_mut(zone) {
            list.next_probe = u64::MAX;
        }
    }

    /// What was counted.
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
        let address = address.to_canonical();
        let mut lookup = Lookup { address, waits_for: Vec::new(), found: Vec::new(), is_partial: false };
        let full = self.lookups.len() >= self.limits.lookups_max;
        for zone in 0..self.zones.len() {
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

    /// Ends a lookup with what is known by now: the budget of time is spent.
    pub fn conclude(&mut self, number: u64) -> Option<Verdict> {
        let mut lookup = self.lookups.remove(&number)?;
        lookup.is_partial |= !lookup.waits_for.is_empty();
        Some(self.judge(lookup))
    }

    /// The next packet to send.
    pub fn transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next verdict that was waited for, with its number.
    pub fn verdict(&mut self) -> Option<(u64, Verdict)> {
        self.verdicts.pop_front()
    }

    /// Takes a packet that came from a resolver.
    pub fn handle(&mut self, packet: &[u8], now: u64) {
        let id = packet.first_chunk::<2>().map(|id| u16::from_be_bytes(*id));
        let Some(&key) = id.and_then(|id| self.by_id.get(&id)) else {
            self.counts.strays += 1;
            return;
        };
        let Some(question) = self.questions.get(&key) else { return };
        let request = Request { id: id.unwrap_or(0), ..question.request.clone() };
        let Ok(message) = request.read(packet) else {
            self.counts.strays += 1;
            return;
        };
        if message.flags & flag::TC != 0 && !question.by_tcp {
            return self.repeat_by_tcp(key);
        }
        self.answered(key, &message, now);
    }

    /// Does what is due.
    pub fn advance(&mut self, now: u64) {
        let limits = &self.limits;
        let overdue: Vec<(usize, Key)> = self
            .questions
            .iter()
            .filter(|(_, question)| now.saturating_sub(question.sent_at) >= limits.timeout_ms)
            .map(|(key, _)| *key)
            .collect();
        let slow: Vec<(usize, Key)> = self
            .questions
            .iter()
            .filter(|(_, question)| !question.is_hedged && now.saturating_sub(question.sent_at) >= limits.hedge_ms)
            .map(|(key, _)| *key)
            .collect();
        for key in slow {
            self.send(key, 1);
            self.counts.repeated += 1;
            if let Some(question) = self.questions.get_mut(&key) {
                question.is_hedged = true;
            }
        }
        overdue.into_iter().for_each(|key| self.failed(key, now));
    }

    /// When something is due.
    pub fn deadline(&self) -> Option<u64> {
        let due = |question: &Question| {
            let wait = if question.is_hedged { self.limits.timeout_ms } else { self.limits.hedge_ms };
            question.sent_at.saturating_add(wait)
        };
        self.questions.values().map(due).min()
    }

    /// Asks a zone, or finds what is known.
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
        let single = single(address);
        if let Some(known) = self.cached((zone, single), address, now) {
            return Reply::Known(known);
        }
        let key = match self.capability(zone, address, now) {
            true => match self.cached((zone, prefix(address)), address, now) {
                Some(known) => return Reply::Known(known),
                None if self.says_ask_single((zone, prefix(address)), now) => single,
                None => prefix(address),
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

    /// What is known of an address under a key.
    fn cached(&mut self, key: (usize, Key), address: IpAddr, now: u64) -> Option<Vec<[u8; 4]>> {
        let hit = self.cache.get(key, now)?;
        let found = read_known(hit.known, address)?;
        if hit.is_old && self.zones[key.0].rests_until <= now && self.question(key, now) {
            self.counts.queries += 1;
        }
        Some(found)
    }

    fn says_ask_single(&mut self, key: (usize, Key), now: u64) -> bool {
        let hit = self.cache.get(key, now);
        hit.is_some_and(|hit| {
            matches!(hit.known, Known::Prefix4(Prefix::AskSingle) | Known::Prefix6(Prefix::AskSingle))
        })
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

    /// Sends a question unless it is under way. Returns whether it was sent.
    fn question(&mut self, key: (usize, Key), now: u64) -> bool {
        if self.questions.contains_key(&key) {
            return false;
        }
        let Some((name, kind)) = question_of(key.1, &self.zones[key.0].name) else {
            return false;
        };
        let request = Request::new(0, name, kind, class::IN).with_mixed_case(self.next_random());
        let question = Question {
            request,
            sent_at: now,
            is_hedged: false,
            by_tcp: false,
            ids: Vec::new(),
            waiting: Vec::new(),
            is_probe: false,
        };
        self.questions.insert(key, question);
        self.send(key, 0);
        true
    }

    fn send(&mut self, key: (usize, Key), resolver: usize) {
        let id = self.free_id();
        let Some(question) = self.questions.get_mut(&key) else { return };
        question.ids.push(id);
        self.by_id.insert(id, key);
        let packet = Request { id, ..question.request.clone() }.packet();
        self.transmits.push_back(Transmit { resolver, tcp: question.by_tcp, packet });
    }

    fn repeat_by_tcp(&mut self, key: (usize, Key)) {
        if let Some(question) = self.questions.get_mut(&key) {
            question.by_tcp = true;
            self.counts.repeated += 1;
            self.send(key, 0);
        }
    }

    fn free_id(&mut self) -> u16 {
        loop {
            let id = u16::try_from(self.next_random() >> 48).unwrap_or(0);
            if !self.by_id.contains_key(&id) {
                return id;
            }
            if self.by_id.len() > 60_000 {
                // Nearly all are taken: the oldest question will be given up soon; this one repeats an id.
                return id;
            }
        }
    }

    fn next_random(&mut self) -> u64 {
        // xorshift64*, seeded by the host. Who can watch our queries need not guess.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn answered(&mut self, key: (usize, Key), message: &Message, now: u64) {
        let is_prefix = matches!(key.1, Key::Prefix4(_) | Key::Prefix6(_));
        let (exists, addresses) = match message.rcode() {
            rcode::NOERROR => (true, addresses(message)),
            rcode::NXDOMAIN => (false, Vec::new()),
            // Whoever fails at prefixes may know addresses.
            _ if is_prefix => return self.learn(key, ask_single(key.1), PREFIX_FAILED_TTL, now),
            _ => return self.failed(key, now),
        };
        if addresses.iter().any(|address| address[..3] == [127, 255, 255]) {
            // We are told not to ask.
            return self.refused(key, now);
        }
        // An answer that must not be kept is kept for those who wait for it, or they would ask for ever.
        let ttl = lifetime(message).min(self.limits.ttl_max).max(1);
        let known = match (key.1, text(message)) {
            (Key::Capability, text) => capability(&text.unwrap_or_default()),
            (Key::Prefix4(_), Some(text)) => Known::Prefix4(read4(&text).unwrap_or(Prefix::AskSingle)),
            (Key::Prefix6(_), Some(text)) => Known::Prefix6(read6(&text).unwrap_or(Prefix::AskSingle)),
            // A name that is there and has no text: somebody in between has taken it away.
            (Key::Prefix4(_) | Key::Prefix6(_), None) if exists => ask_single(key.1),
            (Key::Prefix4(_), None) => Known::Prefix4(Prefix::Classes(Vec::new())),
            (Key::Prefix6(_), None) => Known::Prefix6(Prefix::Classes(Vec::new())),
            (Key::Address4(_) | Key::Address6(_), _) => {
                Known::Address(addresses.into_iter().filter(|address| address[0] == 127).take(ADDRESSES_MAX).collect())
            }
        };
        // What a zone cannot do is looked at again after a day even where it says that this is known for less.
        let ttl = if key.1 == Key::Capability { ttl.max(3_600) } else { ttl };
        self.zones[key.0].failures = 0;
        self.learn(key, known, ttl, now);
    }

    /// Keeps what was answered, and tells those who have waited.
    fn learn(&mut self, key: (usize, Key), known: Known, ttl: u32, now: u64) {
        let list = &mut self.zones[key.0];
        list.waste = match known {
            Known::Prefix4(Prefix::AskSingle) | Known::Prefix6(Prefix::AskSingle) => {
                (list.waste + WASTE).min(2 * WASTE_MAX)
            }
            Known::Prefix4(_) | Known::Prefix6(_) => list.waste.saturating_sub(1),
            _ => list.waste,
        };
        self.note_probe(key, &known);
        self.cache.insert(key, known, ttl, now);
        self.settle(key, now);
    }

    fn note_probe(&mut self, key: (usize, Key), known: &Known) {
        let list = &mut self.zones[key.0];
        let index = match key.1 {
            Key::Address4(TEST_LISTED) => 0,
            Key::Address4(TEST_CLEAN) => 1,
            _ => return,
        };
        list.probed[index] = Some(*known != Known::Address(Vec::new()));
        if let [Some(listed), Some(clean)] = list.probed {
            list.is_off = !listed || clean;
        }
    }

    /// The zone does not want to be asked: it is left alone for ten times as long as one that does not answer.
    fn refused(&mut self, key: (usize, Key), now: u64) {
        self.zones[key.0].rests_until = now.saturating_add(self.limits.rest_ms.saturating_mul(10));
        self.give_up(key);
    }

    fn failed(&mut self, key: (usize, Key), now: u64) {
        let list = &mut self.zones[key.0];
        list.failures = list.failures.saturating_add(1);
        if list.failures >= self.limits.failures_max {
            list.rests_until = now.saturating_add(self.limits.rest_ms);
            // One more failure afterwards, and it rests again.
            list.failures = self.limits.failures_max.saturating_sub(1);
        }
        self.give_up(key);
    }

    fn close(&mut self, key: (usize, Key)) -> Vec<u64> {
        let Some(question) = self.questions.remove(&key) else {
            return Vec::new();
        };
        for id in question.ids {
            if self.by_id.get(&id) == Some(&key) {
                self.by_id.remove(&id);
            }
        }
        question.waiting
    }

    fn give_up(&mut self, key: (usize, Key)) {
        for number in self.close(key) {
            if let Some(lookup) = self.lookups.get_mut(&number) {
                lookup.is_partial = true;
            }
            self.finish(number, key.0, Vec::new());
        }
    }

    /// Tells those who have waited. Where a prefix turns out to say nothing of single addresses, these are asked for.
    fn settle(&mut self, key: (usize, Key), now: u64) {
        for number in self.close(key) {
            let Some(address) = self.lookups.get(&number).map(|lookup| lookup.address) else { continue };
            let known = self.cache.get(key, now).and_then(|hit| read_known(hit.known, address));
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

/// What a zone says at once.
enum Reply {
    Known(Vec<[u8; 4]>),
    Waiting,
    Unknown,
}

/// What every list of IPv4 addresses lists.
const TEST_LISTED: u32 = 0x7f00_0002;

/// What none does.
const TEST_CLEAN: u32 = 0x7f00_0001;

impl List {
    const fn new(name: Name) -> List {
        List {
            name,
            local: Local::No,
            failures: 0,
            rests_until: 0,
            is_off: false,
            waste: 0,
            next_probe: 0,
            probed: [None; 2],
        }
    }
}

impl Lookup {
    fn add(&mut self, zone: usize, addresses: Vec<[u8; 4]>) {
        if !addresses.is_empty() {
            self.found.push((zone, addresses));
        }
    }
}

fn single(address: IpAddr) -> Key {
    match address {
        IpAddr::V4(address) => Key::Address4(address.to_bits()),
        IpAddr::V6(address) => Key::Address6(address.to_bits()),
    }
}

fn prefix(address: IpAddr) -> Key {
    match address {
        IpAddr::V4(address) => Key::Prefix4(address.to_bits() >> 8),
        IpAddr::V6(address) => Key::Prefix6(u64::try_from(address.to_bits() >> 80).unwrap_or(0)),
    }
}

/// What an answer says of an address; `None` if it has to be asked for by itself.
fn read_known(known: &Known, address: IpAddr) -> Option<Vec<[u8; 4]>> {
    match (known, address) {
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

/// What a capability record says (the draft's section 3).
fn capability(text: &[u8]) -> Known {
    let mut words = text.split(|&byte| byte == b' ');
    let is_ours = words.next() == Some(b"v=pbl1");
    let has = |word: &[u8]| is_ours && words.clone().any(|each| each == word);
    Known::Capability { ip4: has(b"p4=24"), ip6: has(b"p6=48") }
}

/// That the addresses of a prefix are to be asked for one by one.
const fn ask_single(key: Key) -> Known {
    match key {
        Key::Prefix6(_) => Known::Prefix6(Prefix::AskSingle),
        _ => Known::Prefix4(Prefix::AskSingle),
    }
}

/// The answers of classes that an address is in. As of classic answers, those outside of 127.0.0.0/8 are no listings.
fn listing<H>(classes: &[([u8; 4], H)], is_in: impl Fn(&H) -> bool) -> Vec<[u8; 4]> {
    let counts =
        |(address, hosts): &&([u8; 4], H)| address[0] == 127 && address[..3] != [127, 255, 255] && is_in(hosts);
    classes.iter().filter(counts).map(|(address, _)| *address).collect()
}

/// The name and type that a question has.
fn question_of(key: Key, zone: &Name) -> Option<(Name, u16)> {
    let front = match key {
        Key::Capability => "_pbl".to_owned(),
        Key::Prefix4(prefix) => format!("{}.{}.{}.p4", prefix & 255, prefix >> 8 & 255, prefix >> 16 & 255),
        Key::Prefix6(prefix) => nibbles(u128::from(prefix), 12) + ".p6",
        Key::Address4(address) => {
            let [a, b, c, d] = address.to_be_bytes();
            format!("{d}.{c}.{b}.{a}")
        }
        Key::Address6(address) => nibbles(address, 32),
    };
    let kind = if matches!(key, Key::Address4(_) | Key::Address6(_)) { kind::A } else { kind::TXT };
    let labels = front.split('.').map(str::as_bytes).chain(zone.labels());
    Some((Name::from_labels(labels).ok()?, kind))
}

fn nibbles(value: u128, count: u32) -> String {
    (0..count).map(|at| format!("{:x}", value >> (4 * at) & 15)).collect::<Vec<_>>().join(".")
}

/// The addresses that answer the question, aliases followed.
fn addresses(message: &Message) -> Vec<[u8; 4]> {
    let Some((name, ..)) = message.questions.first() else {
        return Vec::new();
    };
    let mut owner = name;
    for _ in 0..ALIASES_MAX {
        let alias = message.answers.iter().find_map(|record| match &record.data {
            Data::Cname(target) if record.name == *owner => Some(target),
            _ => None,
        });
        match alias {
            Some(target) => owner = target,
            None => break,
        }
    }
    let of_owner = message.answers.iter().filter(|record| record.name == *owner && record.class == class::IN);
    of_owner
        .filter_map(|record| match record.data {
            Data::A(address) => Some(address.octets()),
            _ => None,
        })
        .take(ADDRESSES_MAX)
        .collect()
}

/// The text that answers the question.
fn text(message: &Message) -> Option<Vec<u8>> {
    let (name, ..) = message.questions.first()?;
    message.answers.iter().filter(|record| record.name == *name).find_map(proto::dns::Record::text)
}

/// How long an answer may be kept, in seconds: its records' shortest time, or the zone's for negative answers.
fn lifetime(message: &Message) -> u32 {
    let answers = message.answers.iter().map(|record| record.ttl).min();
    answers.unwrap_or_else(|| {
        let soa = message.authorities.iter().find_map(|record| match &record.data {
            Data::Soa(soa) => Some(record.ttl.min(soa.minimum)),
            _ => None,
        });
        // Without a word about it not for long, but long enough for one client.
        soa.unwrap_or(10)
    })
}

/// What a zone that is at hand says.
fn local(zones: &Zones, zone: &Name, address: IpAddr) -> Vec<[u8; 4]> {
    #[derive(Default)]
    struct Found(Vec<[u8; 4]>);
    impl Sink for Found {
        fn listed(&mut self, dataset: &Dataset, value: ValueId, _: crate::zone::value::Key<'_>) {
            if let Some(value) = dataset.values.get(value).filter(|value| !self.0.contains(&value.address)) {
                self.0.push(value.address);
            }
        }
        fn record(&mut self, _: &Record) {}
    }
    let mut found = Found::default();
    if let Some((name, _)) = question_of(single(address), zone)
        && let Some((zone, below)) = zones.find(name.to_lowercase().as_wire())
    {
        zone.find(&Asked::new(below), &mut found);
    }
    found.0.truncate(ADDRESSES_MAX);
    found.0
}
