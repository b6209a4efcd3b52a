//! A volume of the store that several machines share, one of which writes at a time.
//!
//! ```text
//!  write_at ─► cache file, and the runs        flush ─► one row: volume, flush, epoch, runs ─► a quorum of the database
//!  read_at ──► cache file                      fold ──► blocks of 1 MiB from the cache, in rows or objects; the rows of flushes go
//! ```
//!
//! The cache is a file with the bytes of the volume. [`Tail`] collects what is written to it and appends it to the database at each flush,
//! in a statement that does nothing once the volume has another epoch: a former owner can write no more. [`Lease`] says until when the
//! owner may be sure that nobody else has taken the volume over. [`Marks`] say which blocks of a cache can be believed when its node takes
//! the volume again. [`Folds`] says in which order objects and rows are written, so that each row has its object.
//! [`step`] decides between a file that each node has and its document in the database.
//!
//! The crate has no socket, file, clock or thread. Hosts implement [`Engine`] and [`Blocks`] over a database, [`Objects`] over a bucket.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod document;
mod fold;
mod lease;
mod marks;
mod object;
mod runs;
mod tail;

pub use document::{Digest, Held, Step, Version, step};
pub use fold::{Blocks, Folds, Objects, Row, TOGETHER};
pub use lease::{Duty, Lease, Renewal, Vigil};
pub use marks::{BLOCK_BYTES, Marks, blocks_of};
pub use object::{Object, Parts};
pub use runs::{Malformed, RUNS_BYTES_MAX, Runs, each};
pub use tail::{Answer, Engine, Lost, Standing, Tail};
