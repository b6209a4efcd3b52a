//! ICAP/1.0 (RFC 3507) without I/O: the server half, for proxies that ask about what they pass on, and the client half, for services that
//! are asked.
//!
//! A proxy sends the heads of an HTTP request, or of a response and its request, and the body in chunks; [`Server`] emits one
//! event a step. The answer is one of three: nothing to change (204, where the client allows it), the message as it came
//! (200, with its own head and body), or another one in its place, a page that says why. An answer may begin before the
//! body is whole.
//!
//! ```text
//!  OPTIONS                    ► 200, the service's properties
//!  REQMOD, RESPMOD  heads     ► body ► end                     ► answer
//!                             ► preview ► end                  ► answer         all of it was in the preview (`ieof`)
//!                                       ► end of the preview   ► answer, or 100 Continue ► body ► end ► answer
//! ```
//!
//! Heads are checked as those of HTTP are, line by line, and keep their bytes: what is passed on as it came is what was
//! checked. Bounded by HTTP's [`Limits`](crate::http::Limits), for the ICAP head and for each encapsulated one.
//!
//! A client that holds the whole body back takes 206 with its own body, too. The client half does not ask for that.
//!
//! Not here: TLS (the host's), the lists of file names by which a service wants previews, trailers of ICAP's own.
#![deny(clippy::arithmetic_side_effects)]

mod client;
mod encapsulated;
mod fault;
mod fuzz;
mod method;
mod question;
mod refusal;
mod request;
mod server;
mod writer;

pub use client::{Answer, Client, ClientEvent, Message};
pub use fault::Fault;
pub use fuzz::{fuzz_client, fuzz_server};
pub use method::Method;
pub use question::{Offer, Question};
pub use refusal::Refusal;
pub use request::{Head, Request};
pub use server::{Server, ServerEvent};
pub use writer::Service;
