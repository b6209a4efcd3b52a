//! A mail server's day: good mails among clients that name unknown recipients and clients that never finish.
//!
//! The order is a line of `key=value` words that begins with `mixed=1`:
//!
//! | key | meaning | default |
//! |---|---|---|
//! | `target` | where the clients go, HOST:PORT | required |
//! | `seconds`, `warm` | how long is measured, and before that not | 10, 2 |
//! | `senders` | sessions at a time; with a `rate` the most | 100 |
//! | `rate` | good mails a second that are begun, whatever becomes of the others (open load); 0: a session begins when one has ended (closed load) | 0 |
//! | `bounces` | of a hundred sessions that finish, so many name a recipient that nobody knows (`nobodyN@sink.test`) | 0 |
//! | `unfinished` | of a hundred sessions, so many are left after EHLO | 0 |
//! | `hold_ms` | how long those stay connected; they take up no place of a sender | 5000 |
//! | `bytes` | the size of a good mail | 4096 |
//! | `bots` | addresses of those who send no good mail | 500 |
//!
//! Good mails come from 127.2.0.1 to 127.2.0.20, all else from addresses of 127.1.0.0/16, 25 of each /24. Each session is a connection; it
//! waits for each reply. A good mail counts when it has been answered by 250. Bounds: one thread, a few hundred bytes a session.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket, Type};

use crate::ledger::Board;
use crate::report;

/// Mails that a run can tell apart at the sink.
const MAILS_MAX: usize = 1 << 20;

/// Addresses that good mails come from.
const GOOD_CLIENTS: u32 = 20;

/// What is to be done.
struct Order {
    target: SocketAddr,
    seconds: f64,
    warm: f64,
    senders: usize,
    rate: f64,
    bounces: u64,
    unfinished: u64,
    hold: Duration,
    bytes: usize,
    bots: u32,
}

impl Order {
    fn parse(line: &str) -> Result<Order, String> {
        let mut target = None;
        let mut numbers = [10, 2, 100, 0, 0, 0, 5_000, 4_096, 500];
        const KEYS: [&str; 9] =
            ["seconds", "warm", "senders", "rate", "bounces", "unfinished", "hold_ms", "bytes", "bots"];
        for word in line.split_whitespace() {
            let (key, value) = word.split_once('=').ok_or(format!("{word}: KEY=VALUE"))?;
            match KEYS.iter().position(|known| *known == key) {
                Some(at) => numbers[at] = value.parse::<u64>().map_err(|_| format!("{key}: not a whole number"))?,
                None if key == "target" => target = Some(crate::address(value)?),
                None if key == "mixed" => {}
                None => return Err(format!("{key}: unknown key")),
            }
        }
        let [seconds, warm, senders, rate, bounces, unfinished, hold_ms, bytes, bots] = numbers;
        Ok(Order {
            target: target.ok_or("target is missing")?,
            seconds: seconds as f64,
            warm: warm as f64,
            senders: usize::try_from(senders).unwrap_or(usize::MAX).max(1),
            rate: rate as f64,
            bounces: bounces.min(99),
            unfinished: unfinished.min(99),
            hold: Duration::from_millis(hold_ms),
            bytes: usize::try_from(bytes).unwrap_or(4_096),
            bots: u32::try_from(bots).unwrap_or(500).max(1),
        })
    }

    /// Sessions begun in a second of an open load.
    fn sessions_per_second(&self) -> f64 {
        self.rate * 1e4 / ((100 - self.unfinished) * (100 - self.bounces)) as f64
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Good,
    Bounce,
    Unfinished,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Banner,
    Hello,
    Mail,
    Rcpt,
    Data,
    Dot,
    Quit,
    Held,
}

struct Session {
    socket: TcpStream,
    kind: Kind,
    state: State,
    line: Vec<u8>,
    begun: Instant,
}

/// What came of it.
#[derive(Default)]
struct Counts {
    begun: u64,
    accepted: u64,
    bounced: u64,
    unfinished: u64,
    refused: u64,
    lost: u64,
    /// Sessions of an open load for which there was no place.
    dropped: u64,
    open_max: usize,
    reply: String,
    latencies: Vec<f64>,
}

/// Does such a run.
pub fn answer(line: &str, number: u32, board: &Board, sunk: bool) -> String {
    let order = match Order::parse(line) {
        Ok(order) => order,
        Err(reason) => return report::refusal(&reason),
    };
    let ledger = board.open(number, MAILS_MAX, sunk);
    let outcome = Mix::new(order, number).and_then(Mix::run);
    match outcome {
        Ok((mut counts, seconds)) => {
            counts.latencies.sort_by(f64::total_cmp);
            let at = |share: f64| {
                let at = (counts.latencies.len() as f64 * share) as usize;
                counts.latencies.get(at).copied().unwrap_or(0.0)
            };
            format!(
                "{{\"good_s\": {:.2}, \"sessions_s\": {:.1}, \"accepted\": {}, \"arrived\": {}, \"bounced\": {}, \
                 \"unfinished\": {}, \"refused\": {}, \"lost\": {}, \"dropped\": {}, \"open_max\": {}, \
                 \"median_ms\": {:.2}, \"p95_ms\": {:.2}, \"seconds\": {seconds:.2}, \"reply\": {:?}}}",
                counts.accepted as f64 / seconds,
                counts.begun as f64 / seconds,
                counts.accepted,
                ledger.arrived(),
                counts.bounced,
                counts.unfinished,
                counts.refused,
                counts.lost,
                counts.dropped,
                counts.open_max,
                at(0.5),
                at(0.95),
                counts.reply,
            )
        }
        Err(error) => report::refusal(&error.to_string()),
    }
}

struct Mix {
    order: Order,
    run: u32,
    poll: Poll,
    sessions: Vec<Option<Session>>,
    free: Vec<usize>,
    held: VecDeque<(Instant, usize)>,
    /// Sessions that are no held ones.
    busy: usize,
    open: usize,
    mails: usize,
    random: u64,
    counts: Counts,
}

impl Mix {
    fn new(order: Order, run: u32) -> io::Result<Mix> {
        Ok(Mix {
            order,
            run,
            poll: Poll::new()?,
            sessions: Vec::new(),
            free: Vec::new(),
            held: VecDeque::new(),
            busy: 0,
            open: 0,
            mails: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            counts: Counts::default(),
        })
    }

