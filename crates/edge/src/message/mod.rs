//! A mail on its way through a door, and what is told of it.

pub mod asking;
pub mod authenticity;
pub mod greylist;
pub mod intrusion;
pub mod journal;
pub mod known;
pub mod memory;
pub mod notice;
pub mod passage;
pub mod pool;
pub mod preferences;
pub mod spam;
pub mod trace;
