//! Reputation of clients for the doors: block lists over DNS, and this gateway's own observations.
//!
//! [`::dnsbl::client`] decides what is asked; here are its sockets and its clock, on a thread of its own. Each packet leaves
//! from a port of its own, and only what comes back from where it went is read. What is asked while `EXCHANGES_MAX` packets
//! are under way goes unanswered, which is no listing. Lists that are at hand are looked at for changes once a minute.
//!
//! What was seen is kept in memory, for this run; and where a folder is named, in the ledger there, which `sluice dnsbl
//! reputation` shows and mends and of which `sluice dnsbl serve` makes a zone for other machines. A thread adds to it what was
//! seen, and takes over what it says then, every so often. What was seen since the last time is lost in a crash.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::mpsc::{Receiver as End, RecvTimeoutError, Sender as Life};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::dnsbl::client::{Client, Transmit, Verdict, subject};
use ::dnsbl::reputation::{self, Event, Ledger};
use ::dnsbl::zone::Spec;
use edge::message::asking::Resolver;
use edge::settings::TrustSettings;
use edge::trust::reputation::{Opinion, Reputation, Seen};
use flow::{Answer, Ask, Outcome, Record, RecordKind, Security};
use proto::dns::Name;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::load::{Loaded, now};
use super::reputation::settle;
use crate::config::block_lists::{client, resolvers, specs};

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

/// Largest number of observations that the ledger's file does not have yet; more are dropped.
const EVENTS_MAX: usize = 100_000;

/// How often lists at hand are looked at for changes.
const LOCAL_CHECK: Duration = Duration::from_secs(60);

/// Own observations, for the whole run.
pub type Own = Arc<Mutex<Memory>>;

/// Own observations.
#[derive(Debug)]
pub struct Memory {
    ledger: Ledger,
    /// Events that the file does not have yet, where there is one.
    events: Option<Vec<(IpAddr, Event, u64)>>,
}

fn own_limits() -> reputation::Limits {
    reputation::Limits { addresses_max: ADDRESSES_MAX, ..reputation::Limits::default() }
}

/// Nothing was seen yet.
pub fn nothing_seen() -> Own {
    Arc::new(Mutex::new(Memory { ledger: Ledger::new(own_limits()), events: None }))
}

/// Block lists and observations about clients.
pub struct Lists {
    own: Own,
    own_score: i32,
    /// Where lists are asked, if there are any.
    orders: Option<Sender<Order>>,
    /// Their zones, by their numbers.
    zones: Vec<Name>,
    /// The thread that keeps the ledger's file ends when this does.
    _life: Option<Life<()>>,
}

/// Somebody wants to know about an address.
struct Order {
    address: IpAddr,
    teller: Teller,
}

/// Receiver of an answer.
enum Teller {
    /// A door: what all lists say, besides what is known here.
    Door(Opinion, oneshot::Sender<Opinion>),
    /// A rule: what one list says, as the answer to its question.
    Rule { zone: usize, id: u32, tell: UnboundedSender<Answer> },
}

impl Lists {
    /// Starts the lists of the settings.
    ///
    /// # Errors
    /// When a list is none, or there is no resolver to ask; the message says which.
    pub fn start(settings: &TrustSettings, own: Own) -> Result<Lists, String> {
        let own_score = settings.scores.own;
        let life = settings.reputation.as_ref().map(|folder| keep(folder, settings.reputation_seconds, own.clone()));
        let _life = life.transpose()?;
        if settings.dnsbl.lists.is_empty() {
            return Ok(Lists { own, own_score, orders: None, zones: Vec::new(), _life });
        }
        let (mut client, resolvers) = (client(settings)?, resolvers(settings)?);
        let mut local = AtHand { specs: specs(settings)?, loaded: Loaded::default() };
        local.read()?;
        client.set_local(&Arc::new(local.loaded.zones(&local.specs)), now());
        let zones = client.zones().cloned().collect();
        let (orders, received) = channel(ORDERS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("trust.dnsbl: {error}"))?;
        let work = move || LocalSet::new().block_on(&runtime, answer(client, resolvers, local, received));
        std::thread::Builder::new()
            .name("dnsbl".into())
            .spawn(work)
            .map_err(|error| format!("trust.dnsbl: {error}"))?;
        Ok(Lists { own, own_score, orders: Some(orders), zones, _life })
    }

