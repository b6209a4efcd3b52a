//! A volume of the store that several machines share, one of which writes at a time.
//!
//! ```text
//!  write_at ─► cache file, and the runs        flush ─► one row: volume, flush, epoch, runs ─► a quorum of the database
//!  read_at ──► cache file                      fold ──► blocks of 1 MiB from the cache; the rows below them go
//! ```
//!
//! The cache is a file with the bytes of the volume. [`Tail`] collects what is written to it and appends it to the database at each flush,
//! in a statement that does nothing once the volume has another epoch: a former owner can write no more. [`Lease`] says until when the
//! owner may be sure that nobody else has taken the volume over. [`Marks`] say which blocks of a cache can be believed when its node takes
//! the volume again.
//!
//! The crate has no socket, file, clock or thread. Hosts implement [`Engine`] over a database.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod lease;
mod marks;
mod runs;
mod tail;

pub use lease::{Duty, Lease, Renewal, Vigil};
pub use marks::{BLOCK_BYTES, Marks, blocks_of};
pub use runs::{Malformed, RUNS_BYTES_MAX, Runs, each};
pub use tail::{Answer, Engine, Lost, Standing, Tail};
