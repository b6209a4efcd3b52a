//! `[dns]` in the configuration.

use std::net::{IpAddr, SocketAddr};

use edge::settings::size;
use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::block_lists::system_resolvers;

/// The longest that a question may take, in milliseconds.
const QUERY_MS_MAX: u64 = 30_000;

/// `[dns]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DnsSettings {
    /// Resolvers; default: those of `/etc/resolv.conf`.
    #[serde(deserialize_with = "addresses")]
    pub servers: Vec<SocketAddr>,
    /// How long one question may take, in milliseconds.
    pub query_ms: u64,
    /// Bytes of the cache of answers.
    #[serde(deserialize_with = "size")]
    pub cache_bytes: usize,
}

impl Default for DnsSettings {
    fn default() -> DnsSettings {
        DnsSettings { servers: Vec::new(), query_ms: 5_000, cache_bytes: 32 << 20 }
    }
}

impl DnsSettings {
    /// Resolvers to ask.
    ///
    /// # Errors
    /// When there is nobody.
    pub fn servers(&self) -> Result<Vec<SocketAddr>, String> {
        let servers = if self.servers.is_empty() { system_resolvers() } else { self.servers.clone() };
        match servers.is_empty() {
            true => Err("dns: no resolver in /etc/resolv.conf: servers = [\"ADDRESS\"]".into()),
            false => Ok(servers),
        }
    }

    /// Whether it can be followed.
    ///
    /// # Errors
    /// When it cannot; the message says why.
    pub fn check(&self) -> Result<(), String> {
        if !(100..=QUERY_MS_MAX).contains(&self.query_ms) {
            return Err(format!("dns: query_ms is from 100 to {QUERY_MS_MAX}"));
        }
        self.servers().map(drop)
    }
}

/// Addresses, with a port or without.
fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    let address = |text: &String| {
        let whole = text.parse().ok();
        let bare = text.trim_matches(['[', ']']).parse().map(|address: IpAddr| SocketAddr::new(address, 53)).ok();
        whole.or(bare).ok_or_else(|| de::Error::custom(format!("{text:?} is not ADDRESS or ADDRESS:PORT")))
    };
    Vec::<String>::deserialize(deserializer)?.iter().map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_a_port_or_the_usual_one() {
        let settings: DnsSettings =
            toml::from_str("servers = ['192.0.2.1', '192.0.2.1:5353', '[2001:db8::1]:5353', '2001:db8::1']").unwrap();
        let shown: Vec<String> = settings.servers().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["192.0.2.1:53", "192.0.2.1:5353", "[2001:db8::1]:5353", "[2001:db8::1]:53"]);
        assert!(toml::from_str::<DnsSettings>("servers = ['ns.example']").is_err());
        let hasty = DnsSettings { query_ms: 99, ..settings };
        assert!(hasty.check().unwrap_err().contains("from 100 to 30000"));
    }
}
