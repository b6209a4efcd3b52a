//! The single-copy mail store: a mail to many recipients is one record, one transaction and one flush.
//!
//! ```text
//!   append ─ write ─ seal ──► Sealed ─┐
//!   transaction ─ deliver, store, … ◄─┘ ─ stage ──► commit: one flush for all staged transactions
//!   state() ──► State: a snapshot of everything, which costs nothing and never changes
//! ```
//!
//! A [`Volume`] is kept on a [`Device`], a flat space of bytes: a file, a block device, memory. It is a log of segments
//! with checkpoints (`docs/engine/store.md` has the format and the effects of crashes). [`paper`] has the calls of the
//! paper that the store began with.
//!
//! The crate knows neither IMAP's commands nor MIME nor rights. It opens nothing, and has no clock, thread or timer:
//! hosts pass the device, the time and an identity.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod append;
mod apply;
mod checkpoint;
mod codec;
mod compact;
mod device;
mod error;
mod fuzz;
mod log;
pub mod map;
pub mod memory;
mod operation;
pub mod paper;
mod read;
mod record;
mod recovery;
mod state;
mod superblock;
mod transaction;
mod volume;

pub use append::{Append, Sealed};
pub use device::{Call, Device, DeviceError};
pub use error::{Damage, Damaged, Error, Refused};
pub use fuzz::fuzz_open;
pub use operation::{Change, Uids};
pub use read::{Content, digest};
pub use record::{HEADER_BYTES, SECTOR_BYTES};
pub use recovery::{Options, Report};
pub use state::{
    ANNOTATED_BYTES_MAX, ANNOTATION_BYTES_MAX, ANNOTATION_NAME_BYTES_MAX, ANNOTATIONS_MAX, Account, Annotations,
    DELIMITER, Entry, Flags, KEYWORD_BYTES_MAX, KEYWORDS_MAX, MESSAGE_BYTES_MAX, Mailbox, Message, NAME_BYTES_MAX,
    NOTE_BYTES_MAX, Quota, SpecialUse, State, VANISHED_MAX, Vanished,
};
pub use superblock::{Geometry, MAGIC};
pub use transaction::{Arrival, TRANSACTION_BYTES_MAX, Transaction};
pub use volume::{Format, Usage, Volume};
