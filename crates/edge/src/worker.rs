//! One event loop: it accepts connections and runs their sessions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::timeout;

use crate::beat::Beat;
use crate::clamd::accept::Accepting;
use crate::mailbox::imap;
use crate::mailbox::pop3;
use crate::milter;
use crate::net::accept::accepted;
use crate::net::http::{self as pages, Page};
use crate::net::intercept;
use crate::net::listening::{LOCAL, Socket, network_address};
use crate::net::relay;
use crate::net::stream::Stream;
use crate::porch::control::Control;
use crate::porch::door::{Door, Refusal, Ticket};
use crate::porch::shared::Shared;
use crate::scored;
use crate::settings::{Address, ListenerTls, Protocol, Speaks};
use crate::smtp::session::{self, Came};
use crate::upstream::hop::Hop;
use crate::upstream::icap::Services;
use crate::upstream::origins::Origins;
use crate::upstream::smtp_hop::Leases;
use crate::web::{http, icap};

/// Runs an event loop until the program stops and its last session has ended, and `beside` with it, which need not end.
pub fn run(
    control: watch::Receiver<Control>,
    ready: mpsc::Sender<()>,
    beat: Arc<Beat>,
    beside: impl Future<Output = ()> + 'static,
) {
    let event_loop =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an event loop can start");
    let tasks = LocalSet::new();
    tasks.spawn_local(beat.go_on());
    tasks.spawn_local(beside);
    tasks.block_on(&event_loop, serve(control, ready));
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
    let mut accepting: HashMap<String, JoinHandle<()>> = HashMap::new();
    let mut clamd = Accepting::default();
    shared.open(&mut accepting);
    clamd.open(&shared);
    let _ = ready.send(()).await;
    drop(ready);
    while control.changed().await.is_ok() {
        let Control { runtime, handed_over, stopping } = control.borrow_and_update().clone();
        if stopping || handed_over {
            break;
        }
        shared.runtime.replace(runtime);
        shared.open(&mut accepting);
        clamd.open(&shared);
    }
    clamd.stop();
    // The numbers are shown to the last, and that nobody new should come; unless another process shows its own there.
    let handed_over = control.borrow().handed_over;
    let shows = |address: &String| !handed_over && shared.is_metrics(address);
    accepting.iter().filter(|(address, _)| !shows(address)).for_each(|(_, task)| task.abort());
    let shows = accepting.keys().any(shows);
    drop(control);
    // Each session holds what is shared while it lasts; so do the accepting tasks until they are gone.
    while Rc::strong_count(&shared) > 1 || (shows && shared.others_have_sessions()) {
        shared.upstreams.clear();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Shared {
    /// Starts to accept on the sockets that are new, and stops on those that are gone.
    fn open(self: &Rc<Shared>, accepting: &mut HashMap<String, JoinHandle<()>>) {
        let runtime = self.runtime.borrow().clone();
        accepting.retain(|address, task| {
            let kept =
                runtime.doors.iter().any(|door| door.address.to_string() == *address) || self.is_metrics(address);
            if !kept {
                task.abort();
            }
            kept
        });
        for door in &runtime.doors {
            let Some(socket) = door.sockets.take() else { continue };
            match socket {
                Ok(socket) => {
                    let task = tokio::task::spawn_local(accept(self.clone(), socket, door.address.clone()));
                    accepting.insert(door.address.to_string(), task);
                    tokio::task::spawn_local(probe(self.clone(), door.clone()));
                }
                Err(error) => tracing::error!(address = %door.address, %error, "cannot accept"),
            }
        }
        if let Some(address) = runtime.settings.metrics
            && let std::collections::hash_map::Entry::Vacant(vacant) = accepting.entry(address.to_string())
            && let Some(task) = self.show_metrics()
        {
            vacant.insert(task);
        }
    }

    /// Whether there are sessions still, on whichever event loop.
    fn others_have_sessions(&self) -> bool {
        self.runtime.borrow().metrics.sessions_of_gateway() > 0
    }

    fn is_metrics(&self, address: &str) -> bool {
        self.runtime.borrow().settings.metrics.is_some_and(|metrics| metrics.to_string() == address)
    }

    /// Shows the numbers, on the event loop that gets the socket first.
    fn show_metrics(self: &Rc<Shared>) -> Option<JoinHandle<()>> {
        let socket = self.runtime.borrow().metrics_socket.lock().expect("no holder panics").take()?;
        let listener = TcpListener::from_std(socket).ok()?;
        let shared = Rc::downgrade(self);
        let page = move |path: &[u8]| shared.upgrade()?.page(path);
        Some(tokio::task::spawn_local(pages::serve(listener, page)))
    }

    /// The page at a path: `GET /metrics`, `/healthz` (the program runs) and `/readyz` (and takes new sessions), meant for a private
    /// address.
    fn page(&self, path: &[u8]) -> Option<Page> {
        match path {
            b"/metrics" => Some(Page::ok(self.numbers())),
            b"/healthz" => Some(Page::ok("ok\n".into())),
            b"/readyz" if self.control.borrow().stopping => Some(Page::unavailable("stopping\n".into())),
            b"/readyz" if self.runtime.borrow().signatures.is_too_old() => {
                Some(Page::unavailable("signatures too old\n".into()))
            }
            b"/readyz" => Some(Page::ok("ready\n".into())),
            _ => None,
        }
    }

    fn numbers(&self) -> String {
        let runtime = self.runtime.borrow();
        let metrics = &runtime.metrics;
        for (count, now) in [
            (&metrics.head_pool_free_bytes, runtime.means.pool.free_bytes() as u64),
            (&metrics.signatures, runtime.signatures.count),
            (&metrics.signature_files, runtime.signatures.files),
            (&metrics.database_built_seconds, runtime.signatures.built.unwrap_or(0)),
            (&metrics.database_generation, runtime.signatures.generation),
            (&metrics.resident_bytes, resident_bytes()),
            (&metrics.trust_clients, runtime.warden.clients().count() as u64),
        ] {
            count.set(now);
        }
        let more = (runtime.measure)(metrics);
        metrics.text() + &runtime.identities.text() + &more
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

    /// The door at an address, with the settings in force.
    fn door(&self, address: &Address) -> Option<Arc<Door>> {
        self.runtime.borrow().doors.iter().find(|door| door.address == *address).cloned()
    }
}

/// The memory of the program that is in RAM (proc_pid_statm(5)); 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Learns what the next hop offers, before the first client asks.
async fn probe(shared: Rc<Shared>, door: Arc<Door>) {
    let hostname = shared.runtime.borrow().settings.hostname.clone();
    let _ = Hop::probe(&door.route, &hostname, &shared.upstreams).await;
}

async fn accept(shared: Rc<Shared>, socket: Socket, address: Address) {
    loop {
        let (stream, client) = accepted(&address, || socket.accept()).await;
        let Some(door) = shared.door(&address) else { return };
        let Ok(door) = shared.aim(door, &stream, client) else { continue };
        let speaks_for_others =
            door.listener.guests.proxy_from.iter().any(|trusted| trusted.means(network_address(client)));
        // Whoever it is, it is there, and counts.
        let ticket = match door.gate.enter(&door.listener) {
            Ok(ticket) => ticket,
            Err(refusal) => {
                refuse(&shared, &door, stream, client, refusal);
                continue;
            }
        };
        if speaks_for_others {
            tokio::task::spawn_local(admit_behind(shared.clone(), door, ticket, stream, client));
        } else {
            admit(&shared, door, ticket, stream, client);
        }
    }
}

/// Lets in who stands behind a relay.
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
    match admitted {
        Ok(()) => {
            shared.runtime.borrow().metrics.sessions_total.add(1);
            begin(shared.clone(), door, client, ticket, stream);
        }
        Err(refusal) => refuse(shared, &door, stream, client, refusal),
    }
}

fn refuse(shared: &Shared, door: &Door, stream: Stream, client: SocketAddr, refusal: Refusal) {
    shared.runtime.borrow().metrics.sessions_refused_total.add(1);
    tracing::debug!(%client, ?refusal, "refused");
    // A client that expects a handshake would not understand a word.
    if door.listener.place.tls != ListenerTls::Implicit {
        tokio::task::spawn_local(turn_away(stream, door.listener.protocol(), refusal));
    }
}

/// Runs a session of what the door speaks.
fn begin(shared: Rc<Shared>, door: Arc<Door>, client: SocketAddr, ticket: Ticket, stream: Stream) {
    match &door.listener.speaks {
        Speaks::Smtp(settings) | Speaks::Lmtp(settings) => {
            let came = Came { settings: settings.clone(), door, client };
            tokio::task::spawn_local(session::run(shared, came, ticket, stream));
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
            tokio::task::spawn_local(icap::run(shared, door, client, ticket, stream));
        }
        Speaks::Http(settings) => {
            let settings = settings.clone();
            tokio::task::spawn_local(http::run(shared, door, settings, client, ticket, stream));
        }
    }
}

/// How long a client may take to hear that it is not let in.
const REFUSAL_WAIT: Duration = Duration::from_secs(10);

/// Tells a client that it is not let in.
async fn turn_away(mut stream: Stream, protocol: Protocol, refusal: Refusal) {
    let (code, text) = refusal.text();
    let line = match protocol {
        Protocol::Smtp | Protocol::Lmtp => format!("{code} {text}\r\n"),
        Protocol::Pop3 if refusal == Refusal::NotWanted => format!("-ERR [SYS/PERM] {text}\r\n"),
        Protocol::Pop3 => format!("-ERR [SYS/TEMP] {text}\r\n"),
        Protocol::Imap if refusal == Refusal::NotWanted => format!("* BYE {text}\r\n"),
        Protocol::Imap => format!("* BYE [UNAVAILABLE] {text}\r\n"),
        // A mail server does by itself what it is told to do without its filter, and a proxy asks again.
        Protocol::Milter | Protocol::Icap => return,
        // spamc goes on to the next server, or hands the mail on as it came.
        // Its clients defer the mail, or hand it on.
        Protocol::Rspamd | Protocol::Http => {
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".into()
        }
        Protocol::Spamd => format!("SPAMD/1.0 69 Service Unavailable: {text}\r\n"),
    };
    let _ = timeout(REFUSAL_WAIT, stream.write_all(line.as_bytes())).await;
}
