//! The doors of a mail server: where it listens, and a task for each client.
//!
//! All sessions together have a bound ([`House`]). Clients that have not logged in have a share of it at each protocol, which no
//! other protocol's clients can take, and within it the client that has most displaces itself ([`Strangers`]). Of one address and of
//! one network so many may be there, and come, as at the doors of the gateway ([`Clients`]); clients of this machine stand for many,
//! and are not counted so. A client that is not let in is told so at once: nobody's greeting waits.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use edge::net::accept::{Handler, accept, turn_away};
use edge::net::intercept::is_of_this_machine;
use edge::net::listening::{LOCAL, Socket, network_address};
use edge::net::stream::Stream;
use edge::porch::gate::{House, Place, Refusal};
use edge::settings::{Bounds, Network, TrustSettings};
use edge::trust::clients::{Clients, Who};
use edge::trust::limit::Limit;
use edge::trust::strangers::{Stranger, Strangers};
use edge::upstream::within::Caller;
use mailbox::lmtp::Peer;
use mailbox::managesieve::{self, End, Tls};
use mailbox::{Guest, Site};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::host::Host;
use super::{callers, control, entrusted};
use crate::audit::Log;
use crate::cluster::handing::{self, Handed, Secret};
use crate::cluster::standby;
use crate::config::Door;

/// How long a client may take to shake hands.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(30);

/// How long sessions may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// How long what became of mails under way may take to be noted.
const MARGIN: Duration = Duration::from_secs(2);

/// Connections to the address of a node that have not proved yet that they are another node's.
const INTRODUCTIONS_MAX: usize = 1_024;

/// The time between two writes of logins to the store.
const LOGINS_EVERY: Duration = Duration::from_secs(5);

/// The part of all sessions that the clients of one protocol have that have not logged in: one in so many.
const STRANGERS_PART: usize = 8;

/// Bounds of a client and of the network around it, for those that have not logged in: as many sessions, and within a minute as many
/// new ones.
const OF_A_CLIENT: (u32, u32) = (50, 1_000);
const OF_A_NETWORK: (u32, u32) = (200, 0);

/// Clients that are remembered for that.
const CLIENTS_MAX: usize = 20_000;

/// Bits of an IPv4 and of an IPv6 address that make a client.
const CLIENT_BITS: (u8, u8) = (32, 64);

/// State that the doors of one server share.
#[derive(Clone)]
pub struct Doors {
    site: Arc<Site>,
    house: Arc<House>,
    /// Clients that have not logged in, by protocol.
    strangers: [Arc<Strangers<Place>>; mailbox::Protocol::ALL.len()],
    crowd: Arc<Crowd>,
    host: Arc<dyn Host>,
    /// Whether mailboxes may be shown, where several machines share the store.
    holds: watch::Receiver<bool>,
    /// Held by every session.
    _alive: mpsc::Sender<Infallible>,
}

/// Ends when all sessions have.
pub struct Ended(mpsc::Receiver<Infallible>);

/// Clients that have not logged in, by address and by network.
struct Crowd {
    settings: TrustSettings,
    clients: Mutex<Clients>,
    began: Instant,
}

/// One of them, until it is dropped.
struct Arrived(Arc<Crowd>, Who);

/// A session that was let in.
struct Admitted {
    stranger: Stranger<Place>,
    arrived: Option<Arrived>,
}

impl Crowd {
    fn new() -> Crowd {
        let bounds = |(connections_max, arrivals_max)| Bounds { connections_max, arrivals_max, ..Bounds::default() };
        let (client, prefix) = (bounds(OF_A_CLIENT), bounds(OF_A_NETWORK));
        let settings = TrustSettings { window_seconds: 60, client, prefix, ..TrustSettings::default() };
        Crowd { settings, clients: Mutex::new(Clients::new(CLIENTS_MAX)), began: Instant::now() }
    }

    /// Lets in a client, or says why not; one of this machine stands for many.
    fn arrive(self: &Arc<Crowd>, client: Option<IpAddr>) -> Result<Option<Arrived>, Refusal> {
        let Some(address) = client.filter(|&address| !is_of_this_machine(address)) else { return Ok(None) };
        let who = Who::new(&self.settings, address, bits(address));
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let arrival = self.clients.lock().unwrap_or_else(PoisonError::into_inner).arrive(&self.settings, who, now);
        match arrival {
            Ok(_) => Ok(Some(Arrived(self.clone(), who))),
            Err(Limit::Connections) => Err(Refusal::TooMany),
            Err(_) => Err(Refusal::TooFast),
        }
    }
}

impl Drop for Arrived {
    fn drop(&mut self) {
        self.0.clients.lock().unwrap_or_else(PoisonError::into_inner).leave(self.1);
    }
}

const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { CLIENT_BITS.0 } else { CLIENT_BITS.1 }
}

