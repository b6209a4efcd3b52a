//! A flow with the readers of its streams and of its protocol, and what is told of it.

use super::super::buffer::{App, Direction};
use super::super::flow::{Desk, Flow, Site, Tuple};
use super::super::rule::Transport;
use super::dns::{self, Dns};
use super::exchange::Ways;
use super::head;
use super::http::Http;
use super::http2::{self, Http2};
use super::packet::{ACK, Carried, FIN, Packet, RST, SYN, Segment};
use super::record::{Anomaly, Content, End, Layer, Log, State, Summary};
use super::smtp::Smtp;
use super::stream::Stream;
use super::tls::Tls;
use super::window::Window;

/// Bytes that tell a protocol without a line end.
const HEAD_BYTES: usize = 64;
/// Bytes of one side that are kept until the answer tells their protocol.
const UNCLEAR_BYTES_MAX: usize = 4 << 10;
/// Seconds of silence after which a flow has ended: one that is closed, one that is not established, one that is.
const CLOSED_SECONDS: u64 = 2;
const NEW_SECONDS: u64 = 60;
const ESTABLISHED_SECONDS: u64 = 600;

/// A flow with what is read of it.
pub(super) struct Conversation {
    pub tuple: Tuple,
    pub flow: Flow,
    pub number: u64,
    pub log: Log,
    /// The place of its last packet among all.
    pub turn: u64,
    pub has_alerted: bool,
    streams: [Stream; 2],
    /// The windows of the client and of the server, for what the other sends.
    windows: [Window; 2],
    app: Reader,
    /// The first bytes of the side that begins, until they tell the protocol, and those of the answer.
    head: Vec<u8>,
    answer: Vec<u8>,
    first: Option<Direction>,
    /// The side that spoke last.
    speaker: Option<Direction>,
    is_closed: [bool; 2],
    traffic: Traffic,
}

/// Counts of packets, of the client and of the server.
struct Traffic {
    packets: [u64; 2],
    bytes: [u64; 2],
    flags: [u8; 2],
    first_micros: u64,
    last_micros: u64,
}

/// The reader of an application's protocol.
enum Reader {
    /// Until the first bytes have come.
    Unknown,
    /// The first bytes may be those of several protocols; the answer tells.
    Unclear,
    Http(Box<Http>),
    Http2(Box<Http2>),
    Smtp(Box<Smtp>),
    Tls(Box<Tls>),
    Dns(Box<Dns>),
    None,
}

fn side(direction: Direction) -> usize {
    usize::from(direction == Direction::ToClient)
}

impl Conversation {
    /// One that begins with a packet at this time.
    pub fn new(tuple: Tuple, number: u64, micros: u64, site: &mut Site) -> Conversation {
        let app = match tuple.transport {
            Transport::Udp if tuple.server.1 == dns::PORT => Some(App::Dns),
            Transport::Udp => Some(App::Other),
            Transport::Tcp => None,
        };
        Conversation {
            tuple,
            flow: Flow::new(tuple, app, site),
            number,
            log: Log::default(),
            turn: 0,
            has_alerted: false,
            streams: [Stream::default(), Stream::default()],
            windows: [Window::default(), Window::default()],
            app: Reader::Unknown,
            head: Vec::new(),
            answer: Vec::new(),
            first: None,
            speaker: None,
            is_closed: [false, false],
            traffic: Traffic {
                packets: [0, 0],
                bytes: [0, 0],
                flags: [0, 0],
                first_micros: micros,
                last_micros: micros,
            },
        }
    }

    /// Whether a side has ended, so that a packet that opens a connection begins another.
    pub fn is_ending(&self) -> bool {
        self.is_closed.contains(&true)
    }

    /// Bytes of its content that it holds.
    pub fn held_bytes(&self) -> u64 {
        let of_app = match &self.app {
            Reader::Http(http) => http.held_bytes(),
            Reader::Http2(http) => http.held_bytes(),
            Reader::Smtp(smtp) => smtp.held_bytes(),
            Reader::Tls(tls) => tls.held_bytes(),
            Reader::Dns(dns) => dns.held_bytes(),
            Reader::Unknown | Reader::Unclear | Reader::None => self.head.len() + self.answer.len(),
        };
        let waiting: usize = self.streams.iter().map(Stream::waiting_bytes).sum();
        (of_app + waiting + self.flow.held_bytes()) as u64
    }

    /// When its last packet came, in microseconds.
    pub fn last_micros(&self) -> u64 {
        self.traffic.last_micros
    }

