//! A host of rules for captures: packets of a pcap or pcapng file become flows, flows become messages, and rules are tried on them.
//!
//! Its readers of HTTP, SMTP, DNS and TLS serve rules alone, and read what peers of rules read; so they stand here and not in `proto`,
//! whose halves are strict because they decide on traffic. It does not look into fragments and HTTP/2, and believes checksums.
//!
//! Flows are bounded by their number; the one that has been silent longest is ended first.

mod coding;
mod http;
mod packet;
mod parts;
mod pcap;
mod record;
mod smtp;
mod stream;
mod tls;
mod uri;

use std::collections::HashMap;

use super::buffer::{App, Buffer, Direction};
use super::flow::{Desk, Flow, Peer, Site, Tuple};
use super::rule::Transport;
use super::set::RuleSet;
use super::transaction::Transaction;
use http::{Http, Ways};
pub(super) use http::{fill_request, fill_response};
use packet::{ACK, Carried, FIN, RST, SYN};
use record::Log;
pub use record::{Content, Exchange, File, Handshake, Mail, Message, Record};
use smtp::Smtp;
pub(super) use smtp::field_buffer;
use stream::Stream;
use tls::Tls;
pub use tls::offered;

/// Flows at a time.
const FLOWS_MAX: usize = 16 << 10;
/// Bytes that tell a protocol without a line end.
const HEAD_BYTES: usize = 64;

/// An alert of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When the packet was captured, in microseconds.
    pub micros: u64,
    /// The sender.
    pub source: Peer,
    /// The receiver.
    pub target: Peer,
    /// The transport.
    pub transport: Transport,
    /// The place of the rule in [`RuleSet::rules`].
    pub rule: usize,
}

/// Tries rules on a capture; none where it is none.
pub fn alerts(rules: &RuleSet, capture: &[u8]) -> Option<Vec<Seen>> {
    Some(observe(rules, capture)?.0)
}

/// Tries rules on a capture, and tells its messages and files; none where it is none.
pub fn observe(rules: &RuleSet, capture: &[u8]) -> Option<(Vec<Seen>, Vec<Record>)> {
    let mut watch = Watch {
        rules,
        site: Site::default(),
        flows: HashMap::new(),
        seen: Vec::new(),
        records: Vec::new(),
        turn: 0,
        micros: 0,
    };
    for captured in pcap::Capture::new(capture)? {
        watch.micros = captured.micros;
        if let Some(packet) = packet::read(&captured) {
            watch.packet(&packet);
        }
    }
    watch.finish();
    Some((watch.seen, watch.records))
}

struct Watch<'r> {
    rules: &'r RuleSet,
    site: Site,
    flows: HashMap<(Peer, Peer, bool), Conversation>,
    seen: Vec<Seen>,
    records: Vec<Record>,
    turn: u64,
    micros: u64,
}

/// A flow with what is read of it.
struct Conversation {
    tuple: Tuple,
    flow: Flow,
    streams: [Stream; 2],
    app: Reader,
    log: Log,
    /// The first bytes of the side that begins, until they tell the protocol.
    head: Vec<u8>,
    first: Option<Direction>,
    /// The side that spoke last.
    speaker: Option<Direction>,
    turn: u64,
    is_closed: [bool; 2],
}

/// The reader of an application's protocol.
enum Reader {
    /// Until the first bytes have come.
    Unknown,
    Http(Box<Http>),
    Smtp(Box<Smtp>),
    Tls(Box<Tls>),
    None,
}

fn side(direction: Direction) -> usize {
    usize::from(direction == Direction::ToClient)
}

