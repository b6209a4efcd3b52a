//! The server half: what a client asks for, one event at a time.
//!
//! ```text
//!            PING VERSION SCAN ...                    last answer
//!  Command ─────────────────────────────────► Last ───────────────► Closed
//!     │  IDSESSION ⟲ (commands go on, END ► Last)
//!     │  INSTREAM        length > 0             0
//!     ├──────────► Length ◄────────► Chunk    Length ──► as after another command
//!     │  FILDES             one byte
//!     └──────────► Descriptor ─────────► as after another command
//! ```
//!
//! A bare command has no sure end: a line feed ends it, or the end of what the client sends, or [`Config::bare_ms`] of
//! silence after it.
//!
//! Bounds: a command of [`Server::COMMAND_BYTES_MAX`]; requests without an answer, [`Config::requests_max`]. Content is
//! not held at all. At rest it is about two hundred bytes. The outbox grows by what the host answers.

use alloc::vec::Vec;

use super::command::{Manner, Request, Verb};
use super::reply::{Reply, Tag};

/// Settings of a server half.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The longest stream, in bytes (clamd's StreamMaxLength); 0 means any.
    pub stream_bytes_max: u64,
    /// Requests of one session that wait for their answers; then no command is taken until one has it.
    pub requests_max: u32,
    /// How long a command may take from the beginning of the connection (CommandReadTimeout), in milliseconds.
    pub command_ms_max: u64,
    /// How long the next piece of a stream, or the next command of a session, may take (ReadTimeout).
    pub read_ms_max: u64,
    /// How long a bare command without a line feed waits for more.
    pub bare_ms: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config { stream_bytes_max: 0, requests_max: 64, command_ms_max: 30_000, read_ms_max: 120_000, bare_ms: 100 }
    }
}

/// Events of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nothing to tell. If no byte was taken either, there is nothing to do until more comes or the host answers.
    Idle,
    /// A request.
    Asked(Tag, Request),
    /// The bytes just taken are content of the stream last asked for.
    Content,
    /// The stream last asked for is complete.
    StreamEnd,
    /// The connection is over; what is in the outbox is the last. What has no answer yet needs none.
    Closed,
}

/// The server's half of a connection.
#[derive(Debug, Clone)]
pub struct Server {
    config: Config,
    state: State,
    /// The number of the last command, inside a session.
    session: Option<u32>,
    /// Requests that have not been answered.
    requests: u32,
    outbox: Vec<u8>,
    deadline: u64,
}

#[derive(Debug, Clone)]
enum State {
    /// The next command, as far as it has come.
    Command(Vec<u8>),
    /// The length of the next chunk, as far as it has come.
    Length { tag: Tag, bytes: [u8; 4], count: usize, left: u64 },
    /// A chunk; `left` is what the stream may have after it.
    Chunk { tag: Tag, bytes: u32, left: u64 },
    /// The byte that a descriptor comes with.
    Descriptor(Tag),
    /// No more is taken; answers may be due.
    Last,
    /// No more.
    Closed,
}

/// How the lines end that no command asked for.
const UNASKED: Tag = Tag { id: 0, end: b'\n' };

/// Calling order: [`step`](Server::step) with what came; [`finish`](Server::finish) when nothing more will;
/// [`timeout`](Server::timeout) when [`deadline`](Server::deadline) has passed. Each [`ServerEvent::Asked`] is answered
/// by any number of [`answer`](Server::answer) and one [`done`](Server::done), at any time and in any order. Send the
/// [`outbox`](Server::outbox) and say how much was [`sent`](Server::sent).
impl Server {
    /// The longest command, its prefix and its end included: room for the longest path and the longest word.
    pub const COMMAND_BYTES_MAX: usize = 4_096 + 16;

    /// A connection that begins.
    pub fn new(config: Config, now: u64) -> Server {
        Server {
            state: State::Command(Vec::new()),
            session: None,
            requests: 0,
            outbox: Vec::new(),
            deadline: now.saturating_add(config.command_ms_max),
            config,
        }
    }

    /// Bytes to send.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// The first `count` bytes of the outbox have been sent.
    pub fn sent(&mut self, count: usize) {
        self.outbox.drain(..count);
        if self.outbox.is_empty() {
            self.outbox.shrink_to(256);
        }
    }

    /// When our patience with the client ends; none while it waits for us.
    pub fn deadline(&self) -> Option<u64> {
        match self.state {
            State::Last | State::Closed => None,
            State::Command(_) if self.requests > 0 => None,
            _ => Some(self.deadline),
        }
    }

