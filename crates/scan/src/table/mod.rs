//! Content of a compiled database, its storage, and the fate of each signature.

pub(crate) mod content;
pub(crate) mod database;
pub(crate) mod magic;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod passwords;
pub(crate) mod rules;
pub(crate) mod sections;
pub(crate) mod stored;
