//! Learning from mails: SpamAssassin's tokens, the probability of spam, and expiry.
//!
//! A [`Collector`] cuts a mail into words; [`Tokens`] are the keys under which they are stored. A [`Corpus`] has the
//! number of learned mails, [`Counts`] the number of those with a word, and [`probability`] combines both. [`Standing`]
//! is the reputation of a sender. [`Snapshot`] reads and writes the format of `sa-learn --backup`, and [`expire`]
//! selects old words.
//!
//! The crate knows neither MIME nor HTML, and stores nothing: callers pass texts and counts. Bounds: [`KEYS_MAX`] words
//! of a mail, and the numbers of words that SpamAssassin takes from each part of it.
//!
//! Where SpamAssassin 4 counts in an unusual way, this crate does the same, so that learned words are interchangeable.
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
