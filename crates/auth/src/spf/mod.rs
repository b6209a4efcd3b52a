//! Sender Policy Framework (RFC 7208): whether a client may send in the name of a domain.
//!
//! [`check`] is `check_host()`. A [`record`] is read whole before anything of it counts; [`macros`] are expanded into names and
//! explanations.
//!
//! Bounds (section 4.6.4): 10 terms that ask, 2 of them in vain, 10 hosts of each `mx` and `ptr`. A record has at most
//! [`record::BYTES_MAX`] bytes; what a macro string expands to is bounded as well.

mod evaluate;
pub mod macros;
pub mod record;

use core::net::IpAddr;

pub use evaluate::check;

/// Question to SPF.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Address of the client.
    pub client: IpAddr,
    /// HELO name of the client.
    pub helo: &'a str,
    /// In whose name: the envelope's sender; empty for the null sender, and then the client's own name is checked.
    pub sender: &'a str,
    /// Our name, for explanations.
    pub receiver: &'a str,
    /// Seconds since 1970, for explanations.
    pub now: u64,
}

/// Result (section 2.6).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// No policy, or no domain.
    #[default]
    None,
    /// The policy says nothing about the client.
    Neutral,
    /// The client may send.
    Pass,
    /// It may not.
    Fail,
    /// It probably may not.
    SoftFail,
    /// The policy could not be asked for; it may be tomorrow.
    TempError,
    /// The policy cannot be understood.
    PermError,
}

impl Outcome {
    /// As fields of headers have it.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::None => "none",
            Outcome::Neutral => "neutral",
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::SoftFail => "softfail",
            Outcome::TempError => "temperror",
            Outcome::PermError => "permerror",
        }
    }
}

/// Report about one identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The result.
    pub outcome: Outcome,
    /// The domain that was checked, normalised; empty where the identity has none.
    pub domain: Box<str>,
    /// The sender that was checked, `postmaster` filled in.
    pub sender: Box<str>,
    /// Reason: the term that matched, or the error.
    pub reason: Box<str>,
    /// The domain owner's text for failing clients (`exp=`), if there is one. ASCII, one line.
    pub explanation: Option<Box<str>>,
    /// Terms that asked the DNS.
    pub lookups: u32,
}
