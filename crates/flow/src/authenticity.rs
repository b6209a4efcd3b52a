//! Whether a mail is from whom it says: what a door asks for, and what it is told (SPF, DKIM, DMARC and ARC).
//!
//! Names of results are those of RFC 8601 section 2.7.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Action;

/// How a mail is authenticated, and what follows from it. Its envelope is that of the flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authenticating {
    /// Our name, as fields of ours have it.
    pub authserv_id: Box<str>,
    /// The client that sent it, where it is known; without it SPF is not checked.
    pub client: Option<IpAddr>,
    /// The action for SPF's `fail`, unless the author's policy is satisfied by DKIM.
    pub on_spf_fail: Action,
    /// The action for an author's policy `reject`, where DMARC has failed.
    pub on_dmarc_reject: Action,
    /// The same of `quarantine`.
    pub on_dmarc_quarantine: Action,
}

/// The results of authentication.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Authenticity {
    /// SPF for the envelope's sender.
    pub spf: Box<str>,
    /// DKIM: the best result of all signatures.
    pub dkim: Box<str>,
    /// The author's policy.
    pub dmarc: Box<str>,
    /// The chain of those who have passed it on.
    pub arc: Box<str>,
    /// The results for `Authentication-Results`, one for each method; at most [`Authenticity::METHODS_MAX`].
    pub methods: Vec<Box<str>>,
    /// Indices of the mail's fields `Authentication-Results` that pretend to be ours, from 0 at the top; none where its
    /// header was too long to be read.
    pub forged: Option<Vec<u32>>,
    /// The action that follows.
    pub action: Action,
    /// Why, where something follows.
    pub reason: Box<str>,
    /// How many questions were asked.
    pub questions: u32,
    /// The evaluation of DMARC; none without a record, or without a client.
    pub evaluation: Option<Box<Evaluation>>,
}

/// An evaluation of DMARC, as an aggregate report counts it (RFC 9990).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Domain of the record that applies.
    pub policy_domain: Box<str>,
    /// The record.
    pub published: Published,
    /// Facts about the mail.
    pub observation: Observation,
}

/// Tags of a policy record, with defaults filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// `p`
    pub p: Box<str>,
    /// `sp`
    pub sp: Box<str>,
    /// `np`
    pub np: Box<str>,
    /// `adkim=s`
    pub strict_dkim: bool,
    /// `aspf=s`
    pub strict_spf: bool,
    /// `t=y`
    pub testing: bool,
}

/// Facts about a mail that a report counts: mails with the same facts are one record of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Observation {
    /// The client.
    pub client: IpAddr,
    /// What the policy came to: `none`, `pass`, `quarantine`, `reject`.
    pub disposition: Box<str>,
    /// Why that is not the policy that was published; empty where it is.
    pub reason: Box<str>,
    /// A signature of the author's domain passed.
    pub dkim_aligned: bool,
    /// SPF passed for the author's domain.
    pub spf_aligned: bool,
    /// The author's domain.
    pub header_from: Box<str>,
    /// Domain of the envelope's sender; empty for the null sender.
    pub envelope_from: Box<str>,
    /// The domain that SPF was checked for; empty if there is none.
    pub spf_domain: Box<str>,
    /// Result of SPF.
    pub spf: Box<str>,
    /// Signatures, at most [`Observation::SIGNATURES_MAX`].
    pub signatures: Vec<Signature>,
}

impl Observation {
    /// The most signatures that are counted; those that pass come first.
    pub const SIGNATURES_MAX: usize = 8;
}

/// A signature of DKIM, and its result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signature {
    /// `d=`
    pub domain: Box<str>,
    /// `s=`
    pub selector: Box<str>,
    /// The result.
    pub result: Box<str>,
}

impl Authenticity {
    /// The most methods: signatures are verified up to a bound.
    pub const METHODS_MAX: usize = 32;
}
