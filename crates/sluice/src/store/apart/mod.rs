//! The store in a process of its own: `sluice: keep`, which has the volume, the guarded writer, passwords and the sessions that parse
//! stored mail. The edge has the TLS keys, the sockets of all other doors and the inspections.
//!
//! ```text
//!  edge                                                     keep
//!   sockets of the store's doors, listening  ──────────►     takes clients, who speak with it and nobody between
//!   handshake, then relays  ◄── a client's socket ────────   Request::Secure: goes on on a pair of sockets
//!   inspects, learns        ◄── a pair of sockets ────────   Request::Inspect, Request::Learn
//!   a mail of SMTP, held back and inspected ── a pair ──►    a session of SMTP or LMTP
//! ```
//!
//! The edge has the supervisor start the process, and another one when it ends: clients who come meanwhile wait in the queue of the
//! sockets, which the edge keeps, and mails of its doors in a queue of their own. Both read the same configuration; where the one is
//! another than that of the edge, because it was changed and not read anew, a new edge is asked for.

mod edge;
mod frames;
mod inspecting;
mod inspector;
pub mod lines;
mod relay;

pub use self::edge::Apart;
pub use self::inspecting::Distant;

use sha2::{Digest as _, Sha256};

use crate::config::{Config, Isolation};
use crate::process::supervise::lead::lead;

/// Whether the store of a configuration has a process of its own: where inspections have, and a supervisor starts it.
pub fn is_meant(config: &Config) -> bool {
    config.store.is_some() && config.isolation != Isolation::None && lead().is_some()
}

/// Bytes that are the same for processes that have read the same settings of the store.
pub fn fingerprint(config: &Config) -> String {
    let settings = format!("{:?} {:?} {:?}", config.store, config.cluster, config.lookups);
    text::hex::encode(&Sha256::digest(settings))
}