/// Writes the times of logins to the store, until the server ends.
async fn keep_logins(site: Arc<Site>) {
    let mut ending = site.ending.clone();
    loop {
        let ended = tokio::time::timeout(LOGINS_EVERY, ending.wait_for(|&ending| ending)).await.is_ok();
        site.logins.last.keep(&site.store).await;
        if ended {
            return;
        }
    }
}

impl Doors {
    /// Makes the doors, for so many clients at a time, and starts the queue, the indexing and the writing of logins.
    pub fn new(
        site: Arc<Site>,
        sessions_max: usize,
        host: Arc<dyn Host>,
        holds: watch::Receiver<bool>,
    ) -> (Doors, Ended) {
        let house = Arc::new(House::new(u32::try_from(sessions_max).unwrap_or(u32::MAX)));
        let strangers = mailbox::Protocol::ALL.map(|_| Strangers::new((sessions_max / STRANGERS_PART).max(2)));
        let (alive, ended) = mpsc::channel(1);
        let (sender, queue, indexing) =
            (alive.clone(), mailbox::queue::run(site.clone()), mailbox::indexing::run(site.clone()));
        let logins = keep_logins(site.clone());
        tokio::spawn(async move {
            tokio::join!(queue, tokio::spawn(indexing), logins).0;
            drop(sender);
        });
        (Doors { site, house, strangers, crowd: Arc::new(Crowd::new()), host, holds, _alive: alive }, Ended(ended))
    }

    /// Takes clients until it is dropped.
    pub async fn accept(self, door: Door, socket: Arc<Socket>) {
        accept(door.name(), &socket, &Entrance { doors: self, door }).await;
    }

    /// Takes clients that other nodes of a cluster hand over.
    pub async fn receive(self, socket: Arc<Socket>, secret: Secret, audit: Option<Log>) {
        let introductions = Arc::new(Semaphore::new(INTRODUCTIONS_MAX));
        accept("cluster", &socket, &Reception { doors: self, secret, introductions, audit }).await;
    }

    async fn received(self, stream: Stream, handed: &Handed, audit: Option<Log>) {
        if let Some(caller) = Caller::DOORS.into_iter().find(|caller| standby::within(caller) == Some(&*handed.door)) {
            return self.hand_over(stream, caller);
        }
        let of_command = match (&*handed.door, audit) {
            (entrusted::DOOR, _) => entrusted::serve(stream, &self.site).await,
            (standby::COMMAND, Some(audit)) => control::converse(stream, &self.site, &audit).await,
            _ => return self.client(stream, handed).await,
        };
        if let Err(error) = of_command {
            tracing::debug!(%error, door = handed.door, "connection of another node's command aborted");
        }
    }

    async fn client(self, stream: Stream, handed: &Handed) {
        let Some(door) = Door::named(&handed.door) else { return };
        self.held().await;
        match self.admit(door, handed.client) {
            Ok(admitted) => self.serve(door, stream, handed.client, admitted).await,
            Err(Some(reply)) => turn_away(stream, reply).await,
            Err(None) => {}
        }
    }

    /// Lets in a client, or returns the reply to it.
    fn admit(&self, door: Door, client: Option<IpAddr>) -> Result<Admitted, Option<String>> {
        self.place(door, client).map_err(|refusal| {
            tracing::debug!(door = door.name(), ?client, ?refusal, "refused");
            self.site.numbers.refused.add(door.protocol());
            // A client that expects a handshake cannot read a reply.
            (!door.is_encrypted()).then(|| reply(door.protocol(), refusal))
        })
    }

    fn place(&self, door: Door, client: Option<IpAddr>) -> Result<Admitted, Refusal> {
        let strangers = &self.strangers[door.protocol() as usize];
        let address = client.unwrap_or(LOCAL.ip()).to_canonical();
        let network = Network::around(address, bits(address));
        if door == Door::Lmtp {
            // Nobody logs in here, and none who delivers is to be cut off.
            let stranger = strangers.admit(network, || self.house.place()).ok_or(Refusal::TooMany)?;
            return Ok(Admitted { stranger, arrived: None });
        }
        let arrived = self.crowd.arrive(client)?;
        let stranger = strangers.enter(network, || self.house.place()).ok_or(Refusal::Full)?;
        Ok(Admitted { stranger, arrived })
    }

    async fn serve(self, door: Door, stream: Stream, client: Option<IpAddr>, admitted: Admitted) {
        let _open = self.host.session();
        let _counted = self.site.numbers.open(door.protocol());
        let Admitted { stranger, arrived } = admitted;
        // The place among all sessions stays with this one, from the login on.
        let (stranger, place) = (Arc::new(stranger), Arc::<Mutex<Option<Place>>>::default());
        let (entering, kept) = (stranger.clone(), place.clone());
        let log_in = move || {
            drop(arrived);
            let Some(place) = entering.log_in() else { return false };
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
            true
        };
        let guest = Guest::new(client, stranger.lost(), log_in);
        let spoken = tokio::select! {
            spoken = self.speak(door, stream, guest) => spoken,
            () = self.suspended(), if door != Door::Lmtp => Err(io::Error::other("the lease of the store is over")),
        };
        if let Err(error) = spoken {
            tracing::debug!(door = door.name(), ?client, %error, "session aborted");
        }
    }