    /// Opinion from own observations.
    fn known(&self, address: IpAddr) -> Opinion {
        let standing = self.own.lock().expect("no holder panics").ledger.standing(address, now());
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
            Some(orders) => orders.try_send(Order { address, teller: Teller::Door(known, ticket) }).ok()?,
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
        let (mut own, now) = (self.own.lock().expect("no holder panics"), now());
        own.ledger.note(address, event, now);
        if let Some(events) = own.events.as_mut().filter(|events| events.len() < EVENTS_MAX) {
            events.push((address, event, now));
        }
    }
}

/// Resolver for inspections that answers from lists which doors ask too, so that none is asked twice, and hands the
/// rest to `resolver`.
pub fn first(lists: &Arc<Lists>, resolver: Arc<impl Resolver + 'static>) -> Arc<dyn Resolver> {
    match lists.zones.is_empty() {
        true => resolver,
        false => Arc::new(ListsFirst { lists: lists.clone(), resolver }),
    }
}

struct ListsFirst<R> {
    lists: Arc<Lists>,
    resolver: Arc<R>,
}

impl<R: Resolver> Resolver for ListsFirst<R> {
    fn look_up(&self, ask: Ask, tell: &UnboundedSender<Answer>) {
        let Some((zone, address)) = self.lists.subject(&ask) else { return self.resolver.look_up(ask, tell) };
        let teller = Teller::Rule { zone, id: ask.id, tell: tell.clone() };
        let taken = self.lists.orders.as_ref().is_some_and(|orders| orders.try_send(Order { address, teller }).is_ok());
        if !taken {
            self.resolver.look_up(ask, tell);
        }
    }
}

impl Lists {
    /// List and address that a question is about.
    fn subject(&self, ask: &Ask) -> Option<(usize, IpAddr)> {
        let asks_list = ask.question.kind == RecordKind::A && !ask.list.is_empty();
        subject(&self.zones, &ask.question.name.parse().ok().filter(|_| asks_list)?)
    }
}

/// Reads the ledger in a folder, and has a thread add to it what is seen. It ends with what is returned.
fn keep(folder: &Path, seconds: u64, own: Own) -> Result<Life<()>, String> {
    // The folder is right, or the gateway does not start.
    exchange_ledger(folder, &own)?;
    let (life, end): (Life<()>, End<()>) = std::sync::mpsc::channel();
    let folder = folder.to_owned();
    let work = move || loop {
        let ended = end.recv_timeout(Duration::from_secs(seconds)) != Err(RecvTimeoutError::Timeout);
        if let Err(error) = exchange_ledger(&folder, &own) {
            tracing::error!(%error, "reputation of clients cannot be stored");
        }
        if ended {
            return;
        }
    };
    let started = std::thread::Builder::new().name("reputation".into()).spawn(work);
    started.map_err(|error| format!("trust.reputation: {error}"))?;
    Ok(life)
}

/// Adds what was seen to the file, and takes over what it says. What is seen meanwhile counts on top of that.
fn exchange_ledger(folder: &Path, own: &Own) -> Result<(), String> {
    let events = own.lock().expect("no holder panics").events.replace(Vec::new()).unwrap_or_default();
    let settled = settle(folder, own_limits(), &events);
    let mut own = own.lock().expect("no holder panics");
    let seen_since = own.events.get_or_insert_default();
    match settled {
        Ok(mut ledger) => {
            seen_since.iter().for_each(|&(address, event, at)| ledger.note(address, event, at));
            own.ledger = ledger;
            Ok(())
        }
        Err(error) => {
            seen_since.splice(0..0, events);
            seen_since.truncate(EVENTS_MAX);
            Err(format!("trust.reputation: {error}"))
        }
    }
}

/// Whether the lists of the one settings go on under the others.
pub fn is_same(old: &TrustSettings, new: &TrustSettings) -> bool {
    let about = |settings: &TrustSettings| (settings.scores.own, settings.reputation_seconds);
    old.dnsbl == new.dnsbl && old.reputation == new.reputation && about(old) == about(new)
}

