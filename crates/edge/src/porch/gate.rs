//! The gate of a listener: how many sessions are open, in all and of one client, and how many a client begins in a minute.
//!
//! A client is a network: so many bits of an address. Counts of a minute and of an hour are of 50,000 clients at most.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::settings::{Listener, Network};
use crate::trust::strangers::{Stranger, Strangers};

/// Counts the sessions of all listeners together.
#[derive(Debug)]
pub struct House {
    open: AtomicU32,
    most: AtomicU32,
}

impl House {
    /// Nobody is in, and so many may be.
    pub const fn new(most: u32) -> House {
        House { open: AtomicU32::new(0), most: AtomicU32::new(most) }
    }

    /// Sets the maximum of sessions.
    pub fn allow(&self, most: u32) {
        self.most.store(most, Relaxed);
    }

    fn enter(&self) -> bool {
        let most = self.most.load(Relaxed);
        self.open.fetch_update(Relaxed, Relaxed, |open| (open < most).then_some(open + 1)).is_ok()
    }

    /// Counts a session, if one more may be in.
    pub fn place(self: &Arc<House>) -> Option<Place> {
        self.enter().then(|| Place(self.clone()))
    }
}

/// A session that a [`House`] counts; dropping it makes room for another.
#[derive(Debug)]
pub struct Place(Arc<House>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// Counts sessions and infected mails, in all and by client.
#[derive(Debug)]
pub struct Gate {
    house: Arc<House>,
    clients: Mutex<Clients>,
    /// Readers of mail that have not logged in.
    strangers: Arc<Strangers<()>>,
}

#[derive(Debug)]
struct Clients {
    open: u32,
    /// Sessions of those who have any.
    open_by_client: HashMap<Network, u32>,
    /// New sessions of the current minute; infected mails of the current hour.
    came: Tally,
    infected: Tally,
}

/// Counts by client over a time, and begins anew after it.
#[derive(Debug)]
struct Tally {
    since: Instant,
    counts: HashMap<Network, u32>,
}

/// Clients counted at a time. Where there are more in a minute or an hour all counts begin anew: that costs a pass over
/// them once in so many clients, and no more.
const CLIENTS_MAX: usize = 50_000;

/// Readers of mail that have not logged in, on one listener.
const STRANGERS_MAX: usize = 400;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

impl Tally {
    fn new() -> Tally {
        Tally { since: Instant::now(), counts: HashMap::new() }
    }

    /// One more of this client's, and how many that makes.
    fn add(&mut self, client: Network, now: Instant, span: Duration) -> u32 {
        self.pass(now, span);
        if self.counts.len() >= CLIENTS_MAX && !self.counts.contains_key(&client) {
            self.counts.clear();
        }
        let count = self.counts.entry(client).or_default();
        *count = count.saturating_add(1);
        *count
    }

    fn count(&mut self, client: Network, now: Instant, span: Duration) -> u32 {
        self.pass(now, span);
        self.counts.get(&client).copied().unwrap_or(0)
    }

    fn pass(&mut self, now: Instant, span: Duration) {
        if now.saturating_duration_since(self.since) >= span {
            (self.since, self.counts) = (now, HashMap::new());
        }
    }
}

/// Bounds of one client; `None` means any number.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Sessions at a time.
    pub open_max: Option<u32>,
    /// New sessions within a minute.
    pub minute_max: Option<u32>,
}

/// Why a session is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The listener, or the program, is full.
    Full,
    /// This client has its share.
    TooMany,
    /// This client comes too often.
    TooFast,
    /// The client is not in the access list.
    NotWanted,
}

impl Refusal {
    /// SMTP's codes, and the text for the client.
    const fn text(self) -> (&'static str, &'static str) {
        match self {
            Refusal::Full => ("421 4.3.2", "Too many sessions, try again later"),
            Refusal::TooMany => ("421 4.7.0", "Too many sessions from your address"),
            Refusal::TooFast => ("421 4.7.0", "Too many sessions from your address in a minute"),
            Refusal::NotWanted => ("554 5.7.1", "Access denied"),
        }
    }

