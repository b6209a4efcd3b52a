//! The doors of a mail server: what listens, and a task for each client.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use edge::net::listening::{Socket, network_address};
use edge::net::stream::Stream;
use edge::runtime::Runtime;
use mailbox::Site;
use mailbox::lmtp::Peer;
use mailbox::managesieve::{self, End, Tls};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

/// How long to wait when there are no descriptors for another client.
const RETRY: Duration = Duration::from_millis(200);

/// How long a client may take to shake hands.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(30);

/// How long sessions may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    Lmtp,
    Pop3,
    Pop3s,
    Imap,
    Imaps,
    Sieve,
}

/// What the doors of one server share.
#[derive(Clone)]
pub struct Doors {
    site: Arc<Site>,
    permits: Arc<Semaphore>,
    /// Who we are to clients, as of the last reload; nobody, where there is no TLS.
    identity: Identity,
    /// Held by every session.
    _alive: mpsc::Sender<Infallible>,
}

/// Where the certificates of the gateway are found.
pub type Identity = Arc<Mutex<Option<Arc<Runtime>>>>;

/// Ends when all sessions have.
pub struct Ended(mpsc::Receiver<Infallible>);

impl Door {
    /// As in a URL.
    pub const fn name(self) -> &'static str {
        match self {
            Door::Lmtp => "lmtp",
            Door::Pop3 => "pop3",
            Door::Pop3s => "pop3s",
            Door::Imap => "imap",
            Door::Imaps => "imaps",
            Door::Sieve => "sieve",
        }
    }

    /// Whether TLS begins with the connection.
    pub const fn is_encrypted(self) -> bool {
        matches!(self, Door::Pop3s | Door::Imaps)
    }
}

impl Doors {
    /// For so many clients at a time, for the mail that goes out, and for the index of what is searched.
    pub fn new(site: Arc<Site>, sessions_max: usize, identity: Identity) -> (Doors, Ended) {
        let permits = Arc::new(Semaphore::new(sessions_max.min(Semaphore::MAX_PERMITS)));
        let (alive, ended) = mpsc::channel(1);
        let (sender, queue, indexing) =
            (alive.clone(), mailbox::queue::run(site.clone()), mailbox::indexing::run(site.clone()));
        tokio::spawn(async move {
            tokio::join!(queue, tokio::spawn(indexing)).0;
            drop(sender);
        });
        (Doors { site, permits, identity, _alive: alive }, Ended(ended))
    }

    /// Takes clients until it is dropped.
    pub async fn accept(self, door: Door, socket: Socket) {
        loop {
            let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
            let (stream, client) = match socket.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a client was not accepted");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            let doors = self.clone();
            tokio::spawn(async move {
                let client = network_address(client);
                if let Err(error) = doors.speak(door, stream, client).await {
                    tracing::debug!(door = door.name(), client = ?client, %error, "a session broke");
                }
                drop((permit, doors));
            });
        }
    }

    async fn speak(&self, door: Door, stream: Stream, client: Option<std::net::IpAddr>) -> io::Result<()> {
        let stream = if door.is_encrypted() { self.secured(stream).await? } else { stream };
        match door {
            Door::Lmtp => mailbox::lmtp::serve(stream, client, Peer::Stranger, &self.site).await,
            Door::Pop3 | Door::Pop3s => mailbox::pop3::serve(stream, client, &self.site).await,
            Door::Imap | Door::Imaps => mailbox::imap::serve(stream, client, &self.site).await,
            Door::Sieve => self.manage_scripts(stream, client).await,
        }
    }

    async fn manage_scripts(&self, stream: Stream, client: Option<std::net::IpAddr>) -> io::Result<()> {
        let identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let tls = if identity.is_some_and(|runtime| runtime.tls.is_some()) { Tls::Offered } else { Tls::Missing };
        match managesieve::serve(stream, client, tls, &self.site).await? {
            End::Over => Ok(()),
            End::StartTls(stream) => {
                let stream = timeout(HANDSHAKE_WAIT, self.secured(stream)).await??;
                managesieve::serve(stream, client, Tls::Active, &self.site).await.map(drop)
            }
        }
    }

    async fn secured(&self, stream: Stream) -> io::Result<Stream> {
        let identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let tls = identity.and_then(|runtime| runtime.tls.clone());
        stream.accept_tls(tls.ok_or_else(|| io::Error::other("there is no certificate"))?).await
    }

    /// Takes mails from a door of the gateway in this process.
    pub fn hand_over(&self, stream: Stream, peer: Peer) {
        let doors = self.clone();
        tokio::spawn(async move {
            if let Err(error) = mailbox::lmtp::serve(stream, None, peer, &doors.site).await {
                tracing::debug!(%error, "a connection to the store broke");
            }
        });
    }
}

impl Ended {
    /// Waits for the sessions, but not for ever. All [`Doors`] have to be gone but those of sessions.
    pub async fn wait(mut self) {
        let _ = tokio::time::timeout(GRACE, self.0.recv()).await;
    }
}
