//! Numbers of the mail server, for its host to show.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A protocol of the mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Mail in.
    Lmtp,
    /// Mail out.
    Pop3,
    /// Mail in and out.
    Imap,
    /// Scripts.
    Sieve,
    /// Pages for browsers.
    Webmail,
}

impl Protocol {
    /// All of them; [`Protocol`] as a number is the place in it.
    pub const ALL: [Protocol; 5] = [Protocol::Lmtp, Protocol::Pop3, Protocol::Imap, Protocol::Sieve, Protocol::Webmail];

    /// As a label.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Lmtp => "lmtp",
            Protocol::Pop3 => "pop3",
            Protocol::Imap => "imap",
            Protocol::Sieve => "sieve",
            Protocol::Webmail => "webmail",
        }
    }
}

/// A number for each protocol.
#[derive(Debug, Default)]
pub struct ByProtocol([AtomicU64; Protocol::ALL.len()]);

impl ByProtocol {
    /// One more.
    pub fn add(&self, protocol: Protocol) {
        self.0[protocol as usize].fetch_add(1, Relaxed);
    }

    /// How many.
    pub fn get(&self, protocol: Protocol) -> u64 {
        self.0[protocol as usize].load(Relaxed)
    }

    fn sub(&self, protocol: Protocol) {
        self.0[protocol as usize].fetch_sub(1, Relaxed);
    }
}

/// The numbers of a mail server.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Sessions that are open.
    pub open: ByProtocol,
    /// Sessions so far.
    pub sessions: ByProtocol,
    /// Clients that were not let in.
    pub refused: ByProtocol,
    /// Mails that came to all their recipients.
    pub delivered: AtomicU64,
    /// Mails that came to some of them alone, or to none.
    pub undelivered: AtomicU64,
    /// Refusals because an account had its quota.
    pub over_quota: AtomicU64,
    /// Refusals because there was no room on the volume.
    pub full: AtomicU64,
    /// Commands that were ended because they took too long.
    pub ended: AtomicU64,
    /// The longest run of bytes that a session has handed to its connection at a time.
    pub reply_bytes_most: AtomicU64,
    deliveries: AtomicU64,
    microseconds: AtomicU64,
}

/// A session that is counted, until it is dropped.
#[derive(Debug)]
pub struct Open(Arc<Numbers>, Protocol);

impl Numbers {
    /// Counts a session.
    pub fn open(self: &Arc<Numbers>, protocol: Protocol) -> Open {
        self.open.add(protocol);
        self.sessions.add(protocol);
        Open(self.clone(), protocol)
    }

    /// A delivery took so long, until it was durable.
    pub(crate) fn took(&self, time: Duration) {
        self.deliveries.fetch_add(1, Relaxed);
        self.microseconds.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Deliveries, and how long all of them took in microseconds.
    pub fn deliveries(&self) -> (u64, u64) {
        (self.deliveries.load(Relaxed), self.microseconds.load(Relaxed))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.sub(self.1);
    }
}
