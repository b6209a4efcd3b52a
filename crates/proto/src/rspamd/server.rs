//! The server half.
//!
//! ```text
//!  Head ──► Body ──► Asked ──► Closed
//!    └───────┴─ no mail, or wrong ─▲
//! ```

use alloc::vec::Vec;

use super::chunks::{Chunks, Piece};
use super::reply::{self, Answer, Refusal};
use super::request::{Command, Form, Request};

/// The longest head, in bytes.
const HEAD_BYTES_MAX: usize = 256 << 10;

/// What a client did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nothing that matters; more is needed.
    Idle,
    /// It asks for the score of the mail that follows.
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
    form: Form,
    head: Vec<u8>,
    outbox: Vec<u8>,
    is_refused: bool,
}

#[derive(Debug)]
enum State {
    Head,
    Body(Body),
    Asked,
    Closed,
}

#[derive(Debug)]
enum Body {
    /// So many bytes are left.
    Counted(u64),
    Chunked(Chunks),
    /// It ends with the client's half of the connection.
    Endless,
}

impl Default for Server {
    fn default() -> Server {
        Server { state: State::Head, form: Form::Http, head: Vec::new(), outbox: Vec::new(), is_refused: false }
    }
}

impl Server {
    /// Takes a prefix of the input, and tells one thing.
    pub fn step(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        match &mut self.state {
            State::Head => self.step_head(input),
            State::Body(body) => {
                let piece = body.step(input);
                match piece {
                    Ok(Piece::Frame(count)) => (count, ServerEvent::Idle),
                    Ok(Piece::Content(0)) => (0, ServerEvent::Idle),
                    Ok(Piece::Content(count)) => (count, ServerEvent::Content),
                    Ok(Piece::End) => (0, self.end()),
                    Err(why) => (0, self.refuse(&Refusal::Malformed(why))),
                }
            }
            State::Asked => (0, ServerEvent::Idle),
            State::Closed => (input.len(), ServerEvent::Closed),
        }
    }

    /// The client has ended its half of the connection, and all of that has been taken.
    pub fn finish(&mut self) -> ServerEvent {
        match &self.state {
            State::Head if self.head.is_empty() => {
                self.state = State::Closed;
                ServerEvent::Closed
            }
            State::Head => self.refuse(&Refusal::Malformed("the request is incomplete")),
            State::Body(Body::Counted(0) | Body::Endless) => self.end(),
            State::Body(_) => self.refuse(&Refusal::Malformed("the message is incomplete")),
            State::Asked => ServerEvent::Idle,
            State::Closed => ServerEvent::Closed,
        }
    }

    /// Answers what was asked.
    pub fn answer(&mut self, answer: &Answer<'_>) {
        if matches!(self.state, State::Asked | State::Body(_)) {
            self.outbox.extend(answer.bytes(self.form));
            self.state = State::Closed;
        }
    }

    /// Says that a mail was learned, or that it was known as that already.
    pub fn learned(&mut self, is_new: bool) {
        if matches!(self.state, State::Asked | State::Body(_)) {
            self.outbox.extend(reply::learned(is_new));
            self.state = State::Closed;
        }
    }

    /// Refuses what was asked, or what is being sent.
    pub fn refuse(&mut self, refusal: &Refusal) -> ServerEvent {
        if !matches!(self.state, State::Closed) {
            self.outbox.extend(refusal.bytes(self.form));
            self.state = State::Closed;
            self.is_refused = true;
        }
        ServerEvent::Closed
    }

    /// Whether it was refused: then the client may still be sending, and should be let finish before it is told.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// What is to be sent.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// It has been sent.
    pub fn sent(&mut self) {
        self.outbox.clear();
    }

    /// The mail is complete.
    fn end(&mut self) -> ServerEvent {
        self.state = State::Asked;
        ServerEvent::End
    }

    fn step_head(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        let end = input.iter().position(|&byte| byte == b'\n');
        let count = end.map_or(input.len(), |end| end + 1);
        if self.head.len() + count > HEAD_BYTES_MAX {
            return (count, self.refuse(&Refusal::Malformed("the head is too long")));
        }
        self.head.extend_from_slice(&input[..count]);
        if !self.head.ends_with(b"\n\r\n") && !self.head.ends_with(b"\n\n") {
            return (count, ServerEvent::Idle);
        }
        let head = core::mem::take(&mut self.head);
        let event = match Request::read(&head) {
            Ok(request) => self.begin(request),
            Err(why) => self.refuse(&Refusal::Malformed(why)),
        };
        (count, event)
    }

    /// The head is complete.
    fn begin(&mut self, request: Request) -> ServerEvent {
        self.form = request.form;
        if request.is_coded {
            return self.refuse(&Refusal::Coded);
        }
        if request.names_file {
            return self.refuse(&Refusal::Malformed("no files are read here: send the message"));
        }
        match request.command {
            Command::Other => return self.refuse(&Refusal::Unknown),
            Command::Ping => {
                self.outbox.extend(reply::pong(request.form));
                self.state = State::Closed;
                return ServerEvent::Closed;
            }
            Command::Options => {
                self.outbox.extend(reply::options());
                self.state = State::Closed;
                return ServerEvent::Closed;
            }
            Command::Check | Command::CheckDefault | Command::LearnSpam | Command::LearnHam => {}
        }
        if request.waits {
            self.outbox.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        self.state = State::Body(match (request.is_chunked, request.length, request.form) {
            (true, ..) => Body::Chunked(Chunks::default()),
            (_, Some(length), _) => Body::Counted(length),
            (_, None, Form::Http) => Body::Counted(0),
            (_, None, Form::Rspamc) => Body::Endless,
        });
        ServerEvent::Asked(request)
    }
}

impl Body {
    fn step(&mut self, input: &[u8]) -> Result<Piece, &'static str> {
        match self {
            Body::Counted(0) => Ok(Piece::End),
            Body::Counted(left) => {
                let count = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left = left.saturating_sub(count as u64);
                Ok(Piece::Content(count))
            }
            Body::Chunked(chunks) => chunks.step(input),
            Body::Endless => Ok(Piece::Content(input.len())),
        }
    }
}
