//! The half that hears a client: its commands, one at a time, and the messages that it appends.
//!
//! ```text
//!           a command ─► Waiting ─ answered() ─► Command
//!  Command ─┤              ├ challenge() ─► Response ─ a line ─► Waiting
//!           │              └ idle() ─► Idle ─ DONE ─► Waiting
//!           APPEND ─► Announced ─ accept() ─► Message ─ a line ─► Announced or Waiting
//! ```
//!
//! Which command may come when is a table ([`states`](super::states)); what comes out of turn is refused before its literals.
//! While a command waits for its answer nothing is taken, so commands may be pipelined and are never mixed up. Literals
//! of other commands than APPEND are collected; leave for them is given here. Bounds: [`Config`]; nothing of an appended
//! message is kept.

use alloc::vec::Vec;

use super::append;
use super::appended::{self, Head, Place};
use super::command::{Announced, Command, LineEnd, Piece, Verb, line_end};
use super::event::{Kind, Message};
use super::states::{Phase, Turn, turn};
use crate::line::{Line, LineBuffer};

/// Settings of a server half.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whether the host keeps the mail itself. Then there are REPLACE and CATENATE too, and a command that
    /// [appends](Command::is_append) is one whose messages are all put together of what is there.
    pub keeps: bool,
    /// Wrong commands of one session; then it ends.
    pub errors_max: u32,
    /// The longest command before the client has logged in, literals included, in bytes.
    pub login_bytes_max: usize,
    /// The longest command afterwards.
    pub command_bytes_max: usize,
    /// The longest response of a SASL exchange, in bytes.
    pub response_bytes_max: usize,
    /// The longest literal that comes unasked and is too long, and is still passed over, in bytes.
    pub discard_bytes_max: u64,
    /// How long a client may take to log in.
    pub login_ms_max: u64,
    /// How long the next command may take (RFC 9051, section 5.4: thirty minutes or more).
    pub command_ms_max: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            keeps: false,
            errors_max: 20,
            login_bytes_max: 8 << 10,
            command_bytes_max: 64 << 10,
            response_bytes_max: 16 << 10,
            discard_bytes_max: 1 << 20,
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
    /// A command; nothing more is taken until [`Server::answered`] and the like.
    Command(Command),
    /// APPEND, up to its first message, which is to be [accepted](Server::accept) or [refused](Server::refuse).
    Append(Command, Message),
    /// The next message of an APPEND, and the arguments in front of it.
    Message(Vec<u8>, Message),
    /// The bytes taken are content of a message.
    Content,
    /// An APPEND is complete; this stands behind its last message. As after a command.
    AppendEnd(Vec<u8>),
    /// Something that is no command, or one out of turn: the client is to be told why under this tag. As after a command.
    Wrong(Vec<u8>, &'static str),
    /// Its response in a SASL exchange, without the line end.
    Response(Vec<u8>),
    /// The end of IDLE.
    Done,
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
    /// The command under way.
    command: Option<Command>,
    /// Error in the current command, if any.
    wrong: Option<&'static str>,
    /// Where the literal of an APPEND is.
    place: Place,
    errors: u32,
    phase: Phase,
    /// Command that is not answered yet.
    asked: Verb,
    deadline: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A line of a command.
    Command,
    /// So many bytes of a literal that is collected.
    Literal { left: u64 },
    /// So many bytes of a literal that nobody wants.
    Discard { left: u64 },
    /// A message of an APPEND, which the host has to accept.
    Announced { left: u64, at_once: bool },
    /// So many bytes of it.
    Message { left: u64 },
    /// A line of an APPEND, behind a message.
    Behind,
    /// Waits for a decision of the host.
    Waiting,
    /// The next response of a SASL exchange.
    Response,
    /// Nothing but DONE.
    Idle,
    /// No more.
    Closed,
}

