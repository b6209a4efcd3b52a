//! Scanning for whoever asks in clamd's protocol: the door's settings and counts, the threads that scan, and which paths they may
//! open.

pub mod door;
mod paths;
pub(crate) mod stats;
pub(crate) mod threads;
