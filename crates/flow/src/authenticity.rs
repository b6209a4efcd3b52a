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
}

impl Authenticity {
    /// The most methods: signatures are verified up to a bound.
    pub const METHODS_MAX: usize = 32;
}
