//! DomainKeys Identified Mail (RFC 6376, with RFC 8301 and 8463): signatures of domains over a mail.
//!
//! [`Signature`] is the content of a field; [`Signature::verify`] checks it, once the header is complete, the body
//! hashed and the key answered. [`sign`] makes signatures. The results have the meaning of RFC 8601, section 2.7.1.
//!
//! Bounds: [`Limits`]; [`NAMES_MAX`] names of fields in a signature.

pub mod sign;
mod signature;
mod verify;

use flow::Security;

use crate::key::Algorithm;

pub(crate) use signature::{Base, bytes_signed};
pub use signature::{NAMES_MAX, Signature};
pub use verify::Judge;
pub(crate) use verify::key;

/// Limits of verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of verified signatures of a mail, from the top; further ones are only counted.
    pub signatures_max: usize,
    /// Keys of fewer bits verify nothing.
    pub key_bits_min: u32,
    /// Whether signatures with SHA-1 are computed at all. RFC 8301 forbids it.
    pub sha1: bool,
    /// By how many seconds other clocks may be ahead of ours.
    pub ahead_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { signatures_max: 16, key_bits_min: 1_024, sha1: false, ahead_max: 86_400 }
    }
}

/// Result of a signature (RFC 8601 section 2.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It verifies.
    Pass,
    /// It does not.
    Fail,
    /// The signature is not evaluated by policy: SHA-1, a short key, expired, one too many.
    Policy,
    /// It cannot be understood.
    Neutral,
    /// Its key could not be asked for.
    TempError,
    /// Permanently unverifiable: the key is missing or invalid.
    PermError,
}

impl Outcome {
    /// As fields of headers have it.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Policy => "policy",
            Outcome::Neutral => "neutral",
            Outcome::TempError => "temperror",
            Outcome::PermError => "permerror",
        }
    }
}

/// Report about a signature. Unreadable parts are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The result.
    pub outcome: Outcome,
    /// Why it is not a pass.
    pub reason: &'static str,
    /// `d=`, normalised.
    pub domain: Box<str>,
    /// `s=`.
    pub selector: Box<str>,
    /// `i=`, or its default.
    pub identity: Box<str>,
    /// `a=`, if it is known.
    pub algorithm: Option<Algorithm>,
    /// Names of the fields that it covers, in lower case, which the header has once: of those no other is meant.
    pub covered: Box<[Box<str>]>,
    /// The first characters of `b=`, which tell signatures apart (RFC 6008).
    pub mark: Box<str>,
    /// The length of the key, if a key was found.
    pub key_bits: Option<u32>,
    /// Whether the key's owner is testing.
    pub testing: bool,
    /// Bytes of the canonical body that it does not cover.
    pub bytes_unsigned: u64,
    /// `x=` has passed.
    pub expired: bool,
    /// DNSSEC's result for the key.
    pub security: Security,
}

impl Report {
    pub(crate) fn new(outcome: Outcome, reason: &'static str) -> Report {
        Report {
            outcome,
            reason,
            domain: "".into(),
            selector: "".into(),
            identity: "".into(),
            algorithm: None,
            covered: Box::default(),
            mark: "".into(),
            key_bits: None,
            testing: false,
            bytes_unsigned: 0,
            expired: false,
            security: Security::Unknown,
        }
    }
}
