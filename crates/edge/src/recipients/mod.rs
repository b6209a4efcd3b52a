//! Recipients: decided at RCPT, before a hop or an inspection is leased.
//!
//! ```text
//!  RCPT ── desk ── Directory ── Group: its domains ─┬─ files, aliases     in memory
//!                                                   ├─ maildir, passwd    what the system says
//!                                                   ├─ lookups            databases and directories, which the host asks
//!                                                   ├─ call-ahead         the next hop, what it said is remembered
//!                                                   └─ nobody knows it    550 5.1.1
//! ```
//! A table that cannot be asked makes nobody unknown: the answer is 451 then. Nothing here is inspected or delivered, and
//! aliases are not followed: who has one is a recipient, and the next hop expands it.

pub mod address;
pub mod answer;
pub mod call_ahead;
pub mod directory;
pub mod entry;
pub mod folders;
pub mod keys;
pub mod list;
pub mod memory;
pub mod table;
pub mod users;
