//! What the configuration says to doors: a struct for each table, as `serde` reads it.
//!
//! Reading the file, and what holds across its tables, is up to whoever has the whole of it.

mod acme;
mod action;
mod address;
mod auth;
mod authentication;
mod clamd;
mod content;
mod forward;
mod guests;
mod http;
mod keys;
mod listener;
mod network;
mod next_hop;
mod notices;
mod pac;
mod policy;
mod protocol;
mod quarantine;
mod recipients;
mod refusal;
mod ruling;
mod size;
mod smtp;
mod spam;
mod target;
mod tls;
mod transparent;
mod trust;

pub use acme::Acme;
pub use address::{Address, SocketMode};
pub use authentication::{Authentication, AuthenticationSettings, AuthenticationTerms};
pub use clamd::{ClamdSettings, Pattern, Said, Who};
pub use content::Content;
pub use forward::{Forward, ProxyVersion, Scheme};
pub use guests::Guests;
pub use http::{HttpListener, Https, MismatchedNames, Mode, Pinned, Ranges, UnknownCodings, is_local};
pub use keys::{Fault, Keys};
pub use listener::{Listener, MilterListener, Place, Speaks};
pub use network::{Network, Trusted};
pub use next_hop::{NextHop, Transparent};
pub use notices::NoticeSettings;
pub use policy::{Attachment, MailRule, Parties};
pub use protocol::Protocol;
pub use quarantine::{Learners, QuarantineSettings};
pub use recipients::{Asks, CallAheadSettings, Domain, FolderPattern, RecipientTable, Unsure, Users};
pub use refusal::Refusal;
pub use ruling::{Ruling, Rulings};
pub use size::size;
pub use smtp::{Auth, BareLineEnds, SmtpListener};
pub use spam::{BayesSettings, FuzzySettings, ReputationSettings, Spam, SpamSettings, SpamTerms};
pub use target::Target;
pub use tls::{Certificate, ForwardTls, ListenerTls, Tls, TlsVersion, Tlsa, Verify};
pub use trust::{AccessEntry, Bounds, DnsblSettings, HarvestSettings, Scores, TarpitSettings, Tested, TrustSettings};
