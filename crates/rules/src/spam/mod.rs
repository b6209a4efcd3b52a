//! SpamAssassin 4's configuration, read as it stands: rules, scores, settings and templates.
//!
//! [`Loader`] takes files in the order of [`source::order`] and gives a [`Rules`]: each rule with its test, scores, flags
//! and priority, each setting with its place, and a list of [`Problem`]s. Nothing is passed over silently: a line that
//! is not understood is a problem with file, line and reason. [`Schedule`] puts metas into the order in which they can be
//! evaluated, [`Total`] adds up what hits.
//!
//! [`run::Engine`] is a configuration compiled: it takes the views of a mail ([`message::Message`]) and says which rules
//! hit. Functions that `eval:` calls are in [`eval`].
//!
//! What rules ask the network are values ([`network::Inquiry`]): whoever has a network answers them, and hands in what was found
//! of the sender ([`authentic`]). What was learned says of a mail is a value too ([`Recalled`]), and so is who has sent it
//! ([`Sender`]).
//!
//! What is left out: nothing asks programs beside SpamAssassin; rules that do are listed as disabled.
//!
//! The meaning of each line is that of the manual pages of SpamAssassin 4.0.1; where they are silent, what its reader makes
//! of the same line is what counts (`tests/peer.rs`).

pub mod authentic;
mod census;
mod disabled;
pub mod eval;
mod fuzz;
pub mod header;
mod limits;
mod loader;
pub mod map;
pub mod message;
pub mod network;
pub mod preferences;
mod problem;
mod recalled;
mod replace;
mod rule;
pub mod run;
mod schedule;
mod search;
mod sender;
mod settings;
pub mod source;
pub mod syntax;
mod tags;
mod template;
mod total;

pub use census::Census;
pub use disabled::Disabled;
pub use fuzz::fuzz_load;
pub use limits::Limits;
pub use loader::{File, Loader, Options};
pub use preferences::Preferences;
pub use problem::{Place, Problem, Severity};
pub use recalled::{Autolearn, Recalled};
pub use rule::{Ending, Kind, NamedTest, Rule, Rules, Setting, Test, View};
pub use schedule::{Exclusion, Schedule};
pub use sender::{Name, Sender};
pub use settings::Settings;
pub use syntax::expression::{Checker, Expression, Unchecked};
pub use template::{Audience, Header, Templates};
pub use total::{ScoreSet, Total};
