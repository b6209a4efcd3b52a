//! An exchange of AUTH with the next hop.

use crate::upstream::smtp_hop::SmtpHop;

/// Logging in, under way or not done.
pub struct Exchange {
    pub(super) hop: SmtpHop,
    pub(super) mechanism: &'static str,
    /// Who logs in, as far as that was told.
    pub(super) user: Option<String>,
    pub(super) rounds: u32,
}
