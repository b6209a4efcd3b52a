//! ClamAV signature databases, matched on a stream.
//!
//! [`Builder`] reads text databases and compiles them to a [`Database`]; a [`Scan`] is a stage that reads one object and
//! tells each signature that matches. This crate does no I/O and knows nothing of mails, archives or file recognition:
//! it is told what kind of file it reads.
//!
//! # What is read
//! | extension | what | when it is told |
//! |---|---|---|
//! | hdb hsb (hdu hsu) | MD5, SHA-1 and SHA-256 of whole objects | at the end |
//! | ndb sdb db (ndu) | hexadecimal bodies with wildcards and places | mid-stream; before-the-end places at the end |
//! | ldb (ldu) | logical signatures over bodies | mid-stream; with `=`, `<` or FileSize at the end |
//! | fp sfp | allow lists | [`Scan::allowed`] after the end |
//! | ign ign2 | names to ignore | |
//!
//! # Known differences from clamscan
//! * Targets 3 and 7 (HTML and text) are matched by ClamAV on normalised views; here on the raw bytes and on the raw
//!   bytes in lower case.
//! * PCRE, byte-compare, macro and image-hash subsignatures, version-information places, icon groups,
//!   `EntryPoint`, `NumberOfSections`, `Intermediates` and `HandlerType` are not supported: such signatures are refused
//!   one by one, with the reason in the [`Census`].
//! * Where ClamAV keeps the last eight ends of a part before a bounded gap, 64 runs of ends are kept here.
#![forbid(unsafe_code)]

mod body;
mod builder;
mod builtin;
mod census;
mod class;
mod compare;
mod container;
mod database;
mod ends;
mod executable;
mod expression;
mod follow;
mod fuzz;
mod hashes;
mod imports;
mod kind;
mod layout;
mod lines;
mod load;
mod location;
mod logical;
mod paired_md5;
mod pcre;
mod rule;
mod scan;
mod sections;
mod signature;
mod style;
mod table;
mod target;

pub use builder::{Builder, Error, Loaded, Unwanted};
pub use builtin::BUILTIN;
pub use census::{Bound, Census, Refused};
pub use container::{Container, ContainerKind, Verified, container_version};
pub use database::Database;
pub use fuzz::{fuzz_container, fuzz_database, fuzz_scan};
pub use kind::is_database;
pub use layout::fuzz_layout;
pub use lines::{Line, each_line};
pub use scan::Scan;
pub use signature::FUNCTIONALITY_LEVEL;
