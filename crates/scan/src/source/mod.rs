//! Sources of databases: containers, the kinds of their members, lines. Nothing here knows what a line says.

pub(crate) mod container;
pub(crate) mod error;
pub(crate) mod kind;
pub(crate) mod lines;
