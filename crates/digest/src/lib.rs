//! Digests: MD5, SHA-1 and SHA-256, of one stream and of many side by side.
//!
//! The crate knows nothing of signatures, mails or files. Several streams side by side cost little more than one
//! ([`md5`], [`sha1`], [`sha256`]; [`lanes`] explains it). A [`Batch`] collects the bytes of streams until enough of
//! them wait. It is a plain value of the event loop's owner: no thread, no lock, no clock.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

mod batch;
mod driver;
mod fuzz;
mod instructions;
pub mod lanes;
pub mod md5;
mod roots;
pub mod sha1;
pub mod sha256;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
mod waiting;

pub use batch::{Batch, Sums, Ticket, Wanted};
pub use fuzz::fuzz_batch;
pub use instructions::Instructions;
