//! A compiled database over one object while it streams.

pub(crate) mod ends;
pub(crate) mod executable;
pub(crate) mod follow;
pub(crate) mod rule;
pub(crate) mod scan;
