//! Queries by UDP: as many packets as have come are read in one call and answered in one.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ::dnsbl::answer::{Outcome, Response, Scratch, Transport, respond};
use ::dnsbl::limit::{Limiter, Verdict};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use proto::dns::{Query, Writer, flag};
use socket2::{Domain, Protocol, Socket, Type};

use super::load::now;
use super::send::Sender;
use super::shared::Shared;

/// How many packets are read at once.
const BATCH: usize = 128;

/// The longest query that is read. Longer ones are cut off and then malformed.
const QUERY_BYTES_MAX: usize = 1_024;

/// Size of the socket's receive buffer.
const SOCKET_BYTES: usize = 4 << 20;

/// Length of a pause, without the timer slack of a thread (50 µs). No resolver notices it beside the way through a
/// network.
const PAUSE: Duration = Duration::from_micros(100);

/// A batch from which on no pause is made: packets come as fast as they are answered.
const PAUSE_BELOW: usize = BATCH / 2;

/// How many packets a pause has to bring to be worth its while.
const PAUSE_PAYS: usize = 4;

/// How many batches are answered without a pause after one that did not pay, at first and at most.
const WITHOUT_PAUSE: (u32, u32) = (16, 4_096);

/// How often a thread that has nothing to do looks whether the program ends.
const IDLE: Duration = Duration::from_millis(200);

/// Opens sockets that share an address. Returns them with the address that they have.
pub fn open(address: SocketAddr, count: usize) -> io::Result<(Vec<OwnedFd>, SocketAddr)> {
    let mut address = address;
    let mut sockets = Vec::new();
    for _ in 0..count.max(1) {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_port(true)?;
        // The kernel gives what it may.
        let _ = socket.set_recv_buffer_size(SOCKET_BYTES);
        let _ = socket.set_send_buffer_size(SOCKET_BYTES);
        socket.bind(&address.into())?;
        socket.set_read_timeout(Some(IDLE))?;
        let socket = UdpSocket::from(socket);
        address = socket.local_addr()?;
        sockets.push(OwnedFd::from(socket));
    }
    Ok((sockets, address))
}

/// Answers until the program ends.
pub fn run(socket: &OwnedFd, shared: &Shared) {
    let mut packets = vec![[0_u8; QUERY_BYTES_MAX]; BATCH];
    let mut responses: Vec<Vec<u8>> = vec![Vec::new(); BATCH];
    let mut peers: Vec<Option<SocketAddr>> = Vec::with_capacity(BATCH);
    let mut clients: Vec<SocketAddr> = Vec::with_capacity(BATCH);
    let mut incoming = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
    let mut sender = Sender::new(BATCH);
    let mut lens = [0_usize; BATCH];
    let mut scratch = Scratch::default();
    let (mut zones, mut generation) = shared.zones();
    let mut limits = Limits::new(shared);
    let mut pauses = Pauses::default();
    while !shared.is_stopping() {
        let Some(count) = receive(socket, &mut packets, &mut incoming, &mut lens, &mut peers) else {
            continue;
        };
        let pause = pauses.after(count);
        if generation != shared.generation() {
            (zones, generation) = shared.zones();
        }
        let seconds = now();
        clients.clear();
        let mut tally = Tally::default();
        for index in 0..count {
            let Some(peer) = peers[index] else { continue };
            let client = peer.ip();
            if limits.leaves_out(client) {
                tally.limited += 1;
                continue;
            }
            let packet = &packets[index][..lens[index]];
            let out = &mut responses[clients.len()];
            let outcome =
                respond(&zones, &shared.options, packet, (client, Transport::Udp), seconds, &mut scratch, out);
            if limits.leaves_out_response(client, outcome, packet, out) {
                tally.limited += 1;
                continue;
            }
            tally.add(outcome, out.len());
            if let Outcome::Respond(_) = outcome {
                clients.push(peer);
            }
        }
        tally.settle(shared, count);
        sender.send(socket, &responses[..clients.len()], &clients);
        if pause {
            std::thread::sleep(PAUSE);
        }
    }
}

/// When a thread waits a little before it reads again. Waking up for each packet costs more than answering it: under a load
/// that does not fill a core a pause lets packets come together, and their responses go together ([`Sender`]). Where it
/// brings none, as with a client that waits for each answer, it is tried ever more seldom.
#[derive(Debug, Default)]
struct Pauses {
    has_paused: bool,
    /// Batches without a pause: still to come, and after the last that did not pay.
    left: u32,
    after_failure: u32,
}

impl Pauses {
    /// Whether a pause is made after a batch of so many packets.
    fn after(&mut self, count: usize) -> bool {
        if !self.has_paused {
            self.left = self.left.saturating_sub(1);
        } else if count >= PAUSE_PAYS {
            self.after_failure = 0;
        } else {
            self.after_failure = (self.after_failure.saturating_mul(2)).clamp(WITHOUT_PAUSE.0, WITHOUT_PAUSE.1);
            self.left = self.after_failure;
        }
        self.has_paused = self.left == 0 && count < PAUSE_BELOW;
        self.has_paused
    }
}

