//! Sieve, the language of mail filters (RFC 5228), without I/O.
//!
//! ```text
//!   script ─► compile ─► Program ─┐
//!   mail ───► Mail (a View) ──────┴─► run ─► actions: keep, fileinto, redirect, discard, reject, vacation
//! ```
//!
//! [`compile`] checks a script with all that it includes, and reports the place of an error. [`run`] runs it over a
//! mail and returns actions, which the host executes. Extensions are those of [`EXTENSIONS`].
//!
//! A script comes from a user, a mail from a stranger: depth, lengths and counts are bounded, and a run burns fuel.
//! After any error in a run the mail is kept. This crate opens no file, reads no clock and sends nothing.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

extern crate alloc;

pub mod address;
mod compile;
pub mod date;
mod error;
mod expression;
mod fuzz;
mod lexer;
pub mod mail;
mod program;
mod run;
mod syntax;

pub use compile::{
    EXTENSIONS, INCLUDE_DEPTH_MAX, INCLUDED_MAX, Location, MATCH_VARIABLES_MAX, SCRIPT_BYTES_MAX, Scripts,
    VARIABLES_MAX, compile,
};
pub use error::{Error, Place};
pub use expression::{COMPILED_BYTES_MAX, EXPRESSION_BYTES_MAX};
pub use fuzz::fuzz_sieve;
pub use mail::{Field, Mail, Part, View};
pub use program::Program;
pub use run::{Action, Failure, Host, Limits, Outcome, Seen, Setting, Vacation, run};
pub use syntax::{DEPTH_MAX, LIST_MAX};
