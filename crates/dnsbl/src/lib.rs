//! Block lists over DNS (DNSBL, RFC 5782), without I/O: the service of `rbldnsd` and more, and a client.
//!
//! [`zone`] reads rbldnsd's data files and looks up listings. [`answer`] turns a query into a response: the classic
//! ones (A and TXT of an address or name), and prefix answers, in which one response covers all neighbours ([`prefix`],
//! `docs/engine/pbl-draft.md`).
//!
//! The crate opens no file or socket, and reads no clock: the host passes bytes and the time, in seconds since 1970.
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