    /// Whether the connection is over.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Whether it takes anything now: while it does not, nothing need be read.
    pub fn is_listening(&self) -> bool {
        match self.state {
            State::Command(_) => self.requests < self.config.requests_max,
            State::Last | State::Closed => false,
            _ => true,
        }
    }

    /// Whether the client waits for nothing and has said nothing that is lost when the connection ends here.
    pub fn is_idle(&self) -> bool {
        matches!(&self.state, State::Command(line) if line.is_empty()) && self.requests == 0
    }

    /// Takes a prefix of `input` and tells one thing.
    pub fn step(&mut self, now: u64, input: &[u8]) -> (usize, ServerEvent) {
        if input.is_empty() || !self.is_listening() {
            let event = if self.is_closed() { ServerEvent::Closed } else { ServerEvent::Idle };
            return (0, event);
        }
        match self.state {
            State::Command(_) => self.command(now, input),
            State::Length { .. } => self.length(now, input),
            State::Chunk { .. } => self.chunk(now, input),
            State::Descriptor(tag) => (1, self.ask(now, tag, Request::Descriptor)),
            State::Last | State::Closed => (0, ServerEvent::Idle),
        }
    }

    /// The client will send nothing more. Answers may still be due.
    pub fn finish(&mut self, now: u64) -> ServerEvent {
        if let Some(line) = self.bare_command() {
            return self.obey(now, &line);
        }
        match self.state {
            State::Command(_) | State::Last if self.requests > 0 => {
                self.state = State::Last;
                ServerEvent::Idle
            }
            _ => self.close(),
        }
    }

    /// The deadline has passed.
    pub fn timeout(&mut self, now: u64) -> ServerEvent {
        match self.bare_command() {
            Some(line) => self.obey(now, &line),
            None => {
                Reply::TIMED_OUT.write(UNASKED, &mut self.outbox);
                self.close()
            }
        }
    }

    /// One line of the answer to the request with this tag.
    pub fn answer(&mut self, tag: Tag, reply: &Reply<'_>) {
        if !self.is_closed() {
            reply.write(tag, &mut self.outbox);
        }
    }

    /// A request has its whole answer. That of a stream may come before its end: the rest of it is still taken.
    ///
    /// # Panics
    /// In debug builds, if none was waiting.
    pub fn done(&mut self, now: u64) {
        debug_assert!(self.requests > 0, "nothing was asked");
        self.requests = self.requests.saturating_sub(1);
        match self.state {
            State::Last if self.requests == 0 => self.state = State::Closed,
            // Its patience with a client that waited for us begins anew.
            State::Command(_) => self.deadline = now.saturating_add(self.config.read_ms_max),
            _ => {}
        }
    }

    /// The connection ends here, whatever is due.
    pub fn close(&mut self) -> ServerEvent {
        self.state = State::Closed;
        ServerEvent::Closed
    }
}

/// Commands.
impl Server {
    fn command(&mut self, now: u64, input: &[u8]) -> (usize, ServerEvent) {
        let State::Command(line) = &mut self.state else { unreachable!("called between commands") };
        let first = line.first().or(input.first()).copied();
        let end = if first == Some(b'z') { 0 } else { b'\n' };
        let found = memchr::memchr(end, input);
        let count = found.map_or(input.len(), |at| at + 1);
        if line.len() + count > Server::COMMAND_BYTES_MAX {
            return (count, self.refuse(Tag { id: self.next_id(), end }));
        }
        line.extend_from_slice(&input[..count]);
        if found.is_some() {
            let line = core::mem::take(line);
            return (count, self.obey(now, &line));
        }
        if !matches!(first, Some(b'n' | b'z')) && self.session.is_none() {
            self.deadline = self.deadline.min(now.saturating_add(self.config.bare_ms));
        }
        (count, ServerEvent::Idle)
    }

    /// A bare command that has come, as it seems, whole.
    fn bare_command(&mut self) -> Option<Vec<u8>> {
        match &mut self.state {
            State::Command(line) if !matches!(line.first(), None | Some(b'n' | b'z')) => Some(core::mem::take(line)),
            _ => None,
        }
    }

