//! The half that hears a server: replies, framed by what was asked.
//!
//! Commands go out at once where the server takes them so (PIPELINING), else each when the one before is answered.
//! Bounds: a status line of [`LINE_BYTES_MAX`] bytes, as each line of a listing; a listing and a message may be as long
//! as they like, for nothing of them is kept.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use stream::Window;

use super::command::{Command, Shape};
use crate::line::{Line, LineBuffer};
use crate::smtp::LineReader;

/// Bytes of a line (RFC 2449 asks for 512).
const LINE_BYTES_MAX: usize = 2_048;

/// Bytes of a challenge, which is as long as a response.
const CHALLENGE_BYTES_MAX: usize = 16_384;

/// Response of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent {
    /// Nothing to tell.
    Idle,
    /// A status: the greeting, or what answers the oldest command that is not answered.
    Status {
        /// Whether it says yes.
        ok: bool,
        /// Its text.
        text: Vec<u8>,
        /// Whether lines or a message follow.
        more: bool,
    },
    /// A challenge of a SASL exchange, to be answered by [`Client::respond`].
    Challenge(Vec<u8>),
    /// A line of a listing.
    Line(Vec<u8>),
    /// A part of a message was written to the window; line ends are CRLF.
    Content,
    /// The listing or the message is complete.
    End,
    /// It speaks no POP3, or out of turn: the connection is of no more use.
    Broken(&'static str),
}

/// The half towards a server.
#[derive(Debug, Clone)]
pub struct Client {
    state: State,
    line: LineBuffer,
    outbox: Vec<u8>,
    /// Shapes of the replies that are due, oldest first.
    due: VecDeque<Shape>,
    /// Commands that wait for their turn.
    waiting: VecDeque<Command>,
    pipelining: bool,
}

#[derive(Debug, Clone)]
enum State {
    /// A status is next.
    Status,
    /// Lines up to a dot.
    Lines,
    /// A message up to a dot.
    Message(LineReader),
}

/// Calling order: [`command`](Client::command)s; [`step`](Client::step) with what came; send the
/// [`outbox`](Client::outbox).
impl Client {
    /// A session that begins; the greeting is due.
    pub fn new() -> Client {
        Client {
            state: State::Status,
            line: LineBuffer::default(),
            outbox: Vec::new(),
            due: VecDeque::from([Shape::Line]),
            waiting: VecDeque::new(),
            pipelining: false,
        }
    }

    /// The server takes commands before it has answered earlier ones.
    pub fn pipeline(&mut self) {
        self.pipelining = true;
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

    /// Whether a reply is due.
    pub fn is_waiting(&self) -> bool {
        !self.due.is_empty()
    }

    /// Sends a command, now or when its turn comes.
    pub fn command(&mut self, command: Command) {
        self.waiting.push_back(command);
        self.release();
    }

    /// Answers a challenge.
    pub fn respond(&mut self, response: &[u8]) {
        debug_assert!(response.iter().all(u8::is_ascii_graphic), "a response is one line");
        self.outbox.extend_from_slice(response);
        self.outbox.extend_from_slice(b"\r\n");
    }

    fn release(&mut self) {
        while self.pipelining || self.due.is_empty() {
            let Some(command) = self.waiting.pop_front() else { return };
            command.write(&mut self.outbox);
            self.due.push_back(command.shape());
        }
    }

    /// Takes a prefix of `input` and tells one thing.
    ///
    /// `content` is empty and has room for at least [`LineReader::ROOM_MIN`] bytes.
    pub fn step(&mut self, input: &[u8], content: &mut Window) -> (usize, ClientEvent) {
        if let State::Message(reader) = &mut self.state {
            let read = reader.read(input, content);
            let event = match () {
                () if !content.is_empty() => ClientEvent::Content,
                () if read.end => self.end(),
                () => ClientEvent::Idle,
            };
            return (read.taken, event);
        }
        let most = if self.due.front() == Some(&Shape::Exchange) { CHALLENGE_BYTES_MAX } else { LINE_BYTES_MAX };
        let (taken, line) = self.line.take(input, most);
        let event = match line {
            Line::Unfinished if self.line.is_overflowing() => ClientEvent::Broken("a line is too long"),
            Line::Unfinished => ClientEvent::Idle,
            Line::TooLong => ClientEvent::Broken("a line is too long"),
            Line::Whole(line) => match self.state {
                State::Lines => self.listed(line),
                _ => self.status(&line),
            },
        };
        (taken, event)
    }

    fn status(&mut self, line: &[u8]) -> ClientEvent {
        let Some(&shape) = self.due.front() else { return ClientEvent::Broken("it spoke out of turn") };
        if let Some(challenge) = line.strip_prefix(b"+ ").or(line.strip_prefix(b"+").filter(|rest| rest.is_empty()))
            && shape == Shape::Exchange
        {
            return ClientEvent::Challenge(challenge.into());
        }
        let (ok, text) = match (line.strip_prefix(b"+OK"), line.strip_prefix(b"-ERR")) {
            (Some(text), _) => (true, text),
            (_, Some(text)) => (false, text),
            _ => return ClientEvent::Broken("not a status"),
        };
        if text.first().is_some_and(|&byte| byte != b' ') {
            return ClientEvent::Broken("not a status");
        }
        let more = ok && matches!(shape, Shape::Lines | Shape::Message);
        if more {
            self.state = if shape == Shape::Lines { State::Lines } else { State::Message(LineReader::data()) };
        } else {
            self.answered();
        }
        ClientEvent::Status { ok, text: text.trim_ascii_start().into(), more }
    }

    fn listed(&mut self, line: Vec<u8>) -> ClientEvent {
        match line.strip_prefix(b".") {
            Some(b"") => self.end(),
            Some(rest) => ClientEvent::Line(rest.into()),
            None => ClientEvent::Line(line),
        }
    }

    fn end(&mut self) -> ClientEvent {
        self.state = State::Status;
        self.answered();
        ClientEvent::End
    }

    fn answered(&mut self) {
        self.due.pop_front();
        self.release();
    }
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}
