//! A listener: its settings, its sockets, and who may come in.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio_rustls::rustls::ServerConfig;

use crate::net::listening::{Owner, Sockets};
use crate::net::stream::Stream;
use crate::net::wire::Wire;
use crate::porch::cuts::Cuts;
use crate::settings::{Address, Listener, ListenerTls, Network, Rulings, Tls, Transparent, Verify};
use crate::trust::strangers::{Stranger, Strangers};
use crate::upstream::route::Route;

/// A listener with its settings. After a reload there is a new one for the same sockets.
pub struct Door {
    /// The settings.
    pub listener: Arc<Listener>,
    /// Rulings for its mails.
    pub rulings: Rulings,
    /// Where it listens: the address of the settings, with the port that the system chose where that one is 0.
    pub address: Address,
    /// A socket for each event loop.
    pub sockets: Arc<Sockets>,
    /// Sessions that are in.
    pub gate: Arc<Gate>,
    /// The way to the next hop.
    pub route: Arc<Route>,
    /// Objects of the web that were broken off.
    pub cuts: Arc<Cuts>,
    /// The server that the client wanted, where the connection was meant for somebody else.
    server: Option<SocketAddr>,
}

impl Door {
    /// Opens the sockets.
    ///
    /// # Errors
    /// When the address cannot be had, or the next hop cannot be spoken to as it should; the message says which.
    pub fn open(
        listener: Listener,
        rulings: Rulings,
        tls: &Tls,
        threads: usize,
        house: Arc<House>,
    ) -> Result<Door, String> {
        let transparent = listener.hop.transparent == Some(Transparent::Tproxy);
        let owner = Owner { mode: listener.place.socket_mode, group: listener.place.socket_group.as_deref() };
        let sockets = Arc::new(Sockets::open(&listener.place.address, &owner, threads, transparent)?);
        let route = Route::new(&listener.target(), tls)?;
        let gate = Arc::new(Gate::new(house));
        Ok(Door {
            address: sockets.address.clone(),
            route: Arc::new(route),
            listener: Arc::new(listener),
            rulings,
            sockets,
            gate,
            cuts: Arc::default(),
            server: None,
        })
    }

    /// Begins with a client: shakes hands where TLS comes first. The door that comes back is that of the server that the client
    /// asked for.
    ///
    /// # Errors
    /// When the handshake fails, or there is no certificate any more.
    pub async fn begin(
        self: Arc<Door>,
        tls: Option<Arc<ServerConfig>>,
        stream: Stream,
    ) -> io::Result<(Wire, Arc<Door>)> {
        let mut wire = Wire::new(stream);
        if self.listener.place.tls != ListenerTls::Implicit {
            return Ok((wire, self));
        }
        wire.accept_tls(tls.ok_or_else(|| io::Error::other("no certificate any more"))?).await?;
        let door = self.asked_for(wire.server_name());
        Ok((wire, door))
    }

    /// The same sockets with other settings.
    ///
    /// # Errors
    /// When the next hop cannot be spoken to as it should, or the sockets are of another kind.
    pub fn with_settings(&self, listener: Listener, rulings: Rulings, tls: &Tls) -> Result<Door, String> {
        if listener.hop.transparent != self.listener.hop.transparent {
            return Err(format!("listener {}: transparent is changed by a restart only", self.address));
        }
        let route = Route::new(&listener.target(), tls)?.or_known(&self.route);
        Ok(Door { listener: Arc::new(listener), rulings, ..self.with(route) })
    }

    /// The door as a client finds it who wanted to go to `server`.
    ///
    /// # Errors
    /// When what is spoken here is spoken with no server.
    pub fn towards(&self, server: SocketAddr, client: SocketAddr) -> std::io::Result<Door> {
        let forward = self.listener.towards_server(server).ok_or(std::io::ErrorKind::Unsupported)?;
        let source = self.listener.hop.keep_source.then(|| client.ip());
        let route = self.route.towards(&forward, source);
        Ok(Door { server: Some(server), ..self.with(route) })
    }