impl Watch<'_> {
    fn packet(&mut self, packet: &packet::Packet<'_>) {
        self.turn += 1;
        let transport = match packet.carried {
            Carried::Segment { .. } => Transport::Tcp,
            Carried::Datagram(_) => Transport::Udp,
        };
        let is_udp = transport == Transport::Udp;
        let (there, back) = ((packet.source, packet.target, is_udp), (packet.target, packet.source, is_udp));
        let opens = matches!(packet.carried, Carried::Segment { flags, .. } if flags & (SYN | ACK) == SYN);
        // A port is used again.
        if opens && self.flows.get(&there).is_some_and(|flow| flow.is_closed.contains(&true)) {
            self.end(&there);
        }
        let (key, direction) = if self.flows.contains_key(&there) {
            (there, Direction::ToServer)
        } else if self.flows.contains_key(&back) {
            (back, Direction::ToClient)
        } else {
            let answers = matches!(packet.carried, Carried::Segment { flags, .. } if flags & (SYN | ACK) == SYN | ACK);
            let is_from_server = answers || packet.source.1 < 1024 && packet.target.1 >= 1024 && !opens;
            if is_from_server { (back, Direction::ToClient) } else { (there, Direction::ToServer) }
        };
        if !self.flows.contains_key(&key) {
            self.open(key, transport);
        }
        let Some(mut conversation) = self.flows.remove(&key) else { return };
        conversation.turn = self.turn;
        let mut desk = Desk { rules: self.rules, site: &mut self.site, now_ms: self.micros / 1000 };
        match packet.carried {
            Carried::Segment { sequence, flags, bytes } => {
                conversation.segment(direction, sequence, flags, bytes, &mut desk)
            }
            Carried::Datagram(bytes) => conversation.datagram(direction, bytes, &mut desk),
        }
        self.collect(&mut conversation);
        self.flows.insert(key, conversation);
    }

    fn open(&mut self, key: (Peer, Peer, bool), transport: Transport) {
        if self.flows.len() >= FLOWS_MAX
            && let Some(oldest) = self.flows.iter().min_by_key(|(_, flow)| flow.turn).map(|(key, _)| *key)
        {
            self.end(&oldest);
        }
        let tuple = Tuple { client: key.0, server: key.1, transport };
        let app = if transport == Transport::Udp && key.1.1 == 53 { Some(App::Dns) } else { None };
        let conversation = Conversation {
            tuple,
            flow: Flow::new(tuple, app, &mut self.site),
            streams: [Stream::default(), Stream::default()],
            app: Reader::Unknown,
            log: Log::default(),
            head: Vec::new(),
            first: None,
            speaker: None,
            turn: self.turn,
            is_closed: [false, false],
        };
        self.flows.insert(key, conversation);
    }

    fn end(&mut self, key: &(Peer, Peer, bool)) {
        let Some(mut conversation) = self.flows.remove(key) else { return };
        let mut desk = Desk { rules: self.rules, site: &mut self.site, now_ms: self.micros / 1000 };
        conversation.finish(&mut desk);
        self.collect(&mut conversation);
    }

    fn finish(&mut self) {
        let mut keys: Vec<_> = self.flows.iter().map(|(key, flow)| (flow.turn, *key)).collect();
        keys.sort();
        keys.iter().for_each(|(_, key)| self.end(key));
    }

    fn collect(&mut self, conversation: &mut Conversation) {
        let Tuple { client, server, transport } = conversation.tuple;
        for alert in conversation.flow.alerts() {
            let (source, target) = match alert.direction {
                Direction::ToServer => (client, server),
                Direction::ToClient => (server, client),
            };
            self.seen.push(Seen { micros: self.micros, source, target, transport, rule: alert.rule });
        }
        conversation.log.collect(self.micros, [client, server], &mut self.records);
    }
}

impl Conversation {
    fn segment(&mut self, direction: Direction, sequence: u32, flags: u8, bytes: &[u8], desk: &mut Desk<'_>) {
        let at = side(direction);
        let mut ready = Vec::new();
        if flags & RST != 0 {
            // Bytes of a reset are no part of the stream.
            self.is_closed = [true, true];
            return;
        }
        self.flow.packet(direction, bytes, desk);
        let sequence = if flags & SYN != 0 {
            self.streams[at].open(sequence);
            sequence.wrapping_add(1)
        } else {
            sequence
        };
        self.streams[at].segment(sequence, bytes, &mut ready);
        if flags & FIN != 0 {
            self.is_closed[at] = true;
        }
        self.take(direction, &ready, desk);
    }

    /// Takes bytes in order. When the other side begins to speak, what the first said is tried as a whole.
    fn take(&mut self, direction: Direction, bytes: &[u8], desk: &mut Desk<'_>) {
        if bytes.is_empty() {
            return;
        }
        if let Some(before) = self.speaker.replace(direction).filter(|before| *before != direction) {
            self.flow.turn(before, desk);
        }
        self.flow.payload(direction, bytes, desk);
        if !matches!(self.app, Reader::Unknown) {
            return self.read(direction, bytes, desk);
        }
        let first = *self.first.get_or_insert(direction);
        if first != direction {
            self.begin(first, desk);
            return self.read(direction, bytes, desk);
        }
        self.head.extend_from_slice(bytes);
        let is_clear = self.head.contains(&b'\n') || self.head.starts_with(&[22, 3]) || self.head.len() >= HEAD_BYTES;
        if is_clear {
            self.begin(direction, desk);
        }
    }

    /// Chooses a reader by the first bytes, which it reads.
    fn begin(&mut self, direction: Direction, desk: &mut Desk<'_>) {
        let head = std::mem::take(&mut self.head);
        self.app = self.recognise(direction, &head);
        self.read(direction, &head, desk);
    }

    fn read(&mut self, direction: Direction, bytes: &[u8], desk: &mut Desk<'_>) {
        let mut ways = Ways { flow: &mut self.flow, desk, log: &mut self.log };
        match &mut self.app {
            Reader::Http(http) => http.feed(direction, bytes, &mut ways),
            Reader::Smtp(smtp) if direction == Direction::ToServer => smtp.feed(bytes, &mut ways),
            Reader::Tls(tls) => tls.feed(direction, bytes, &mut ways),
            _ => {}
        }
    }

