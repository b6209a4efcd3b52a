//! Which of the servers of a table, and whether it is this machine.

use std::net::IpAddr;
use std::sync::Arc;

use tokio_rustls::rustls::ClientConfig;

/// A server of a plan.
#[derive(Clone, Copy)]
pub struct Server<'a> {
    /// Its place among them.
    pub number: usize,
    /// Whom we believe.
    pub tls: Option<&'a Arc<ClientConfig>>,
}

/// Whether a host is this machine.
pub fn is_near(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    address.map_or(host.eq_ignore_ascii_case("localhost"), |address| address.to_canonical().is_loopback())
}
