//! Intrusion rules of Suricata 5 to 8 and of Snort 2.9 and 3, read as they stand and run over what hosts reassemble.
//!
//! A [`Loader`] reads files of rules, classes and thresholds to a [`RuleSet`]. Rules that no proxy can match load and are counted
//! ([`Census`]); each that does not load is a [`Problem`] with file, line and keyword. A [`Flow`] tries the rules on the buffers
//! of its [`Transaction`]s and on its streams, and has a [`Verdict`].
//!
//! Nothing here opens a file, asks the network or knows the time.

mod action;
mod address;
mod body;
mod buffer;
pub mod capture;
mod changes;
mod condition;
mod depend;
mod digests;
mod evaluate;
mod events;
mod flow;
mod fuzz;
mod group;
mod handshake;
mod head;
mod keywords;
mod lexer;
mod limits;
mod options;
mod order;
mod rate;
mod register;
mod rule;
mod set;
mod sets;
mod spelling;
mod state;
mod transaction;
mod transform;
mod values;
mod watch;
mod words;

pub use crate::spam::{Place, Problem, Severity};
pub use action::Action;
pub use address::{Variables, default_variables};
pub use buffer::{App, Buffer, Direction};
pub use changes::{Change, Changes, Listed, listed};
pub use depend::enable_needed;
pub use flow::{Alert, Desk, Flow, Peer, Site, Tuple, Verdict};
pub use fuzz::fuzz_rules;
pub use handshake::{Certificate, Fingerprint};
pub use limits::Limits;
pub use register::{Counts, Effect, Entry, Matched, Register};
pub use rule::{Rule, Transport};
pub use set::{Census, Loader, RuleSet, Selector};
pub use transaction::Transaction;
pub use watch::Watch;
pub use words::Words;
