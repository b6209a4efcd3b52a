//! The tests of the store, in one program.

mod corpus;
mod crash;
mod lifecycle;
mod model;
mod reuse;