/// Calling order: [`step`](Server::step) with what came; answer by [`line`](Server::line) and the like, then
/// [`answered`](Server::answered); send the [`outbox`](Server::outbox).
impl Server {
    /// A session that begins; the greeting is the host's to say.
    pub fn new(config: Config, now: u64) -> Server {
        Server {
            state: State::Command,
            line: LineBuffer::default(),
            outbox: Vec::new(),
            command: None,
            wrong: None,
            place: Place::Between,
            errors: 0,
            phase: Phase::NotAuthenticated,
            asked: Verb::Always,
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
        if self.is_closed() { Phase::Logout } else { self.phase }
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether it would take something now.
    pub fn is_listening(&self) -> bool {
        !matches!(self.state, State::Waiting | State::Announced { .. } | State::Closed)
    }

    /// Whether nothing of a command has come.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Command | State::Idle) && self.command.is_none() && self.line.is_empty()
    }

    /// Takes a prefix of `input` and tells one thing; while the host has to decide, nothing is taken.
    pub fn step(&mut self, now: u64, input: &[u8]) -> (usize, ServerEvent) {
        let (taken, event) = match self.state {
            State::Closed => return (0, ServerEvent::Closed),
            State::Waiting | State::Announced { .. } => return (0, ServerEvent::Idle),
            State::Literal { left } => self.literal(left, input),
            State::Discard { left } => {
                let (taken, left) = share(left, input);
                self.state = if left == 0 { State::Command } else { State::Discard { left } };
                (taken, ServerEvent::Idle)
            }
            State::Message { left } => {
                let (taken, left) = share(left, input);
                self.state = if left == 0 { State::Behind } else { State::Message { left } };
                (taken, if taken == 0 { ServerEvent::Idle } else { ServerEvent::Content })
            }
            State::Command | State::Behind | State::Response | State::Idle => self.whole_line(input),
        };
        if self.is_logged_in() && event != ServerEvent::Idle {
            self.deadline = now.saturating_add(self.config.command_ms_max);
        }
        (taken, event)
    }

    fn literal(&mut self, left: u64, input: &[u8]) -> (usize, ServerEvent) {
        let (taken, left) = share(left, input);
        if let Some(Piece::Literal { bytes, .. }) = self.command.as_mut().and_then(|command| command.pieces.last_mut())
        {
            bytes.extend_from_slice(&input[..taken]);
        }
        self.state = if left == 0 { State::Command } else { State::Literal { left } };
        (taken, ServerEvent::Idle)
    }

    fn whole_line(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        let bytes_max = match self.state {
            State::Response => self.config.response_bytes_max,
            _ => self.bytes_max() - self.command.as_ref().map_or(0, Command::len).min(self.bytes_max()),
        };
        let (taken, line) = self.line.take(input, bytes_max);
        let event = match (line, self.state) {
            (Line::Unfinished, _) if self.line.is_overflowing() => self.closed(),
            (Line::Unfinished, _) => ServerEvent::Idle,
            (Line::TooLong, _) => self.closed(),
            (Line::Whole(line), State::Response) => self.respond(line),
            (Line::Whole(line), State::Idle) if line.eq_ignore_ascii_case(b"DONE") => {
                self.state = State::Waiting;
                ServerEvent::Done
            }
            (Line::Whole(_), State::Idle) => self.closed(),
            (Line::Whole(line), State::Behind) => self.behind(line),
            (Line::Whole(line), _) => self.command_line(&line),
        };
        (taken, event)
    }

    fn bytes_max(&self) -> usize {
        if self.is_logged_in() { self.config.command_bytes_max } else { self.config.login_bytes_max }
    }

    /// A line of a command, up to its end or to a literal.
    fn command_line(&mut self, line: &[u8]) -> ServerEvent {
        let (text, end) = match line_end(line) {
            Ok(LineEnd::Literal(announced)) => (&line[..announced.at], LineEnd::Literal(announced)),
            Ok(LineEnd::Complete) => (line, LineEnd::Complete),
            Err(reason) => {
                self.wrong = Some(reason);
                (&b""[..], LineEnd::Complete)
            }
        };
        match &mut self.command {
            Some(command) if !text.is_empty() => command.pieces.push(Piece::Text(text.to_vec())),
            Some(_) => {}
            None => {
                // What is wrong has a tag all the same.
                let parsed = Command::parse(if text.is_empty() { line } else { text }, self.config.keeps);
                let command = parsed.unwrap_or_else(|(tag, reason)| {
                    self.wrong = self.wrong.or(Some(reason));
                    Command { tag, ..Command::plain(Verb::Always, "") }
                });
                if let Turn::No(reason) = turn(self.phase, command.verb) {
                    self.wrong = Some(reason);
                }
                self.asked = command.verb;
                self.command = Some(command);
            }
        }
        match end {
            LineEnd::Complete => self.complete(),
            LineEnd::Literal(announced) => self.announced(announced),
        }
    }

    fn complete(&mut self) -> ServerEvent {
        let Some(command) = self.command.take() else { return ServerEvent::Idle };
        if command.is_append() && self.wrong.is_none() {
            self.wrong = match self.config.keeps {
                true => Head::read(&command, true, true).err(),
                false => Some("APPEND without a message"),
            };
        }
        match self.wrong.take() {
            Some(reason) => {
                // Who is out of turn may only have lost its mailbox.
                let is_out_of_turn = matches!(turn(self.phase, command.verb), Turn::No(_));
                self.wrong(command.tag, reason, u32::from(!is_out_of_turn))
            }
            None => {
                self.state = State::Waiting;
                ServerEvent::Command(command)
            }
        }
    }

    fn announced(&mut self, announced: Announced) -> ServerEvent {
        let Announced { len, at_once, binary, .. } = announced;
        let command = self.command.as_ref().expect("a literal belongs to a command");
        let in_front = usize::from(command.verb == Verb::Replace) + 1;
        let is_message = command.is_append() && command.strings().len() >= in_front;
        if is_message && self.wrong.is_none() {
            let head = match self.config.keeps {
                true => Head::read(command, true, false).map(|head| self.place = head.place),
                false => append::check_head(command),
            };
            self.wrong = head.err();
        }
        if is_message && self.wrong.is_none() {
            self.state = State::Announced { left: len, at_once };
            let command = self.command.clone().expect("just looked at");
            return ServerEvent::Append(command, Message { len, binary });
        }
        let room = self.bytes_max().saturating_sub(command.len()) as u64;
        if len > room {
            self.wrong = self.wrong.or(Some("[TOOBIG] Too much"));
        }
        match (self.wrong, at_once) {
            (Some(_), false) => self.complete(),
            (Some(_), true) if len > self.config.discard_bytes_max => self.closed(),
            (Some(_), true) => {
                self.state = if len == 0 { State::Command } else { State::Discard { left: len } };
                ServerEvent::Idle
            }
            (None, _) => {
                if !at_once {
                    self.line(b"+ Go on");
                }
                let command = self.command.as_mut().expect("a literal belongs to a command");
                command.pieces.push(Piece::Literal { bytes: Vec::new(), binary });
                self.state = if len == 0 { State::Command } else { State::Literal { left: len } };
                ServerEvent::Idle
            }
        }
    }

    /// A line behind a message: the end of the APPEND, or up to the next message.
    fn behind(&mut self, line: Vec<u8>) -> ServerEvent {
        match line_end(&line) {
            Ok(LineEnd::Complete) if self.goes_on(&line, true) => {
                self.command = None;
                self.state = State::Waiting;
                ServerEvent::AppendEnd(line)
            }
            Ok(LineEnd::Literal(Announced { len, at_once, binary, at })) if self.goes_on(&line[..at], false) => {
                self.state = State::Announced { left: len, at_once };
                ServerEvent::Message(line[..at].to_vec(), Message { len, binary })
            }
            _ => self.closed(),
        }
    }

    /// Whether this may stand behind a message: in front of the next, or as the last.
    fn goes_on(&mut self, text: &[u8], is_last: bool) -> bool {
        match (self.config.keeps, is_last) {
            (false, true) => append::check_tail(text),
            (false, false) => append::check_between(text),
            (true, _) => appended::read_on(text, self.place, is_last).map(|(_, place)| self.place = place).is_ok(),
        }
    }

    fn wrong(&mut self, tag: Vec<u8>, reason: &'static str, errors: u32) -> ServerEvent {
        self.asked = Verb::Always;
        self.errors += errors;
        if self.errors >= self.config.errors_max {
            return self.closed();
        }
        self.state = State::Waiting;
        ServerEvent::Wrong(tag, reason)
    }

    fn closed(&mut self) -> ServerEvent {
        self.state = State::Closed;
        ServerEvent::Closed
    }

    fn respond(&mut self, line: Vec<u8>) -> ServerEvent {
        self.state = State::Waiting;
        // What is no Base64 gives up the exchange.
        let fits = line.iter().all(u8::is_ascii_graphic);
        ServerEvent::Response(if fits { line } else { b"*".to_vec() })
    }

    /// The message that is announced may come.
    pub fn accept(&mut self) {
        if let State::Announced { left, at_once } = self.state {
            if !at_once {
                self.line(b"+ Go on");
            }
            self.state = if left == 0 { State::Behind } else { State::Message { left } };
        }
    }

    /// The message that is announced is not wanted; whether that is the end of its command. If not, it comes all the
    /// same, and the end of the command is told.
    pub fn refuse(&mut self) -> bool {
        let State::Announced { at_once, .. } = self.state else { return false };
        if at_once {
            self.accept();
            return false;
        }
        self.command = None;
        self.state = State::Waiting;
        true
    }

    /// The host hands on a challenge: the client's response is next.
    pub fn challenge(&mut self, text: &[u8]) {
        self.line(&[b"+ ", text].concat());
        self.state = State::Response;
    }

    /// The host hands on the leave to be idle: DONE is next.
    pub fn idle(&mut self, text: &[u8]) {
        self.line(&[b"+ ", text].concat());
        self.state = State::Idle;
    }

    /// A command has been answered, by OK, NO or BAD: the next may come.
    pub fn answered(&mut self, now: u64, kind: Kind) {
        if self.is_closed() {
            return;
        }
        self.state = State::Command;
        match (turn(self.phase, self.asked), kind) {
            (Turn::To(Phase::Logout), Kind::Ok) => self.close(),
            (Turn::To(Phase::Authenticated), Kind::Ok) => self.logged_in(now),
            (Turn::To(next), Kind::Ok) => self.phase = next,
            // The mailbox before is left for one that cannot be entered (RFC 9051, section 6.3.2).
            (Turn::Stay, Kind::No) if self.asked == Verb::Select => self.unselected(),
            _ => {}
        }
    }

    /// Somebody is logged in: it may take its time from here on.
    pub fn logged_in(&mut self, now: u64) {
        self.phase = Phase::Authenticated;
        self.deadline = now.saturating_add(self.config.command_ms_max);
    }

    /// Whether somebody is.
    pub fn is_logged_in(&self) -> bool {
        self.phase != Phase::NotAuthenticated
    }

    /// The mailbox that was selected is there no more.
    pub fn unselected(&mut self) {
        if self.phase == Phase::Selected {
            self.phase = Phase::Authenticated;
        }
    }

    /// The stream is encrypted from here on: what came before is forgotten.
    pub fn secured(&mut self, now: u64) {
        self.line = LineBuffer::default();
        self.command = None;
        self.deadline = now.saturating_add(self.config.login_ms_max);
        if !self.is_closed() {
            self.state = State::Command;
        }
    }

    /// Says one line, whatever the text holds.
    pub fn line(&mut self, text: &[u8]) {
        self.outbox.extend(text.iter().map(|&byte| if byte.is_ascii_control() { b' ' } else { byte }));
        self.outbox.extend_from_slice(b"\r\n");
    }

    /// Says what is in the right form already.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
    }

    /// No more is heard or said.
    pub fn close(&mut self) {
        self.state = State::Closed;
    }
}

/// How much of `input` belongs to the next `left` bytes, and how much is left then.
fn share(left: u64, input: &[u8]) -> (usize, u64) {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
    (taken, left - taken as u64)
}
