//! Block lists over DNS (DNSBL, RFC 5782), without I/O: what `rbldnsd` serves and more, and the client that asks.
//!
//! [`zone`] reads rbldnsd's data files and finds what is listed. [`answer`] makes a response of a query: the classic ones
//! (A and TXT of an address or name), and prefix answers, in which one response speaks for all the neighbours
//! ([`prefix`], `docs/engine/pbl-draft.md`).
//!
//! Nothing here opens a file or a socket, or looks at a clock: the host feeds bytes and hands in the time, in seconds since
//! 1970.
#![forbid(unsafe_code)]

pub mod answer;
pub mod client;
pub mod delta;
pub mod feed;
mod fuzz;
pub mod limit;
pub mod prefix;
pub mod reputation;
mod special;
pub mod transfer;
pub mod zone;

pub use fuzz::fuzz_files;
