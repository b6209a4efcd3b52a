//! The server half.
//!
//! ```text
//!  Head ──► Body or Parts ──► Asked ──► Closed
//!    └────────┴── no mail, or wrong ──▲
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::parts::{Part, Parts};
use super::reply::{self, Answer, Refusal};
use super::request::{Command, FIELDS_MAX, Form, Request};
use crate::http::body::{Body, Framing};
use crate::http::chunks::Piece;
use crate::http::head::HeadBuffer;
use crate::http::{self, Limits};

/// The longest head, in bytes.
const HEAD_BYTES_MAX: usize = 256 << 10;

/// Events of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// Nothing that matters; more is needed.
    Idle,
    /// It asks for the score of the mail that follows.
    Asked(Box<Request>),
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
    limits: Limits,
    outbox: Vec<u8>,
    is_refused: bool,
    is_head: bool,
}

#[derive(Debug)]
enum State {
    Head(HeadBuffer),
    Body(Body),
    /// With what was asked, until the metadata are there.
    Parts(Parts, Option<Box<Request>>),
    Asked,
    Closed,
}

impl Default for Server {
    fn default() -> Server {
        let limits = Limits { head_bytes_max: HEAD_BYTES_MAX, fields_max: FIELDS_MAX, ..Limits::default() };
        let state = State::Head(HeadBuffer::default());
        Server { state, form: Form::Http, limits, outbox: Vec::new(), is_refused: false, is_head: false }
    }
}

impl Server {
    /// Takes a prefix of the input, and tells one thing.
    pub fn step(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        self.read(input).unwrap_or_else(|why| (0, self.refuse(&why)))
    }

    fn read(&mut self, input: &[u8]) -> Result<(usize, ServerEvent), Refusal> {
        match &mut self.state {
            State::Head(head) => {
                let (count, complete) = head.take(input, &self.limits)?;
                match complete {
                    Some(head) => Ok((count, self.begin(Request::parse(&head, &self.limits)?))),
                    None => Ok((count, ServerEvent::Idle)),
                }
            }
            State::Body(body) => Ok(match body.step(input, &self.limits)? {
                Piece::Frame(count) => (count, ServerEvent::Idle),
                Piece::Content(0) => (0, ServerEvent::Idle),
                Piece::Content(count) => (count, ServerEvent::Content),
                Piece::End(_) => (0, self.end()),
            }),
            State::Parts(parts, waiting) => {
                let (count, part) = parts.step(input)?;
                let event = match part {
                    Part::Frame => ServerEvent::Idle,
                    Part::Metadata(metadata) => waiting.take().map_or(ServerEvent::Idle, |mut request| {
                        request.metadata = Some(metadata);
                        ServerEvent::Asked(request)
                    }),
                    Part::Content => ServerEvent::Content,
                    Part::End => self.end(),
                };
                Ok((count, event))
            }
            State::Asked => Ok((0, ServerEvent::Idle)),
            State::Closed => Ok((input.len(), ServerEvent::Closed)),
        }
    }

    /// The client has ended its half of the connection, and all of that has been taken.
    pub fn finish(&mut self) -> ServerEvent {
        match &self.state {
            State::Head(head) if head.is_empty() => {
                self.state = State::Closed;
                ServerEvent::Closed
            }
            State::Head(_) => self.refuse(&Refusal::Malformed("the request is incomplete")),
            State::Body(body) if body.finish().is_ok() => self.end(),
            State::Body(_) | State::Parts(..) => self.refuse(&Refusal::Malformed("the message is incomplete")),
            State::Asked => ServerEvent::Idle,
            State::Closed => ServerEvent::Closed,
        }
    }

    /// Answers what was asked.
    pub fn answer(&mut self, answer: &Answer<'_>) {
        if matches!(self.state, State::Asked | State::Body(_) | State::Parts(..)) {
            self.outbox.extend(answer.bytes(self.form));
            self.state = State::Closed;
        }
    }

    /// Says that a mail was learned, or that it was known as that already.
    pub fn learned(&mut self, is_new: bool) {
        if matches!(self.state, State::Asked | State::Body(_) | State::Parts(..)) {
            self.outbox.extend(reply::learned(is_new));
            self.state = State::Closed;
        }
    }

    /// Refuses what was asked, or what is being sent.
    pub fn refuse(&mut self, refusal: &Refusal) -> ServerEvent {
        if !matches!(self.state, State::Closed) {
            self.close(refusal.bytes(self.form));
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

    /// It has been sent.
    pub fn sent(&mut self) {
        self.outbox.clear();
    }

    /// Sends a reply, of which `HEAD` gets the head alone.
    fn close(&mut self, mut reply: Vec<u8>) {
        const END: &[u8] = b"\r\n\r\n";
        if self.is_head
            && let Some(at) = reply.windows(END.len()).position(|here| here == END)
        {
            reply.truncate(at + END.len());
        }
        self.outbox.extend(reply);
        self.state = State::Closed;
    }

    /// The mail is complete.
    fn end(&mut self) -> ServerEvent {
        self.state = State::Asked;
        ServerEvent::End
    }

    /// The head is complete.
    fn begin(&mut self, request: Request) -> ServerEvent {
        self.form = request.form;
        self.is_head = request.is_head;
        if request.is_coded {
            return self.refuse(&Refusal::Coded);
        }
        if request.names_file {
            return self.refuse(&Refusal::Malformed("no files are read here: send the message"));
        }
        match request.command {
            Command::Other => return self.refuse(&Refusal::Unknown),
            Command::Ping => {
                self.close(reply::pong(request.form));
                return ServerEvent::Closed;
            }
            Command::Options => {
                self.outbox.extend(reply::options());
                self.state = State::Closed;
                return ServerEvent::Closed;
            }
            Command::CheckParts if request.takes_nothing => return self.refuse(&Refusal::NotAcceptable),
            Command::Check | Command::CheckDefault | Command::CheckParts | Command::LearnSpam | Command::LearnHam => {}
        }
        let parts = (request.command == Command::CheckParts)
            .then(|| Parts::new(&request.kind, request.framing, self.limits.head_bytes_max))
            .transpose();
        let Ok(parts) = parts.map_err(|why| self.refuse(&why)) else { return ServerEvent::Closed };
        if request.waits {
            self.outbox.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        if let Some(parts) = parts {
            self.state = State::Parts(parts, Some(Box::new(request)));
            return ServerEvent::Idle;
        }
        let undeclared = if request.form == Form::Http { Framing::Empty } else { Framing::Close };
        self.state = State::Body(Body::new(request.framing.unwrap_or(undeclared)));
        ServerEvent::Asked(Box::new(request))
    }
}

impl From<http::Refusal> for Refusal {
    fn from(why: http::Refusal) -> Refusal {
        Refusal::Malformed(why.reason())
    }
}
