//! The half that hears a client.
//!
//! ```text
//!   Command ─ {SIZE+} ─► Literal ─► Command: the rest of the line
//!      │        └ too large ─► Skipped ─► Command, which is answered as wrong
//!      └ AUTHENTICATE ─► Waiting ─ challenge() ─► Response ─► Waiting ... ─ resume() ─► Command
//! ```
//!
//! Bounds: of a command [`Config::line_bytes_max`] apart from literals, and [`Config::literal_bytes_max`] for all of its literals;
//! before the login the former for both. A larger literal is passed over up to [`Config::skipped_bytes_max`]; with one that is
//! larger still the session ends.

use alloc::vec::Vec;

use super::command::{Command, Token, tokens, trailing_literal};
use crate::line::{Line, LineBuffer};

/// Settings of a server half.
#[derive(Debug, Clone)]
pub struct Config {
    /// Wrong commands of one session; then it ends.
    pub errors_max: u32,
    /// The longest command without its literals, and the longest response of a SASL exchange, in bytes.
    pub line_bytes_max: usize,
    /// Literals of a command, in bytes.
    pub literal_bytes_max: u64,
    /// The largest literal that is passed over, in bytes.
    pub skipped_bytes_max: u64,
    /// How long a client may take to log in.
    pub login_ms_max: u64,
    /// How long the next command may take (section 1.5: 30 minutes or more).
    pub command_ms_max: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            errors_max: 20,
            line_bytes_max: 8_192,
            literal_bytes_max: 1 << 20,
            skipped_bytes_max: 64 << 20,
            login_ms_max: 120_000,
            command_ms_max: 1_860_000,
        }
    }
}

/// Events of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nothing to tell.
    Idle,
    /// A command, to be answered.
    Command(Command),
    /// Not a command; the reason is sent to the client.
    Wrong(&'static str),
    /// A literal that was too large, and is gone: the command cannot be done.
    TooLarge,
    /// Its response in a SASL exchange, in Base64; `*` gives it up.
    Response(Vec<u8>),
    /// It does not behave: the session is to be ended.
    Closed,
}

/// How a command is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of section 1.3")]
pub enum Answer {
    Ok,
    No,
    Bye,
}

