//! The door that speaks clamd's protocol.

pub mod accept;
pub mod door;
mod paths;
mod scanner;
mod session;
mod stats;
mod wire;
