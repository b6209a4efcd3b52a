//! The half that hears a client: its commands, one at a time.
//!
//! ```text
//!           AUTH ─► Waiting ─ challenge() ─► Response ─ a line ─► Waiting ... ─ answered() ─► Command
//!  Command ─┼ PASS, APOP ─► Waiting ─ answered() ─► Command
//!           STLS ─► Waiting ─ secured() / answered() ─► Command
//! ```
//!
//! Which command may come when is a table ([`states`](super::states)). Commands may come before earlier ones are answered,
//! but for those that decide what may come next; the host answers in their order. Bounds: a line of
//! [`Config::line_bytes_max`], a response of a SASL exchange of [`Config::response_bytes_max`], wrong commands.

use alloc::vec::Vec;

use super::command::{Command, Verb, user_in_response};
use super::states::{Phase, Turn, turn};
use crate::line::{Line, LineBuffer};
use crate::smtp::DotWriter;

/// Settings of a server half.
#[derive(Debug, Clone)]
pub struct Config {
    /// Wrong commands of one session; then it ends.
    pub errors_max: u32,
    /// The longest command line, in bytes (RFC 2449: 255).
    pub line_bytes_max: usize,
    /// The longest response of a SASL exchange, in bytes (RFC 4954 asks for 12,288).
    pub response_bytes_max: usize,
    /// How long a client may take to log in.
    pub login_ms_max: u64,
    /// How long the next command may take (RFC 1939, section 3: ten minutes or more).
    pub command_ms_max: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            errors_max: 20,
            line_bytes_max: 2_048,
            response_bytes_max: 16_384,
            login_ms_max: 120_000,
            command_ms_max: 660_000,
        }
    }
}

/// Events of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nothing to tell.
    Idle,
    /// A command, to be answered in its turn.
    Command(Command),
    /// An invalid line, or a command out of turn; the reply with the reason has to keep its order.
    Wrong(&'static str),
    /// Its response in a SASL exchange, without the line end.
    Response(Vec<u8>),
    /// It does not behave: the session is to be ended.
    Closed,
}

/// The half towards a client.
#[derive(Debug, Clone)]
pub struct Server {
    config: Config,
    state: State,
    line: LineBuffer,
    outbox: Vec<u8>,
    dots: DotWriter,
    errors: u32,
    mechanism: Option<alloc::string::String>,
    phase: Phase,
    /// Where the command leads that the half waits with.
    next: Phase,
    deadline: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next command.
    Command,
    /// Waits for a decision of the host.
    Waiting,
    /// The next response of a SASL exchange.
    Response,
    /// No more.
    Closed,
}

