//! The experiment of Pathak, Jafri and Hu (2009): what prefixes save. A trace of connections is asked for twice, address by
//! address and by prefix, with an hour-true clock; the answers have to be the same.
//!
//!     trace paper                     100,000 connections of 19,500 hosts in 8,800 /24s, kept for 24 hours
//!     trace feed FILE [CLEAN [NEIGHBOURS]]    hosts drawn from a feed; of a hundred hosts CLEAN are elsewhere, in /24s of
//!                                             so many

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use dnsbl::answer::{Options, Scratch, Transport, respond};
use dnsbl::client::{Client, Limits, sites};
use dnsbl::zone::Zones;
use dnsbl::zone::dataset::Kind;
use dnsbl::zone::loader::Loader;

const DAY_MS: u64 = 86_400_000;
const CONNECTIONS: usize = 100_000;

/// Round trip to the list, for the waits of connections.
const LIST_AWAY_MS: u64 = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut random = Random(0x1234_5678_9abc_def1);
    match arguments.next().as_deref() {
        Some("paper") => {
            // Days over which the connections are spread, so that addresses alone hit about as often as in the paper.
            for days in [1, 2, 3, 7, 30] {
                let hosts = paper_hosts(&mut random);
                let listed: Vec<u32> = hosts.iter().copied().filter(|_| random.below(10) < 8).collect();
                let trace = trace(&hosts, days, &mut random);
                report(&format!("paper's shape over {days} days"), &listed_text(&listed), &trace);
            }
        }
        Some("feed") => {
            let file = arguments.next().ok_or("trace feed FILE [CLEAN [NEIGHBOURS]]")?;
            let clean: u64 = arguments.next().map_or(Ok(30), |text| text.parse())?;
            let neighbours: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
            let text = std::fs::read_to_string(&file)?;
            let listed: Vec<u32> = text
                .lines()
                .filter_map(|line| match dnsbl::feed::read(line.as_bytes()) {
                    Some(dnsbl::feed::Network::Ip4(first, _)) => Some(first),
                    _ => None,
                })
                .collect();
            for days in [1, 7] {
                let mut hosts: Vec<u32> = listed.iter().copied().filter(|_| random.below(3) == 0).collect();
                let count = u64::try_from(hosts.len())? * clean / (100 - clean.min(99));
                // Hosts elsewhere: mail servers, a few to a /24.
                for _ in 0..count / neighbours.max(1) {
                    let base = u32::try_from(random.next() & 0xffff_ff00)?;
                    hosts.extend((0..neighbours).map(|_| base | u32::try_from(random.below(256)).unwrap_or(0)));
                }
                let trace = trace(&hosts, days, &mut random);
                report(&format!("{file}, {clean} % clean, over {days} days"), &listed_text(&listed), &trace);
            }
        }
        _ => return Err("trace paper | trace feed FILE [CLEAN]".into()),
    }
    Ok(())
}

/// 19,500 hosts in 8,800 /24s, a few networks having many.
fn paper_hosts(random: &mut Random) -> Vec<u32> {
    let mut networks = HashSet::new();
    while networks.len() < 8_800 {
        networks.insert(u32::try_from(random.next() & 0xffff_ff00).unwrap_or(0));
    }
    let mut networks: Vec<u32> = networks.into_iter().collect();
    networks.sort_unstable();
    let mut hosts: HashSet<u32> =
        networks.iter().map(|network| network | (1 + u32::try_from(random.below(250)).unwrap_or(0))).collect();
    while hosts.len() < 19_500 {
        // Zipf's law over networks.
        let rank = random.zipf(networks.len());
        hosts.insert(networks[rank] | u32::try_from(random.below(256)).unwrap_or(0));
    }
    let mut hosts: Vec<u32> = hosts.into_iter().collect();
    hosts.sort_unstable();
    hosts
}

