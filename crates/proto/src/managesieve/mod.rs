//! ManageSieve (RFC 5804): the half of a server that keeps scripts of users.
//!
//! [`Server`] hears a client and tells [`Command`]s; what becomes of scripts is the host's. Strings may be quoted or literals
//! (`{5+}`), and are the same. Not here: STARTTLS is not offered, URLs and owners of scripts are not told.

mod command;
mod fuzz;
mod server;

pub use command::Command;
pub use fuzz::fuzz_server;
pub use server::{Answer, Config, Server, ServerEvent, string};
