//! Doors of the web: ICAP, by which a proxy asks about what it passes on.

pub mod icap;
mod object;
mod page;
