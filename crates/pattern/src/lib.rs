//! Many patterns in one pass over a stream, with the state carried across segments and nothing scanned twice.
//!
//! This crate knows nothing of signatures, files or formats. It is given *parts*, sequences of [`Piece`]s, and tells
//! every place where one of them occurs: [`Patterns::scan`] for each segment, [`Patterns::finish`] at the end. What
//! lies between the parts of one signature (open gaps, counts, offsets) is its callers' business.
//!
//! # How
//! In plain words: try every part at every offset. The tricks, and what each buys:
//! * **Aligned sampling** ([`tier`](self)). Of each part one window of `q + s - 1` fixed bytes is registered in all
//!   `s` phases, and only every `s`-th absolute offset of the stream is looked at: whatever the alignment, exactly one
//!   registered q-gram meets a sampled offset. A look costs one word of the filter; where every second offset is looked at, two
//!   grams share six bytes and a word, and a large set does with one tier and two grams a part.
//! * **A blocked Bloom filter** says "no" to nearly all looks in one cache line; **a second one**, of grams with what stands
//!   beside them, to most grams that do occur in ordinary content, in another; **tagged slots** to nearly all of the rest.
//!   Nothing is dropped.
//! * **Rare anchors**: the window is chosen by a model of byte pairs in ordinary content.
//! * **Verification where it lies**: a part is verified from its start, which a short history makes reachable, to the
//!   end of what has arrived; the rest of it is parked and resumed with the next segment.
//!
//! Sets of which something occurs at nearly every offset, as ordinary words do, are [`words`].
//!
//! # Where the tables lie
//! Compiled [`Patterns`] are [`flat`] arrays: owned where they were built, or in a mapped file that processes share.
//!
//! # Order
//! Matches are told in the order in which they become known (the end of the part, or the byte after it where a part
//! looks at what follows), and that order does not depend on how the stream is cut.
//!
//! # Bounds
//! A [`State`] is [`State::BYTES_AT_REST`] bytes plus at most [`PENDING_MAX`] parked verifications, and each byte of the
//! stream pays for a few units of work. What goes beyond either is counted by [`State::lost`], never dropped silently:
//! some match may then be missed.
#![deny(unsafe_code)]

mod alphabet;
mod anchor;
mod bucket;
mod budget;
mod builder;
mod code;
mod entry;
pub mod expression;
mod few;
mod filter;
pub mod flat;
mod found;
mod fuzz;
mod limit;
mod naive;
mod patterns;
mod piece;
mod program;
mod rarity;
mod run;
mod shape;
mod shapes;
mod state;
mod stored;
mod sweep;
mod tier;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
mod verify;
mod wider;
pub mod words;

pub use anchor::Spread;
pub use builder::{Builder, Refusal};
pub use found::{Found, Match};
pub use fuzz::{fuzz_pattern, fuzz_sweep};
pub use naive::find_all;
pub use patterns::Patterns;
pub use piece::{ByteSet, Edge, PartId, Piece};
pub use state::{PENDING_MAX, State};
pub use stored::BadState;
pub use sweep::Path;
