//! Mail authentication without I/O: SPF (RFC 7208), DKIM (RFC 6376, 8301, 8463), ARC (RFC 8617).
//!
//! [`spf`], [`dkim`] and [`arc`] are its parts, each usable alone; [`message`] takes a mail as it streams, with any cut.
//!
//! Each part is a function of what has been answered so far ([`Inquiry`]): it comes to its result, or says which further
//! questions it has, and is asked again. So no part has a state of its own between two answers, the order of answers does not
//! matter, and two parts that want the same are asked once.
//!
//! Nothing here opens a socket or looks at a clock: the host looks names up and hands in the time, in seconds since 1970.
//! Bounds are fields of [`inquiry::Limits`] and constants of the parts.
#![forbid(unsafe_code)]

pub mod arc;
pub mod body;
pub mod dkim;
pub mod domain;
pub mod header;
pub mod inquiry;
pub mod key;
pub mod message;
pub mod spf;
mod tags;

pub use inquiry::{Inquiry, Pending};
