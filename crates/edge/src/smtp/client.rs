//! A client of a session, and where it goes.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::net::stream::Cipher;
use crate::porch::door::Door;
use crate::settings::SmtpListener;
use crate::upstream::smtp_hop::Leases;

/// Who sends.
pub struct Client {
    /// The door that it has come by.
    pub door: Arc<Door>,
    /// What is set for SMTP there.
    pub settings: Arc<SmtpListener>,
    /// Where it is.
    pub address: SocketAddr,
    /// What it calls itself.
    pub hello: String,
    /// It has said so by `EHLO`.
    pub extended: bool,
    /// What its stream is encrypted by; none in the clear.
    pub cipher: Option<Cipher>,
    /// Connections to the next hop that wait for their next transaction.
    pub leases: Leases,
}
