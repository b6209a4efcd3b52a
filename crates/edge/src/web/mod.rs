//! Doors of the web: a proxy for HTTP, and ICAP, by which another proxy asks about what it passes on.

pub(crate) mod cuts;
mod destination;
mod download;
mod exchange;
pub mod filter;
mod head;
pub(crate) mod http;
pub(crate) mod icap;
mod object;
pub(crate) mod origin;
mod page;
mod session;
mod subject;
mod tunnel;
mod upload;
mod vet;