    fn obey(&mut self, now: u64, line: &[u8]) -> ServerEvent {
        let (bare, line) = match line.split_first() {
            Some((b'n' | b'z', rest)) => (false, rest),
            _ => (true, line),
        };
        let (end, line) = match line.split_last() {
            Some((0, line)) if !bare => (0, line),
            // A NUL ends every command, as for clamd.
            _ => (b'\n', line.split(|&byte| byte == 0).next().map_or(line, without_line_end)),
        };
        let tag = Tag { id: self.next_id(), end };
        let Some((verb, argument)) = Verb::parse(line, Manner { bare, inside: self.session.is_some() }) else {
            return self.refuse(tag);
        };
        self.session = self.session.map(|_| tag.id);
        match verb {
            Verb::Session => {
                self.session = Some(0);
                self.next(now);
                ServerEvent::Idle
            }
            Verb::End => self.end(),
            Verb::Ping => {
                self.answer(tag, &Reply::PONG);
                if self.session.is_none() {
                    return self.close();
                }
                self.next(now);
                ServerEvent::Idle
            }
            Verb::Stream => {
                let most = self.config.stream_bytes_max;
                self.requests += 1;
                self.await_length(now, tag, if most == 0 { u64::MAX } else { most });
                ServerEvent::Asked(tag, Request::Stream)
            }
            Verb::Descriptor => {
                self.state = State::Descriptor(tag);
                self.deadline = now.saturating_add(self.config.command_ms_max);
                ServerEvent::Idle
            }
            Verb::Scan(scan) => self.ask(now, tag, Request::Scan { scan: *scan, path: argument.to_vec() }),
            Verb::Plain(request) => self.ask(now, tag, request.clone()),
        }
    }

    fn ask(&mut self, now: u64, tag: Tag, request: Request) -> ServerEvent {
        self.requests += 1;
        self.next(now);
        ServerEvent::Asked(tag, request)
    }

    /// The session takes no more commands.
    fn end(&mut self) -> ServerEvent {
        if self.requests == 0 {
            return self.close();
        }
        self.state = State::Last;
        ServerEvent::Idle
    }

    /// The number that the next command of a session has.
    fn next_id(&self) -> u32 {
        self.session.map_or(0, |last| last.saturating_add(1))
    }

    /// After a command: the next one, inside a session.
    fn next(&mut self, now: u64) {
        self.state = match self.session {
            Some(_) => State::Command(Vec::new()),
            None if self.requests > 0 => State::Last,
            None => State::Closed,
        };
        self.deadline = now.saturating_add(self.config.read_ms_max);
    }

    /// A command that cannot be obeyed: the last.
    fn refuse(&mut self, tag: Tag) -> ServerEvent {
        let reply = if self.session.is_some() { Reply::INVALID } else { Reply::UNKNOWN };
        reply.write(tag, &mut self.outbox);
        self.close()
    }
}

/// Streams.
impl Server {
    fn await_length(&mut self, now: u64, tag: Tag, left: u64) {
        self.state = State::Length { tag, bytes: [0; 4], count: 0, left };
        self.deadline = now.saturating_add(self.config.read_ms_max);
    }

    fn length(&mut self, now: u64, input: &[u8]) -> (usize, ServerEvent) {
        let State::Length { tag, bytes, count, left } = &mut self.state else { unreachable!("called before a chunk") };
        let missing = &mut bytes[*count..];
        let taken = missing.len().min(input.len());
        missing[..taken].copy_from_slice(&input[..taken]);
        *count += taken;
        if *count < bytes.len() {
            return (taken, ServerEvent::Idle);
        }
        let (tag, bytes, left) = (*tag, u32::from_be_bytes(*bytes), *left);
        if bytes == 0 {
            self.next(now);
            return (taken, ServerEvent::StreamEnd);
        }
        let Some(left) = left.checked_sub(bytes.into()) else {
            Reply::TOO_LARGE.write(tag, &mut self.outbox);
            return (taken, self.close());
        };
        self.state = State::Chunk { tag, bytes, left };
        (taken, ServerEvent::Idle)
    }

    fn chunk(&mut self, now: u64, input: &[u8]) -> (usize, ServerEvent) {
        let State::Chunk { tag, bytes, left } = &mut self.state else { unreachable!("called in a chunk") };
        let taken = usize::try_from(*bytes).map_or(input.len(), |bytes| bytes.min(input.len()));
        *bytes -= taken as u32;
        let (tag, left) = (*tag, *left);
        self.deadline = now.saturating_add(self.config.read_ms_max);
        if matches!(self.state, State::Chunk { bytes: 0, .. }) {
            self.await_length(now, tag, left);
        }
        (taken, ServerEvent::Content)
    }
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let last = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n'));
    &line[..last.map_or(0, |last| last + 1)]
}
