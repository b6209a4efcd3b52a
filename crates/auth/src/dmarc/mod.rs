//! Domain-based Message Authentication, Reporting and Conformance (RFC 9989): whether an authenticated identifier is
//! the author's, and the policy that the author's domain requests otherwise.
//!
//! Organizations are found by walking up the tree of names ([`walk`]); there is no list of public suffixes. Reports
//! (RFC 9990, 9991) are not written here; where they go is read here ([`destinations`]).
//!
//! Bounds: eight questions a walk, one walk for each authenticated domain.

mod destination;
mod evaluate;
mod record;
pub mod walk;

pub use destination::{Destination, accepts, destinations};
pub use evaluate::{Identifiers, check};
pub use record::{BYTES_MAX, Policy, Record, Suffix};

/// Result of DMARC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// No policy, or no author.
    #[default]
    None,
    /// Something that was authenticated is the author's.
    Pass,
    /// Nothing is.
    Fail,
    /// The policy, or an identifier that might pass, could not be looked up.
    TempError,
    /// The author cannot be told.
    PermError,
}

impl Outcome {
    /// As fields of headers have it.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::None => "none",
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::TempError => "temperror",
            Outcome::PermError => "permerror",
        }
    }
}

/// Report of DMARC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The result.
    pub outcome: Outcome,
    /// Reason for a result without a decision; empty otherwise.
    pub reason: Box<str>,
    /// The author's domain.
    pub domain: Box<str>,
    /// Domain of the record that applies; empty without one.
    pub policy_domain: Box<str>,
    /// Policy for this author, independent of the result: `p`, `sp` or `np`.
    pub policy: Option<Policy>,
    /// Requested action for a failed mail: the policy, one step weaker if it is tested; `None` if the mail has not
    /// failed.
    pub disposition: Option<Policy>,
    /// The owner is trying things out.
    pub testing: bool,
    /// SPF passed for the author's domain.
    pub spf_aligned: bool,
    /// A signature of the author's domain passed.
    pub dkim_aligned: bool,
    /// The record that applies.
    pub record: Option<Record>,
}
