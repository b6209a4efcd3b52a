//! Rules at work: a configuration compiled to an [`Engine`], and mails checked with it.
//!
//! An engine is immutable and shared by threads; each thread has a [`Scratch`] of its own, which keeps the memory of its
//! searches. [`Engine::check`] takes a mail's views and says which rules hit ([`Outcome`]).
//!
//! Bounds are those of [`RunLimits`]: a rule whose searches cost too much is told ([`Outcome::exhausted`]), counts as not
//! hit, and all others still run.

mod autolearn;
mod check;
mod compile;
mod conditions;
mod engine;
mod fuzz;
mod hit;
mod learned;
mod markup;
mod pass;
mod profile;
mod reading;
mod report;
mod searcher;
mod shortcircuit;
mod waiting;
mod words;

pub use super::search::RunLimits;
pub use check::{Beside, Outcome};
pub use compile::{Expressions, Syntax};
pub use engine::{Engine, EngineOptions};
pub use fuzz::fuzz_check;
pub use hit::{Hit, Shortcircuited};
pub use learned::Metadata;
pub use profile::{Profile, Spent, Work};
pub use report::Report;
pub use searcher::Scratch;
