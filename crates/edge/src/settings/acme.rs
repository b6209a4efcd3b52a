//! `[tls.acme]`, and the key `acme` of `[[tls.certificate]]`: certificates that are got by ACME (RFC 8555).

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

/// `[tls.acme]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Acme {
    /// The directory of the authority's server.
    pub directory: String,
    /// Whether its terms of service are agreed to; nothing is asked of it otherwise.
    pub accept_terms: bool,
    /// A mail address for the authority's messages. None: it knows of none.
    pub contact: Option<String>,
    /// Where the account's key and the certificates are kept.
    pub folder: PathBuf,
    /// Where the authority's questions are answered, while there are any: it asks at port 80.
    pub http: SocketAddr,
}

impl Default for Acme {
    fn default() -> Acme {
        Acme {
            directory: "https://acme-v02.api.letsencrypt.org/directory".into(),
            accept_terms: false,
            contact: None,
            folder: "/var/lib/sluice/acme".into(),
            http: SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), 80),
        }
    }
}
