//! A listener: its settings, its sockets, and its way to the next hop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;

use crate::net::listening::{Owner, Sockets};
use crate::net::stream::Stream;
use crate::net::wire::Wire;
use crate::porch::cuts::Cuts;
use crate::porch::gate::{Gate, House};
use crate::settings::{Address, Listener, ListenerTls, Rulings, Tls, Transparent, Verify};
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
