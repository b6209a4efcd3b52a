//! What doors know of their clients: block lists over DNS, and what this gateway has seen itself.
//!
//! [`::dnsbl::client`] decides what is asked; here are its sockets and its clock, on a thread of its own. Each packet leaves
//! from a port of its own, and only what comes back from where it went is read. What is asked while `EXCHANGES_MAX` packets
//! are under way goes unanswered, which is no listing. What was seen is kept in memory, for this run.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::dnsbl::client::{Client, Limits, Transmit, Verdict, sites};
use ::dnsbl::reputation::{self, Event, Ledger};
use edge::settings::TrustSettings;
use edge::trust::reputation::{Opinion, Reputation, Seen};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::load::now;

/// Orders that wait for the thread; beyond that nobody is asked.
const ORDERS_MAX: usize = 10_000;

/// Packets under way.
const EXCHANGES_MAX: usize = 1_000;

/// How long an answer is waited for.
const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// The longest answer by UDP.
const ANSWER_BYTES_MAX: usize = 4_096;

/// Packets that answer nothing before a socket is given up.
const STRAYS_MAX: usize = 16;

/// Addresses of which something was seen.
const ADDRESSES_MAX: usize = 100_000;

/// What was seen; for the whole run.
pub type Own = Arc<Mutex<Ledger>>;

/// Nothing was seen yet.
pub fn nothing_seen() -> Own {
    let limits = reputation::Limits { addresses_max: ADDRESSES_MAX, ..reputation::Limits::default() };
    Arc::new(Mutex::new(Ledger::new(limits)))
}

/// Who is asked about clients.
pub struct Lists {
    own: Own,
    own_score: i32,
    /// Where lists are asked, if there are any.
    orders: Option<Sender<Order>>,
}

/// Somebody wants to know about an address, of which this is known here.
struct Order {
    address: IpAddr,
    known: Opinion,
    ticket: oneshot::Sender<Opinion>,
}

impl Lists {
    /// Those of the settings.
    ///
    /// # Errors
    /// When a list is none, or there is no resolver to ask; the message says which.
    pub fn start(settings: &TrustSettings, own: Own) -> Result<Lists, String> {
        let own_score = settings.scores.own;
        if settings.dnsbl.lists.is_empty() {
            return Ok(Lists { own, own_score, orders: None });
        }
        let (client, resolvers) = (client(settings)?, resolvers(settings)?);
        let (orders, received) = channel(ORDERS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("trust.dnsbl: {error}"))?;
        let work = move || LocalSet::new().block_on(&runtime, answer(client, resolvers, received));
        std::thread::Builder::new()
            .name("dnsbl".into())
            .spawn(work)
            .map_err(|error| format!("trust.dnsbl: {error}"))?;
        Ok(Lists { own, own_score, orders: Some(orders) })
    }

    /// What was seen here.
    fn known(&self, address: IpAddr) -> Opinion {
        let standing = self.own.lock().expect("no holder panics").standing(address, now());
        match standing.is_some_and(|standing| standing.is_listed) {
            true => Opinion { score: self.own_score, lists: vec!["own".into()], is_partial: false },
            false => Opinion::default(),
        }
    }
}

impl Reputation for Lists {
    fn ask(&self, address: IpAddr) -> Option<oneshot::Receiver<Opinion>> {
        let (ticket, opinion) = oneshot::channel();
        let known = self.known(address);
        match &self.orders {
            Some(orders) => orders.try_send(Order { address, known, ticket }).ok()?,
            None if known.lists.is_empty() => return None,
            None => ticket.send(known).ok()?,
        }
        Some(opinion)
    }

    fn note(&self, address: IpAddr, seen: Seen) {
        let event = match seen {
            Seen::Trust => Event::Trust,
            Seen::Harvest => Event::Harvest,
            Seen::Spam => Event::Spam,
            Seen::Infected => Event::Infected,
        };
        self.own.lock().expect("no holder panics").note(address, event, now());
    }
}

/// Whether the settings can be followed.
///
/// # Errors
/// As [`Lists::start`].
pub fn check(settings: &TrustSettings) -> Result<(), String> {
    if settings.dnsbl.lists.is_empty() {
        return Ok(());
    }
    client(settings).and_then(|_| resolvers(settings)).map(drop)
}

