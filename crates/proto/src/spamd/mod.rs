//! spamd's protocol (spamd(8p), the file PROTOCOL of SpamAssassin 4), the server half.
//!
//! [`Server`] takes what a client sends and tells [`ServerEvent`]s; the host scores the mail and answers. There is one request
//! a connection: a line (`CHECK SPAMC/1.5`), header lines, an empty line, and the mail, which ends where `Content-length` says,
//! or with the client's half of the connection. The texts are spamd's own (4.0.1).
//!
//! A mail that is to be learned (`TELL`) is answered by [`Server::told`]. Not here: compression, which the host undoes
//! ([`Request::is_compressed`]); the client half.

mod fuzz;
mod reply;
mod request;
mod server;

pub use fuzz::fuzz_server;
pub use reply::{Answer, Refusal, Verdict};
pub use request::{Places, Request, Verb};
pub use server::{Server, ServerEvent};