    /// Whether it has been silent so long that it is taken for ended.
    pub fn is_expired(&self, micros: u64) -> bool {
        let seconds = match self.state() {
            State::Closed => CLOSED_SECONDS,
            State::Established | State::Closing if self.tuple.transport == Transport::Tcp => ESTABLISHED_SECONDS,
            _ => NEW_SECONDS,
        };
        micros.saturating_sub(self.traffic.last_micros) > seconds * 1_000_000
    }

    /// Takes a packet of so many bytes with its heads.
    pub fn packet(
        &mut self,
        direction: Direction,
        packet: &Packet<'_>,
        bytes: usize,
        micros: u64,
        desk: &mut Desk<'_>,
    ) {
        let at = side(direction);
        let traffic = &mut self.traffic;
        traffic.packets[at] = traffic.packets[at].saturating_add(1);
        traffic.bytes[at] = traffic.bytes[at].saturating_add(bytes as u64);
        traffic.last_micros = micros;
        match packet.carried {
            Carried::Segment(segment) => {
                traffic.flags[at] |= segment.flags;
                self.segment(direction, segment, desk);
            }
            Carried::Datagram(bytes) => self.datagram(direction, bytes, desk),
        }
    }

    fn segment(&mut self, direction: Direction, segment: Segment<'_>, desk: &mut Desk<'_>) {
        let Segment { sequence, flags, bytes, urgent, .. } = segment;
        let at = side(direction);
        self.note_window(at, segment);
        let mut ready = Vec::new();
        if flags & RST != 0 {
            // Bytes of a reset are no part of the stream.
            self.is_closed = [true, true];
            return self.speaker.into_iter().for_each(|speaker| self.flow.turn(speaker, desk));
        }
        self.flow.packet(direction, bytes, desk);
        let sequence = if flags & SYN != 0 {
            self.streams[at].open(sequence);
            sequence.wrapping_add(1)
        } else {
            sequence
        };
        let limit = self.windows[1 - at].limit();
        self.streams[at].note_urgent(sequence, urgent);
        self.streams[at].segment(sequence, bytes, limit, &mut ready);
        self.tell_gap(direction);
        if flags & FIN != 0 {
            self.is_closed[at] = true;
            self.streams[at].end_at(sequence.wrapping_add(u32::try_from(bytes.len()).unwrap_or(0)));
        }
        self.take(direction, &ready, desk);
        // Nothing is to come, and the other side may not answer.
        if self.streams[at].is_whole() && self.speaker == Some(direction) {
            self.flow.turn(direction, desk);
        }
    }

    /// Notes how far a side lets the other send.
    fn note_window(&mut self, at: usize, segment: Segment<'_>) {
        if segment.flags & SYN != 0 {
            self.windows[at].open(segment);
        }
        let is_scaled = self.windows.iter().all(|window| window.scale.is_some());
        if segment.flags & ACK != 0 {
            self.windows[at].widen(segment, is_scaled && segment.flags & SYN == 0);
        }
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
        self.identify(direction, bytes, desk);
    }

    /// Collects bytes until they tell the protocol, whose reader has them from then on.
    fn identify(&mut self, direction: Direction, bytes: &[u8], desk: &mut Desk<'_>) {
        match self.app {
            Reader::Unknown => {
                // Servers pass over empty lines in front of a request.
                let ends = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                let bytes = if self.head.is_empty() { &bytes[ends..] } else { bytes };
                if bytes.is_empty() {
                    return;
                }
                let first = *self.first.get_or_insert(direction);
                if first != direction {
                    self.begin(first, desk);
                    return self.identify(direction, bytes, desk);
                }
                self.head.extend_from_slice(bytes);
                let head = &self.head;
                let is_at_dns = self.tuple.server.1 == dns::PORT;
                let is_early = is_at_dns && head.len() < dns::TELLING_BYTES;
                let is_asked = is_at_dns && dns::is_message(head);
                let tells = head.contains(&b'\n') || head.starts_with(&[22, 3]) || head.len() >= HEAD_BYTES;
                if !is_early && (is_asked || tells) {
                    self.begin(direction, desk);
                }
            }
            Reader::Unclear => self.await_answer(direction, bytes, desk),
            _ => self.read(direction, bytes, desk),
        }
    }

    /// Chooses a reader by the first bytes, which it reads.
    fn begin(&mut self, direction: Direction, desk: &mut Desk<'_>) {
        let head = std::mem::take(&mut self.head);
        self.app = self.recognise(direction, &head);
        match self.app {
            Reader::Unclear => self.head = head,
            _ => self.read(direction, &head, desk),
        }
    }

