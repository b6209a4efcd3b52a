//! Who takes mail that goes out again: what scripts redirect, and the answers that they make. How it is sent is the host's business.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::mpsc;

/// A mail that goes out.
pub struct Outgoing {
    /// The sender of the envelope, empty for the null sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// How long it is, in bytes: one of which less comes is not sent.
    pub bytes: u64,
    /// The mail, in pieces; line ends are CRLF.
    pub content: mpsc::Receiver<Vec<u8>>,
}

/// Takes mails that go out.
pub trait Relay: Send + Sync {
    /// Sends a mail; returns when somebody else is answerable for it.
    fn send(&self, mail: Outgoing) -> Sending;
}

/// Resolves when a mail has been taken; the error is why it was not.
pub type Sending = Pin<Box<dyn Future<Output = Result<(), Unsent>> + Send>>;

/// Why a mail was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsent {
    /// In words.
    pub why: String,
    /// It will not be taken later either.
    pub is_final: bool,
}

impl Unsent {
    /// It may be taken later.
    pub fn for_now(why: impl Into<String>) -> Unsent {
        Unsent { why: why.into(), is_final: false }
    }
}
