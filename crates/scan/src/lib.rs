//! ClamAV signature databases, matched on a stream.
//!
//! [`Builder`] reads text databases and compiles them to a [`Database`]; a [`Scan`] is a stage that reads one object and
//! tells each signature that matches. This crate does no I/O and knows nothing of mails, archives or file recognition:
//! it is told what kind of file it reads.
//!
//! # What is read
//! Every kind of ClamAV database, single or in a container. Hashes of objects, sections and imports, bodies, logical
//! signatures, metadata of archives and rules of YARA are looked for; the rest is refused one by one, with the reason in
//! the [`Census`]. What stands in which class, with which bound, and where clamscan says something else, is on the page
//! `docs/engine/signatures.md`.
//!
//! # How
//! [`Builder`] ← containers ([`Container`]) ← lines of a kind → names, hash tables, and a table of patterns for each
//! target type. A [`Scan`] feeds the bytes to the digests and the patterns; matches of parts are followed to bodies, from
//! there to logical signatures, and from there to findings. An executable's head is read first, since places depend on it.
//! HTML and text are read in [views], each by a [`Scan`] of its own.
//!
//! A [`Database`] can be stored to a file that processes map ([`Database::store`], [`Database::load`]), and a small one can
//! lie over a large one ([`Database::with_overlay`]).
#![forbid(unsafe_code)]

mod allowance;
mod census;
mod compile;
mod digests;
mod fuzz;
mod hashes;
mod jobs;
mod layout;
mod links;
mod normal;
mod packed;
mod run;
mod signed;
mod source;
mod syntax;
mod table;
mod target;
mod yara;

pub use allowance::Allowance;
pub use census::{Bound, Census, Entry, Refused};
pub use compile::builder::{Builder, Unwanted};
pub use compile::builtin::BUILTIN;
pub use compile::load::Loaded;
pub use fuzz::{fuzz_compiled, fuzz_container, fuzz_database, fuzz_links, fuzz_normaliser, fuzz_program, fuzz_scan};
pub use jobs::Job;
pub use layout::fuzz_layout;
pub use normal::{Normaliser, View};
pub use pattern::flat::{Aligned, Owner, Unfit};
pub use run::links::Links;
pub use run::roll::Roll;
pub use run::scan::Scan;
pub use run::views::views;
pub use signed::detached::{Authorities, fuzz_detached};
pub use source::container::{
    Container, ContainerKind, Verified, container_built, container_version, fuzz_cdiff, members, patched,
};
pub use source::error::Error;
pub use source::kind::is_database;
pub use source::lines::{Line, each_line};
pub use syntax::line::FUNCTIONALITY_LEVEL;
#[cfg(feature = "pictures")]
pub use syntax::picture::fuzz_picture;
pub use table::database::Database;
