//! `[dnsbl]` in the configuration.

use std::net::SocketAddr;

use ::dnsbl::zone::Spec;
use edge::settings::Network;
use serde::Deserialize;
use serde::de::{self, Deserializer};

/// `[dnsbl]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where queries are answered, by UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// The zones, as rbldnsd is told: `NAME:TYPE:FILE[,FILE]`.
    #[serde(deserialize_with = "specs")]
    pub zones: Vec<Spec>,
    /// How often the files are looked at, in seconds; 0: never, but for SIGHUP.
    pub check_seconds: u64,
    /// How many event loops answer; 0: one a core.
    pub threads: usize,
    /// The largest UDP response.
    pub udp_bytes_max: usize,
    /// Answer to `version.bind`; empty: none.
    pub version: String,
    /// Whether positive answers name the zone's servers.
    pub full_answers: bool,
    /// Whether prefixes are answered.
    pub prefixes: bool,
    /// Whether AAAA of half a /24 is answered with a bitmap.
    pub prefixes_in_aaaa: bool,
    /// Networks that may transfer whole zones, by TCP.
    pub transfer_to: Vec<Network>,
    /// Servers to notify when a zone has changed.
    pub notify: Vec<SocketAddr>,
    /// How many queries a second are answered of a /24 or /48; 0: all.
    pub queries_a_second: u32,
    /// How many equal responses a second a /24 or /48 gets; 0: all.
    pub responses_a_second: u32,
    /// Where the metrics are, by HTTP.
    pub metrics: Option<SocketAddr>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listen: Vec::new(),
            zones: Vec::new(),
            check_seconds: 60,
            threads: 0,
            udp_bytes_max: ::dnsbl::answer::UDP_BYTES_MAX,
            version: String::new(),
            full_answers: true,
            prefixes: true,
            prefixes_in_aaaa: false,
            transfer_to: Vec::new(),
            notify: Vec::new(),
            queries_a_second: 0,
            responses_a_second: 0,
            metrics: None,
        }
    }
}

fn specs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Spec>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
}
