//! Mail that goes out again: what scripts redirect, and the answers that they make. How it is sent is the host's business.

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
pub type Sending = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

impl Outgoing {
    /// A mail in memory.
    pub(crate) fn whole(from: String, to: String, mail: Vec<u8>) -> Outgoing {
        let (pieces, content) = mpsc::channel(1);
        let bytes = mail.len() as u64;
        // There is room for one.
        let _ = pieces.try_send(mail);
        Outgoing { from, to, bytes, content }
    }
}
