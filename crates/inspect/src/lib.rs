//! The inspection of one byte stream: what is in it, and what is to be done about it.
//!
//! [`Inspection`] is the driver of the stages of `mime`, `unpack` and `scan`. It owns the windows between them and the
//! fuel, and is the only place where bytes move on. It keeps a bounded tree of objects: each has one window and
//! several readers (signature scan, parser, decompressor, a second reading) that advance at the pace of the slowest.
//!
//! A door talks to it in the plain values of the crate `flow`, so that the same conversation can cross a process border.
//!
//! This crate knows no protocol, opens no file and has no clock; a host that wants times hands one in.
#![forbid(unsafe_code)]

mod authenticate;
mod examination;
mod facts;
mod forged;
mod fuzzy;
mod gather;
mod inquest;
mod inspection;
mod intrusion;
mod ledger;
mod node;
mod opener;
mod page;
mod place;
mod recalling;
mod reputation;
mod score;
mod study;
mod watcher;
mod words;

pub use authenticate::Authentication;
pub use examination::{Done, Examination, Examiner, Job, State};
pub use fuzzy::fuzzy;
pub use inquest::{Authenticated, Inquest};
pub use inspection::{Clocks, Engine, Inspection, Progress};
pub use intrusion::{IntrusionAction, IntrusionFiles, IntrusionRules};
pub use page::{PageFiles, PageRules};
pub use recalling::Recalling;
pub use reputation::{Named, Reputation, Sent};
pub use rules::spam::run::Scratch;
pub use score::{Kept, Planned, RuleFile, RuleFiles, Scorer};
pub use study::{Studied, Study};

#[cfg(test)]
mod tests {
    #[test]
    fn an_inspection_can_go_on_in_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<crate::Inspection>();
    }
}
