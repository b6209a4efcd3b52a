//! The host rewrites senders of mail that scripts forward, and takes back what comes for them.

/// Rewrites senders (SRS).
pub trait Rewriter: Send + Sync {
    /// The address that a forwarded mail of a sender comes from; none if it stays as it is.
    fn forward(&self, from: &str, now: i64) -> Option<String>;

    /// The sender that such an address stands for; none if it is not one of ours, or too old.
    fn reverse(&self, to: &str, now: i64) -> Option<String>;
}
