//! SMTP (RFC 5321) and LMTP (RFC 2033), both halves.
//!
//! [`Server`] speaks with a client, [`Client`] with a next hop. Between them stand typed values: [`MailFrom`],
//! [`RcptTo`], [`Reply`], [`Extensions`]. Content crosses as plain lines: the server half removes the dots of DATA and
//! makes every line end CRLF, the client half puts dots in again. Nothing of a client's framing reaches the next hop,
//! which is what SMTP smuggling needs.
//!
//! Extensions: PIPELINING (RFC 2920), SIZE (1870), 8BITMIME (6152), SMTPUTF8 (6531), CHUNKING (3030, without
//! BINARYMIME), ENHANCEDSTATUSCODES (2034), DSN (3461), STARTTLS (3207; the handshake is the
//! host's), AUTH (4954; whom to believe is the next hop's), XFORWARD and XCLIENT (Postfix).

mod attributes;
mod auth;
mod client;
mod command;
mod dot;
mod envelope;
mod extensions;
mod fuzz;
mod path;
mod reply;
mod server;
pub mod states;

pub use attributes::{address, attribute};
pub use auth::{AUTH_LINE_BYTES_MAX, Mechanisms, Secret};
pub use client::{Asked, Client, ClientEvent};
pub use dot::{DotWriter, LineReader};
pub use envelope::{Body, Hold, MailFrom, RcptTo, Return, Unsupported};
pub use extensions::{Extensions, FutureRelease};
pub use fuzz::{fuzz_client, fuzz_server};
pub use path::{NotAPath, Path};
pub use reply::{Enhanced, Reply};
pub use server::{Config, Faults, Server, ServerEvent};

/// SMTP or LMTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RFC 5321.
    #[default]
    Smtp,
    /// RFC 2033: `LHLO`, and a reply for each recipient after the content.
    Lmtp,
}
