//! JMAP without I/O (RFC 8620, RFC 8621): from a request and the mail store of one account to a response.
//!
//! ```text
//!  body ─ json ─► answer ─┬─ references  arguments taken from earlier replies
//!                         ├─ mailbox thread email identity submission quota   one file for each type
//!                         └─► reply, in the order of the calls
//! ```
//! A state is the fingerprint of an account ([`Index::state`]). The host keeps the snapshots whose states clients have heard
//! ([`Tables`]); `changes` compares one of them with the account as it is now. A state without a snapshot is answered with
//! `cannotCalculateChanges`.
//!
//! It knows no socket, no clock and no password. Bounds: [`limits`].
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod arguments;
mod blob;
mod changes;
mod data;
mod date;
mod email;
mod engine;
mod error;
mod fuzz;
mod header;
mod host;
pub mod identity;
mod index;
mod json;
pub mod limits;
mod mailbox;
mod outcome;
mod part;
mod patch;
mod quota;
mod references;
mod script;
mod session;
mod source;
mod submission;
mod tables;
mod thread;
mod vacation;
mod websocket;

pub use answer::answer;
pub use blob::blob;
pub use error::Problem;
pub use fuzz::fuzz_request;
pub use host::{
    Account, Failure, Field, Filing, Host, Layout, Misfiled, Place, Script, Sending, Sieve, Vacation, Work,
};
pub use index::Index;
pub use session::{account_id, changed, details, session, uploaded};
pub use source::Blob;
pub use tables::Tables;
pub use websocket::{Message, responded};

/// Values of JSON, as each file of this crate uses them.
pub(crate) use serde_json::{Map, Value, json};