/// Lists that are asked of nobody.
struct AtHand {
    specs: Vec<Spec>,
    loaded: Loaded,
}

impl AtHand {
    /// Reads what has changed. Whether anything has.
    ///
    /// # Errors
    /// What cannot be read, and was not before: the rest is read.
    fn read(&mut self) -> Result<bool, String> {
        let reports = self.loaded.refresh(&self.specs);
        let mut failed = None;
        for report in &reports {
            report.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            match &report.outcome {
                Ok(dataset) => tracing::info!(files = report.files, listings = dataset.len(), "list loaded"),
                Err(error) => failed = Some(format!("trust.dnsbl.local: {error}")),
            }
        }
        failed.map_or(Ok(!reports.is_empty()), Err)
    }
}

/// Answers until nobody can order any more.
async fn answer(mut client: Client, resolvers: Vec<SocketAddr>, local: AtHand, mut orders: Receiver<Order>) {
    let mut local = Some(local).filter(|local| !local.specs.is_empty());
    let (read, mut reads) = channel(1);
    let mut looks = tokio::time::interval(LOCAL_CHECK);
    let started = Instant::now();
    let milliseconds = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (heard, mut packets) = channel(EXCHANGES_MAX);
    let places = Arc::new(Semaphore::new(EXCHANGES_MAX));
    let mut waiting: HashMap<u64, Order> = HashMap::new();
    let mut number = 0;
    loop {
        while let Some(transmit) = client.transmit() {
            let Ok(place) = places.clone().try_acquire_owned() else { break };
            let Some(&resolver) = resolvers.get(transmit.resolver % resolvers.len().max(1)) else { continue };
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
                match order.look_up(&mut client, number, milliseconds()) {
                    Some(verdict) => order.tell(&client, &verdict),
                    None => _ = waiting.insert(number, order),
                }
            }
            _ = looks.tick(), if local.is_some() => {
                // Reading takes its time, and lookups go on meanwhile.
                let (local, read) = (local.take(), read.clone());
                tokio::task::spawn_blocking(move || {
                    let Some(mut local) = local else { return };
                    if let Err(error) = local.read() {
                        tracing::error!(%error, "list not loaded, the old one stays in force");
                    }
                    let _ = read.blocking_send(local);
                });
            }
            Some(fresh) = reads.recv() => {
                client.set_local(&Arc::new(fresh.loaded.zones(&fresh.specs)), now());
                local = Some(fresh);
            }
            Some(packet) = packets.recv() => client.handle(&packet, milliseconds()),
            () = tokio::time::sleep_until(due.into()), if deadline.is_some() => client.advance(milliseconds()),
        }
    }
}

impl Order {
    fn look_up(&self, client: &mut Client, number: u64, now: u64) -> Option<Verdict> {
        match &self.teller {
            Teller::Door(..) => client.lookup(number, self.address, now),
            Teller::Rule { zone, .. } => client.lookup_in(number, *zone, self.address, now),
        }
    }

    /// Sends the answer; the receiver may be gone.
    fn tell(self, client: &Client, verdict: &Verdict) {
        match self.teller {
            Teller::Door(known, ticket) => _ = ticket.send(opinion(known, client, verdict)),
            Teller::Rule { id, tell, .. } => {
                _ = tell.send(Answer { id, outcome: outcome(verdict), security: Security::Unknown })
            }
        }
    }
}

/// Adds a verdict of lists to the own opinion.
fn opinion(mut known: Opinion, client: &Client, verdict: &Verdict) -> Opinion {
    known.score = known.score.saturating_add(verdict.score);
    known.lists.extend(verdict.listed.iter().map(|(zone, _)| client.shown(*zone)));
    known.is_partial = verdict.is_partial;
    known
}

/// Answer of one list, as its records.
fn outcome(verdict: &Verdict) -> Outcome {
    let records: Vec<Record> =
        verdict.listed.iter().flat_map(|(_, addresses)| addresses).map(|&address| Record::A(address.into())).collect();
    match (records.is_empty(), verdict.is_partial) {
        (false, _) => Outcome::Records(records),
        (true, true) => Outcome::Unavailable,
        (true, false) => Outcome::NoName,
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
