//! Where a door is: TCP, or a UNIX socket with its permissions.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{self, Deserializer};

/// Where clients find a door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A UNIX socket.
    Unix(PathBuf),
}

impl Address {
    /// That of TCP, if it is one.
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    /// Whether two listeners cannot both have it: the system chooses where the port is 0.
    pub fn is_taken_by(&self, other: &Address) -> bool {
        self == other && self.tcp().is_none_or(|address| address.port() != 0)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(Address::Unix(path.into())),
            Some(_) => Err(format!("{text:?}: the path of a socket has to be absolute")),
            None => {
                let tcp = text.parse().map(Address::Tcp);
                tcp.map_err(|_| format!("{text:?} is not an address: IP:PORT or unix:/PATH"))
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Permission bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketMode(pub u32);

impl Default for SocketMode {
    fn default() -> SocketMode {
        SocketMode(0o660)
    }
}

impl FromStr for SocketMode {
    type Err = String;

    fn from_str(text: &str) -> Result<SocketMode, String> {
        let mode = u32::from_str_radix(text, 8).ok().filter(|&mode| mode <= 0o777);
        mode.map(SocketMode).ok_or_else(|| format!("{text:?} are not octal permissions, such as \"660\""))
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for SocketMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SocketMode, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for text in ["127.0.0.1:3310", "[::1]:3310", "unix:/run/clamd.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }
}
