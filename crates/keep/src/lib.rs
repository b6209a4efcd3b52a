//! A mail server on the [`store`] without I/O: what each of its doors does, whoever has the sockets, the clock and the disk.
//!
//! ```text
//!   webmail ─► webmail::Mail ─► Keep ─┬─ a thread that owns the volume (crate mailbox)
//!   SMTP ────► deliver ──────────────┘  the volume itself (the image without an operating system)
//!   IMAP, JMAP, pages ─► view, find, sort, thread, fetch, list ─► Messages and a snapshot
//! ```
//!
//! [`Messages`] opens stored messages; [`Keep`] is these with snapshots, commits, a clock and randomness. Changes are functions over a
//! transaction ([`name`], [`acl`], [`metadata`]). Nothing here waits or writes a protocol: a host calls where its thread may, in slices
//! of time, and reads long content piece by piece.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod acl;
pub mod content;
mod conversation;
pub mod digest;
pub mod fetch;
pub mod find;
pub mod header;
pub mod list;
pub mod metadata;
pub mod name;
pub mod search;
pub mod sort;
pub mod thread;
mod user;
pub mod view;
pub mod volume;
pub mod webmail;

use alloc::vec::Vec;

use store::{Device, Error, Sealed, State, Transaction};

pub use content::Messages;
pub use user::{MAILBOXES, ensure, furnish, provide, standing};

/// A store, as a host has it, with its clock and its randomness.
pub trait Keep: Messages {
    /// The device of its volume.
    type Device: Device;

    /// A snapshot of all that is committed.
    fn state(&self) -> State;

    /// Reads a message from `offset`; 0 at its end.
    ///
    /// # Errors
    /// When it is damaged, or no mailbox has it any more.
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
