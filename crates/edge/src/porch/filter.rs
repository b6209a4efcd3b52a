//! Who says which requests may be made: lists of sites and the like, which the program brings.

use std::net::IpAddr;

use proto::http::Fields;

/// What is known of a request before it goes anywhere. All text is the client's claim.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts<'a> {
    /// Where the client is.
    pub client: IpAddr,
    /// The method; `CONNECT` for a tunnel.
    pub method: &'a str,
    /// The host in lower case, without the port and without brackets.
    pub host: &'a str,
    /// The port.
    pub port: u16,
    /// Path and query; empty for a tunnel.
    pub path: &'a [u8],
    /// The header fields.
    pub fields: &'a Fields,
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It goes on.
    Allow,
    /// A page stands in the place of the response.
    Block {
        /// A sentence for the client.
        reason: Box<str>,
        /// The category of the list, for the log.
        category: Box<str>,
    },
}

/// Decides about requests. It waits for nothing.
pub trait Filter: Send + Sync {
    /// Whether a request may be made.
    fn request(&self, facts: &RequestFacts<'_>) -> Decision;
}

/// Lets all requests pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Filter for AllowAll {
    fn request(&self, _: &RequestFacts<'_>) -> Decision {
        Decision::Allow
    }
}
