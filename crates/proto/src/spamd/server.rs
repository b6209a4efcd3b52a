//! The server half.
//!
//! ```text
//!  Line ──► Header ──► Body ──► Asked ──► Closed
//!    └────────┴── no mail, or wrong ────────▲
//! ```

use alloc::string::ToString;
use alloc::vec::Vec;

use super::reply::{Answer, Refusal};
use super::request::{Places, Request, Verb};

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 8 << 10;

/// Header lines of one request.
const HEADER_LINES_MAX: u32 = 255;

/// Events of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nothing that matters; more is needed.
    Idle,
    /// It asks for something about the mail that follows.
    Asked(Request),
    /// The bytes taken are of that mail.
    Content,
    /// The mail is complete: it is to be [answered](Server::answer).
    End,
    /// Nothing more is to be read: what is in the outbox is to be sent, and the connection closed.
    Closed,
}

/// One connection.
#[derive(Debug)]
pub struct Server {
    state: State,
    line: Vec<u8>,
    outbox: Vec<u8>,
    is_refused: bool,
}

#[derive(Debug)]
enum State {
    Line,
    Header { request: Request, lines: u32 },
    Body { request: Request, taken: u64, is_within_line: bool },
    Asked(Request),
    Closed,
}

impl Default for Server {
    fn default() -> Server {
        Server { state: State::Line, line: Vec::new(), outbox: Vec::new(), is_refused: false }
    }
}

impl Server {
    /// Takes a prefix of the input, and tells one thing.
    pub fn step(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        match &mut self.state {
            State::Line | State::Header { .. } => self.step_line(input),
            State::Body { request, taken, is_within_line } => {
                let left = request.length.map_or(u64::MAX, |length| length.saturating_sub(*taken));
                if left == 0 {
                    // spamd reads lines: one that goes on behind the length shows that the length is wrong.
                    return match (*is_within_line && !request.is_compressed, input.is_empty()) {
                        (true, true) => (0, ServerEvent::Idle),
                        (true, false) => (0, self.mismatch()),
                        (false, _) => (0, self.end()),
                    };
                }
                let count = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
                *taken = taken.saturating_add(count as u64);
                if let Some(&last) = input[..count].last() {
                    *is_within_line = last != b'\n';
                }
                (count, if count == 0 { ServerEvent::Idle } else { ServerEvent::Content })
            }
            State::Asked(_) => (0, ServerEvent::Idle),
            State::Closed => (input.len(), ServerEvent::Closed),
        }
    }

    /// The client has ended its half of the connection, and all of that has been taken.
    pub fn finish(&mut self) -> ServerEvent {
        match &self.state {
            State::Line => self.refuse(&Refusal::Protocol("(closed before headers)".into())),
            State::Header { .. } => self.refuse(&Refusal::Protocol("(EOF during headers)".into())),
            State::Body { request, taken, .. } => match request.length {
                Some(length) if *taken < length => {
                    let why = alloc::format!("(Content-Length mismatch: Expected {length} bytes, got {taken} bytes)");
                    self.refuse(&Refusal::Protocol(why))
                }
                _ => self.end(),
            },
            State::Asked(_) => ServerEvent::Idle,
            State::Closed => ServerEvent::Closed,
        }
    }

    /// The mail is longer than its length says.
    fn mismatch(&mut self) -> ServerEvent {
        let State::Body { taken, .. } = &self.state else { return ServerEvent::Idle };
        let why = alloc::format!("(Content-Length mismatch: Expected {taken} bytes, got more)");
        self.refuse(&Refusal::Protocol(why))
    }

    /// Answers what was asked.
    pub fn answer(&mut self, answer: &Answer<'_>) {
        if let State::Asked(request) | State::Body { request, .. } = &self.state {
            self.outbox.extend(answer.bytes(request));
            self.state = State::Closed;
        }
    }

    /// Says where a mail was learned, and where it was forgotten.
    pub fn told(&mut self, set: Places, remove: Places) {
        if matches!(&self.state, State::Asked(_) | State::Body { .. }) {
            let lines = set.line("DidSet") + &remove.line("DidRemove");
            let told = alloc::format!("SPAMD/1.1 0 EX_OK\r\n{lines}\r\n\r\n");
            self.outbox.extend_from_slice(told.as_bytes());
            self.state = State::Closed;
        }
    }

    /// Refuses what was asked, or what is being sent.
    pub fn refuse(&mut self, refusal: &Refusal) -> ServerEvent {
        if !matches!(self.state, State::Closed) {
            self.outbox.extend(refusal.bytes());
            self.state = State::Closed;
            self.is_refused = true;
        }
        ServerEvent::Closed
    }

    /// Whether it was refused: then the client may still be sending, and should be let finish before it is told.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Bytes to send.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// Empties the outbox after it was sent.
    pub fn sent(&mut self) {
        self.outbox.clear();
    }

    /// The mail is complete.
    fn end(&mut self) -> ServerEvent {
        if let State::Body { request, .. } = &self.state {
            self.state = State::Asked(request.clone());
        }
        ServerEvent::End
    }

    fn step_line(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        let end = input.iter().position(|&byte| byte == b'\n');
        let count = end.map_or(input.len(), |end| end + 1);
        if self.line.len() + count > LINE_BYTES_MAX {
            return (count, self.refuse(&Refusal::Protocol("(line too long)".into())));
        }
        self.line.extend_from_slice(&input[..count]);
        if end.is_none() {
            return (count, ServerEvent::Idle);
        }
        let mut line = core::mem::take(&mut self.line);
        line.truncate(line.len() - 1);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        (count, self.take_line(&line))
    }

    fn take_line(&mut self, line: &[u8]) -> ServerEvent {
        let State::Header { request, lines } = &mut self.state else {
            return match Request::read(line) {
                Some(request) if request.has_header() => {
                    self.state = State::Header { request, lines: 0 };
                    ServerEvent::Idle
                }
                Some(request) => self.begin(request),
                None => {
                    let shown: Vec<u8> = line
                        .iter()
                        .take(200)
                        .map(|&byte| if (b' '..=b'~').contains(&byte) { byte } else { b'?' })
                        .collect();
                    self.refuse(&Refusal::Protocol(alloc::string::String::from_utf8_lossy(&shown).into_owned()))
                }
            };
        };
        if line.is_empty() {
            let request = request.clone();
            return self.begin(request);
        }
        *lines += 1;
        let taken = if *lines > HEADER_LINES_MAX { Err("(too many headers)") } else { request.take(line) };
        match taken {
            Ok(()) => ServerEvent::Idle,
            Err(why) => self.refuse(&Refusal::Protocol(why.to_string())),
        }
    }

    /// The header is complete.
    fn begin(&mut self, request: Request) -> ServerEvent {
        match request.verb {
            Verb::Ping => {
                self.outbox.extend_from_slice(b"SPAMD/1.5 0 PONG\r\n");
                self.state = State::Closed;
                ServerEvent::Closed
            }
            Verb::Skip => {
                self.state = State::Closed;
                ServerEvent::Closed
            }
            _ => {
                if let Some(why) = request.contradiction() {
                    return self.refuse(&Refusal::Protocol(why.into()));
                }
                self.state = State::Body { request: request.clone(), taken: 0, is_within_line: false };
                ServerEvent::Asked(request)
            }
        }
    }
}
