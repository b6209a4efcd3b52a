//! Doors of the web: a proxy for HTTP, and ICAP, by which another proxy asks about what it passes on.

mod download;
mod exchange;
mod head;
pub(crate) mod http;
pub(crate) mod icap;
mod object;
mod page;
mod session;
mod subject;
mod tunnel;
mod upload;
mod vet;
