//! From lines to tables.

pub(crate) mod builder;
pub(crate) mod builtin;
pub(crate) mod load;