    /// The reply of SMTP and LMTP.
    pub fn smtp(self) -> String {
        let (code, text) = self.text();
        format!("{code} {text}\r\n")
    }

    /// The reply of POP3.
    pub fn pop3(self) -> String {
        let code = if self == Refusal::NotWanted { "SYS/PERM" } else { "SYS/TEMP" };
        format!("-ERR [{code}] {}\r\n", self.text().1)
    }

    /// The reply of IMAP.
    pub fn imap(self) -> String {
        let code = if self == Refusal::NotWanted { "" } else { "[UNAVAILABLE] " };
        format!("* BYE {code}{}\r\n", self.text().1)
    }

    /// The reply of ManageSieve.
    pub fn managesieve(self) -> String {
        format!("BYE (TRYLATER) \"{}\"\r\n", self.text().1)
    }

    /// The reply of spamd, by which spamc goes on to the next server, or hands on the mail as it came.
    pub fn spamd(self) -> String {
        format!("SPAMD/1.0 69 Service Unavailable: {}\r\n", self.text().1)
    }

    /// The reply of HTTP.
    pub fn http(self) -> String {
        let text = self.text().1;
        let length = text.len() + 1;
        format!(
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{text}\n"
        )
    }
}

/// A session that was let in; dropping it makes room for another.
#[derive(Debug)]
pub struct Ticket {
    gate: Arc<Gate>,
    client: Option<Network>,
    /// Its place among those that have not logged in.
    stranger: Option<Stranger<()>>,
}

impl Gate {
    /// A gate of this house.
    pub fn new(house: Arc<House>) -> Gate {
        let clients = Clients { open: 0, open_by_client: HashMap::new(), came: Tally::new(), infected: Tally::new() };
        Gate { house, clients: Mutex::new(clients), strangers: Strangers::new(STRANGERS_MAX) }
    }

    /// Lets in a connection of a client that is not known yet, if fewer than `most` are open here.
    ///
    /// # Errors
    /// When the listener or the house is full.
    pub fn enter(self: &Arc<Gate>, most: u32) -> Result<Ticket, Refusal> {
        let mut clients = self.clients.lock().expect("no holder panics");
        if clients.open >= most || !self.house.enter() {
            return Err(Refusal::Full);
        }
        clients.open += 1;
        Ok(Ticket { gate: self.clone(), client: None, stranger: None })
    }

    /// A client has sent an infected mail: whether it has sent too many.
    pub fn infected(&self, listener: &Listener, address: IpAddr, now: Instant) -> bool {
        let Some(most) = listener.infected_of(address) else { return false };
        let mut clients = self.clients.lock().expect("no holder panics");
        clients.infected.add(prefix(listener, address), now, HOUR) >= most
    }

    /// Whether a client has sent too many infected mails.
    pub fn is_infectious(&self, listener: &Listener, address: IpAddr, now: Instant) -> bool {
        let Some(most) = listener.infected_of(address) else { return false };
        let mut clients = self.clients.lock().expect("no holder panics");
        clients.infected.count(prefix(listener, address), now, HOUR) >= most
    }
}

/// The network that counts as one client.
fn prefix(listener: &Listener, address: IpAddr) -> Network {
    let address = address.to_canonical();
    Network::around(address, listener.guests.bits_of(address))
}

impl Ticket {
    /// Counts the session as this client's, within its share of the listener.
    ///
    /// # Errors
    /// When the client has its share already.
    pub fn belongs_to(&mut self, listener: &Listener, address: IpAddr, now: Instant) -> Result<(), Refusal> {
        let (open_max, minute_max) = (listener.sessions_of(address), listener.sessions_in_minute_of(address));
        let client = prefix(listener, address);
        self.count(client, &Share { open_max, minute_max }, now)?;
        if listener.protocol().announces_sizes() {
            self.stranger = self.gate.strangers.enter(client, || Some(()));
        }
        Ok(())
    }

