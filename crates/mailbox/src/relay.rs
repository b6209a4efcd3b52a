//! The host takes mail that goes out. How it is sent is the host's business, and how often it is tried that of the queue.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::SeqCst;

use proto::smtp::{MailFrom, RcptTo, Reply};
use tokio::sync::{Notify, mpsc, oneshot};

/// A mail that goes out, to recipients of one destination.
pub struct Outgoing {
    /// The domain of the recipients, in lower case.
    pub destination: String,
    /// The sender, and what is asked for; `size` and `body` are set.
    pub mail: MailFrom,
    /// Whether the sender would rather have it read on its way than not arrive: `TLS-Required: No` (RFC 8689, section 5).
    pub needs_no_tls: bool,
    /// The recipients, at least one.
    pub recipients: Vec<RcptTo>,
    /// How long it is, in bytes: one of which less comes is not sent.
    pub bytes: u64,
    /// The mail; line ends are CRLF.
    pub content: Content,
    /// To be passed before the final dot.
    pub gate: Arc<Gate>,
}

/// The gate before the final dot of a mail: behind it the next hop may have the mail, whether its answer comes or not. It is closed when the
/// server ends.
#[derive(Debug, Default)]
pub struct Gate {
    state: AtomicU8,
    left: Notify,
}

impl Gate {
    const PASSED: u8 = 1;
    const CLOSED: u8 = 2;

    /// Whether the final dot may be sent.
    pub fn pass(&self) -> bool {
        let passed = |state: u8| (state & Self::CLOSED == 0).then_some(state | Self::PASSED);
        self.state.fetch_update(SeqCst, SeqCst, passed).is_ok()
    }

    /// The next hop has answered.
    pub fn come_back(&self) {
        self.state.fetch_and(!Self::PASSED, SeqCst);
    }

    pub(crate) fn close(&self) {
        self.state.fetch_or(Self::CLOSED, SeqCst);
    }

    pub(crate) fn is_passed(&self) -> bool {
        self.state.load(SeqCst) & Self::PASSED != 0
    }

    /// Leaves the answer to whoever waits on when the store has been closed.
    pub(crate) fn leave(&self) {
        self.left.notify_one();
    }

    /// Waits until the answer is left to somebody else.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }
}

/// The content of a mail, which may be read more than once: for each host that is tried.
pub struct Content(mpsc::Sender<Piece>);

/// Reads what a [`Content`] asks for.
pub(crate) struct Pieces(mpsc::Receiver<Piece>);

/// From where on, and who is told: nothing if it cannot be read.
type Piece = (u64, oneshot::Sender<Option<Vec<u8>>>);

impl Content {
    pub(crate) fn new() -> (Content, Pieces) {
        let (asks, pieces) = mpsc::channel(1);
        (Content(asks), Pieces(pieces))
    }

    /// Reads at `offset`, as much as comes in one piece; empty at the end, and nothing if it cannot be read.
    pub async fn read(&self, offset: u64) -> Option<Vec<u8>> {
        let (tell, told) = oneshot::channel();
        self.0.send((offset, tell)).await.ok()?;
        told.await.ok().flatten()
    }
}

impl Pieces {
    /// The next question; none when nobody asks any more.
    pub async fn next(&mut self) -> Option<(u64, oneshot::Sender<Option<Vec<u8>>>)> {
        self.0.recv().await
    }
}

/// Takes mails that go out.
pub trait Relay: Send + Sync {
    /// Sends a mail; returns when it is known what came of it.
    fn send(&self, mail: Outgoing) -> Sending;

    /// Whether recipients that have an account here are delivered to here, and not sent to a next hop.
    fn is_the_world(&self) -> bool {
        false
    }
}

/// Resolves when it is known what came of a mail.
pub type Sending = Pin<Box<dyn Future<Output = Report> + Send>>;

/// The outcome of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// For each recipient.
    pub fates: Vec<Fate>,
    /// The state of the destination, as far as it was learned.
    pub health: Health,
}

/// The end of the reason why a mail to a domain is not sent whose mail server is this host.
pub const NAMES_US: &str = "names this server, which has no such account";

/// The outcome of one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// Whether the host has taken responsibility.
    pub outcome: Outcome,
    /// The status (RFC 3463).
    pub status: (u8, u16, u16),
    /// Why, in words: the reply of a host, or ours.
    pub why: String,
    /// The host that has said so; none if we have.
    pub host: Option<String>,
    /// The host tells the sender what becomes of it (RFC 3461).
    pub host_notifies: bool,
}

/// Whether a host has taken responsibility for a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Outcome {
    Taken,
    Later,
    Never,
}

/// The state of a destination after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The host took part: mails were taken or refused.
    Well,
    /// The host could not be reached, or takes no mail now.
    Ill,
    /// Nothing was learned of it.
    Unknown,
}

impl Report {
    /// A report with one fate for all recipients.
    pub fn all(count: usize, fate: &Fate, health: Health) -> Report {
        Report { fates: vec![fate.clone(); count], health }
    }
}

impl Fate {
    /// A temporary failure.
    pub fn later(status: (u8, u16, u16), why: impl Into<String>) -> Fate {
        Fate { outcome: Outcome::Later, status, why: why.into(), host: None, host_notifies: false }
    }

    /// It will not be taken.
    pub fn never(status: (u8, u16, u16), why: impl Into<String>) -> Fate {
        Fate { outcome: Outcome::Never, ..Fate::later(status, why) }
    }

    /// A host has said this.
    pub fn said(reply: &Reply, host: &str) -> Fate {
        let (outcome, class) = match reply {
            reply if reply.is_positive() => (Outcome::Taken, 2),
            reply if reply.is_permanent() => (Outcome::Never, 5),
            _ => (Outcome::Later, 4),
        };
        let status = reply.enhanced.unwrap_or((class, 0, 0));
        Fate { outcome, status, why: reply.to_string(), host: Some(host.into()), host_notifies: false }
    }
}

/// When what was not taken is tried again, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The first wait, in seconds; each is twice the one before.
    pub first: i64,
    /// The longest wait.
    pub longest: i64,
    /// After so many seconds the sender is told that it waits; 0: never.
    pub warning: i64,
    /// After so many seconds it is given up (RFC 5321, section 4.5.4.1: four or five days).
    pub whole: i64,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { first: 60, longest: 4 * 3_600, warning: 4 * 3_600, whole: 5 * 86_400 }
    }
}

/// Wakes the task that sends queued mail.
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