/// The half towards a client.
#[derive(Debug, Clone)]
pub struct Server {
    config: Config,
    state: State,
    line: LineBuffer,
    tokens: Vec<Token>,
    /// Bytes of the command that have come: of lines, and of literals.
    line_bytes: usize,
    literal_bytes: u64,
    /// Error in the current command: the rest of it is skipped, literals included.
    failed: Option<Failed>,
    outbox: Vec<u8>,
    errors: u32,
    logged_in: bool,
    deadline: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failed {
    TooLarge,
    Wrong(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// A line of a command, or of a response.
    Line { is_response: bool },
    /// A literal, of which so much is to come.
    Literal { is_response: bool, left: u64, text: Vec<u8> },
    /// The same, and nobody wants it.
    Skipped { is_response: bool, left: u64 },
    /// Waits for a decision of the host.
    Waiting,
    /// No more.
    Closed,
}

/// Calling order: [`step`](Server::step) with what came; answer each command by [`answer`](Server::answer); send the
/// [`outbox`](Server::outbox).
impl Server {
    /// A session that begins; the capabilities that it begins with are the host's to say.
    pub fn new(config: Config, now: u64) -> Server {
        Server {
            state: State::Line { is_response: false },
            line: LineBuffer::default(),
            tokens: Vec::new(),
            line_bytes: 0,
            literal_bytes: 0,
            failed: None,
            outbox: Vec::new(),
            errors: 0,
            logged_in: false,
            deadline: now.saturating_add(config.login_ms_max),
            config,
        }
    }

    /// Bytes to send.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// All of the outbox has been sent.
    pub fn sent(&mut self) {
        self.outbox.clear();
        self.outbox.shrink_to(512);
    }

    /// When patience ends.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Takes a prefix of `input` and tells one thing; while the host has to decide, nothing is taken.
    pub fn step(&mut self, now: u64, input: &[u8]) -> (usize, ServerEvent) {
        let (taken, event) = match core::mem::replace(&mut self.state, State::Closed) {
            State::Closed => return (0, ServerEvent::Closed),
            State::Waiting => {
                self.state = State::Waiting;
                return (0, ServerEvent::Idle);
            }
            State::Line { is_response } => self.take_line(is_response, input),
            State::Literal { is_response, left, text } => self.take_literal(is_response, left, text, input),
            State::Skipped { is_response, left } => {
                let taken = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                self.state = match left.saturating_sub(taken as u64) {
                    0 => State::Line { is_response },
                    left => State::Skipped { is_response, left },
                };
                (taken, ServerEvent::Idle)
            }
        };
        if self.logged_in && event != ServerEvent::Idle {
            self.deadline = now.saturating_add(self.config.command_ms_max);
        }
        (taken, event)
    }

    fn take_line(&mut self, is_response: bool, input: &[u8]) -> (usize, ServerEvent) {
        let room = self.config.line_bytes_max.saturating_sub(self.line_bytes);
        let (taken, line) = self.line.take(input, room);
        let event = match line {
            Line::Unfinished => {
                self.state = State::Line { is_response };
                ServerEvent::Idle
            }
            // Whether a literal was to follow is not known any more.
            Line::TooLong => ServerEvent::Closed,
            Line::Whole(line) => {
                self.line_bytes = self.line_bytes.saturating_add(line.len());
                let literal = match self.failed {
                    Some(_) => trailing_literal(&line),
                    None => tokens(&line, &mut self.tokens).unwrap_or_else(|reason| {
                        self.failed = Some(Failed::Wrong(reason));
                        trailing_literal(&line)
                    }),
                };
                match literal {
                    Some(bytes) => self.begin_literal(is_response, bytes),
                    None => self.whole(is_response),
                }
            }
        };
        (taken, event)
    }

    fn begin_literal(&mut self, is_response: bool, bytes: u64) -> ServerEvent {
        self.literal_bytes = self.literal_bytes.saturating_add(bytes);
        let known = !is_response && self.logged_in;
        let most = if known { self.config.literal_bytes_max } else { self.config.line_bytes_max as u64 };
        if self.literal_bytes > most && (!known || self.literal_bytes > self.config.skipped_bytes_max) {
            return ServerEvent::Closed;
        }
        if self.literal_bytes > most {
            self.failed.get_or_insert(Failed::TooLarge);
        }
        self.state = match (self.failed, bytes) {
            (None, 0) => {
                self.tokens.push(Token::Text(Vec::new()));
                State::Line { is_response }
            }
            (None, left) => State::Literal { is_response, left, text: Vec::new() },
            (Some(_), 0) => State::Line { is_response },
            (Some(_), left) => State::Skipped { is_response, left },
        };
        ServerEvent::Idle
    }

    fn take_literal(&mut self, is_response: bool, left: u64, mut text: Vec<u8>, input: &[u8]) -> (usize, ServerEvent) {
        let taken = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        text.extend_from_slice(input.get(..taken).unwrap_or_default());
        let left = left.saturating_sub(taken as u64);
        self.state = match left {
            0 => {
                self.tokens.push(Token::Text(text));
                State::Line { is_response }
            }
            left => State::Literal { is_response, left, text },
        };
        (taken, ServerEvent::Idle)
    }

    /// The last line of a command or a response has come.
    fn whole(&mut self, is_response: bool) -> ServerEvent {
        let words = core::mem::take(&mut self.tokens);
        let failed = self.failed.take();
        (self.line_bytes, self.literal_bytes) = (0, 0);
        if is_response {
            self.state = State::Waiting;
            return ServerEvent::Response(match <[Token; 1]>::try_from(words) {
                Ok([Token::Text(text)]) if failed.is_none() => text,
                // What is no string gives up the exchange.
                _ => b"*".to_vec(),
            });
        }
        let parsed = match failed {
            Some(Failed::TooLarge) => {
                self.state = State::Line { is_response: false };
                return ServerEvent::TooLarge;
            }
            Some(Failed::Wrong(reason)) => Err(reason),
            None => Command::parse(words),
        };
        match parsed {
            Ok(command) => {
                let is_exchange = matches!(command, Command::Authenticate { .. });
                self.state = if is_exchange { State::Waiting } else { State::Line { is_response: false } };
                ServerEvent::Command(command)
            }
            Err(reason) => self.wrong(reason),
        }
    }

    fn wrong(&mut self, reason: &'static str) -> ServerEvent {
        self.errors = self.errors.saturating_add(1);
        if self.errors >= self.config.errors_max {
            return ServerEvent::Closed;
        }
        self.state = State::Line { is_response: false };
        ServerEvent::Wrong(reason)
    }

    /// The host hands on a challenge, in Base64: the client's response is next.
    pub fn challenge(&mut self, text: &[u8]) {
        string(text, &mut self.outbox);
        self.outbox.extend_from_slice(b"\r\n");
        self.state = State::Line { is_response: true };
    }

    /// An exchange is over: commands are next.
    pub fn resume(&mut self) {
        if !self.is_closed() {
            self.state = State::Line { is_response: false };
        }
    }

    /// The client has logged in: it may take its time from here on.
    pub fn logged_in(&mut self, now: u64) {
        self.logged_in = true;
        self.deadline = now.saturating_add(self.config.command_ms_max);
    }

    /// It is nobody again.
    pub fn logged_out(&mut self, now: u64) {
        self.logged_in = false;
        self.deadline = now.saturating_add(self.config.login_ms_max);
    }

    /// Answers a command: `code` stands in parentheses if there is one.
    pub fn answer(&mut self, answer: Answer, code: &str, text: &str) {
        self.outbox.extend_from_slice(match answer {
            Answer::Ok => b"OK",
            Answer::No => b"NO",
            Answer::Bye => b"BYE",
        });
        if !code.is_empty() {
            self.outbox.extend_from_slice(b" (");
            self.outbox.extend_from_slice(code.as_bytes());
            self.outbox.push(b')');
        }
        if !text.is_empty() {
            self.outbox.push(b' ');
            string(text.as_bytes(), &mut self.outbox);
        }
        self.outbox.extend_from_slice(b"\r\n");
    }

    /// Says something before the answer, whole lines.
    pub fn say(&mut self, lines: &[u8]) {
        self.outbox.extend_from_slice(lines);
    }

    /// No more is heard or said.
    pub fn close(&mut self) {
        self.state = State::Closed;
    }
}

/// The longest string that is quoted, in bytes (section 4).
const QUOTED_BYTES_MAX: usize = 1_000;

/// Writes a string, quoted where that can be.
pub fn string(text: &[u8], out: &mut Vec<u8>) {
    if text.len() > QUOTED_BYTES_MAX || text.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        out.extend_from_slice(alloc::format!("{{{}}}\r\n", text.len()).as_bytes());
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}
