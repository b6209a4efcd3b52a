//! A conversation as intrusion rules see it, and the alerts of those rules.

use alloc::boxed::Box;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A conversation around the object that is fed. All text is a claim of its peers.
///
/// An address that is not known is unspecified, and a port 0: rules for any address and port match it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// The client.
    pub client: Option<SocketAddr>,
    /// The server.
    pub server: Option<SocketAddr>,
    /// The server's name in the TLS that was opened.
    pub server_name: Option<Box<str>>,
    /// The head of the request, where there is one.
    pub request: Option<Head>,
    /// The head of the response, where it is the response that is fed.
    pub response: Option<Head>,
}

/// The head of a message of HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The first line, without its end.
    pub line: Box<[u8]>,
    /// The fields as lines that end in CRLF.
    pub fields: Box<[u8]>,
}

/// A rule that has matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// The place of the rule in its set.
    pub rule: u32,
    /// Whether the bytes went to the client.
    pub is_to_client: bool,
}
