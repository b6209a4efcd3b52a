//! clamd's protocol (clamd(8), section COMMANDS), the server half.
//!
//! [`Server`] takes what a client sends and tells [`ServerEvent`]s; the host scans, and answers by [`Server::answer`]
//! and [`Server::done`]. The texts of the replies are clamd's own (1.4), byte for byte: clients look for them.
//!
//! A command comes bare (`PING`, one a connection), or behind `n` and ended by a line feed, or behind `z` and ended by
//! a NUL; what answers it ends alike. `IDSESSION` opens a session of many commands, whose answers carry their numbers
//! and come in any order.
//!
//! Not here: STREAM, SESSION and RAWSCAN, which clamd has dropped; the client half.

mod command;
mod fuzz;
mod reply;
mod server;

pub use command::{Request, Scan, commands};
pub use fuzz::fuzz_server;
pub use reply::{Reply, Tag};
pub use server::{Config, Server, ServerEvent};
