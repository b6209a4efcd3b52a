//! What a site keeps in databases and directories: PostgreSQL, MySQL and MariaDB, SQLite, LDAP.
//!
//! A [`Table`] is a query with `%s` (the key), `%u` (its local part) and `%d` (its domain), as in Postfix's `pgsql_table(5)`,
//! `mysql_table(5)` and `ldap_table(5)`. Of a key nothing becomes text of a query: in SQL each place is a parameter
//! (`statement.rs`), in a filter what could mean something is escaped (RFC 4515, RFC 4514).
//!
//! ```text
//!  find ── remembered? ── rows
//!           │ no
//!           └─ queue ── up to `connections_max` connections, on one thread ── rows, none, or an Error
//! ```
//! Whoever asks has an answer in `seconds_max`. **That a server is away is an [`Error`], never an empty answer.** Not here: what
//! rows mean. The crate knows nothing of mail.
//!
//! Bounds: [`WAITING_MAX`] questions that wait, [`ROWS_MAX`] rows of an answer, [`VALUE_BYTES_MAX`] bytes of a value,
//! `entries_max` answers of each kind that are remembered, [`KEY_BYTES_MAX`] bytes of a key. What is asked for while it is asked
//! already waits for the same answer (`pending.rs`).
#![forbid(unsafe_code)]

mod connection;
mod ldap;
mod memory;
#[cfg_attr(not(feature = "mysql"), path = "mysql/absent.rs")]
mod mysql;
mod pattern;
mod pending;
mod postgresql;
mod row;
mod server;
mod settings;
mod sqlite;
mod statement;
mod table;
pub mod tls;

pub use pattern::{KEY_BYTES_MAX, Key};
pub use row::{Error, ROWS_MAX, Row, VALUE_BYTES_MAX};
pub use settings::{Scope, Settings};
pub use table::{Counts, Table, WAITING_MAX};
