//! A compiled database over one object while it streams.

pub(crate) mod addresses;
pub(crate) mod condition;
pub(crate) mod ends;
pub(crate) mod executable;
pub(crate) mod follow;
pub(crate) mod links;
pub(crate) mod magic;
pub(crate) mod program;
pub(crate) mod roll;
pub(crate) mod rule;
pub(crate) mod scan;
pub(crate) mod strings;
pub(crate) mod views;
