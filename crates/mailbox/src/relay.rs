//! Who takes mail that goes out again: what scripts redirect, and the answers that they make. How it is sent is the host's
//! business, and how often it is tried that of the queue.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::{Notify, mpsc};

/// A mail that goes out.
pub struct Outgoing {
    /// The sender of the envelope, empty for the null sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// How long it is, in bytes: one of which less comes is not sent.
    pub bytes: u64,
    /// Whether it has bytes beyond ASCII, as a next hop is told that knows 8BITMIME.
    pub is_eight_bit: bool,
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

/// When what was not taken is tried again, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The first wait, in seconds; each is twice the one before.
    pub first: i64,
    /// The longest wait.
    pub longest: i64,
    /// After so many seconds it is given up (RFC 5321, section 4.5.4.1: four or five days).
    pub whole: i64,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { first: 60, longest: 4 * 3_600, whole: 5 * 86_400 }
    }
}

/// What wakes the one who sends.
#[derive(Debug, Default)]
pub(crate) struct Wake(Notify);

impl Wake {
    /// Something has come.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Waits for that.
    pub async fn woken(&self) {
        self.0.notified().await;
    }
}
