//! The door that speaks clamd's protocol.

pub mod accept;
mod session;
mod wire;
