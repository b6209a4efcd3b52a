//! Admission to a listener: clients, sessions at a time, rate and duration.

use std::net::IpAddr;

use serde::Deserialize;

use super::network::{Network, Trusted};

/// Clients that may connect, and their bounds.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct Guests {
    /// Sessions at a time, on this listener.
    pub connections_max: u32,
    /// Networks that may connect; empty: all.
    pub clients: Vec<Network>,
    /// Sessions at a time from one client. Without it: what is common with the protocol, for strangers.
    pub connections_per_client_max: Option<u32>,
    /// New sessions from one client within a minute; 0 means any. Without it: as above.
    pub connections_per_minute_max: Option<u32>,
    /// The bits of an IPv4 address that make a client.
    pub client_ipv4_bits: u8,
    /// The bits of an IPv6 address that make a client.
    pub client_ipv6_bits: u8,
    /// Seconds after which a session is ended, whatever it does. Without it: what is common with the protocol.
    pub session_seconds_max: Option<u64>,
    /// Relays that begin each connection with a header of the PROXY protocol.
    pub proxy_from: Vec<Trusted>,
}

impl Default for Guests {
    fn default() -> Guests {
        Guests {
            connections_max: 10_000,
            clients: Vec::new(),
            connections_per_client_max: None,
            connections_per_minute_max: None,
            client_ipv4_bits: 32,
            client_ipv6_bits: 64,
            session_seconds_max: None,
            proxy_from: Vec::new(),
        }
    }
}

impl Guests {
    /// Whether a client is in the access list.
    pub fn knows(&self, client: IpAddr) -> bool {
        self.clients.iter().any(|network| network.holds(client))
    }

    /// Whether a client may come; one without an address is on a UNIX socket, whose permissions say that.
    pub fn lets_in(&self, client: Option<IpAddr>) -> bool {
        self.clients.is_empty() || client.is_none_or(|client| self.knows(client))
    }

    /// How many bits of such an address make a client.
    pub fn bits_of(&self, client: IpAddr) -> u8 {
        if client.is_ipv4() { self.client_ipv4_bits } else { self.client_ipv6_bits }
    }

    /// Whether the numbers can be.
    ///
    /// # Errors
    /// When they cannot; the message says why.
    pub fn check(&self) -> Result<(), String> {
        if self.client_ipv4_bits > 32 || self.client_ipv6_bits > 128 {
            return Err("an address has fewer bits than client_ipv4_bits or client_ipv6_bits".into());
        }
        Ok(())
    }
}
