//! A mail server on the [`store`] without I/O: what each of its doors does, whoever has the sockets, the clock and the disk.
//!
//! ```text
//!   webmail ─► webmail::Mail ─► Keep ─┬─ a thread that owns the volume (crate mailbox)
//!   SMTP ────► deliver ──────────────┘  the volume itself (the image without an operating system)
//! ```
//!
//! [`Keep`] is a store, a clock and randomness. Nothing here waits: a host calls where its thread may.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod acl;
mod conversation;
pub mod digest;
pub mod name;
pub mod search;
mod user;
pub mod volume;
pub mod webmail;

use alloc::vec::Vec;

use store::{Device, Error, Sealed, State, Transaction};

pub use user::{MAILBOXES, ensure};

/// A store, as a host has it, with its clock and its randomness.
pub trait Keep {
    /// The device of its volume.
    type Device: Device;

    /// A snapshot of all that is committed.
    fn state(&self) -> State;

    /// The digest of a message, as it was stored with it; empty if nothing was.
    ///
    /// # Errors
    /// When it is damaged, or no mailbox has the message any more.
    fn digest(&self, message: u64) -> Result<Vec<u8>, Error>;

    /// Reads a message from `offset`; 0 at its end.
    ///
    /// # Errors
    /// As [`Keep::digest`].
    fn read(&mut self, message: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Error>;

    /// Commits a transaction: durable when it returns.
    ///
    /// # Errors
    /// When `work` fails, or the volume does.
    fn transact<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_, Self::Device>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error>;

    /// The same with a new message, which `work` puts into mailboxes.
    ///
    /// # Errors
    /// As [`Keep::transact`].
    fn deliver<T: Send + 'static>(
        &mut self,
        content: Vec<u8>,
        digest: Vec<u8>,
        work: impl FnOnce(&mut Transaction<'_, Self::Device>, &Sealed) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error>;

    /// Seconds since 1970.
    fn now(&self) -> i64;

    /// Random bytes.
    fn random(&mut self) -> [u8; 16];
}