/// Calling order: [`step`](Server::step) with what came; answer in order by [`say`](Server::say) and the like; send the
/// [`outbox`](Server::outbox).
impl Server {
    /// A session that begins; the greeting is the host's to say.
    pub fn new(config: Config, now: u64) -> Server {
        Server {
            state: State::Command,
            line: LineBuffer::default(),
            outbox: Vec::new(),
            dots: DotWriter::default(),
            errors: 0,
            mechanism: None,
            phase: Phase::Authorization,
            next: Phase::Authorization,
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

    /// Phase of the session.
    pub fn phase(&self) -> Phase {
        if self.is_closed() { Phase::Closed } else { self.phase }
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether it would take a line now.
    pub fn is_listening(&self) -> bool {
        matches!(self.state, State::Command | State::Response)
    }

    /// Takes a prefix of `input` and tells one thing; while the host has to decide, nothing is taken.
    pub fn step(&mut self, now: u64, input: &[u8]) -> (usize, ServerEvent) {
        let bytes_max = match self.state {
            State::Closed => return (0, ServerEvent::Closed),
            State::Waiting => return (0, ServerEvent::Idle),
            State::Command => self.config.line_bytes_max,
            State::Response => self.config.response_bytes_max,
        };
        let (taken, line) = self.line.take(input, bytes_max);
        let event = match line {
            Line::Unfinished => return (taken, ServerEvent::Idle),
            Line::TooLong if self.state == State::Response => self.respond(b"*".to_vec()),
            Line::TooLong => self.wrong("Line too long"),
            Line::Whole(line) if self.state == State::Response => self.respond(line),
            Line::Whole(line) => match Command::parse(&line) {
                Ok(command) => self.command(command),
                Err(reason) => self.wrong(reason),
            },
        };
        if self.phase == Phase::Transaction {
            self.deadline = now.saturating_add(self.config.command_ms_max);
        }
        (taken, event)
    }

    fn command(&mut self, command: Command) -> ServerEvent {
        if command.is_impassable() {
            return ServerEvent::Wrong("This mechanism cannot be used here");
        }
        match (turn(self.phase, command.verb), command.verb) {
            (Turn::No(reason), _) => return ServerEvent::Wrong(reason),
            (Turn::Stay, _) => {}
            // What is offered.
            (Turn::To(_), Verb::Auth) if command.mechanism().is_none() => {}
            // A name that is not taken is refused with its password.
            (Turn::To(next), Verb::User) => self.phase = next,
            (Turn::To(next), Verb::Quit) => (self.state, self.phase) = (State::Waiting, next),
            (Turn::To(next), _) => (self.state, self.next) = (State::Waiting, next),
        }
        self.mechanism = command.mechanism().map(Into::into);
        ServerEvent::Command(command)
    }

    fn wrong(&mut self, reason: &'static str) -> ServerEvent {
        self.errors += 1;
        if self.errors < self.config.errors_max {
            return ServerEvent::Wrong(reason);
        }
        self.state = State::Closed;
        ServerEvent::Closed
    }

    fn respond(&mut self, line: Vec<u8>) -> ServerEvent {
        self.state = State::Waiting;
        // What is no Base64 gives up the exchange.
        let fits = line.iter().all(u8::is_ascii_graphic);
        ServerEvent::Response(if fits { line } else { b"*".to_vec() })
    }

    /// The name of a mailbox in a response, if the exchange tells one there.
    pub fn user_in(&self, response: &[u8]) -> Option<alloc::string::String> {
        user_in_response(self.mechanism.as_deref()?, response)
    }

    /// The host hands on a challenge: the client's response is next.
    pub fn challenge(&mut self, text: &[u8]) {
        self.line(b"+ ", text);
        self.state = State::Response;
    }

    /// The command that the half waits with is answered, an exchange however far it has come: commands are next. Nothing,
    /// unless there is one.
    pub fn answered(&mut self, now: u64, ok: bool) {
        if !matches!(self.state, State::Waiting | State::Response) {
            return;
        }
        self.state = State::Command;
        self.phase = if ok { self.next } else { Phase::Authorization };
        if self.phase == Phase::Transaction {
            // It may take its time from here on.
            self.deadline = now.saturating_add(self.config.command_ms_max);
        }
    }

    /// The stream is encrypted from here on: what came before is forgotten.
    pub fn secured(&mut self, now: u64) {
        self.line = LineBuffer::default();
        self.answered(now, true);
        self.deadline = now.saturating_add(self.config.login_ms_max);
    }

    /// Says a whole reply, or the first line of one.
    pub fn say(&mut self, ok: bool, text: &[u8]) {
        self.dots = DotWriter::default();
        self.line(if ok { b"+OK" } else { b"-ERR" }, &[if text.is_empty() { b"" } else { &b" "[..] }, text].concat());
    }

    /// Says more of a reply: lines, or a part of a message, whose line ends are CRLF.
    pub fn content(&mut self, content: &[u8]) {
        self.dots.write(content, &mut self.outbox);
    }

    /// Ends a reply of several lines.
    pub fn end(&mut self) {
        self.dots.end(&mut self.outbox);
    }

    /// No more is heard or said.
    pub fn close(&mut self) {
        self.state = State::Closed;
    }

    /// One line, whatever the text holds.
    fn line(&mut self, mark: &[u8], text: &[u8]) {
        self.outbox.extend_from_slice(mark);
        self.outbox.extend(text.iter().map(|&byte| if byte.is_ascii_control() { b' ' } else { byte }));
        self.outbox.extend_from_slice(b"\r\n");
    }
}
