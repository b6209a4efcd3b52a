//! A flow as it is known before its content.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Sender, receiver and transport of an object. All text is a claim of the peer, but for what the door has seen itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// The protocol of the door.
    pub protocol: Protocol,
    /// Address of the client, if there is a client.
    pub client: Option<IpAddr>,
    /// The client's name in its greeting.
    pub hello: Box<str>,
    /// Whether it came over TLS.
    pub encrypted: bool,
    /// Whether the client has logged in, and as whom, where that is known.
    pub login: Option<Box<str>>,
    /// The envelope's sender; empty for the null sender, and where there is no envelope.
    pub sender: Box<str>,
    /// The envelope's recipients that were accepted.
    pub recipients: Vec<Box<str>>,
}

/// The protocol of a door.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// Nothing: a file is read.
    #[default]
    File,
    /// RFC 5321.
    Smtp,
    /// RFC 2033.
    Lmtp,
    /// RFC 1939.
    Pop3,
    /// RFC 9051 and 3501.
    Imap,
    /// Sendmail's and Postfix's mail filter protocol.
    Milter,
    /// That of ClamAV's daemon.
    Clamd,
    /// That of SpamAssassin's daemon.
    Spamd,
    /// That of Rspamd.
    Rspamd,
    /// RFC 3507.
    Icap,
    /// RFC 9112.
    Http,
}
