//! IMAP (RFC 3501 and 9051), both halves of somebody who stands between.
//!
//! [`Server`] hears a client, [`Client`] hears a server. A command is read whole, checked, and written anew under a tag of
//! our own; one is in flight at a time. Responses are framed strictly and told piece by piece: of a FETCH each item by its
//! name, so that content is known as such wherever it stands and however it is written (literal, quoted, NIL). Messages
//! are not kept: neither what is fetched nor what is appended.
//!
//! Extensions pass as [`offers_to_client`] lists them; commands, FETCH items and untagged responses that are not known do
//! not. STARTTLS and SASL exchanges are the host's to carry out.

pub mod acl;
mod append;
pub mod appended;
mod capability;
mod client;
mod command;
mod event;
mod fetch;
mod fuzz;
pub mod items;
pub mod metadata;
pub mod name;
pub mod notify;
pub mod operation;
pub mod pattern;
mod request;
pub mod response;
mod run;
pub mod search;
mod section;
mod server;
pub mod states;
pub mod syntax;
mod texts;
pub mod url;

pub use capability::{Terms, offers, offers_to_client};
pub use client::Client;
pub use command::{Command, Piece, Verb, user_in_response};
pub use event::{ClientEvent, Fact, Kind, Message, Status};
pub use fetch::Fetch;
pub use fuzz::{fuzz_client, fuzz_operation, fuzz_server};
pub use section::{Item, Part, Section};
pub use server::{Config, Server, ServerEvent};
pub use text::date;
pub use texts::Texts;
