//! The lists and the configuration of DansGuardian, of E2Guardian 5 and of squidGuard, and the network rules of Adblock lists, read as
//! they stand.
//!
//! [`Filter::load`] reads a main file and all that it names: options, filter groups, phrase lists, item lists, storyboards, texts.
//! A line that is not understood, and an entry that can never match, is a [`Problem`] with file and line; the rest holds.
//! [`Group::request`] decides on a request, [`Group::response`] on the head of its response, [`Group::page`] gives the
//! [`Page`](phrase::Page) that the content is fed to, and [`Group::scored`] decides by its score.
//!
//! Nothing here opens a file, asks the network or knows the time: the host hands in bytes and a [`Moment`].
//!
//! A request may carry a token that lets it past a block ([`Tokens`]); [`Group::notice`] is what stands in the place of what is
//! blocked, and [`Group::link`] the URL with a token for it.
//!
//! What is left out: how pages are fetched, shown and logged, who has logged in, and what certificates say.

mod bypass;
mod config;
mod filter;
mod fuzz;
mod group;
mod known;
mod limits;
mod list;
mod loader;
mod loading;
mod manner;
mod messages;
mod moment;
mod notice;
pub mod phrase;
mod request;
mod shared;
mod squidguard;
mod story;
mod suffix;
mod template;
mod trial;
mod url;
mod who;

pub use crate::spam::{Place, Problem, Severity};
pub use filter::{Filter, load_phrases};
pub use fuzz::{fuzz_adblock, fuzz_lists, fuzz_phrases, fuzz_squidguard, fuzz_story};
pub use group::Group;
pub use limits::Limits;
pub use loader::Census;
pub use loading::Read;
pub use moment::{Date, Moment};
pub use notice::{Cause, Notice};
pub use request::{Decision, Entry, Field, Identity, Reason, Request, Response, Tokens, Verdict};
pub use suffix::Suffixes;
pub use template::Told;