    /// The door as a client finds it that has connected to `to`, if the next hop is told of each by a header.
    pub fn serving(self: Arc<Door>, client: SocketAddr, to: SocketAddr) -> Arc<Door> {
        if self.listener.hop.forward_proxy.is_none() {
            return self;
        }
        Arc::new(self.with(self.route.for_client(client, self.server.unwrap_or(to))))
    }

    /// The door as a client finds it who has asked for `name` in its handshake: so is the server, unless the
    /// configuration knows its name.
    pub fn asked_for(self: Arc<Door>, name: Option<&str>) -> Arc<Door> {
        let known = matches!(self.listener.hop.forward_verify, Some(Verify::Name(Some(_))));
        match name {
            Some(name) if self.listener.hop.transparent.is_some() && !known => {
                Arc::new(self.with(self.route.for_name(name)))
            }
            _ => self,
        }
    }

    /// The names of where a mail comes in here, and of where it goes on to.
    pub fn way(&self) -> (String, String) {
        (self.address.to_string(), self.route.forward.to_string())
    }

    /// The server that the client wanted, where the connection was meant for somebody else.
    pub const fn meant_for(&self) -> Option<SocketAddr> {
        self.server
    }

    /// The same door with another way.
    fn with(&self, route: Route) -> Door {
        let (listener, rulings) = (self.listener.clone(), self.rulings.clone());
        let (address, sockets, gate) = (self.address.clone(), self.sockets.clone(), self.gate.clone());
        Door {
            listener,
            rulings,
            address,
            sockets,
            gate,
            route: Arc::new(route),
            cuts: self.cuts.clone(),
            server: self.server,
        }
    }
}

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
    /// SMTP's codes, and what the client is told.
    pub const fn text(self) -> (&'static str, &'static str) {
        match self {
            Refusal::Full => ("421 4.3.2", "Too many sessions, try again later"),
            Refusal::TooMany => ("421 4.7.0", "Too many sessions from your address"),
            Refusal::TooFast => ("421 4.7.0", "Too many sessions from your address in a minute"),
            Refusal::NotWanted => ("554 5.7.1", "Access denied"),
        }
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

    /// Lets in somebody of whom nothing is known yet, or says why not.
    pub fn enter(self: &Arc<Gate>, listener: &Listener) -> Result<Ticket, Refusal> {
        let mut clients = self.clients.lock().expect("no holder panics");
        if clients.open >= listener.guests.connections_max || !self.house.enter() {
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
    /// The session is this client's: counts it, or says why it may not stay.
    pub fn belongs_to(&mut self, listener: &Listener, address: IpAddr, now: Instant) -> Result<(), Refusal> {
        let client = prefix(listener, address);
        let mut clients = self.gate.clients.lock().expect("no holder panics");
        let too_fast = match listener.sessions_in_minute_of(address) {
            Some(most) => clients.came.add(client, now, MINUTE) > most,
            None => false,
        };
        let open = clients.open_by_client.get(&client).copied().unwrap_or(0);
        if listener.sessions_of(address).is_some_and(|most| open >= most) {
            return Err(Refusal::TooMany);
        }
        if too_fast {
            return Err(Refusal::TooFast);
        }
        clients.open_by_client.insert(client, open + 1);
        self.client = Some(client);
        if listener.protocol().announces_sizes() {
            self.stranger = self.gate.strangers.enter(client, || Some(()));
        }
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
        let mut ticket = gate.enter(listener)?;
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
            let mut ticket = gate.enter(&listener).unwrap();
            ticket.belongs_to(&listener, address, now).unwrap();
        }
        let clients = gate.clients.lock().unwrap();
        assert!(clients.open_by_client.is_empty() && clients.came.counts.len() <= CLIENTS_MAX);
    }
}
