//! A client of a session, and where it goes.

use std::net::SocketAddr;
use std::sync::Arc;

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
}
