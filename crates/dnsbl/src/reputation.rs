//! Local reputation: the observations of a site about addresses, whose weight halves after each half-life.
//!
//! Events add to a score; trust subtracts. An address is listed from a threshold on, and leaves the list as its score
//! decays, or at once when it is forgiven. An IPv6 address counts as its network of 64 bits. The ledger is text, a line
//! an address, so that it can be read, merged and repaired; the zone for other machines is made from it in rbldnsd's
//! form.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Event of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// Mail without findings.
    Trust,
    /// Recipients that do not exist, asked for one after the other.
    Harvest,
    /// Spam.
    Spam,
    /// Mail with a virus.
    Infected,
}

impl Event {
    const ALL: [Event; 4] = [Event::Trust, Event::Harvest, Event::Spam, Event::Infected];

    /// The event with this name.
    pub fn from_name(name: &str) -> Option<Event> {
        Event::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Its name in the ledger and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Event::Trust => "trust",
            Event::Harvest => "harvest",
            Event::Spam => "spam",
            Event::Infected => "infected",
        }
    }

    const fn weight(self) -> f64 {
        match self {
            Event::Trust => -1.0,
            Event::Harvest => 2.0,
            Event::Spam => 3.0,
            Event::Infected => 5.0,
        }
    }

    /// Answer for an address that is listed mostly for this.
    const fn code(self) -> u8 {
        match self {
            Event::Trust | Event::Spam => 2,
            Event::Harvest => 3,
            Event::Infected => 4,
        }
    }
}

/// Bounds.
#[derive(Debug, Clone)]
pub struct Limits {
    /// After how many seconds a score is worth half.
    pub half_life_seconds: u64,
    /// From which score on an address is listed.
    pub threshold: f64,
    /// Maximum score, so that one bad day does not list an address for ever.
    pub score_max: f64,
    /// The smallest, so that trust that was earned can be lost.
    pub score_min: f64,
    /// How many addresses are kept; beyond that those with the scores next to nothing are forgotten.
    pub addresses_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            half_life_seconds: 86_400,
            threshold: 5.0,
            score_max: 40.0,
            score_min: -20.0,
            addresses_max: 1_000_000,
        }
    }
}

/// Record of an address.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The score now.
    pub score: f64,
    /// Whether it is listed.
    pub is_listed: bool,
    /// When something was seen last, in seconds since 1970.
    pub last: u64,
    /// Number of events of each kind.
    pub counts: Vec<(Event, u32)>,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    score: f64,
    at: u64,
    counts: [u32; 4],
}

/// Records of all addresses.
#[derive(Debug, Default)]
pub struct Ledger {
    limits: Limits,
    entries: BTreeMap<IpAddr, Entry>,
}

impl Ledger {
    /// An empty ledger.
    pub fn new(limits: Limits) -> Ledger {
        Ledger { limits, entries: BTreeMap::new() }
    }

    /// Reads a ledger. Invalid lines are skipped, and counted.
    pub fn read(text: &str, limits: Limits) -> (Ledger, usize) {
        let mut ledger = Ledger::new(limits);
        let mut wrong = 0;
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match read_line(line) {
                Some((address, entry)) => drop(ledger.entries.insert(subject(address), entry)),
                None => wrong += 1,
            }
        }
        (ledger, wrong)
    }

    /// The ledger as text.
    pub fn write(&self) -> String {
        let mut text = String::from("# address score time events\n");
        for (address, entry) in &self.entries {
            let _ = write!(text, "{address} {:.3} {}", entry.score, entry.at);
            for (event, count) in counts(entry) {
                let _ = write!(text, " {}={count}", event.name());
            }
            text.push('\n');
        }
        text
    }

    /// Records an event of an address at `now`, in seconds since 1970.
    pub fn note(&mut self, address: IpAddr, event: Event, now: u64) {
        let limits = &self.limits;
        let entry = self.entries.entry(subject(address)).or_default();
        let score = decayed(entry, limits, now) + event.weight();
        entry.score = score.clamp(limits.score_min, limits.score_max);
        entry.at = now.max(entry.at);
        let count = &mut entry.counts[event as usize];
        *count = count.saturating_add(1);
        if self.entries.len() > self.limits.addresses_max {
            self.forget(now);
        }
    }

    /// The record of an address.
    pub fn standing(&self, address: IpAddr, now: u64) -> Option<Standing> {
        let entry = self.entries.get(&subject(address))?;
        let score = decayed(entry, &self.limits, now);
        let is_listed = score >= self.limits.threshold;
        Some(Standing { score, is_listed, last: entry.at, counts: counts(entry).collect() })
    }

    /// Forgets all about an address. Returns whether there was anything.
    pub fn forgive(&mut self, address: IpAddr) -> bool {
        self.entries.remove(&subject(address)).is_some()
    }

    /// Forgets addresses with decayed scores, and as many more as exceed the bound.
    pub fn forget(&mut self, now: u64) {
        let limits = &self.limits;
        self.entries.retain(|_, entry| decayed(entry, limits, now).abs() >= 0.05);
        let surplus = self.entries.len().saturating_sub(limits.addresses_max);
        if surplus > 0 {
            let mut scores: Vec<(f64, IpAddr)> =
                self.entries.iter().map(|(address, entry)| (decayed(entry, limits, now).abs(), *address)).collect();
            scores.sort_by(|a, b| a.0.total_cmp(&b.0));
            // A tenth more, so that this is not done for each address.
            for (_, address) in scores.iter().take(surplus + limits.addresses_max / 10) {
                self.entries.remove(address);
            }
        }
    }

    /// Listed addresses, as `ip4set` and `ip6trie` data.
    pub fn zones(&self, now: u64) -> (String, String) {
        let (mut ip4, mut ip6) = (String::from("127.0.0.2 :2:Test\n"), String::new());
        for (address, entry) in &self.entries {
            let score = decayed(entry, &self.limits, now);
            let worst = counts(entry)
                .max_by(|a, b| (a.0.weight() * f64::from(a.1)).total_cmp(&(b.0.weight() * f64::from(b.1))));
            let Some((event, _)) = worst.filter(|_| score >= self.limits.threshold) else { continue };
            let _ = match address {
                IpAddr::V4(address) => writeln!(ip4, "{address} :{}:Seen here: {}", event.code(), event.name()),
                IpAddr::V6(address) => {
                    writeln!(ip6, "{}/64 :{}:Seen here: {}", hex(*address), event.code(), event.name())
                }
            };
        }
        (ip4, ip6)
    }
}

