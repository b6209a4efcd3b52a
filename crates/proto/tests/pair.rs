//! Two halves of a protocol face each other in memory: what one says comes to the other in pieces, later, or not at all.
//!
//! Time is simulated: it moves on to what happens next, a piece that arrives or a deadline that passes. A meeting in which
//! nothing can happen any more, or that does not come to its end, is a failure.

mod clamd;
mod dns;
mod imap;
mod milter;
mod pop3;
mod script;
mod smtp;

use std::collections::VecDeque;

/// A half and the host that drives it.
trait Host {
    /// Bytes have come, perhaps none: the half takes all of them, and its events are answered.
    fn hear(&mut self, now: u64, bytes: &[u8]);

    /// Takes what is to be sent.
    fn say(&mut self) -> Vec<u8>;

    /// When it does not want to wait any longer.
    fn deadline(&self) -> u64;

    /// The deadline has passed.
    fn timeout(&mut self, now: u64);

    /// The connection is gone; nothing more comes or goes.
    fn lose(&mut self);

    /// Whether it is done with the connection.
    fn is_over(&self) -> bool;
}

/// A link between two halves.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// Seed for the lengths and delays of pieces.
    seed: u64,
    piece_bytes_max: usize,
    latency_ms_max: u64,
    /// The connection is gone after so many bytes, of both directions together.
    lost_after: Option<usize>,
    /// Nobody is told that it is gone: bytes no longer arrive.
    is_silent: bool,
}

impl Link {
    /// Everything arrives as it was sent, at once.
    const PLAIN: Link =
        Link { seed: 0, piece_bytes_max: usize::MAX, latency_ms_max: 0, lost_after: None, is_silent: false };
}

/// How a meeting went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Meeting {
    /// Bytes that arrived.
    bytes: usize,
    /// When it was over.
    ended: u64,
}

/// Pieces in transit in one direction, with their times of arrival.
#[derive(Default)]
struct Way {
    pieces: VecDeque<(u64, Vec<u8>)>,
    last: u64,
}

impl Way {
    fn send(&mut self, now: u64, bytes: &[u8], link: &Link, random: &mut Random) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = 1 + random.below(link.piece_bytes_max.min(rest.len()) as u64) as usize;
            let length = if link.piece_bytes_max == usize::MAX { rest.len() } else { length };
            let (piece, behind) = rest.split_at(length);
            self.last = self.last.max(now + random.below(link.latency_ms_max + 1));
            self.pieces.push_back((self.last, piece.to_vec()));
            rest = behind;
        }
    }

    fn arrives(&self) -> Option<u64> {
        self.pieces.front().map(|(at, _)| *at)
    }
}

/// Lets both sides talk until both are done.
///
/// # Panics
/// If they never are.
fn meet(client: &mut impl Host, server: &mut impl Host, link: Link) -> Meeting {
    const TURNS_MAX: usize = 200_000;
    let (mut to_server, mut to_client) = (Way::default(), Way::default());
    let (mut random, mut now, mut bytes) = (Random(link.seed), 0, 0);
    server.hear(now, b"");
    for _ in 0..TURNS_MAX {
        to_server.send(now, &client.say(), &link, &mut random);
        to_client.send(now, &server.say(), &link, &mut random);
        let is_gone = link.lost_after.is_some_and(|most| bytes >= most);
        if is_gone {
            (to_server.pieces, to_client.pieces) = (VecDeque::new(), VecDeque::new());
        }
        // Who is done hangs up when all that it said has arrived.
        let hangs_up =
            server.is_over() && to_client.pieces.is_empty() || client.is_over() && to_server.pieces.is_empty();
        if is_gone && !link.is_silent || !is_gone && hangs_up {
            client.lose();
            server.lose();
        }
        if client.is_over() && server.is_over() {
            return Meeting { bytes, ended: now };
        }
        let arrival = to_server.arrives().into_iter().chain(to_client.arrives()).min();
        let patience = |host: &dyn Host| if host.is_over() { u64::MAX } else { host.deadline() };
        let deadline = patience(client).min(patience(server));
        match arrival {
            Some(at) if at <= deadline => {
                now = now.max(at);
                let is_to_server = to_server.arrives() == Some(at);
                let way = if is_to_server { &mut to_server } else { &mut to_client };
                let (_, mut piece) = way.pieces.pop_front().expect("it arrives");
                piece.truncate(link.lost_after.map_or(usize::MAX, |most| most - bytes));
                bytes += piece.len();
                if is_to_server { server.hear(now, &piece) } else { client.hear(now, &piece) }
            }
            _ => {
                assert!(deadline < u64::MAX, "both wait for ever");
                now = now.max(deadline);
                if patience(client) == deadline {
                    client.timeout(now);
                }
                if patience(server) == deadline {
                    server.timeout(now);
                }
            }
        }
    }
    panic!("they do not come to an end");
}

/// Numbers of which each follows from the one before (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A message of some lines, of which some begin with dots.
    fn message(&mut self) -> Vec<u8> {
        let mut message = Vec::new();
        for _ in 0..self.below(12) {
            message.extend(std::iter::repeat_n(b'.', [0, 0, 1, 2][self.below(4) as usize]));
            let length = self.below(90);
            message.extend((0..length).map(|_| b"ab. \t\xe9"[self.below(6) as usize]));
            message.extend_from_slice(b"\r\n");
        }
        message
    }
}
