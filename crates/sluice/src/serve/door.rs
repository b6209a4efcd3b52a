//! A listener: its settings, its sockets, and who may come in.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::hop::Route;
use super::listening::{Owner, Sockets};
use crate::config::{Address, Forward, Listener, Tls, Transparent, Verify};

/// A listener with its settings. After a reload there is a new one for the same sockets.
pub struct Door {
    /// The settings.
    pub listener: Listener,
    /// Where it listens: the address of the settings, with the port that the system chose where that one is 0.
    pub address: Address,
    /// A socket for each event loop.
    pub sockets: Arc<Sockets>,
    /// Who is in.
    pub gate: Arc<Gate>,
    /// The way to the next hop.
    pub route: Route,
}

impl Door {
    /// Opens the sockets.
    ///
    /// # Errors
    /// When the address cannot be had, or the next hop cannot be spoken to as it should; the message says which.
    pub fn open(listener: Listener, tls: &Tls, threads: usize) -> Result<Door, String> {
        let transparent = listener.transparent == Some(Transparent::Tproxy);
        let owner = Owner { mode: listener.socket_mode, group: listener.socket_group.as_deref() };
        let sockets = Arc::new(Sockets::open(&listener.address, &owner, threads, transparent)?);
        let route = Route::new(&listener, tls)?;
        Ok(Door { address: sockets.address.clone(), route, listener, sockets, gate: Arc::default() })
    }

    /// The same sockets with other settings.
    ///
    /// # Errors
    /// When the next hop cannot be spoken to as it should, or the sockets are of another kind.
    pub fn with_settings(&self, listener: Listener, tls: &Tls) -> Result<Door, String> {
        if listener.transparent != self.listener.transparent {
            return Err(format!("listener {}: transparent is changed by a restart only", self.address));
        }
        let route = Route::new(&listener, tls)?.or_known(&self.route);
        Ok(self.with(listener, route))
    }

    /// The door as a client finds it who wanted to go to `server`.
    ///
    /// # Errors
    /// When what is spoken here is spoken with no server.
    pub fn towards(&self, server: SocketAddr, client: SocketAddr) -> std::io::Result<Door> {
        let forward = self.listener.towards_server(server).ok_or(std::io::ErrorKind::Unsupported)?;
        let source = self.listener.keep_source.then(|| client.ip());
        let route = self.route.towards(&forward, source);
        let listener = Listener { forward, ..self.listener.clone() };
        Ok(self.with(listener, route))
    }

    /// The door as a client finds it that has connected to `to`, if the next hop is told of each by a header.
    pub fn serving(self: Arc<Door>, client: SocketAddr, to: SocketAddr) -> Arc<Door> {
        if self.listener.forward_proxy.is_none() {
            return self;
        }
        let server = match &self.listener.forward {
            Forward::Server { address, .. } if self.listener.transparent.is_some() => address.parse().ok(),
            _ => None,
        };
        Arc::new(self.with(self.listener.clone(), self.route.for_client(client, server.unwrap_or(to))))
    }

    /// The door as a client finds it who has asked for `name` in its handshake: so is the server, unless the
    /// configuration knows its name.
    pub fn asked_for(self: Arc<Door>, name: Option<&str>) -> Arc<Door> {
        let known = matches!(self.listener.forward_verify, Some(Verify::Name(Some(_))));
        match name {
            Some(name) if self.listener.transparent.is_some() && !known => {
                Arc::new(self.with(self.listener.clone(), self.route.for_name(name)))
            }
            _ => self,
        }
    }

    fn with(&self, listener: Listener, route: Route) -> Door {
        let (address, sockets) = (self.address.clone(), self.sockets.clone());
        Door { listener, address, sockets, gate: self.gate.clone(), route }
    }
}

/// Counts sessions, in all and by address.
#[derive(Debug, Default)]
pub struct Gate {
    clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    open: u32,
    by_address: HashMap<IpAddr, Client>,
}

#[derive(Debug)]
struct Client {
    open: u32,
    minute: Instant,
    in_minute: u32,
}

/// Why a session is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The listener is full.
    Full,
    /// This address has its share.
    TooMany,
    /// This address comes too often.
    TooFast,
}

/// A session that was let in; dropping it makes room for another.
#[derive(Debug)]
pub struct Ticket {
    gate: Arc<Gate>,
    address: IpAddr,
}

/// Addresses remembered for their rate when they have no session open.
const IDLE_CLIENTS_MAX: usize = 10_000;

impl Gate {
    /// Lets a session in, or says why not.
    pub fn enter(self: &Arc<Gate>, listener: &Listener, address: IpAddr, now: Instant) -> Result<Ticket, Refusal> {
        let mut clients = self.clients.lock().expect("no holder panics");
        if clients.open >= listener.connections_max {
            return Err(Refusal::Full);
        }
        if clients.by_address.len() > IDLE_CLIENTS_MAX {
            clients.by_address.retain(|_, client| client.open > 0);
        }
        let client = clients.by_address.entry(address).or_insert(Client { open: 0, minute: now, in_minute: 0 });
        if now.duration_since(client.minute) >= Duration::from_secs(60) {
            (client.minute, client.in_minute) = (now, 0);
        }
        client.in_minute = client.in_minute.saturating_add(1);
        if client.open >= listener.connections_per_client_max {
            return Err(Refusal::TooMany);
        }
        if listener.connections_per_minute_max > 0 && client.in_minute > listener.connections_per_minute_max {
            return Err(Refusal::TooFast);
        }
        client.open += 1;
        clients.open += 1;
        Ok(Ticket { gate: self.clone(), address })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut clients = self.gate.clients.lock().expect("no holder panics");
        clients.open -= 1;
        if let Some(client) = clients.by_address.get_mut(&self.address) {
            client.open -= 1;
            if client.open == 0 && client.minute.elapsed() >= Duration::from_secs(60) {
                clients.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn listener(settings: &str) -> Listener {
        let text = format!("[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:1'\nforward='discard:'\n{settings}");
        Config::parse(&text, "test").unwrap().listeners.remove(0)
    }

    #[test]
    fn a_full_listener_lets_in_again_after_one_left() {
        let (gate, listener) = (Arc::new(Gate::default()), listener("connections_max = 1"));
        let (one, two) = ([127, 0, 0, 1].into(), [127, 0, 0, 2].into());
        let ticket = gate.enter(&listener, one, Instant::now()).unwrap();
        assert_eq!(gate.enter(&listener, two, Instant::now()).unwrap_err(), Refusal::Full);
        drop(ticket);
        assert!(gate.enter(&listener, two, Instant::now()).is_ok());
    }

    #[test]
    fn one_address_has_its_share_and_its_rate() {
        let (gate, address, now) = (Arc::new(Gate::default()), [127, 0, 0, 1].into(), Instant::now());
        let listener = listener("connections_per_client_max = 1\nconnections_per_minute_max = 2");
        let ticket = gate.enter(&listener, address, now).unwrap();
        assert_eq!(gate.enter(&listener, address, now).unwrap_err(), Refusal::TooMany);
        drop(ticket);
        assert_eq!(gate.enter(&listener, address, now).unwrap_err(), Refusal::TooFast);
        assert!(gate.enter(&listener, address, now + Duration::from_secs(61)).is_ok());
    }
}
