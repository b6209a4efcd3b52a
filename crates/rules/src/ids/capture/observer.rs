//! Flows of packets as they come, and their bounds.
//!
//! Flows are bounded by their number and, where a host meters memory, by the memory of all: where there are too many, those that have
//! been silent longest are ended, and where they hold too much, those that hold most. Without a call of [`Observer::expire`] no flow
//! ends because it is silent.

use std::collections::HashMap;

use super::super::buffer::Direction;
use super::super::flow::{Desk, Peer, Site, Tuple};
use super::super::rule::Transport;
use super::super::set::RuleSet;
use super::Seen;
use super::conversation::Conversation;
use super::fragments::Fragments;
use super::packet::{self, ACK, Carried, Link, Packet, Read, SYN};
use super::record::{Content, End, Record};
use super::unread::Unread;

/// Flows at a time.
const FLOWS_MAX: usize = 16 << 10;
/// The share of flows that end where there are too many.
const SHED_SHARE: usize = 16;

/// A meter of memory, and the most that flows may hold.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    /// Bytes that the thread has allocated and not freed, from any beginning.
    pub balance: fn() -> isize,
    /// Bytes that an observer may hold.
    pub bytes_max: usize,
}

type Key = (Peer, Peer, bool);

/// Tries rules on packets as they come, and tells their messages, files and flows.
pub struct Observer<'r> {
    rules: &'r RuleSet,
    meter: Option<Meter>,
    site: Site,
    /// The balance of the meter at the beginning.
    base: isize,
    flows: HashMap<Key, Conversation>,
    fragments: Fragments,
    seen: Vec<Seen>,
    records: Vec<Record>,
    turn: u64,
    micros: u64,
    opened: u64,
    forced: u64,
    unread: Unread,
}