    /// Waits until mailboxes may be shown.
    async fn held(&self) {
        let _ = self.holds.clone().wait_for(|&holds| holds).await;
    }

    /// Waits until they may not.
    async fn suspended(&self) {
        if self.holds.clone().wait_for(|&holds| !holds).await.is_err() {
            std::future::pending().await
        }
    }

    async fn speak(&self, door: Door, stream: Stream, guest: Guest) -> io::Result<()> {
        let stream = match door.is_encrypted() {
            true => self.secured(stream, &guest).await?,
            false => stream,
        };
        match door {
            Door::Lmtp => mailbox::lmtp::serve(stream, guest.client, Peer::Stranger, &self.site).await,
            Door::Pop3 | Door::Pop3s => mailbox::pop3::serve(stream, guest, &self.site).await,
            Door::Imap | Door::Imaps => mailbox::imap::serve(stream, guest, &self.site).await,
            Door::Sieve => self.manage_scripts(stream, guest).await,
            Door::Webmail | Door::Webmails => {
                mailbox::webmail::serve(stream, guest, door.is_encrypted(), &self.site).await
            }
        }
    }

    async fn manage_scripts(&self, stream: Stream, guest: Guest) -> io::Result<()> {
        let tls = if self.host.has_tls() { Tls::Offered } else { Tls::Missing };
        match managesieve::serve(stream, guest, tls, &self.site).await? {
            End::Over => Ok(()),
            End::StartTls(stream, guest) => {
                let stream = self.secured(stream, &guest).await?;
                managesieve::serve(stream, guest, Tls::Active, &self.site).await.map(drop)
            }
        }
    }

    async fn secured(&self, stream: Stream, guest: &Guest) -> io::Result<Stream> {
        tokio::select! {
            stream = timeout(HANDSHAKE_WAIT, self.host.secure(stream)) => stream?,
            () = guest.lost() => Err(io::Error::other("another client has the place")),
        }
    }

    /// Takes mails from a door of the gateway in this process.
    pub fn hand_over(&self, stream: Stream, caller: Caller) {
        let doors = self.clone();
        tokio::spawn(async move {
            if let Err(error) = callers::serve(stream, &caller, &doors.site).await {
                tracing::debug!(%error, "connection aborted");
            }
        });
    }
}

/// The way from a socket to a session.
struct Entrance {
    doors: Doors,
    door: Door,
}

impl Handler for Entrance {
    type Place = Admitted;

    async fn enter(&self, _stream: &Stream, peer: SocketAddr) -> Result<Admitted, Option<String>> {
        self.doors.held().await;
        self.doors.admit(self.door, network_address(peer))
    }

    fn begin(&self, stream: Stream, peer: SocketAddr, admitted: Admitted) {
        tokio::spawn(self.doors.clone().serve(self.door, stream, network_address(peer), admitted));
    }
}

/// The way from another node of the cluster to a session.
struct Reception {
    doors: Doors,
    secret: Secret,
    introductions: Arc<Semaphore>,
    /// The log of recalls by commands.
    audit: Option<Log>,
}

impl Handler for Reception {
    type Place = OwnedSemaphorePermit;

    async fn enter(&self, _stream: &Stream, _peer: SocketAddr) -> Result<OwnedSemaphorePermit, Option<String>> {
        self.introductions.clone().try_acquire_owned().map_err(|_| None)
    }

    fn begin(&self, mut stream: Stream, _peer: SocketAddr, place: OwnedSemaphorePermit) {
        let (doors, secret, audit) = (self.doors.clone(), self.secret.clone(), self.audit.clone());
        tokio::spawn(async move {
            let handed = handing::take(&mut stream, &secret).await;
            drop(place);
            match handed {
                Ok(handed) => doors.received(stream, &handed, audit).await,
                Err(error) => tracing::warn!(%error, "connection to the cluster address refused"),
            }
        });
    }
}

/// The reply to a client that is not let in.
fn reply(protocol: mailbox::Protocol, refusal: Refusal) -> String {
    match protocol {
        mailbox::Protocol::Lmtp => refusal.smtp(),
        mailbox::Protocol::Pop3 => refusal.pop3(),
        mailbox::Protocol::Imap => refusal.imap(),
        mailbox::Protocol::Sieve => refusal.managesieve(),
        mailbox::Protocol::Webmail => refusal.http(),
    }
}

impl Ended {
    /// Waits for the sessions, and for mails under way, but not for ever. All [`Doors`] have to be gone but those of sessions.
    pub async fn wait(mut self, mails: Duration) {
        let _ = tokio::time::timeout(GRACE.max(mails.saturating_add(MARGIN)), self.0.recv()).await;
    }
}
