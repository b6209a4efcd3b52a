//! The tests of the crate, in one program.

mod database;
mod document;
mod lease;
mod objects;
mod volume;
