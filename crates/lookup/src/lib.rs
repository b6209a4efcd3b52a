//! Look-ups in databases and directories: PostgreSQL, MySQL and MariaDB, SQLite, LDAP.
//!
//! A [`Table`] is a query with `%s` (the key), `%u` (its local part) and `%d` (its domain), as in Postfix's
//! `pgsql_table(5)`, `mysql_table(5)` and `ldap_table(5)`. Keys never become text of a query: in SQL each placeholder
//! is a parameter (`statement.rs`), in a filter special characters are escaped (RFC 4515, RFC 4514).
//!
//! ```text
//!  find ── cached? ── rows
//!            │ no
//!            └─ queue ── up to `connections_max` connections, on one thread ── rows, none, or an Error
//! ```
//! Each question is answered within `seconds_max`. **An unreachable server is an [`Error`], never an empty answer.**
//! The meaning of rows is left to callers: the crate knows nothing of mail.
//!
//! Bounds: [`WAITING_MAX`] waiting questions, [`ROWS_MAX`] rows of an answer, [`VALUE_BYTES_MAX`] bytes of a value,
//! `entries_max` cached answers of each kind, [`KEY_BYTES_MAX`] bytes of a key. Simultaneous questions about one key
//! share an answer (`pending.rs`).
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
