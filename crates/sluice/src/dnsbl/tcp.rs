//! Queries by TCP (RFC 7766), whole zones, and the metrics by HTTP. A few connections, each for a short time.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ::dnsbl::answer::{Outcome, Response, Scratch, Transport, respond};
use edge::net::accept::{Handler, accept};
use edge::net::http::{self, Page};
use edge::net::stream::Stream;
use edge::porch::gate::{Gate, House, Share, Ticket};
use edge::settings::Network;
use proto::dns::{Frames, Query, frame};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, timeout, timeout_at};

use super::load::now;
use super::shared::Shared;

/// How many connections there are at most. Further ones are closed at once.
const CONNECTIONS_MAX: u32 = 1_024;

/// How many of them a network has at most.
const OF_A_NETWORK: Share = Share { open_max: Some(128), minute_max: None };

/// Bits of an IPv4 and of an IPv6 address that make a network.
const NETWORK_BITS: (u8, u8) = (24, 48);

/// How long a client may take to ask, from one query to the next, or to read a message.
const IDLE: Duration = Duration::from_secs(10);

/// How many zones are sent at once at most.
const TRANSFERS_MAX: usize = 4;

/// How many messages of a zone wait for a client that reads slowly.
const TRANSFER_AHEAD: usize = 4;

/// The longest query.
const QUERY_BYTES_MAX: usize = 1_024;

/// Opens a listener.
pub fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(128)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A transfer that is counted, until it is dropped.
struct Transfer(Arc<Shared>);

