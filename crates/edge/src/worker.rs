//! One event loop: it accepts connections and runs their sessions.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, LocalSet};

use crate::beat::Beat;
use crate::clamd;
use crate::mailbox::imap;
use crate::mailbox::pop3;
use crate::milter;
use crate::net::accept::{Handler, turn_away};
use crate::net::http;
use crate::net::intercept;
use crate::net::listening::{LOCAL, network_address};
use crate::net::relay;
use crate::net::stream::Stream;
use crate::porch::control::Control;
use crate::porch::door::Door;
use crate::porch::gate::{Refusal, Ticket};
use crate::porch::listeners::Listeners;
use crate::porch::pages;
use crate::porch::shared::Shared;
use crate::scored;
use crate::settings::{Address, ListenerTls, Protocol, Speaks};
use crate::smtp::admission;
use crate::smtp::client::Came;
use crate::upstream::hop::Hop;
use crate::upstream::icap::Services;
use crate::upstream::origins::Origins;
use crate::upstream::smtp_hop::Leases;
use crate::web;

/// Runs an event loop until the program stops and its last session has ended, and `beside` with it, which need not end.
pub fn run(
    event_loop: &Runtime,
    control: watch::Receiver<Control>,
    ready: mpsc::Sender<()>,
    beat: Arc<Beat>,
    beside: impl Future<Output = ()> + 'static,
) {
    let tasks = LocalSet::new();
    tasks.spawn_local(beat.go_on());
    tasks.spawn_local(beside);
    tasks.block_on(event_loop, serve(control, ready));
}

