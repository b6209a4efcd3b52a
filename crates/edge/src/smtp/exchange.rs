//! An exchange of AUTH with the next hop.

use crate::upstream::smtp_hop::SmtpHop;

/// Logging in, under way or not done.
pub struct Exchange {
    pub(super) hop: SmtpHop,
    pub(super) mechanism: &'static str,
    /// Login name, as far as it is known.
    pub(super) user: Option<String>,
    pub(super) rounds: u32,
}