/// Waits for packets, and reads those that have come. `None` if there was none.
fn receive(
    socket: &OwnedFd,
    packets: &mut [[u8; QUERY_BYTES_MAX]],
    headers: &mut MultiHeaders<SockaddrStorage>,
    lens: &mut [usize],
    peers: &mut Vec<Option<SocketAddr>>,
) -> Option<usize> {
    peers.clear();
    let mut slices: Vec<[IoSliceMut<'_>; 1]> = packets.iter_mut().map(|packet| [IoSliceMut::new(packet)]).collect();
    let received = recvmmsg(socket.as_raw_fd(), headers, slices.iter_mut(), MsgFlags::MSG_WAITFORONE, None).ok()?;
    for (message, len) in received.zip(lens.iter_mut()) {
        *len = message.bytes;
        peers.push(message.address.as_ref().and_then(address));
    }
    Some(peers.len()).filter(|&count| count > 0)
}

fn address(peer: &SockaddrStorage) -> Option<SocketAddr> {
    match (peer.as_sockaddr_in(), peer.as_sockaddr_in6()) {
        (Some(peer), _) => Some(SocketAddrV4::new(peer.ip(), peer.port()).into()),
        (_, Some(peer)) => Some(SocketAddrV6::new(peer.ip(), peer.port(), peer.flowinfo(), peer.scope_id()).into()),
        _ => None,
    }
}

/// The limits of one thread: what counts for all is shared out among them, since the kernel spreads clients evenly.
struct Limits {
    began: Instant,
    queries: Limiter,
    responses: Limiter,
    are_on: bool,
}

impl Limits {
    fn new(shared: &Shared) -> Limits {
        let settings = &shared.settings;
        let threads = u32::try_from(settings.threads).unwrap_or(1).max(1);
        let share = |a_second: u32| a_second.div_ceil(threads);
        Limits {
            began: Instant::now(),
            queries: Limiter::new(share(settings.queries_a_second)),
            responses: Limiter::new(share(settings.responses_a_second)),
            are_on: settings.queries_a_second > 0 || settings.responses_a_second > 0,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether a query gets no response.
    fn leaves_out(&mut self, client: IpAddr) -> bool {
        self.are_on && {
            let now = self.now();
            self.queries.count(client, 0, now) != Verdict::Pass
        }
    }

    /// Whether a response is not sent. One that is cut off instead is left with its question alone.
    fn leaves_out_response(&mut self, client: IpAddr, outcome: Outcome, packet: &[u8], out: &mut Vec<u8>) -> bool {
        let Outcome::Respond(response) = outcome else { return false };
        if !self.are_on {
            return false;
        }
        // Negative and failing responses are equal whatever was asked; positive ones where the name is the same.
        let what = match response {
            Response::Positive => {
                packet.get(12..).unwrap_or_default().iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
                    (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x100_0000_01b3)
                })
            }
            Response::Negative => 1,
            Response::Error => 2,
        };
        let now = self.now();
        match self.responses.count(client, what, now) {
            Verdict::Pass => false,
            Verdict::Drop => true,
            Verdict::Truncate => {
                cut_off(packet, out);
                false
            }
        }
    }
}

/// Leaves of a response its header and question, and says that it was cut off.
fn cut_off(packet: &[u8], out: &mut Vec<u8>) {
    let Ok(query) = Query::parse(packet) else { return };
    let bits = out.get(2..4).map_or(0, |bits| u16::from_be_bytes([bits[0], bits[1]]));
    let mut writer = Writer::new(out, 512, query.id, bits | flag::TC);
    writer.question(query.question.name, query.question.kind, query.question.class);
}

/// Counts of a batch for the metrics.
#[derive(Debug, Default)]
pub struct Tally {
    positive: u64,
    negative: u64,
    errors: u64,
    silent: u64,
    limited: u64,
    bytes: u64,
}

impl Tally {
    /// Counts what became of a query.
    pub fn add(&mut self, outcome: Outcome, len: usize) {
        match outcome {
            Outcome::Respond(Response::Positive) => self.positive += 1,
            Outcome::Respond(Response::Negative) => self.negative += 1,
            Outcome::Respond(Response::Error) => self.errors += 1,
            Outcome::Silent | Outcome::Transfer(_) => self.silent += 1,
        }
        if let Outcome::Respond(_) = outcome {
            self.bytes += u64::try_from(len).unwrap_or(0);
        }
    }

    /// Adds it to the metrics: queries by UDP.
    pub fn settle(self, shared: &Shared, queries: usize) {
        let counts = &shared.counts;
        counts.queries[0].fetch_add(u64::try_from(queries).unwrap_or(0), Ordering::Relaxed);
        for (counter, count) in [
            (&counts.positive, self.positive),
            (&counts.negative, self.negative),
            (&counts.errors, self.errors),
            (&counts.silent, self.silent),
            (&counts.limited, self.limited),
            (&counts.bytes, self.bytes),
        ] {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_made_while_they_bring_packets_together() {
        let mut pauses = Pauses::default();
        let mut made = |counts: &mut dyn FnMut(bool) -> usize| {
            let mut count = 1;
            (0..10_000)
                .filter(|_| {
                    let pause = pauses.after(count);
                    count = counts(pause);
                    pause
                })
                .count()
        };
        assert!(made(&mut |_| 1) < 20, "a client that waits for each answer");
        assert!(made(&mut |_| BATCH) < 2, "packets come as fast as they are answered");
        let paused = made(&mut |pause| if pause { 10 } else { 2 });
        assert!(paused > 5_000, "{paused} of many clients that ask a little");
    }
}
