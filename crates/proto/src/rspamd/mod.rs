//! Rspamd's protocol (its page "Rspamd protocol"), the server half: HTTP/1.1 with the mail as the body of `POST /checkv2`; with a
//! form as the body of `POST /checkv3`, in which JSON says what is known of the mail; and the older form that Exim speaks
//! (`CHECK RSPAMC/1.3`), which looks like spamd's.
//!
//! [`Server`] takes what a client sends and tells [`ServerEvent`]s; the host scores the mail and answers. There is one request
//! a connection. What is known of the mail comes in header fields ([`Request`]); the answer is JSON, which the host writes, or
//! in the older form lines.
//!
//! Not here: compression with zstd, MessagePack and encryption with HTTPCrypt, which are refused; the other commands of
//! Rspamd's controller (`/stat`); the client half.

mod fuzz;
mod parts;
mod reply;
mod request;
mod server;

pub use fuzz::fuzz_server;
pub use reply::{Answer, Refusal};
pub use request::{Command, Description, Form, Request};
pub use server::{Server, ServerEvent};
