//! The tests of this crate, in one program.

mod corpus;
mod search;
