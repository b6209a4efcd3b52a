//! File types by content, decompressors and archive readers, all of them [`Stage`](::stream::Stage)s that read forward.
//!
//! [`recognise`] says what a stream is from its first [`HEAD_BYTES`]; [`open`] gives the stages that read it, by one table.
//!
//! The modules stand in rooms by their kind: `frame` and `bits` are what all others stand on, `codec` has decoders and
//! `stream` the files made with one; `archive`, `disk`, `document` and `program` have readers, `recognise` what searches.
//!
//! This crate knows nothing of mail, transfer codings or signatures. It does not count depth, ratio or objects: the
//! driver does. What it promises is bounded memory (fields of [`Limits`](::stream::Limits), named in each module) and honest fuel.
#![forbid(unsafe_code)]

mod archive;
mod bits;
mod codec;
mod disk;
mod document;
pub mod formats;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod open;
mod program;
mod recognise;
mod stream;

pub use frame::password::Passwords;
pub use open::{Claim, Due, Opener, ROWS, Row, When, open, reader};
pub use recognise::head::{HEAD_BYTES, HEAD_BYTES_MAX, head_bytes, recognise, recognise_second};
pub use stream::coded::undo;
