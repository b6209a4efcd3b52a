//! Mail authentication without I/O: SPF (RFC 7208), DKIM (RFC 6376, 8301, 8463), DMARC (RFC 9989), ARC (RFC 8617), and
//! their results (RFC 8601).
//!
//! [`Check`] is the whole of it: a client, an envelope and the bytes of a mail go in, with any cut; questions for the
//! DNS come out ([`flow::Ask`]) and their answers go in, in any order; [`Results`] come out. [`spf`], [`dkim`],
//! [`dmarc`] and [`arc`] are its parts, each usable alone. [`report`] writes `Authentication-Results` and reads
//! incoming ones.
//!
//! Each part is a function of the answers so far ([`Inquiry`]): it returns its result, or asks further questions and is
//! called again. So no part has a state between two answers, the order of answers does not matter, and equal questions
//! of two parts are asked once.
//!
//! The crate opens no socket and reads no clock: the host looks names up and passes the time, in seconds since 1970.
//! Bounds are fields of [`Limits`] and constants of the parts; `docs/engine/authentication.md` has a table of them.
#![forbid(unsafe_code)]

pub mod arc;
pub mod author;
pub mod body;
mod check;
pub mod dkim;
pub mod dmarc;
pub mod domain;
mod fuzz;
pub mod header;
pub mod inquiry;
pub mod key;
pub mod message;
pub mod report;
mod results;
pub mod spf;
mod tags;

pub use check::{Check, Context, Limits};
pub use fuzz::{fuzz_key, fuzz_mail, fuzz_report, fuzz_spf};
pub use inquiry::{Inquiry, Pending};
pub use results::Results;