/// The first four words, as ip6trie reads them.
fn hex(address: Ipv6Addr) -> String {
    let [a, b, c, d, ..] = address.segments();
    format!("{a:x}:{b:x}:{c:x}:{d:x}")
}

/// Address or network under which an address is counted.
fn subject(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

fn counts(entry: &Entry) -> impl Iterator<Item = (Event, u32)> + '_ {
    Event::ALL.into_iter().zip(entry.counts).filter(|(_, count)| *count > 0)
}

/// A score at a time. A clock that went back takes nothing off.
fn decayed(entry: &Entry, limits: &Limits, now: u64) -> f64 {
    let age = now.saturating_sub(entry.at).min(u64::from(u32::MAX));
    let half_lives = age as f64 / limits.half_life_seconds.max(1) as f64;
    entry.score * (-half_lives).exp2()
}

fn read_line(line: &str) -> Option<(IpAddr, Entry)> {
    let mut words = line.split_whitespace();
    let address = words.next()?.parse().ok()?;
    let score: f64 = words.next()?.parse().ok().filter(|score: &f64| score.is_finite())?;
    let mut entry = Entry { score, at: words.next()?.parse().ok()?, counts: [0; 4] };
    for word in words {
        let (name, count) = word.split_once('=')?;
        entry.counts[Event::from_name(name)? as usize] = count.parse().ok()?;
    }
    Some((address, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn scores_decay_and_are_forgiven() {
        let mut ledger = Ledger::new(Limits::default());
        let day = 86_400;
        ledger.note(address("192.0.2.1"), Event::Spam, 0);
        assert!(!ledger.standing(address("192.0.2.1"), 0).unwrap().is_listed, "once is no habit");
        ledger.note(address("192.0.2.1"), Event::Infected, 0);
        assert!(ledger.standing(address("192.0.2.1"), 0).unwrap().is_listed);
        let later = ledger.standing(address("192.0.2.1"), day).unwrap();
        assert_eq!((later.score, later.is_listed), (4.0, false));
        ledger.note(address("192.0.2.1"), Event::Spam, day);
        assert!(ledger.standing(address("192.0.2.1"), day).unwrap().is_listed);
        assert!(ledger.forgive(address("192.0.2.1")) && !ledger.forgive(address("192.0.2.1")));
        assert_eq!(ledger.standing(address("192.0.2.1"), day), None);
        for _ in 0..1_000 {
            ledger.note(address("192.0.2.2"), Event::Infected, 0);
        }
        assert!(ledger.standing(address("192.0.2.2"), 0).unwrap().is_listed);
        assert!(!ledger.standing(address("192.0.2.2"), 4 * day).unwrap().is_listed, "in the end");
        ledger.forget(30 * day);
        assert_eq!(ledger.standing(address("192.0.2.2"), 0), None);
    }

    #[test]
    fn a_ledger_comes_back_from_its_text_and_makes_zones() {
        let mut ledger = Ledger::new(Limits::default());
        for _ in 0..3 {
            ledger.note(address("192.0.2.1"), Event::Harvest, 10);
            ledger.note(address("2001:db8:1:2::99"), Event::Infected, 10);
            ledger.note(address("192.0.2.9"), Event::Trust, 10);
        }
        let text = ledger.write();
        let (again, wrong) = Ledger::read(&(text.clone() + "nonsense\n1.2.3.4 inf 0\n"), Limits::default());
        assert_eq!((again.write(), wrong), (text, 2));
        assert_eq!(again.standing(address("2001:db8:1:2::1"), 10).unwrap().counts, [(Event::Infected, 3)], "its /64");
        let (ip4, ip6) = again.zones(10);
        assert_eq!(ip4, "127.0.0.2 :2:Test\n192.0.2.1 :3:Seen here: harvest\n");
        assert_eq!(ip6, "2001:db8:1:2/64 :4:Seen here: infected\n");
        assert_eq!(again.zones(10 * 86_400).0, "127.0.0.2 :2:Test\n", "decayed");
    }

    #[test]
    fn there_are_no_more_addresses_than_allowed() {
        let mut ledger = Ledger::new(Limits { addresses_max: 100, ..Limits::default() });
        for host in 0..250_u8 {
            let event = if host < 50 { Event::Infected } else { Event::Harvest };
            ledger.note(IpAddr::from([192, 0, 2, host]), event, u64::from(host));
        }
        assert!(ledger.write().lines().count() <= 101);
        assert!(ledger.standing(address("192.0.2.7"), 250).is_some(), "the worst stay");
    }
}