    /// Takes what was not understood for HTTP if it has an answer of HTTP, and a greeting for SMTP if a client of SMTP answers.
    fn await_answer(&mut self, direction: Direction, bytes: &[u8], desk: &mut Desk<'_>) {
        const ANSWER_BYTES: usize = 5;
        let answers: &[&[u8; ANSWER_BYTES]] = match self.first {
            Some(Direction::ToServer) => &[b"HTTP/"],
            _ => &[b"EHLO ", b"HELO ", b"LHLO "],
        };
        let is_answer = Some(direction) != self.first;
        let taken = if is_answer { &mut self.answer } else { &mut self.head };
        taken.extend_from_slice(bytes);
        let begun = self.answer[..self.answer.len().min(ANSWER_BYTES)].to_ascii_uppercase();
        let is_possible = answers.iter().any(|known| known.starts_with(&begun));
        let is_late = !is_answer && (!self.answer.is_empty() || self.head.len() > UNCLEAR_BYTES_MAX);
        if is_possible && !is_late && begun.len() < ANSWER_BYTES {
            return;
        }
        let (head, answer) = (std::mem::take(&mut self.head), std::mem::take(&mut self.answer));
        if !is_possible || is_late {
            self.app = Reader::None;
            if self.flow.app().is_none() {
                self.flow.set_app(App::Other);
            }
            return;
        }
        let (app, reader) = match direction {
            Direction::ToClient => (App::Http, Reader::Http(Box::default())),
            Direction::ToServer => (App::Smtp, Reader::Smtp(Box::default())),
        };
        self.app = reader;
        self.flow.set_app(app);
        self.read(direction.other(), &head, desk);
        self.read(direction, &answer, desk);
    }

    fn read(&mut self, direction: Direction, bytes: &[u8], desk: &mut Desk<'_>) {
        let mut ways = Ways { flow: &mut self.flow, desk, log: &mut self.log };
        match &mut self.app {
            Reader::Http(http) => http.feed(direction, bytes, &mut ways),
            Reader::Http2(http) => http.feed(direction, bytes, &mut ways),
            Reader::Smtp(smtp) if direction == Direction::ToServer => smtp.feed(bytes, &mut ways),
            Reader::Tls(tls) => tls.feed(direction, bytes, &mut ways),
            Reader::Dns(dns) if direction == Direction::ToServer => dns.feed(bytes, &mut ways),
            _ => {}
        }
        let tunnelled = match &mut self.app {
            Reader::Http(http) => http.tunnelled(),
            _ => None,
        };
        if let Some(pending) = tunnelled {
            self.enter_tunnel(pending, desk);
        }
        let upgraded = match &mut self.app {
            Reader::Http(http) => http.upgraded(),
            _ => None,
        };
        if let Some((exchange, pending)) = upgraded {
            self.flow.set_app(App::Http2);
            let mut ways = Ways { flow: &mut self.flow, desk, log: &mut self.log };
            self.app = Reader::Http2(Box::new(Http2::upgraded(*exchange, &mut ways)));
            for (direction, bytes) in [Direction::ToServer, Direction::ToClient].into_iter().zip(pending) {
                self.read(direction, &bytes, desk);
            }
        }
        let handshake = match &mut self.app {
            Reader::Smtp(smtp) => smtp.handshake(),
            _ => None,
        };
        if let Some(bytes) = handshake {
            self.secure(&bytes, desk);
        }
    }

    /// Goes on with the handshake of a client.
    fn secure(&mut self, bytes: &[u8], desk: &mut Desk<'_>) {
        let before = std::mem::replace(&mut self.app, Reader::Tls(Box::default()));
        if let Reader::Smtp(mut smtp) = before {
            smtp.finish(&mut Ways { flow: &mut self.flow, desk, log: &mut self.log });
        }
        self.flow.set_app(App::Tls);
        self.read(Direction::ToServer, bytes, desk);
    }

    /// Begins anew with what is inside a tunnel; bytes of either side have come.
    fn enter_tunnel(&mut self, pending: [Vec<u8>; 2], desk: &mut Desk<'_>) {
        let before = std::mem::replace(&mut self.app, Reader::Unknown);
        if let Reader::Http(mut http) = before {
            http.finish(&mut Ways { flow: &mut self.flow, desk, log: &mut self.log });
        }
        self.first = None;
        for (direction, bytes) in [Direction::ToServer, Direction::ToClient].into_iter().zip(pending) {
            self.identify(direction, &bytes, desk);
        }
    }

