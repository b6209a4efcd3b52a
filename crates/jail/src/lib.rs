//! Where inspections run: in turns, with memory that is counted and time that is measured.
//!
//! [`Local`] is the [`flow::Inspector`] of this process. This crate opens no socket and no file.

mod clock;
mod local;
mod memory;

pub use local::Local;
pub use memory::{Counting, Memory};

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: Counting = Counting;