/// Connections of hosts, each host once at least, the busy ones by Zipf's law, at any time.
fn trace(hosts: &[u32], days: u64, random: &mut Random) -> Vec<(u64, u32)> {
    let mut order: Vec<u32> = hosts.to_vec();
    for at in (1..order.len()).rev() {
        order.swap(at, random.index(at + 1));
    }
    let mut trace: Vec<(u64, u32)> =
        order.iter().take(CONNECTIONS).map(|&host| (random.below(days * DAY_MS), host)).collect();
    while trace.len() < CONNECTIONS {
        trace.push((random.below(days * DAY_MS), order[random.zipf(order.len())]));
    }
    trace.sort_unstable();
    trace
}

fn listed_text(listed: &[u32]) -> String {
    let mut text = String::from("$SOA 86400 ns.bl.test a.bl.test 1 1h 1h 1w 1d\n$TTL 1d\n127.0.0.2\n");
    for &address in listed {
        text += &format!("{}\n", Ipv4Addr::from(address));
    }
    text
}

fn report(title: &str, text: &str, trace: &[(u64, u32)]) {
    let mut loader = Loader::new(Kind::Ip4Set);
    loader.begin("list", 1);
    loader.feed(text.as_bytes());
    loader.end();
    let Ok((dataset, ..)) = loader.finish(1) else { return };
    let zones = Arc::new(Zones::new(vec![("bl.test".parse().ok(), Some(Arc::new(dataset)))]));
    let hosts: HashSet<u32> = trace.iter().map(|&(_, host)| host).collect();
    let networks: HashSet<u32> = trace.iter().map(|&(_, host)| host >> 8).collect();
    println!("{title}: {} connections, {} hosts, {} /24s", trace.len(), hosts.len(), networks.len());
    let (classic, answers) = run(&zones, false, trace);
    let (prefixes, again) = run(&zones, true, trace);
    let different = answers.iter().zip(&again).filter(|(one, other)| one != other).count();
    let share = |client: &Client| {
        let counts = client.counts();
        let hits = counts.hits * 1_000 / counts.asked.max(1);
        (counts.queries, counts.upkeep, hits)
    };
    let ((queries, upkeep, hits), (fewer, fewer_upkeep, more)) = (share(&classic), share(&prefixes));
    let line = |what: &str, queries: u64, upkeep: u64, hits: u64| {
        // A miss takes a round trip to the list.
        let wait = (1_000 - hits) * LIST_AWAY_MS / 10;
        println!(
            "  by {what:8}{queries} queries and {upkeep} of upkeep, hits {}.{} %, wait {}.{:02} ms in the mean",
            hits / 10,
            hits % 10,
            wait / 100,
            wait % 100
        );
    };
    line("address", queries, upkeep, hits);
    line("prefix", fewer, fewer_upkeep, more);
    println!(
        "  {} % fewer queries, {different} of {} answers differ",
        100 - (fewer + fewer_upkeep) * 100 / (queries + upkeep),
        trace.len()
    );
}

fn run(zones: &Arc<Zones>, prefixes: bool, trace: &[(u64, u32)]) -> (Client, Vec<i32>) {
    let Ok(sites) = sites::read("bl.test") else { unreachable!("a site") };
    let mut client = Client::new(sites, 7, Limits::default());
    let options = Options { prefixes, ..Options::default() };
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    let mut scores = Vec::with_capacity(trace.len());
    for &(now, host) in trace {
        let verdict = client.lookup(1, IpAddr::from(Ipv4Addr::from(host)), now);
        while let Some(transmit) = client.transmit() {
            let from = (IpAddr::from([127, 0, 0, 1]), Transport::Udp);
            respond(zones, &options, &transmit.packet, from, 1, &mut scratch, &mut out);
            client.handle(&out, now);
        }
        let verdict = verdict.or_else(|| client.verdict().map(|(_, verdict)| verdict));
        scores.push(verdict.map_or(i32::MIN, |verdict| verdict.score));
    }
    (client, scores)
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(u64::try_from(end).unwrap_or(1))).unwrap_or(0)
    }

    /// A rank below `count`, the first ones often: the logarithm of ranks is even.
    fn zipf(&mut self, count: usize) -> usize {
        let share = f64::from(u32::try_from(self.below(1 << 30)).unwrap_or(0)) / f64::from(1 << 30);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let rank = f64::from(count).powf(share) - 1.0;
        usize::try_from(rank as u64).unwrap_or(0)
    }
}
