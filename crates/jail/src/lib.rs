//! Where inspections run: in turns, with memory that is counted and time that is measured; in this process, or in others that
//! may do nothing else.
//!
//! ```text
//!   door ── Inspector ──┬─ Local: this process
//!                       └─ Jails ══ rings in shared memory ══► jail: run()
//! ```
//!
//! [`Local`] is the [`flow::Inspector`] of this process. [`Jails`] are processes of this program, each with one thread, that have
//! given up everything but memory and bells; they share the compiled signatures. This crate opens no socket to anybody
//! else and no file by a path. A [`Tap`] has packets of an interface for a process that is confined alike.

mod account;
mod administration;
mod bells;
mod calls;
mod cell;
mod clock;
mod company;
mod confine;
mod handle;
mod host;
pub mod instructions;
mod launch;
mod link;
mod local;
mod map;
mod memory;
mod patience;
mod protocol;
mod ring;
mod scoring;
mod start;
mod statm;
mod suspects;
mod tap;
mod template;
mod thrift;

pub use administration::give_up_administration;
pub use bells::{Bell, Bells};
pub use confine::{Confined, Landlocked, confine, confine_tap};
pub use host::{Jails, Process, Settings};
pub use launch::{Children, Launch, Launched};
pub use link::Counts;
pub use local::Local;
pub use map::map;
pub use memory::{Counting, Memory, balance};
pub use protocol::Ready;
pub use start::{probe, run};
pub use suspects::Suspects;
pub use tap::{Passed, Tap};
pub use template::Signatures;
pub use thrift::Thrift;

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: Counting = Counting;
