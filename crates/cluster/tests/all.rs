//! The tests of the crate, in one program.

mod database;
mod lease;
mod objects;
mod volume;