fn client(settings: &TrustSettings) -> Result<Client, String> {
    let sites = sites::read(&settings.dnsbl.lists.join(" ")).map_err(|error| format!("trust.dnsbl: {error}"))?;
    let mut zones: Vec<_> = Vec::new();
    for site in &sites {
        if !zones.contains(&site.zone) {
            zones.push(site.zone.clone());
        }
    }
    // Lists of whom to trust have no test points.
    let welcoming = |zone| sites.iter().filter(|site| site.zone == zone).all(|site| site.weight < 0);
    let welcoming: Vec<bool> = zones.into_iter().map(welcoming).collect();
    let mut client = Client::new(sites, RandomState::new().hash_one(std::process::id()), Limits::default());
    for (zone, _) in welcoming.into_iter().enumerate().filter(|&(_, welcomes)| welcomes) {
        client.expect_no_test_points(zone);
    }
    Ok(client)
}

/// Those of the settings, or of resolv.conf(5).
fn resolvers(settings: &TrustSettings) -> Result<Vec<SocketAddr>, String> {
    if !settings.dnsbl.resolvers.is_empty() {
        return Ok(settings.dnsbl.resolvers.clone());
    }
    match system_resolvers() {
        resolvers if resolvers.is_empty() => {
            Err("trust.dnsbl: no resolver in /etc/resolv.conf: resolvers = [\"ADDRESS:53\"]".into())
        }
        resolvers => Ok(resolvers),
    }
}

/// Those of resolv.conf(5).
pub fn system_resolvers() -> Vec<SocketAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok());
    named.map(|address: IpAddr| SocketAddr::new(address, 53)).collect()
}

/// Answers until nobody can order any more.
async fn answer(mut client: Client, resolvers: Vec<SocketAddr>, mut orders: Receiver<Order>) {
    let started = Instant::now();
    let milliseconds = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (heard, mut packets) = channel(EXCHANGES_MAX);
    let places = Arc::new(Semaphore::new(EXCHANGES_MAX));
    let mut waiting: HashMap<u64, Order> = HashMap::new();
    let mut number = 0;
    loop {
        while let Some(transmit) = client.transmit() {
            let Ok(place) = places.clone().try_acquire_owned() else { break };
            let resolver = resolvers[transmit.resolver % resolvers.len()];
            let heard = heard.clone();
            tokio::task::spawn_local(async move {
                if let Ok(Ok(packet)) = timeout(ANSWER_WAIT, exchange(resolver, &transmit)).await {
                    let _ = heard.send(packet).await;
                }
                drop(place);
            });
        }
        while let Some((number, verdict)) = client.verdict() {
            if let Some(order) = waiting.remove(&number) {
                order.tell(&client, &verdict);
            }
        }
        let deadline = client.deadline();
        let due = started + Duration::from_millis(deadline.unwrap_or(0));
        tokio::select! {
            order = orders.recv() => {
                let Some(order) = order else { return };
                number += 1;
                match client.lookup(number, order.address, milliseconds()) {
                    Some(verdict) => order.tell(&client, &verdict),
                    None => _ = waiting.insert(number, order),
                }
            }
            Some(packet) = packets.recv() => client.handle(&packet, milliseconds()),
            () = tokio::time::sleep_until(due.into()), if deadline.is_some() => client.advance(milliseconds()),
        }
    }
}

impl Order {
    /// What lists say is added to what is known here. Whoever has asked may have gone.
    fn tell(self, client: &Client, verdict: &Verdict) {
        let mut opinion = self.known;
        opinion.score = opinion.score.saturating_add(verdict.score);
        opinion.lists.extend(verdict.listed.iter().map(|(zone, _)| client.shown(*zone)));
        opinion.is_partial = verdict.is_partial;
        let _ = self.ticket.send(opinion);
    }
}

/// Sends a question and waits for what answers it.
pub async fn exchange(resolver: SocketAddr, transmit: &Transmit) -> io::Result<Vec<u8>> {
    if transmit.tcp {
        return by_tcp(resolver, &transmit.packet).await;
    }
    let any: IpAddr = if resolver.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(resolver).await?;
    socket.send(&transmit.packet).await?;
    let mut bytes = vec![0; ANSWER_BYTES_MAX];
    for _ in 0..STRAYS_MAX {
        let len = socket.recv(&mut bytes).await?;
        if bytes[..len].get(..2) == transmit.packet.get(..2) {
            bytes.truncate(len);
            return Ok(bytes);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

async fn by_tcp(resolver: SocketAddr, packet: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(resolver).await?;
    let len = u16::try_from(packet.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&[&len.to_be_bytes()[..], packet].concat()).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}
