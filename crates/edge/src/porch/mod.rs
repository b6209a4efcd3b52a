//! Common parts of all doors: listeners and their gates, the state that one reading of the configuration makes, state
//! shared by the sessions of an event loop, and the wire to a client.

pub mod caretaker;
pub mod control;
pub mod cuts;
pub mod door;
pub mod filter;
pub mod gate;
pub(crate) mod listeners;
pub mod login;
pub mod pages;
pub mod runtime;
pub(crate) mod shared;
