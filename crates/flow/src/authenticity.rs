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
    /// Who has sent it to us, as far as that is known: without, SPF is not checked.
    pub client: Option<IpAddr>,
    /// What SPF's `fail` asks for, unless the author's policy is satisfied by DKIM.
    pub on_spf_fail: Action,
    /// What an author's policy `reject` asks for, where DMARC has failed.
    pub on_dmarc_reject: Action,
    /// The same of `quarantine`.
    pub on_dmarc_quarantine: Action,
}

/// What was found.
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
    /// What stands in `Authentication-Results`, a method each; at most [`Authenticity::METHODS_MAX`].
    pub methods: Vec<Box<str>>,
    /// Which of the mail's fields `Authentication-Results` pretend to be ours, counted from 0 from the top; none where its
    /// header was too long to be read.
    pub forged: Option<Vec<u32>>,
    /// What follows from it.
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
