//! HTTP/1.1 (RFC 9110, RFC 9112) without I/O: messages, their framing, and the server and client halves of a connection.
//!
//! [`Server`] and [`Client`] take what a peer sends and emit one event a step. A message never passes through raw: a half
//! parses it into a [`Request`] or a [`Response`], and the other half writes it again in one canonical form, so that what
//! this parser read is what the next parser reads. Where two parsers could disagree on where a message ends, the message is
//! refused: bare line ends, a length beside chunks, two lengths, folded fields. Each [`Refusal`] has a name, a status for the client and
//! a sentence for the log.
//!
//! Bounded by [`Limits`]: heads, fields, targets, lines of chunks and trailers. Bodies have no bound; they are not kept.
//!
//! Not here: content codings, caching, cookies, HTTP/2 (the host's), and who may ask for what.
#![deny(clippy::arithmetic_side_effects)]

mod basic;
pub(crate) mod body;
pub(crate) mod chunks;
mod client;
mod field;
mod fuzz;
mod grammar;
pub(crate) mod head;
mod limits;
mod part;
mod refusal;
mod request;
mod response;
mod server;
mod status;
mod writer;

pub use basic::basic_credentials;
pub use body::Framing;
pub use client::{Client, ClientEvent};
pub use field::Fields;
pub use fuzz::{fuzz_client, fuzz_server};
pub use limits::Limits;
pub use part::Part;
pub use refusal::Refusal;
pub use request::{Request, Target};
pub use response::Response;
pub use server::{Server, ServerEvent};
pub use status::Status;

/// The version of a message. Later minor versions of HTTP/1 are 1.1 here (RFC 9110, section 2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

impl Version {
    /// Parses `HTTP/1.x`.
    fn parse(text: &[u8]) -> Result<Version, Refusal> {
        match text {
            b"HTTP/1.0" => Ok(Version::Http10),
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor] if minor.is_ascii_digit() => Ok(Version::Http11),
            [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
                Err(Refusal::Version)
            }
            _ => Err(Refusal::StartLine),
        }
    }
}