    fn recognise(&mut self, direction: Direction, bytes: &[u8]) -> Reader {
        let port = self.tuple.server.1;
        let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        let word = bytes.iter().position(|byte| !is_of_token(byte)).unwrap_or(bytes.len());
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
            Direction::ToClient if bytes.starts_with(b"220") => (App::Ftp, Reader::Unclear),
            Direction::ToClient if bytes.starts_with(b"+OK") => (App::Pop3, Reader::None),
            Direction::ToClient if bytes.starts_with(b"* OK") => (App::Imap, Reader::None),
            Direction::ToClient if bytes.starts_with(b"HTTP/") => (App::Http, Reader::Http(Box::default())),
            Direction::ToServer if bytes.starts_with(&[22, 3]) => (App::Tls, Reader::Tls(Box::default())),
            Direction::ToServer if port == dns::PORT && dns::is_message(bytes) => {
                (App::Dns, Reader::Dns(Box::default()))
            }
            _ if bytes.starts_with(b"SSH-") => (App::Ssh, Reader::None),
            Direction::ToServer if bytes.starts_with(http2::MAGIC) => (App::Http2, Reader::Http2(Box::default())),
            Direction::ToClient if http2::is_greeting(bytes) => (App::Http2, Reader::Http2(Box::default())),
            Direction::ToServer if head::is_request(bytes, word, port) => (App::Http, Reader::Http(Box::default())),
            Direction::ToServer => return Reader::Unclear,
            Direction::ToClient => (App::Other, Reader::None),
        };
        self.flow.set_app(app);
        reader
    }

    fn datagram(&mut self, direction: Direction, bytes: &[u8], desk: &mut Desk<'_>) {
        self.flow.packet(direction, bytes, desk);
        self.flow.datagram(direction, bytes, desk);
        if self.tuple.server.1 == dns::PORT && direction == Direction::ToServer {
            dns::ask(bytes, &mut Ways { flow: &mut self.flow, desk, log: &mut self.log });
        }
        self.flow.end_datagram(direction);
    }

    fn tell_gap(&mut self, direction: Direction) {
        if std::mem::take(&mut self.streams[side(direction)].has_gap) {
            let anomaly = Anomaly { event: "stream.reassembly_seq_gap", layer: Layer::Stream, direction };
            self.log.tell(0, Content::Anomaly(anomaly));
        }
    }

    /// Ends it: rules are tried on what was begun.
    pub fn finish(&mut self, desk: &mut Desk<'_>) {
        for direction in [Direction::ToServer, Direction::ToClient] {
            let mut ready = Vec::new();
            self.streams[side(direction)].close(&mut ready);
            self.tell_gap(direction);
            self.take(direction, &ready, desk);
        }
        if let Some(first) = self.first.filter(|_| !self.head.is_empty()) {
            self.begin(first, desk);
        }
        let mut ways = Ways { flow: &mut self.flow, desk, log: &mut self.log };
        match &mut self.app {
            Reader::Http(http) => http.finish(&mut ways),
            Reader::Http2(http) => http.finish(&mut ways),
            Reader::Smtp(smtp) => smtp.finish(&mut ways),
            Reader::Tls(tls) => tls.finish(&mut ways),
            _ => {}
        }
        if self.tuple.transport == Transport::Tcp {
            self.flow.turn(Direction::ToServer, desk);
            self.flow.turn(Direction::ToClient, desk);
        }
    }

    /// The flow as it is now, for a record.
    pub fn summary(&self, end: End) -> Box<Summary> {
        let Traffic { packets, bytes, flags, first_micros, last_micros } = self.traffic;
        let (app, state, has_alerted) = (self.app_name(), self.state(), self.has_alerted);
        Box::new(Summary { app, packets, bytes, first_micros, last_micros, flags, state, end, has_alerted })
    }

    fn app_name(&self) -> Option<&'static str> {
        match self.flow.app() {
            Some(app) => Some(app.name()),
            None => (self.speaker.is_some() || self.tuple.transport == Transport::Udp).then(|| App::Other.name()),
        }
    }

    fn state(&self) -> State {
        let Traffic { packets, flags, .. } = self.traffic;
        if self.tuple.transport == Transport::Udp {
            return if packets.contains(&0) { State::New } else { State::Established };
        }
        let is_opened = flags[0] & SYN == 0 || flags[1] & SYN != 0 && flags[0] & ACK != 0;
        match self.is_closed {
            [true, true] => State::Closed,
            [false, false] if is_opened => State::Established,
            [false, false] if flags[1] & SYN != 0 => State::Accepted,
            [false, false] => State::New,
            _ => State::Closing,
        }
    }
}
