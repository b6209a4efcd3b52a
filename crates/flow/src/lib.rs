//! The wall between a door and an inspection: the vocabulary that crosses it, and the one machine that a door needs.
//!
//! ```text
//!   door ── Context, In ──►  │  ──► inspection
//!   Hold ◄──────── Out ────  │  ◄──
//! ```
//!
//! A door hands in what it knows of an object ([`Context`]) and its bytes ([`In`]), and is handed what may be sent, what is to
//! be overwritten, and the [`Verdict`] ([`Out`]). It implements nothing of this by hand: [`Hold`] holds back what may not be
//! sent yet, and [`Disposition`] is what can still be done about a verdict. So no door parses content. What an inspection wants
//! to know of the DNS is an [`Ask`], and what it is told an [`Answer`]: the door has it looked up. So it is with what was learned
//! from mails, a [`Recall`].
//!
//! All of it is plain data with a byte form ([`wire`]), so an inspection can run in another process: [`Inspector`] is what a
//! door asks for one, whatever side of a process border it is on.
//!
//! This crate knows no protocol, opens nothing and has no clock.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod ask;
mod authenticity;
mod context;
mod filler;
pub mod fuzzy;
mod hold;
mod inspector;
mod message;
mod page;
mod parts;
mod policy;
mod queue;
mod recall;
pub mod reputation;
mod rule;
mod score;
mod share;
mod verdict;
mod watch;
pub mod wire;

pub use ask::{Answer, Ask, Outcome, Question, Record, RecordKind, Security};
pub use authenticity::{Authenticating, Authenticity, Evaluation, Observation, Published, Signature};
pub use context::{Flow, Protocol};
pub use filler::{Filler, NOTICE};
pub use fuzzy::{Alike, Fuzzy};
pub use hold::{Hold, State, Terms};
pub use inspector::{Inspecting, Inspector, NOBODY, Progress, Unfinished, Unsearched};
pub use message::{Blank, Context, Field, In, ObjectReport, Out, Sought, StageTime, Wants};
pub use page::{PageOutcome, PageScore, Paging, Phrase};
pub use parts::{Parts, Place};
pub use policy::{Action, Policy, SignatureRule, Spared};
pub use queue::{BLOCK_BYTES, Block, Blocks};
pub use recall::{Key, Lesson, Recall, Recalled, Study, Word};
pub use reputation::{Conduct, Standing};
pub use rule::{Glob, Rule, Way};
pub use score::{Hit, Links, Mark, Points, Preferences, Score, Scoring};
pub use share::share_of;
pub use verdict::{Capabilities, Disposition, Spotted, Verdict};
pub use watch::{Alert, Head, Watched};
