//! Protocol halves without I/O: one module a protocol, client and server side by side.
//!
//! A half is a value. The host hands it the bytes that came and the time, in milliseconds of any clock that only goes
//! forward, and sends what it finds in the half's outbox. A half opens no socket, looks at no clock and never waits.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod clamd;
pub mod dns;
pub mod http;
pub mod icap;
pub mod imap;
mod line;
pub mod managesieve;
pub mod messages;
pub mod milter;
pub mod pop3;
pub mod proxy;
pub mod rspamd;
mod sasl;
pub mod smtp;
pub mod spamd;
pub mod tls;
pub mod websocket;

/// Base64, which several of them are written in.
pub use text::base64;

/// Hosts in URLs, which addresses are written as in several ways.
pub use text::host;