    fn run(mut self) -> io::Result<(Counts, f64)> {
        let mut events = Events::with_capacity(1_024);
        let start = Instant::now();
        let (mut measured, mut due) = (None, 0.0);
        loop {
            let elapsed = start.elapsed().as_secs_f64();
            if measured.is_none() && elapsed >= self.order.warm {
                measured = Some(Instant::now());
                self.counts = Counts { open_max: self.open, ..Counts::default() };
            }
            if elapsed >= self.order.warm + self.order.seconds {
                let seconds = measured.map_or(elapsed, |since| since.elapsed().as_secs_f64());
                return Ok((self.counts, seconds));
            }
            self.begin_more(elapsed, &mut due);
            self.let_go();
            match self.poll.poll(&mut events, Some(Duration::from_millis(1))) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                self.ready(event.token().0);
            }
        }
    }

    fn begin_more(&mut self, elapsed: f64, due: &mut f64) {
        if self.order.rate == 0.0 {
            while self.busy < self.order.senders && self.begin() {}
            return;
        }
        let wanted = elapsed * self.order.sessions_per_second();
        while *due < wanted {
            *due += 1.0;
            if self.busy >= self.order.senders || !self.begin() {
                self.counts.dropped += 1;
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }

    fn begin(&mut self) -> bool {
        let kind = if self.next() % 100 < self.order.unfinished {
            Kind::Unfinished
        } else if self.next() % 100 < self.order.bounces {
            Kind::Bounce
        } else {
            Kind::Good
        };
        let (network, clients) =
            if kind == Kind::Good { (0x7f02_0000, GOOD_CLIENTS) } else { (0x7f01_0000, self.order.bots) };
        let number = u32::try_from(self.next() % u64::from(clients)).unwrap_or(0);
        let source = Ipv4Addr::from(network + (number / 25) * 256 + number % 25 + 1);
        let at = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(None);
            self.sessions.len() - 1
        });
        let Ok(socket) = connect(&self.poll, source, self.order.target, at) else {
            self.free.push(at);
            self.counts.lost += 1;
            return false;
        };
        self.sessions[at] =
            Some(Session { socket, kind, state: State::Banner, line: Vec::new(), begun: Instant::now() });
        self.counts.begun += 1;
        self.busy += 1;
        self.open += 1;
        self.counts.open_max = self.counts.open_max.max(self.open);
        true
    }

    /// Closes those that have been held for long enough.
    fn let_go(&mut self) {
        while self.held.front().is_some_and(|&(until, _)| until <= Instant::now()) {
            let Some((_, at)) = self.held.pop_front() else { return };
            if self.sessions[at].take_if(|session| session.state == State::Held).is_some() {
                self.free.push(at);
                self.open -= 1;
            }
        }
    }

    fn end(&mut self, at: usize) {
        let Some(session) = self.sessions[at].take() else { return };
        self.open -= 1;
        if session.state == State::Held {
            // Its place is free when its time is over, so that nobody else is let go in its stead.
            return;
        }
        self.busy -= 1;
        self.free.push(at);
    }

