//! A client of a session, and where it goes.

use std::net::SocketAddr;
use std::sync::Arc;

use proto::smtp;

use crate::net::listening::network_address;
use crate::net::stream::Cipher;
use crate::porch::door::Door;
use crate::settings::SmtpListener;
use crate::upstream::smtp_hop::Leases;

/// Client of a session.
pub struct Client {
    /// The door that it has come by.
    pub door: Arc<Door>,
    /// SMTP settings of the listener.
    pub settings: Arc<SmtpListener>,
    /// Where it is.
    pub address: SocketAddr,
    /// Name in its HELO or EHLO.
    pub hello: String,
    /// It has said so by `EHLO`.
    pub extended: bool,
    /// Encryption of its stream; none in the clear.
    pub cipher: Option<Cipher>,
    /// Connections to the next hop that wait for their next transaction.
    pub leases: Leases,
    /// Name that it has logged in with last.
    pub(super) login: Box<str>,
}

impl Client {
    /// The name of the account that it has logged in to; empty where the exchange did not show it.
    pub fn account(&self) -> Option<&str> {
        self.leases.logged_in.then_some(&*self.login)
    }

    /// Whether its mail is relayed to any recipient: it is named in `relay_clients`, and so is the client that it speaks for, if it names
    /// one. A login counts for itself.
    pub fn is_inside(&self, xforward: &[(String, String)]) -> bool {
        !self.leases.logged_in
            && self.settings.relays_for(network_address(self.address))
            && smtp::address(xforward).is_none_or(|client| self.settings.relays_for(Some(client)))
    }
}

/// A client that has come.
pub struct Came {
    /// By which door.
    pub door: Arc<Door>,
    /// SMTP settings of the listener.
    pub settings: Arc<SmtpListener>,
    /// From where.
    pub client: SocketAddr,
}