impl<'r> Observer<'r> {
    /// One that has seen nothing.
    pub fn new(rules: &'r RuleSet, meter: Option<Meter>) -> Observer<'r> {
        Observer {
            rules,
            meter,
            base: meter.map_or(0, |meter| (meter.balance)()),
            site: Site::default(),
            flows: HashMap::new(),
            fragments: Fragments::default(),
            seen: Vec::new(),
            records: Vec::new(),
            turn: 0,
            micros: 0,
            opened: 0,
            forced: 0,
            unread: Unread::default(),
        }
    }

    /// Takes a packet that came at a time in microseconds; whether it is one that is followed.
    pub fn packet(&mut self, micros: u64, link: Link, bytes: &[u8]) -> bool {
        self.micros = micros;
        let is_followed = packet::read(link, bytes).is_some_and(|read| self.take(read, bytes.len(), micros));
        if !is_followed {
            self.unread.add(packet::kind(link, bytes));
        }
        is_followed
    }

    /// Takes a packet of so many bytes, or a part of one.
    fn take(&mut self, read: Read<'_>, bytes: usize, micros: u64) -> bool {
        let packet = match read {
            Read::Whole(packet) => packet,
            Read::Part(part) => {
                let Some(whole) = self.fragments.take(&part, micros) else { return true };
                let read = packet::joined(part.key, &whole, part.depth);
                return read.is_some_and(|read| self.take(read, whole.len(), micros));
            }
        };
        self.turn += 1;
        let (key, direction) = self.place(&packet);
        if !self.flows.contains_key(&key) {
            self.open(key);
        }
        let Some(conversation) = self.flows.get_mut(&key) else { return false };
        conversation.turn = self.turn;
        let mut desk = Desk { rules: self.rules, site: &mut self.site, now_ms: micros / 1000 };
        conversation.packet(direction, &packet, bytes, micros, &mut desk);
        collect(conversation, micros, &mut self.seen, &mut self.records);
        while self.holds_too_much() && !self.flows.is_empty() {
            self.shed(|flow| u64::MAX - flow.held_bytes());
        }
        true
    }

    /// Ends flows that have been silent too long at a time in microseconds.
    pub fn expire(&mut self, micros: u64) {
        self.micros = self.micros.max(micros);
        let mut silent: Vec<(u64, Key)> = self
            .flows
            .iter()
            .filter(|(_, flow)| flow.is_expired(self.micros))
            .map(|(key, flow)| (flow.turn, *key))
            .collect();
        silent.sort_unstable();
        silent.iter().for_each(|(_, key)| self.end(key, End::Timeout));
    }

    /// Ends all flows.
    pub fn finish(&mut self) {
        let mut keys: Vec<_> = self.flows.iter().map(|(key, flow)| (flow.turn, *key)).collect();
        keys.sort_unstable();
        keys.iter().for_each(|(_, key)| self.end(key, End::Shutdown));
    }

    /// The alerts since the last call.
    pub fn alerts(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// The records since the last call.
    pub fn records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Counts of the packets that were not read.
    pub fn unread(&self) -> &Unread {
        &self.unread
    }

    /// How many flows have begun, and how many were ended because there were too many or they held too much.
    pub fn flows(&self) -> (u64, u64) {
        (self.opened, self.forced)
    }

    /// The flow of a packet, which may not be known yet, and the way that the packet goes.
    fn place(&mut self, packet: &Packet<'_>) -> (Key, Direction) {
        let (flags, bytes) = match packet.carried {
            Carried::Segment(segment) => (segment.flags & (SYN | ACK), segment.bytes),
            Carried::Datagram(_) => (0, &[][..]),
        };
        let is_udp = matches!(packet.carried, Carried::Datagram(_));
        let (there, back) = ((packet.source, packet.target, is_udp), (packet.target, packet.source, is_udp));
        let opens = flags == SYN;
        if opens && self.flows.get(&there).is_some_and(Conversation::is_ending) {
            self.end(&there, End::Reuse);
        }
        if self.flows.contains_key(&there) {
            return (there, Direction::ToServer);
        }
        // A capture may begin in the middle of a connection, with a response.
        let is_response = bytes.starts_with(b"HTTP/1.") || packet.source.1 < 1024 && packet.target.1 >= 1024;
        let is_from_server = flags == SYN | ACK || is_response && !opens;
        match self.flows.contains_key(&back) || is_from_server {
            true => (back, Direction::ToClient),
            false => (there, Direction::ToServer),
        }
    }

    fn open(&mut self, key: Key) {
        if self.flows.len() >= FLOWS_MAX {
            self.shed(|flow| flow.turn);
        }
        let transport = if key.2 { Transport::Udp } else { Transport::Tcp };
        let tuple = Tuple { client: key.0, server: key.1, transport };
        self.opened = self.opened.wrapping_add(1);
        // Readers take numbers for floating point, so it has 52 bits.
        let number = self.micros.wrapping_add(self.opened << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
        self.flows.insert(key, Conversation::new(tuple, number, self.micros, &mut self.site));
    }

    /// Ends a share of all flows, those of the lowest rank.
    fn shed(&mut self, rank: impl Fn(&Conversation) -> u64) {
        let mut ranks: Vec<(u64, Key)> = self.flows.iter().map(|(key, flow)| (rank(flow), *key)).collect();
        ranks.sort_unstable();
        ranks.truncate(self.flows.len().div_ceil(SHED_SHARE));
        self.forced = self.forced.saturating_add(ranks.len() as u64);
        ranks.iter().for_each(|(_, key)| self.end(key, End::Forced));
    }

    fn end(&mut self, key: &Key, end: End) {
        let Some(mut conversation) = self.flows.remove(key) else { return };
        // What it ends with was said by its last packet.
        let micros = conversation.last_micros();
        let mut desk = Desk { rules: self.rules, site: &mut self.site, now_ms: micros / 1000 };
        conversation.finish(&mut desk);
        collect(&mut conversation, micros, &mut self.seen, &mut self.records);
        conversation.log.tell(0, Content::Flow(conversation.summary(end)));
        conversation.log.collect(conversation.number, self.micros, conversation.tuple, &mut self.records);
    }

    fn holds_too_much(&self) -> bool {
        let Some(Meter { balance, bytes_max }) = self.meter else { return false };
        usize::try_from(balance().wrapping_sub(self.base)).is_ok_and(|held| held > bytes_max)
    }
}

/// Moves the alerts and records of a flow behind the others.
fn collect(conversation: &mut Conversation, micros: u64, seen: &mut Vec<Seen>, records: &mut Vec<Record>) {
    let Tuple { client, server, transport } = conversation.tuple;
    let flow = conversation.number;
    for alert in conversation.flow.alerts() {
        conversation.has_alerted = true;
        let (source, target) = match alert.direction {
            Direction::ToServer => (client, server),
            Direction::ToClient => (server, client),
        };
        seen.push(Seen { flow, micros, source, target, transport, rule: alert.rule });
    }
    conversation.log.collect(flow, micros, conversation.tuple, records);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

    use super::super::super::limits::Limits;
    use super::super::super::set::Loader;
    use super::super::record::{State, Summary};
    use super::*;

    const SECOND: u64 = 1_000_000;

    /// A segment of a client's port 1000 and more to port 80, or back.
    fn segment(client: u16, is_back: bool, flags: u8, sequence: u32, bytes: &[u8]) -> Vec<u8> {
        let ends = [([10, 0, 0, 1], 1000 + client), ([10, 0, 0, 2], 80)];
        let (from, to) = if is_back { (ends[1], ends[0]) } else { (ends[0], ends[1]) };
        let length = u16::try_from(40 + bytes.len()).expect("a packet").to_be_bytes();
        let mut packet = vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 6, 0, 0];
        packet.extend([from.0, to.0].concat());
        packet.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
        packet.extend([&sequence.to_be_bytes()[..], &[0, 0, 0, 0, 0x50, flags, 255, 255, 0, 0, 0, 0], bytes].concat());
        packet
    }

    fn rules() -> RuleSet {
        let mut loader = Loader::new(Limits::default());
        loader.file("r", b"alert http any any -> any any (http.uri; content:\"/a\"; sid:1;)");
        loader.finish()
    }

    fn flows(observer: &mut Observer<'_>) -> Vec<Summary> {
        let flow = |record: Record| match record.content {
            Content::Flow(summary) => Some(*summary),
            _ => None,
        };
        observer.records().into_iter().filter_map(flow).collect()
    }

    #[test]
    fn flows_end_once_they_are_silent_and_packets_are_counted() {
        let rules = rules();
        let mut observer = Observer::new(&rules, None);
        let mut put = |at: u64, packet: Vec<u8>| assert!(observer.packet(at * SECOND, Link::RAW, &packet));
        put(1, segment(1, false, SYN, 9, b""));
        put(1, segment(2, false, SYN, 9, b""));
        put(2, segment(2, true, SYN | ACK, 99, b""));
        put(3, segment(2, false, ACK, 10, b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"));
        put(4, segment(3, false, SYN, 9, b""));
        put(5, segment(3, true, packet::RST, 0, b""));
        assert!(!observer.packet(5 * SECOND, Link::RAW, &[0; 30]));
        observer.expire(7 * SECOND);
        assert!(flows(&mut observer).is_empty());
        observer.expire(8 * SECOND);
        assert_eq!(flows(&mut observer).iter().map(|flow| flow.state).collect::<Vec<_>>(), [State::Closed]);
        observer.expire(62 * SECOND);
        let ended = flows(&mut observer);
        assert_eq!((ended.len(), ended[0].state, ended[0].end, ended[0].app), (1, State::New, End::Timeout, None));
        observer.expire(603 * SECOND);
        assert!(flows(&mut observer).is_empty());
        assert_eq!(observer.alerts().len(), 1);
        observer.expire(604 * SECOND);
        let ended = flows(&mut observer);
        assert_eq!((ended[0].packets, ended[0].bytes), ([2, 1], [40 + 40 + 28, 40]));
        assert_eq!((ended[0].state, ended[0].app, ended[0].has_alerted), (State::Established, Some("http"), true));
        assert_eq!(observer.flows(), (3, 0));
    }

    #[test]
    fn what_a_side_says_last_is_tried_when_it_closes() {
        let mut loader = Loader::new(Limits::default());
        loader.file("r", b"alert tcp any any -> any any (content:\"secret\"; sid:1;)");
        let rules = loader.finish();
        for last in [packet::FIN | ACK, ACK] {
            let mut observer = Observer::new(&rules, None);
            let mut put = |at: u64, packet: Vec<u8>| observer.packet(at * SECOND, Link::RAW, &packet);
            put(1, segment(1, false, SYN, 9, b""));
            put(1, segment(1, true, SYN | ACK, 99, b""));
            put(1, segment(1, false, ACK, 10, b"login"));
            put(2, segment(1, true, last, 100, b"a secret word"));
            if last == ACK {
                put(3, segment(1, true, packet::RST, 113, b""));
            }
            let seen: Vec<u64> = observer.alerts().iter().map(|seen| seen.micros).collect();
            assert_eq!(seen, [if last == ACK { 3 * SECOND } else { 2 * SECOND }], "{last}");
            observer.finish();
            assert!(observer.alerts().is_empty());
        }
        // What ends with the capture has the time of its last packet.
        let mut observer = Observer::new(&rules, None);
        observer.packet(SECOND, Link::RAW, &segment(1, false, ACK, 10, b"a secret word"));
        observer.packet(9 * SECOND, Link::RAW, &segment(2, false, ACK, 10, b"other"));
        observer.finish();
        assert_eq!(observer.alerts().iter().map(|seen| seen.micros).collect::<Vec<_>>(), [SECOND]);
    }

    static HELD: AtomicIsize = AtomicIsize::new(0);

    #[test]
    fn of_flows_that_hold_too_much_those_that_hold_most_are_ended() {
        let rules = rules();
        let meter = Meter { balance: || HELD.load(Relaxed), bytes_max: 1000 };
        let mut observer = Observer::new(&rules, Some(meter));
        for client in 0..SHED_SHARE as u16 {
            let bytes = if client == 7 { &[b'x'; 1000][..] } else { b"x" };
            observer.packet(SECOND, Link::RAW, &segment(client, false, ACK, 10, bytes));
        }
        assert!(flows(&mut observer).is_empty());
        HELD.store(1001, Relaxed);
        // All are ended, since nothing is ever freed here.
        observer.packet(SECOND, Link::RAW, &segment(1, false, ACK, 11, b"y"));
        let ended = flows(&mut observer);
        assert_eq!((ended.len(), ended[0].bytes[0], ended[0].end), (SHED_SHARE, 1040, End::Forced));
        assert_eq!(observer.flows(), (16, 16));
    }
}
