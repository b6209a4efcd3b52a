//! Inverted index of texts that finds any substring: terms, the segments that hold them, and searches.
//!
//! ```text
//!  text ── Cutter ──► terms ── Builder ──► segment ─┐
//!  text ── Query ───► parts ───────────────────────┼─ Segment::search ──► documents
//!                             segments ── Merger ───┘
//! ```
//!
//! A term is a run of letters and digits in lower case. A query is cut in the same way, and its parts are searched for
//! in the terms, not in the texts: terms are few, and each is stored once. So a search reads the terms of a segment, a
//! few megabytes for a hundred thousand mails, and the lists of the matching ones; substrings need no table of
//! trigrams. Only in scripts without blanks between words (Chinese, Thai) every three characters in a row are a term.
//!
//! A search finds each document with the text and, if [`Query::is_exact`], no other. Otherwise the query has several
//! words, and the caller has to check that they are adjacent.
//!
//! The crate knows no mail and no store: documents are numbers, a segment is bytes that a [`Source`] reads. Damage is
//! an error, never a panic. Bounds: a block of terms for each open segment, and eight bytes for each of its documents.
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