impl Transfer {
    /// None if there are too many.
    fn begin(shared: &Arc<Shared>) -> Option<Transfer> {
        let transfer = Transfer(shared.clone());
        (shared.transfers.fetch_add(1, Ordering::Relaxed) < TRANSFERS_MAX).then_some(transfer)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.transfers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Takes connections until the program ends.
pub async fn run(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    let gate = Arc::new(Gate::new(Arc::new(House::new(CONNECTIONS_MAX))));
    accept("DNS", &edge::net::listening::Socket::Tcp(listener), &Clients { shared, gate }).await;
}

/// Clients of a listener.
struct Clients {
    shared: Arc<Shared>,
    gate: Arc<Gate>,
}

impl Handler for Clients {
    type Place = Ticket;

    async fn enter(&self, _stream: &Stream, peer: SocketAddr) -> Result<Ticket, Option<String>> {
        let mut ticket = self.gate.enter(CONNECTIONS_MAX).map_err(|_| None)?;
        let network = Network::around(peer.ip(), if peer.is_ipv4() { NETWORK_BITS.0 } else { NETWORK_BITS.1 });
        ticket.count(network, &OF_A_NETWORK, std::time::Instant::now()).map_err(|_| None)?;
        Ok(ticket)
    }

    fn begin(&self, stream: Stream, peer: SocketAddr, ticket: Ticket) {
        let shared = self.shared.clone();
        tokio::spawn(async move {
            let _ = converse(stream, peer.ip(), &shared).await;
            drop(ticket);
        });
    }
}

async fn converse(mut stream: Stream, client: IpAddr, shared: &Arc<Shared>) -> io::Result<()> {
    let mut frames = Frames::new(QUERY_BYTES_MAX);
    let mut scratch = Scratch::default();
    let (mut input, mut out) = ([0; 4_096], Vec::new());
    // Bytes alone do not keep a connection open: whole queries do.
    let mut until = Instant::now() + IDLE;
    loop {
        let count = timeout_at(until, stream.read(&mut input)).await??;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &input[..count];
        loop {
            let taken = frames.feed(rest);
            rest = &rest[taken..];
            while let Some(packet) = frames.next() {
                answer(&mut stream, &packet, client, shared, &mut scratch, &mut out).await?;
                until = Instant::now() + IDLE;
            }
            if frames.has_overflowed() {
                return Ok(());
            }
            if rest.is_empty() {
                break;
            }
        }
    }
}

async fn answer(
    stream: &mut Stream,
    packet: &[u8],
    client: IpAddr,
    shared: &Arc<Shared>,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let (zones, _) = shared.zones();
    let counts = &shared.counts;
    counts.queries[1].fetch_add(1, Ordering::Relaxed);
    match respond(&zones, &shared.options, packet, (client, Transport::Tcp), now(), scratch, out) {
        Outcome::Silent => Err(io::ErrorKind::InvalidData.into()),
        Outcome::Respond(response) => {
            let count = match response {
                Response::Positive => &counts.positive,
                Response::Negative => &counts.negative,
                Response::Error => &counts.errors,
            };
            count.fetch_add(1, Ordering::Relaxed);
            send(stream, out).await
        }
        Outcome::Transfer(index) => {
            let Ok(query) = Query::parse(packet) else { return Ok(()) };
            let allowed = shared.settings.transfer_to.iter().any(|network| network.holds(client));
            if !allowed {
                ::dnsbl::transfer::refuse(&query, out);
                return send(stream, out).await;
            }
            counts.transfers.fetch_add(1, Ordering::Relaxed);
            match Transfer::begin(shared) {
                Some(counted) => transfer(stream, packet.to_vec(), index, counted).await,
                None => {
                    ::dnsbl::transfer::refuse(&query, out);
                    send(stream, out).await
                }
            }
        }
    }
}

/// Sends a zone. It is written by a thread of its own, so that others are answered meanwhile, and no faster than it is read.
async fn transfer(stream: &mut Stream, packet: Vec<u8>, index: usize, counted: Transfer) -> io::Result<()> {
    let (messages, mut written) = tokio::sync::mpsc::channel(TRANSFER_AHEAD);
    tokio::task::spawn_blocking(move || write_zone(&packet, index, &counted.0, &messages));
    while let Some(message) = written.recv().await {
        send(stream, &message).await?;
    }
    Ok(())
}

/// Writes the messages of a zone, until nobody reads them any more.
fn write_zone(packet: &[u8], index: usize, shared: &Shared, messages: &Sender<Vec<u8>>) {
    let (zones, _) = shared.zones();
    let (Ok(query), Some(zone)) = (Query::parse(packet), zones.zones().get(index)) else { return };
    let mut out = Vec::new();
    let Some(mut transfer) = ::dnsbl::transfer::Transfer::new(zone, &query) else {
        ::dnsbl::transfer::refuse(&query, &mut out);
        let _ = messages.blocking_send(out);
        return;
    };
    while transfer.next(&mut out) {
        if messages.blocking_send(out.clone()).is_err() {
            return;
        }
    }
}

async fn send(stream: &mut Stream, message: &[u8]) -> io::Result<()> {
    let Some(bytes) = frame(message) else { return Ok(()) };
    timeout(IDLE, stream.write_all(&bytes)).await?
}

/// Shows the metrics, whatever is asked for.
pub async fn run_metrics(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    http::serve(listener, "metrics", move |_| Some(Page::ok(metrics(&shared)))).await;
}

fn metrics(shared: &Shared) -> String {
    let counts = &shared.counts;
    let mut page = String::new();
    for (name, help, value) in [
        ("queries_udp_total", "Queries by UDP.", &counts.queries[0]),
        ("queries_tcp_total", "Queries by TCP.", &counts.queries[1]),
        ("positive_total", "Responses with answers.", &counts.positive),
        ("negative_total", "Responses without answers.", &counts.negative),
        ("errors_total", "Responses that refuse or fail.", &counts.errors),
        ("silent_total", "Packets that got no response.", &counts.silent),
        ("limited_total", "Queries that a limit left without response.", &counts.limited),
        ("response_bytes_total", "Bytes of responses by UDP.", &counts.bytes),
        ("transfers_total", "Zones sent whole.", &counts.transfers),
        ("reloads_total", "Data sets read anew.", &counts.reloads),
        ("reload_failures_total", "Data sets that could not be read anew.", &counts.failures),
    ] {
        let value = value.load(Ordering::Relaxed);
        page += &format!(
            "# HELP sluice_dnsbl_{name} {help}\n# TYPE sluice_dnsbl_{name} counter\nsluice_dnsbl_{name} {value}\n"
        );
    }
    page += "# HELP sluice_dnsbl_listings Listings of a zone.\n# TYPE sluice_dnsbl_listings gauge\n";
    let (zones, _) = shared.zones();
    for zone in zones.zones() {
        let listings: usize = zone.datasets.iter().map(|dataset| dataset.len()).sum();
        page += &format!("sluice_dnsbl_listings{{zone=\"{}\"}} {listings}\n", zone.name);
    }
    let mut sets: Vec<_> = zones.zones().iter().flat_map(|zone| &zone.datasets).collect();
    sets.sort_by_key(|set| Arc::as_ptr(set));
    sets.dedup_by_key(|set| Arc::as_ptr(set));
    let bytes: usize = sets.iter().map(|set| set.memory_bytes()).sum();
    page += "# HELP sluice_dnsbl_data_bytes Memory of all data.\n# TYPE sluice_dnsbl_data_bytes gauge\n";
    page += &format!("sluice_dnsbl_data_bytes {bytes}\n");
    page
}
