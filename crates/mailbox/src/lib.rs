//! A mail server on the [`store`]: LMTP in, POP3, IMAP and pages for browsers out.
//!
//! ```text
//!   LMTP ─┐                                  ┌─► one thread, which owns the volume: all that has come while a
//!   IMAP ─┼─ sessions ── jobs, in order ─────┘   flush ran is staged, then flushed at once
//!   POP3 ─┘      └────── snapshots and positioned reads, which wait for nobody
//! ```
//!
//! [`Writer`] is that thread, [`Handle`] the way to it. A session is a task over any stream: [`lmtp::serve`],
//! [`pop3::serve`], [`imap::serve`], [`webmail::serve`]; who listens, and TLS, are the caller's. [`accounts`] is who may log in and whose an
//! address is.
//!
//! It inspects nothing by itself: mail comes by LMTP from a door that has. Where the host lends an inspector, that reads the text of mails
//! for the [index](indexing) by which they are searched, and mail that accounts send before it goes out.
#![forbid(unsafe_code)]

mod account;
pub mod accounts;
pub mod acl;
mod apart;
pub mod app_passwords;
mod behind;
mod clock;
mod content;
mod deflate;
mod delivery;
pub mod discovery;
mod elsewhere;
pub mod ends;
pub mod feedback;
mod file;
mod filter;
mod guest;
mod header;
pub mod imap;
mod in_flight;
pub mod indexing;
mod inspecting;
mod labour;
pub mod last_login;
mod learner;
pub mod lmtp;
mod login;
pub mod managesieve;
mod md5_crypt;
pub mod numbers;
mod outbox;
pub mod passkeys;
pub mod password;
pub mod pop3;
pub mod queue;
mod rates;
pub mod recall;
mod recent;
mod relay;
mod remembered;
mod remote;
mod rewriter;
mod rewriting;
mod sasl;
pub mod scram;
pub mod scripts;
pub mod second;
mod signer;
mod site;
pub mod totp;
mod turns;
pub mod webauthn;
pub mod webmail;
mod wire;
mod writer;

pub use content::Body;
pub use elsewhere::{Asking, Away, Elsewhere};
pub use file::{File, SharedTail};
pub use guest::Guest;
pub use keep::content::Reader;
pub use keep::{digest, furnish};
pub use learner::Learner;
pub use login::{Denied, Guard, Guarded, Logins};
pub use numbers::Protocol;
pub use relay::{Content, Fate, Gate, Health, NAMES_US, Outcome, Outgoing, Relay, Report, Sending};
pub use remote::{NotLeft, Remote};
pub use rewriter::Rewriter;
pub use signer::{Signer, Signing};
pub use site::{Site, open_account};
pub use wire::Stream;
pub use writer::{Counts, Handle, Incoming, Writer};
