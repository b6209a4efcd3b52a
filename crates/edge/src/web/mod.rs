//! Doors of the web: a proxy for HTTP, and ICAP, by which another proxy asks about what it passes on.

mod adapt;
mod ahead;
mod download;
mod exchange;
mod handshake;
mod head;
pub(crate) mod http;
mod http2;
pub(crate) mod icap;
mod language;
mod login;
mod named;
mod object;
mod opened;
mod pac;
mod page;
mod received;
mod refused;
mod relay;
mod session;
mod side_by_side;
mod socket;
mod subject;
mod tunnel;
mod upload;
mod vet;
mod watch;