    fn recognise(&mut self, direction: Direction, bytes: &[u8]) -> Reader {
        let port = self.tuple.server.1;
        let word = bytes.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(bytes.len());
        let upper = bytes[..word].to_ascii_uppercase();
        let is_mail_port = matches!(port, 25 | 465 | 587 | 2525);
        let says_mail = memchr::memmem::find(&bytes.to_ascii_uppercase(), b"SMTP").is_some();
        let (app, reader) = match direction {
            Direction::ToServer
                if matches!(&upper[..], b"EHLO" | b"HELO" | b"LHLO") || is_mail_port && &upper[..] == b"MAIL" =>
            {
                (App::Smtp, Reader::Smtp(Box::default()))
            }
            Direction::ToClient if bytes.starts_with(b"220") && (is_mail_port || says_mail) => {
                (App::Smtp, Reader::Smtp(Box::default()))
            }
            Direction::ToClient if bytes.starts_with(b"220") => (App::Ftp, Reader::None),
            Direction::ToClient if bytes.starts_with(b"+OK") => (App::Pop3, Reader::None),
            Direction::ToClient if bytes.starts_with(b"* OK") => (App::Imap, Reader::None),
            Direction::ToClient if bytes.starts_with(b"HTTP/") => (App::Http, Reader::Http(Box::default())),
            Direction::ToServer if bytes.starts_with(&[22, 3]) => (App::Tls, Reader::Tls(Box::default())),
            Direction::ToServer if word > 0 && bytes.get(word).is_some_and(|byte| matches!(byte, b' ' | b'\t')) => {
                (App::Http, Reader::Http(Box::default()))
            }
            _ => return Reader::None,
        };
        self.flow.set_app(app);
        reader
    }

    fn datagram(&mut self, direction: Direction, bytes: &[u8], desk: &mut Desk<'_>) {
        self.flow.packet(direction, bytes, desk);
        self.flow.datagram(direction, bytes, desk);
        if self.tuple.server.1 != 53 || direction != Direction::ToServer {
            return;
        }
        let mut transaction = Transaction::new();
        for name in questions(bytes) {
            transaction.fill(desk.rules, direction, Buffer::DnsQuery, &name);
        }
        self.flow.end(&mut transaction, direction, desk);
    }

    fn finish(&mut self, desk: &mut Desk<'_>) {
        for direction in [Direction::ToServer, Direction::ToClient] {
            let mut ready = Vec::new();
            self.streams[side(direction)].close(&mut ready);
            self.take(direction, &ready, desk);
        }
        if let Some(first) = self.first.filter(|_| !self.head.is_empty()) {
            self.begin(first, desk);
        }
        let mut ways = Ways { flow: &mut self.flow, desk, log: &mut self.log };
        match &mut self.app {
            Reader::Http(http) => http.finish(&mut ways),
            Reader::Smtp(smtp) => smtp.finish(&mut ways),
            Reader::Tls(tls) => tls.finish(&mut ways),
            _ => {}
        }
        if self.tuple.transport == Transport::Tcp {
            self.flow.turn(Direction::ToServer, desk);
            self.flow.turn(Direction::ToClient, desk);
        }
    }
}

/// The names in the questions of a DNS message.
fn questions(message: &[u8]) -> Vec<Vec<u8>> {
    let count = message.get(4..6).map_or(0, |pair| u16::from_be_bytes([pair[0], pair[1]]));
    let (mut names, mut at) = (Vec::new(), 12);
    for _ in 0..count.min(16) {
        let mut name: Vec<u8> = Vec::new();
        loop {
            let Some(&length) = message.get(at) else { return names };
            at += 1;
            match length {
                0 => break,
                1..=63 => {
                    let Some(label) = message.get(at..at + usize::from(length)) else { return names };
                    if !name.is_empty() {
                        name.push(b'.');
                    }
                    name.extend_from_slice(label);
                    at += usize::from(length);
                }
                _ => return names,
            }
        }
        names.push(name);
        at += 4;
    }
    names
}

/// Fuzz body: a capture against rules of several kinds.
pub fn fuzz_capture(data: &[u8]) {
    let mut loader = super::set::Loader::new(super::limits::Limits { window_bytes: 512, ..Default::default() });
    loader.file("rules", RULES);
    let rules = loader.finish();
    assert!(rules.problems().is_empty(), "{:?}", rules.problems());
    let _ = alerts(&rules, data);
}

const RULES: &[u8] = br#"alert http any any -> any any (http.uri; content:"/a"; pcre:"/b+/R"; sid:1;)
alert http any any -> any any (file.data; content:"a"; content:!"b"; distance:1; within:9; sid:2;)
alert tcp any any -> any any (content:"|00|"; byte_jump:2,1,relative; isdataat:2,relative; sid:3;)
alert smtp any any -> any any (email.from; content:"@"; file.data; content:"MZ"; startswith; sid:4;)
alert dns any any -> any any (dns.query; dotprefix; content:".test"; endswith; sid:5;)
"#;
