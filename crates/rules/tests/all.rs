//! All tests of the crate in one program, which is linked once.

mod bounds;
mod corpus;
mod peer;
mod views;
