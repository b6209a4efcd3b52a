//! A cluster: several machines that share one store, of which one has it at a time.
//!
//! ```text
//!  clients ─► any node ── not the owner: handing ──► the owner ─ doors ─ writer ─ cache file ─┬─ reads
//!                                                                                             └─ link ─► PostgreSQL: tail, blocks
//!  other nodes: member waits, cache follows ◄──────────────── objects: blocks, if there is a bucket ◄── fold ─┘
//! ```
//!
//! What the nodes have learned is in the same database ([`ledger`]).
//!
//! The protocol is that of the crate `cluster`, without sockets and clocks; here is what it runs on. A node that is killed or cut off is
//! followed by another after the lease. What was acknowledged is in PostgreSQL, on a quorum of its servers.

mod cache;
pub mod command;
pub mod documents;
mod fold;
pub mod handing;
pub mod ledger;
mod link;
mod member;
mod objects;
mod postgres;
mod random;
pub mod standby;

pub use member::{Leave, Member, Owned, Tenure};
