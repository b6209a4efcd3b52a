//! What every door stands on: listeners and who may come in, what one reading of the configuration gives them, what the sessions
//! of an event loop share, and the wire to a client.

pub mod caretaker;
pub mod control;
pub mod cuts;
pub mod door;
pub mod filter;
pub mod login;
pub mod runtime;
pub(crate) mod shared;
