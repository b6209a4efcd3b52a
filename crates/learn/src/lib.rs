//! Learning from mails: SpamAssassin's words, how likely a mail is spam by them, and how words are forgotten.
//!
//! A mail is taken apart into words by a [`Collector`]; [`Tokens`] are the keys under which they are kept. A [`Corpus`] says how
//! many mails were learned, [`Counts`] in how many of them a word was, and [`probability`] what both say of a mail.
//! [`Standing`] is what senders are known for. [`Snapshot`] reads and writes what `sa-learn --backup` writes, and [`expire`] says which words are old.
//!
//! This crate knows nothing of MIME and of HTML, and keeps nothing: who calls hands in texts and counts. Bounds: [`KEYS_MAX`]
//! words of a mail, and the numbers of words that SpamAssassin takes from each part of it.
//!
//! Where SpamAssassin 4 counts in its own way, that way counts, so that what it has learned holds here and the other way round.
#![forbid(unsafe_code)]

pub mod backup;
pub mod expire;
mod expression;
mod field;
mod line;
mod probability;
mod room;
mod searches;
pub mod sketch;
pub mod standing;
mod tokens;

pub use backup::Snapshot;
pub use field::Mailbox;
pub use probability::{Corpus, Counts, Opinion, opinion, probability};
pub use room::Room;
pub use sketch::{Sketch, Sketcher};
pub use standing::Standing;
pub use tokens::{Collector, KEYS_MAX, Key, Sources, Terms, Tokens};
