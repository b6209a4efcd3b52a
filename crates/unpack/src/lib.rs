//! File types by content, decompressors and archive readers, all of them [`Stage`](::stream::Stage)s that read forward.
//!
//! [`recognise`] finds the type of a stream by its first [`HEAD_BYTES`]; [`open`] returns the stages that read it, by
//! one table. The modules are grouped by kind: `frame` and `bits` are the base of all others, `codec` has decoders and
//! `stream` the files made with one; `archive`, `disk`, `document` and `program` have readers, `recognise` the
//! searches.
//!
//! This crate knows nothing of mail, transfer codings or signatures. The driver counts depth, ratio and objects. The
//! crate guarantees bounded memory (fields of [`Limits`](::stream::Limits), named in each module) and honest fuel.
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

pub use archive::mbox::divider as mail_divider;
pub use frame::doubt::{Doubt, is_accusation};
pub use frame::password::Passwords;
pub use open::{Claim, Due, Opener, ROWS, Row, When, is_page, open, reader};
pub use recognise::head::{HEAD_BYTES, HEAD_BYTES_MAX, head_bytes, recognise, recognise_second};
pub use stream::coded::undo;
