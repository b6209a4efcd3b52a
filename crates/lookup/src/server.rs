//! One server of a table, and whether it is this machine.

use std::net::IpAddr;
use std::sync::Arc;

use tokio_rustls::rustls::ClientConfig;

/// Server of a plan.
#[derive(Clone, Copy)]
pub struct Server<'a> {
    /// Its index in the settings.
    pub number: usize,
    /// Certificate authorities to trust.
    pub tls: Option<&'a Arc<ClientConfig>>,
}

/// Returns whether a host is this machine.
pub fn is_near(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    address.map_or(host.eq_ignore_ascii_case("localhost"), |address| address.to_canonical().is_loopback())
}