    /// Counts the session as this client's.
    ///
    /// # Errors
    /// When the client has its share already.
    pub fn count(&mut self, client: Network, share: &Share, now: Instant) -> Result<(), Refusal> {
        let mut clients = self.gate.clients.lock().expect("no holder panics");
        let too_fast = share.minute_max.is_some_and(|most| clients.came.add(client, now, MINUTE) > most);
        let open = clients.open_by_client.get(&client).copied().unwrap_or(0);
        if share.open_max.is_some_and(|most| open >= most) {
            return Err(Refusal::TooMany);
        }
        if too_fast {
            return Err(Refusal::TooFast);
        }
        clients.open_by_client.insert(client, open + 1);
        self.client = Some(client);
        Ok(())
    }

    /// Resolves when the place is another client's, which can be until [`Ticket::log_in`].
    pub async fn lost(&self) {
        match &self.stranger {
            Some(stranger) => stranger.lost().notified().await,
            None => std::future::pending().await,
        }
    }

    /// The client has logged in; whether it had its place still.
    pub fn log_in(&mut self) -> bool {
        self.stranger.take().is_none_or(|stranger| stranger.log_in().is_some())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut clients = self.gate.clients.lock().expect("no holder panics");
        clients.open -= 1;
        self.gate.house.open.fetch_sub(1, Relaxed);
        let Some(client) = self.client else { return };
        if let Entry::Occupied(mut open) = clients.open_by_client.entry(client) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(settings: &str) -> Listener {
        let text = format!("protocol='smtp'\naddress='127.0.0.1:1'\nforward='discard:'\n{settings}");
        text.parse().unwrap()
    }

    fn gate() -> Arc<Gate> {
        Arc::new(Gate::new(Arc::new(House::new(1_000))))
    }

    fn enter(gate: &Arc<Gate>, listener: &Listener, address: &str, now: Instant) -> Result<Ticket, Refusal> {
        let mut ticket = gate.enter(listener.guests.connections_max)?;
        ticket.belongs_to(listener, address.parse().unwrap(), now).map(|()| ticket)
    }

    #[test]
    fn a_full_listener_lets_in_again_after_one_left() {
        let (gate, listener, now) = (gate(), listener("connections_max = 1"), Instant::now());
        let ticket = enter(&gate, &listener, "127.0.0.1", now).unwrap();
        assert_eq!(enter(&gate, &listener, "127.0.0.2", now).unwrap_err(), Refusal::Full);
        drop(ticket);
        assert!(enter(&gate, &listener, "127.0.0.2", now).is_ok());
    }

    #[test]
    fn all_listeners_together_have_a_bound() {
        let house = Arc::new(House::new(1));
        let (one, two) = (Arc::new(Gate::new(house.clone())), Arc::new(Gate::new(house.clone())));
        let (listener, now) = (listener(""), Instant::now());
        let ticket = enter(&one, &listener, "127.0.0.1", now).unwrap();
        assert_eq!(enter(&two, &listener, "127.0.0.1", now).unwrap_err(), Refusal::Full);
        drop(ticket);
        let ticket = enter(&two, &listener, "127.0.0.1", now).unwrap();
        house.allow(2);
        assert!(enter(&one, &listener, "127.0.0.1", now).is_ok());
        drop(ticket);
        assert_eq!(house.open.load(Relaxed), 0);
    }

    #[test]
    fn one_client_has_its_share_and_its_rate() {
        let (gate, address, now) = (gate(), "127.0.0.1", Instant::now());
        let listener = listener("connections_per_client_max = 1\nconnections_per_minute_max = 2");
        let ticket = enter(&gate, &listener, address, now).unwrap();
        assert_eq!(enter(&gate, &listener, address, now).unwrap_err(), Refusal::TooMany);
        drop(ticket);
        assert_eq!(enter(&gate, &listener, address, now).unwrap_err(), Refusal::TooFast);
        assert!(enter(&gate, &listener, address, now + Duration::from_secs(61)).is_ok());
    }

    #[test]
    fn the_addresses_of_a_network_are_one_client() {
        let now = Instant::now();
        let (gate, one) = (gate(), listener("connections_per_client_max = 1"));
        let _ticket = enter(&gate, &one, "2001:db8::1", now).unwrap();
        assert_eq!(enter(&gate, &one, "2001:db8::ffff:2", now).unwrap_err(), Refusal::TooMany);
        let _other = enter(&gate, &one, "2001:db8:0:1::1", now).unwrap();
        let _ticket = enter(&gate, &one, "192.0.2.1", now).unwrap();
        let _other = enter(&gate, &one, "192.0.2.2", now).unwrap();
        let wide = listener("connections_per_client_max = 1\nclient_ipv4_bits = 24");
        let _ticket = enter(&gate, &wide, "192.0.2.1", now).unwrap();
        assert_eq!(enter(&gate, &wide, "::ffff:192.0.2.2", now).unwrap_err(), Refusal::TooMany);
    }

    #[test]
    fn a_network_has_its_share_until_a_session_ends() {
        let (gate, now) = (gate(), Instant::now());
        let share = Share { open_max: Some(1), minute_max: None };
        let enter = |address: &str| {
            let mut ticket = gate.enter(3)?;
            ticket.count(Network::around(address.parse().unwrap(), 24), &share, now).map(|()| ticket)
        };
        let ticket = enter("192.0.2.1").unwrap();
        assert_eq!(enter("192.0.2.200").unwrap_err(), Refusal::TooMany);
        let _others = (enter("198.51.100.1").unwrap(), enter("203.0.113.1").unwrap());
        assert_eq!(enter("192.0.2.1").unwrap_err(), Refusal::Full);
        drop(ticket);
        assert!(enter("192.0.2.200").is_ok());
    }

    #[test]
    fn the_usual_bounds_are_for_strangers() {
        let known = "xforward_from = ['198.51.100.1']\nclients = ['203.0.113.0/24', '192.0.2.0/24']";
        let (gate, listener, now) = (gate(), listener(known), Instant::now());
        let mut tickets = Vec::new();
        for address in ["127.0.0.1", "::1", "198.51.100.1", "203.0.113.9"] {
            tickets.extend((0..101).map(|_| enter(&gate, &listener, address, now).unwrap()));
        }
        let open = self::listener("");
        tickets.extend((0..50).map(|_| enter(&gate, &open, "192.0.2.1", now).unwrap()));
        assert_eq!(enter(&gate, &open, "192.0.2.1", now).unwrap_err(), Refusal::TooMany);
        tickets.clear();
        (0..49).for_each(|_| drop(enter(&gate, &open, "192.0.2.1", now).unwrap()));
        assert_eq!(enter(&gate, &open, "192.0.2.1", now).unwrap_err(), Refusal::TooFast);
    }

    #[test]
    fn infected_mails_count_against_a_stranger_for_an_hour() {
        let (gate, listener, now) = (gate(), listener("infected_per_client_max = 2"), Instant::now());
        let client = "2001:db8::1".parse().unwrap();
        assert!(!gate.infected(&listener, client, now) && !gate.is_infectious(&listener, client, now));
        assert!(gate.infected(&listener, client, now));
        assert!(gate.is_infectious(&listener, "2001:db8::2".parse().unwrap(), now), "the neighbour is the same client");
        assert!(!gate.is_infectious(&listener, "2001:db8:1::2".parse().unwrap(), now));
        assert!(!gate.is_infectious(&listener, client, now + HOUR));
        let usual = self::listener("");
        assert!((0..99).all(|_| !gate.infected(&usual, [127, 0, 0, 1].into(), now)), "a relay of ours");
    }

    #[test]
    fn a_crowd_is_counted_in_bounded_memory_and_time() {
        let (gate, listener, now) = (gate(), listener(""), Instant::now());
        for number in 0..2 * CLIENTS_MAX as u128 {
            let address = IpAddr::from((0x2001_0db8_u128 << 96 | number << 64).to_be_bytes());
            let mut ticket = gate.enter(listener.guests.connections_max).unwrap();
            ticket.belongs_to(&listener, address, now).unwrap();
        }
        let clients = gate.clients.lock().unwrap();
        assert!(clients.open_by_client.is_empty() && clients.came.counts.len() <= CLIENTS_MAX);
    }
}