    fn ready(&mut self, at: usize) {
        let mut buffer = [0; 4_096];
        loop {
            let Some(session) = self.sessions.get_mut(at).and_then(Option::as_mut) else { return };
            match session.socket.read(&mut buffer) {
                Ok(0) => {
                    self.counts.lost += u64::from(!matches!(session.state, State::Quit | State::Held));
                    return self.end(at);
                }
                Ok(count) => {
                    for &byte in &buffer[..count] {
                        let Some(session) = self.sessions[at].as_mut() else { return };
                        session.line.push(byte);
                        if byte == b'\n' {
                            let line = std::mem::take(&mut session.line);
                            if line.get(3) != Some(&b'-') {
                                self.reply(at, &line);
                            }
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => return,
                Err(_) => {
                    self.counts.lost += u64::from(!matches!(session.state, State::Quit | State::Held));
                    return self.end(at);
                }
            }
        }
    }

    fn reply(&mut self, at: usize, line: &[u8]) {
        let number = self.next();
        let Some(session) = self.sessions[at].as_mut() else { return };
        let refused = line.first().is_none_or(|&digit| digit >= b'4');
        if refused && session.kind == Kind::Bounce && matches!(session.state, State::Mail | State::Rcpt) {
            self.counts.bounced += 1;
            return self.say(at, b"QUIT\r\n", State::Quit);
        }
        if refused && session.state != State::Quit {
            self.counts.refused += u64::from(session.kind == Kind::Good);
            if session.kind == Kind::Good && self.counts.reply.is_empty() {
                self.counts.reply = String::from_utf8_lossy(line).trim_end().to_owned();
            }
            return self.end(at);
        }
        match (session.state, session.kind) {
            (State::Banner, _) => self.say(at, b"EHLO client.test\r\n", State::Hello),
            (State::Hello, Kind::Unfinished) => {
                session.state = State::Held;
                self.held.push_back((Instant::now() + self.order.hold, at));
                self.counts.unfinished += 1;
                self.busy -= 1;
            }
            (State::Hello, _) => self.say(at, b"MAIL FROM:<sender@client.test>\r\n", State::Mail),
            (State::Mail, Kind::Good) => self.say(at, b"RCPT TO:<user@sink.test>\r\n", State::Rcpt),
            (State::Mail, _) => {
                let line = format!("RCPT TO:<nobody{number}@sink.test>\r\n");
                self.say(at, line.as_bytes(), State::Rcpt);
            }
            (State::Rcpt, _) => self.say(at, b"DATA\r\n", State::Data),
            (State::Data, _) => {
                let mail = mail(self.run, self.mails, self.order.bytes);
                self.mails += 1;
                self.say(at, &mail, State::Dot);
            }
            (State::Dot, _) => {
                self.counts.accepted += 1;
                self.counts.latencies.push(session.begun.elapsed().as_secs_f64() * 1e3);
                self.say(at, b"QUIT\r\n", State::Quit);
            }
            (State::Quit, _) => self.end(at),
            (State::Held, _) => {}
        }
    }

    fn say(&mut self, at: usize, words: &[u8], state: State) {
        let Some(session) = self.sessions[at].as_mut() else { return };
        session.state = state;
        // A mail of a few kilobytes fits into the empty send buffer of a session that waits for each reply.
        if session.socket.write_all(words).is_err() {
            self.counts.lost += u64::from(state != State::Quit);
            self.end(at);
        }
    }
}

fn connect(poll: &Poll, source: Ipv4Addr, target: SocketAddr, at: usize) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.bind(&SocketAddr::new(source.into(), 0).into())?;
    match socket.connect(&target.into()) {
        Err(error) if error.raw_os_error() != Some(115) => return Err(error),
        _ => {}
    }
    let mut stream = TcpStream::from_std(socket.into());
    poll.registry().register(&mut stream, Token(at), Interest::READABLE)?;
    Ok(stream)
}

/// A good mail, its end included.
fn mail(run: u32, index: usize, bytes: usize) -> Vec<u8> {
    let mut mail = format!(
        "X-Bench-Id: {run}.{index}\r\nFrom: sender@client.test\r\nTo: user@sink.test\r\nSubject: hello\r\n\
         Date: Mon, 23 Nov 2026 10:00:00 +0000\r\nMessage-ID: <{run}.{index}@client.test>\r\n\r\n"
    )
    .into_bytes();
    while mail.len() < bytes {
        mail.extend_from_slice(b"The quick brown fox jumps over the lazy dog, and so on.\r\n");
    }
    mail.extend_from_slice(b".\r\n");
    mail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_and_says_how_many_sessions_that_is() {
        let order = Order::parse("mixed=1 target=127.0.0.1:25 rate=50 bounces=95 unfinished=0").unwrap();
        assert!((order.sessions_per_second() - 1_000.0).abs() < 1e-6);
        assert!(Order::parse("mixed=1 target=127.0.0.1:25 bounce=9").is_err());
        assert!(Order::parse("mixed=1").is_err());
    }

    #[test]
    fn a_mail_is_found_at_the_sink_and_has_its_size() {
        let mail = mail(3, 7, 4_096);
        assert_eq!(crate::ledger::mail_id(&mail), Some((3, 7)));
        assert!((4_096..4_200).contains(&mail.len()) && mail.ends_with(b"\r\n.\r\n"));
    }
}
