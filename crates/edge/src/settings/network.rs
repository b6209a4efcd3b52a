//! A network: an address and how many of its bits count.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{self, Deserializer};

/// `192.0.2.0/24`, `2001:db8::/32`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether its addresses are those of IPv4.
    pub const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Its address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits of it count.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// The same network, written in the one way that has no bits beyond those that count.
    pub fn trimmed(self) -> Network {
        Network::around(self.address, self.bits)
    }

    /// The network of so many bits around an address, its other bits 0.
    pub fn around(address: IpAddr, bits: u8) -> Network {
        let address = match address {
            IpAddr::V4(address) => {
                let rest = u32::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
                IpAddr::V4((u32::from(address) & !rest).into())
            }
            IpAddr::V6(address) => {
                let rest = u128::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
                IpAddr::V6((u128::from(address) & !rest).into())
            }
        };
        Network { address, bits }
    }

    /// Whether an address lies in it. An IPv4 address that is written as one of IPv6 counts as what it is.
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differ = u32::from(network) ^ u32::from(address);
                differ.checked_shr(32 - u32::from(self.bits)).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differ = u128::from(network) ^ u128::from(address);
                differ.checked_shr(128 - u32::from(self.bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || format!("{text:?} is not a network: ADDRESS or ADDRESS/BITS");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most { Err(wrong()) } else { Ok(Network { address, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Network, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Peers that may name another client: a network, or all that may open our UNIX socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trusted {
    /// Clients of a UNIX socket: `unix`.
    Socket,
    /// Clients with these addresses.
    Network(Network),
}

impl Trusted {
    /// Whether the entry matches a client; a client without an address is on a UNIX socket.
    pub fn means(&self, client: Option<IpAddr>) -> bool {
        match (self, client) {
            (Trusted::Socket, None) => true,
            (Trusted::Network(network), Some(address)) => network.holds(address),
            _ => false,
        }
    }
}

impl<'de> Deserialize<'de> for Trusted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Trusted, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "unix" {
            return Ok(Trusted::Socket);
        }
        text.parse().map(Trusted::Network).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().holds(address.parse().unwrap())
    }

    #[test]
    fn addresses_lie_in_their_networks() {
        assert!(holds("192.0.2.0/24", "192.0.2.255") && !holds("192.0.2.0/24", "192.0.3.0"));
        assert!(holds("192.0.2.1", "192.0.2.1") && !holds("192.0.2.1", "192.0.2.2"));
        assert!(holds("0.0.0.0/0", "203.0.113.9") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("2001:db8::/32", "2001:db8:1::1") && !holds("2001:db8::/32", "2001:db9::"));
        assert!(holds("::/0", "2001:db8::1") && holds("10.0.0.0/8", "::ffff:10.1.2.3"));
    }

    #[test]
    fn a_client_of_a_unix_socket_is_no_client_of_the_loopback_interface() {
        let (socket, local) = (Trusted::Socket, Trusted::Network("127.0.0.0/8".parse().unwrap()));
        assert!(socket.means(None) && !socket.means(Some([127, 0, 0, 1].into())));
        assert!(local.means(Some([127, 0, 0, 1].into())) && !local.means(None));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for wrong in ["", "192.0.2", "192.0.2.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
