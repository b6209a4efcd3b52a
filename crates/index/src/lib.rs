//! An inverted index of texts, in which any substring is found: terms, the segments that hold them, and what a search is of them.
//!
//! ```text
//!  text ── Cutter ──► terms ── Builder ──► segment ─┐
//!  text ── Query ───► parts ───────────────────────┼─ Segment::search ──► documents
//!                            segments ── Merger ───┘
//! ```
//!
//! A term is a run of letters and digits in lower case. What is searched for is cut in the same way, and looked for among the terms
//! rather than in the texts: there are few of them, and each stands there once. So a search reads the terms of a segment, a few
//! megabytes for a hundred thousand mails, and the lists of those in which it was found; no table of trigrams is needed to find
//! substrings. Only of scripts without blanks between words (Chinese, Thai) each three characters in a row are a term.
//!
//! A search finds each document that holds the text, and if [`Query::is_exact`], no other. Where it is not, there are several
//! words, and whoever asks has to look whether they stand beside each other.
//!
//! Knows no mail and no store: documents are numbers, a segment is bytes that a [`Source`] reads. Damage is an error, and no panic.
//! Bounds: a block of terms in each segment under way, and the documents of each, eight bytes a document.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod build;
mod codec;
mod merge;
mod query;
mod segment;
mod terms;

pub use build::Builder;
pub use merge::Merger;
pub use query::{PARTS_MAX, Query};
pub use segment::{Bits, Document, Field, Segment, Source, Wrong};
pub use terms::{Cutter, TERM_CHARACTERS_MAX, lowered};

/// Reads arbitrary bytes as a segment, searches it and merges it with another one: for fuzzing.
pub fn fuzz_segment(data: &[u8]) {
    let query = Query::new("a b");
    if let Ok(mut segment) = Segment::open(data)
        && let Ok(found) = segment.search(&Field::ALL, &query)
    {
        assert!(found.iter().all(|at| at < segment.documents().len()));
    }
    let mut builder = Builder::default();
    builder.begin(Document { number: 7, is_partial: false });
    builder.add(Field::Body, "a");
    let other = builder.finish().concat();
    let sources = alloc::vec![Segment::open(data), Segment::open(&other[..])];
    let sources: alloc::vec::Vec<_> = sources.into_iter().flatten().collect();
    let mut merger = Merger::new(sources, |_| true);
    while let Ok(Some(_)) = merger.next_block() {}
}