async fn serve(mut control: watch::Receiver<Control>, ready: mpsc::Sender<()>) {
    let runtime = control.borrow_and_update().runtime.clone();
    let shared = Rc::new(Shared {
        runtime: RefCell::new(runtime),
        upstreams: Leases::default(),
        origins: Origins::default(),
        services: Services::default(),
        control: control.clone(),
    });
    let mut listeners = Listeners::default();
    shared.open(&mut listeners);
    let _ = ready.send(()).await;
    drop(ready);
    while control.changed().await.is_ok() {
        let Control { runtime, handed_over, stopping } = control.borrow_and_update().clone();
        if stopping || handed_over {
            break;
        }
        shared.runtime.replace(runtime);
        shared.open(&mut listeners);
    }
    // /metrics and /readyz are served until the last session ends, unless a successor serves them.
    let handed_over = control.borrow().handed_over;
    let shows = listeners.retain(|address| !handed_over && shared.is_metrics(address));
    drop(control);
    // Each session holds what is shared while it lasts; so do the accepting tasks until they are gone.
    while Rc::strong_count(&shared) > 1 || (shows && shared.others_have_sessions()) {
        shared.upstreams.clear();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Shared {
    /// Accepts on the sockets that are new, and no more on those that are gone.
    fn open(self: &Rc<Shared>, listeners: &mut Listeners) {
        let runtime = self.runtime.borrow().clone();
        let all = || runtime.doors.iter().map(|door| &door.sockets).chain(&runtime.clamd.sockets);
        listeners
            .retain(|address| all().any(|sockets| sockets.address.to_string() == address) || self.is_metrics(address));
        for door in &runtime.doors {
            if listeners.open(&door.sockets, Entrance { shared: self.clone(), address: door.address.clone() }) {
                tokio::task::spawn_local(probe(self.clone(), door.clone()));
            }
        }
        for sockets in &runtime.clamd.sockets {
            listeners.open(sockets, clamd::accept::Entrance(self.clone()));
        }
        if let Some((address, task)) = runtime.settings.metrics.zip(self.show_metrics()) {
            listeners.add(address.to_string(), task);
        }
    }

    /// Whether there are sessions still, on whichever event loop.
    fn others_have_sessions(&self) -> bool {
        self.runtime.borrow().metrics.sessions_of_gateway() > 0
    }

    fn is_metrics(&self, address: &str) -> bool {
        self.runtime.borrow().settings.metrics.is_some_and(|metrics| metrics.to_string() == address)
    }

    /// Shows the metrics, on the event loop that gets the socket first.
    fn show_metrics(&self) -> Option<JoinHandle<()>> {
        let socket = self.runtime.borrow().metrics_socket.lock().expect("no holder panics").take()?;
        let listener = TcpListener::from_std(socket).ok()?;
        let control = self.control.clone();
        let page = move |path: &[u8]| {
            let control = control.borrow().clone();
            pages::page(&control, path)
        };
        Some(tokio::spawn(http::serve(listener, "metrics", page)))
    }

    /// The door with the way that a connection takes from it.
    fn aim(&self, door: Arc<Door>, stream: &Stream, client: SocketAddr) -> io::Result<Arc<Door>> {
        let (Some(how), Stream::Tcp(stream)) = (door.listener.hop.transparent, stream) else { return Ok(door) };
        let runtime = self.runtime.borrow();
        let server = intercept::destination(how, stream, runtime.doors.iter().filter_map(|door| door.address.tcp()));
        let door = server.and_then(|server| door.towards(server, client));
        door.map(Arc::new).inspect_err(|error| {
            runtime.metrics.sessions_refused_total.add(1);
            tracing::warn!(%client, %error, "a redirected connection was refused");
        })
    }

    /// Counts a client that is not let in. The reply, if it has one.
    fn refused(&self, door: &Door, client: SocketAddr, refusal: Refusal) -> Option<String> {
        self.runtime.borrow().metrics.sessions_refused_total.add(1);
        tracing::debug!(%client, ?refusal, "refused");
        // A client that expects a handshake cannot read a reply.
        let is_clear = door.listener.place.tls != ListenerTls::Implicit;
        is_clear.then(|| reply(door.listener.protocol(), refusal)).flatten()
    }

    /// The door at an address, with the settings in force.
    fn door(&self, address: &Address) -> Option<Arc<Door>> {
        self.runtime.borrow().doors.iter().find(|door| door.address == *address).cloned()
    }
}

/// Learns what the next hop offers, before the first client asks.
async fn probe(shared: Rc<Shared>, door: Arc<Door>) {
    let hostname = shared.runtime.borrow().settings.hostname.clone();
    Hop::know(&door.route, &hostname, &shared.upstreams).await;
}

/// The way from a socket to a session.
struct Entrance {
    shared: Rc<Shared>,
    address: Address,
}

impl Handler for Entrance {
    type Place = (Arc<Door>, Ticket);

    async fn enter(&self, stream: &Stream, peer: SocketAddr) -> Result<Self::Place, Option<String>> {
        let door = self.shared.door(&self.address).ok_or(None)?;
        let door = self.shared.aim(door, stream, peer).map_err(|_| None)?;
        // The connection counts before its PROXY header is read.
        match door.gate.enter(door.listener.guests.connections_max) {
            Ok(ticket) => Ok((door, ticket)),
            Err(refusal) => Err(self.shared.refused(&door, peer, refusal)),
        }
    }

    fn begin(&self, stream: Stream, peer: SocketAddr, (door, ticket): Self::Place) {
        let (shared, address) = (self.shared.clone(), network_address(peer));
        match door.listener.guests.proxy_from.iter().any(|trusted| trusted.means(address)) {
            true => drop(tokio::task::spawn_local(admit_behind(shared, door, ticket, stream, peer))),
            false => admit(&shared, door, ticket, stream, peer),
        }
    }
}

/// Lets in the client of a relay.
async fn admit_behind(shared: Rc<Shared>, door: Arc<Door>, ticket: Ticket, mut stream: Stream, relay: SocketAddr) {
    match relay::client_behind(&mut stream, relay).await {
        Ok(client) => admit(&shared, door, ticket, stream, client),
        Err(error) => tracing::warn!(%relay, %error, "invalid PROXY header"),
    }
}

fn admit(shared: &Rc<Shared>, door: Arc<Door>, mut ticket: Ticket, stream: Stream, client: SocketAddr) {
    let door = door.serving(client, stream.local_address().unwrap_or(LOCAL));
    let admitted = match door.listener.guests.lets_in(network_address(client)) {
        true => ticket.belongs_to(&door.listener, client.ip(), Instant::now()),
        false => Err(Refusal::NotWanted),
    };
    match admitted.map_err(|refusal| shared.refused(&door, client, refusal)) {
        Ok(()) => {
            shared.runtime.borrow().metrics.sessions_total.add(1);
            begin(shared.clone(), door, client, ticket, stream);
        }
        Err(Some(reply)) => drop(tokio::spawn(turn_away(stream, reply))),
        Err(None) => {}
    }
}

/// Runs a session of what the door speaks.
fn begin(shared: Rc<Shared>, door: Arc<Door>, client: SocketAddr, ticket: Ticket, stream: Stream) {
    match &door.listener.speaks {
        Speaks::Smtp(settings) | Speaks::Lmtp(settings) => {
            let came = Came { settings: settings.clone(), door, client };
            tokio::task::spawn_local(admission::run(shared, came, ticket, stream));
        }
        Speaks::Pop3 => {
            tokio::task::spawn_local(pop3::run(shared, door, client, ticket, stream));
        }
        Speaks::Imap => {
            tokio::task::spawn_local(imap::run(shared, door, client, ticket, stream));
        }
        Speaks::Milter(_) => {
            tokio::task::spawn_local(milter::run(shared, door, client, ticket, stream));
        }
        Speaks::Spamd => {
            tokio::task::spawn_local(scored::run::<proto::spamd::Server>(shared, door, client, ticket, stream));
        }
        Speaks::Rspamd => {
            tokio::task::spawn_local(scored::run::<proto::rspamd::Server>(shared, door, client, ticket, stream));
        }
        Speaks::Icap => {
            tokio::task::spawn_local(web::icap::run(shared, door, client, ticket, stream));
        }
        Speaks::Http(settings) => {
            let settings = settings.clone();
            tokio::task::spawn_local(web::http::run(shared, door, settings, client, ticket, stream));
        }
    }
}

/// The reply to a client that is not let in.
fn reply(protocol: Protocol, refusal: Refusal) -> Option<String> {
    match protocol {
        Protocol::Smtp | Protocol::Lmtp => Some(refusal.smtp()),
        Protocol::Pop3 => Some(refusal.pop3()),
        Protocol::Imap => Some(refusal.imap()),
        // A mail server does by itself what it is told to do without its filter, and a proxy asks again.
        Protocol::Milter | Protocol::Icap => None,
        // Clients of Rspamd defer the mail, or hand it on.
        Protocol::Rspamd | Protocol::Http => Some(refusal.http()),
        Protocol::Spamd => Some(refusal.spamd()),
    }
}
