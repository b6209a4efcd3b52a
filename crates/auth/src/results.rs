//! Results of a check.

use crate::{arc, dkim, dmarc, spf};

/// Results. A plain value, for fields of headers ([`crate::report`]) and for rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Results {
    /// SPF for the client's own name.
    pub helo: spf::Report,
    /// SPF for the envelope's sender; the same as `helo` for the null sender.
    pub mailfrom: spf::Report,
    /// Signatures, from the top.
    pub dkim: Vec<dkim::Report>,
    /// How many more there are.
    pub signatures_left_out: usize,
    /// The chain.
    pub arc: arc::Report,
    /// The author's policy.
    pub dmarc: dmarc::Report,
    /// `Authentication-Results` that claim to be ours, counted from 0 among the fields of that name from the top. They are to be
    /// removed before our own is added.
    pub forged: Vec<usize>,
    /// The header exceeds the bound, and its fields are ignored.
    pub header_cut: bool,
}
