//! The interface between the store and the process around it, which has TLS keys, inspections and learned words.
//!
//! ```text
//!  store ──► Host      a handshake, an inspection, a lesson, a session that is counted
//!  host  ──► Server    sockets that listen, connections of the gateway's doors with their callers, evaluations of DMARC, the end
//! ```
//!
//! Neither side reaches around it: the store knows nothing of the gateway's settings, signatures and certificates, and the gateway
//! nothing of the volume, its accounts and its sessions. A login of a client that sends mail is part of the connection with its caller.

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use edge::net::stream::Stream;
use flow::{Answer, Context, Inspecting, Inspector, Out, Progress, Recalled, Unfinished};
use mailbox::Body;

/// Work of a host that is waited for.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The same on the thread that has asked.
pub type LocalWork<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Reason why a mail is not learned.
pub type Unlearned = Cow<'static, str>;

/// The process around the store, as the store asks it.
pub trait Host: Send + Sync {
    /// Whether there is a certificate for clients.
    fn has_tls(&self) -> bool {
        false
    }

    /// Shakes hands with a client, whose connection goes on encrypted. The caller bounds the wait.
    fn secure(&self, _stream: Stream) -> Work<'_, io::Result<Stream>> {
        Box::pin(async { Err(io::Error::other("there is no certificate")) })
    }

    /// Counts a session, until the value is dropped.
    fn session(&self) -> Option<Box<dyn Send + Sync>> {
        None
    }

    /// Begins an inspection of stored content, or of a file for a user.
    fn inspect(&self, _context: Context) -> Box<dyn Inspecting> {
        Box::new(Nobody)
    }

    /// Whether moved mail is learned.
    fn learns(&self) -> bool {
        false
    }

    /// Has a mail learned; whether that has changed anything.
    fn learn<'a>(&'a self, _is_spam: bool, _mail: &'a mut dyn Mail) -> LocalWork<'a, Result<bool, Unlearned>> {
        Box::pin(async { Err("mail is not learned".into()) })
    }

    /// Counts a lesson that was lost.
    fn lose_lesson(&self) {}
}

/// A stored mail that the host reads.
pub trait Mail {
    /// Its size, in bytes.
    fn size(&self) -> u64;

    /// Reads from `offset`; 0 at the end.
    ///
    /// # Errors
    /// When the mail is damaged or gone.
    fn read(&mut self, offset: u64, piece: &mut [u8]) -> Result<usize, Unlearned>;
}

impl Mail for Body<'_> {
    fn size(&self) -> u64 {
        Body::size(self)
    }

    fn read(&mut self, offset: u64, piece: &mut [u8]) -> Result<usize, Unlearned> {
        mailbox::Reader::read(self, offset, piece).map_err(|_| "it cannot be read".into())
    }
}

/// A host that has nothing to lend.
pub struct Alone;

impl Host for Alone {}

/// The inspector of a host.
pub struct Lent(pub Arc<dyn Host>);

impl Inspector for Lent {
    fn open(&self, context: Context) -> Box<dyn Inspecting> {
        self.0.inspect(context)
    }

    fn takes_back(&self) -> bool {
        false
    }
}

/// An inspection without an inspector.
pub struct Nobody;

impl Inspecting for Nobody {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn finish(&mut self) {}

    fn stop(&mut self, _name: &'static str) {}

    fn answer(&mut self, _answer: Answer) {}

    fn recalled(&mut self, _recalled: Option<Recalled>) {}

    fn poll(&mut self, _context: &mut std::task::Context<'_>) -> std::task::Poll<Progress> {
        std::task::Poll::Ready(Progress::Lost(Unfinished::Gone))
    }

    fn hear(&mut self) -> Option<Out> {
        None
    }
}
