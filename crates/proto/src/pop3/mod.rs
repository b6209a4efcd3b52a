//! POP3 (RFC 1939, 2449, 5034), both halves of somebody who stands between.
//!
//! [`Server`] hears a client, [`Client`] hears a server; [`Command`] goes from one to the other. A command is read
//! whole, understood, and written anew, so what is not known never passes; a reply is framed by what was asked. Content
//! crosses as plain lines: the dots are undone on one side and put in again on the other, so nothing that a server
//! sends can be more than the reply that was asked for.
//!
//! Extensions: CAPA, TOP, UIDL, SASL, STLS (RFC 2595; the handshake is the host's), PIPELINING, RESP-CODES, UTF8 and
//! LANG (RFC 6856). Unknown commands are refused: the shape of their replies is not known.

mod capability;
mod client;
mod command;
mod fuzz;
mod listing;
mod server;
pub mod states;

pub use capability::offers;
pub use client::{Client, ClientEvent};
pub use command::{Command, Shape, Verb};
pub use fuzz::{fuzz_client, fuzz_server};
pub use listing::{answer_to_client, listed_to_client};
pub use server::{Config, Server, ServerEvent};
