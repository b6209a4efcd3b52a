//! The client half: one request after the other, without pipelining.
//!
//! ```text
//!  Idle ──request──► Head ──► Body ──► Idle (reusable), or Closed
//!                     │ 1xx: again     Tunnel (CONNECT, upgrade)
//! ```

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::body::Body;
use super::chunks::Piece;
use super::field::Fields;
use super::head::{HeadBuffer, Manner};
use super::limits::Limits;
use super::refusal::Refusal;
use super::request::Request;
use super::response::Response;
use super::writer::{self, Writing};

/// An event of the client half.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// More input is needed.
    Idle,
    /// An interim response (1xx); the final one follows.
    Interim(Box<Response>),
    /// The head of the final response is complete.
    Response(Box<Response>),
    /// The bytes taken are content of the response's body.
    Content,
    /// The response is complete; its trailer.
    End(Fields),
    /// The response is refused: the connection is of no more use.
    Refused(Refusal),
    /// The bytes that follow are no HTTP: the host takes them as they are.
    Tunnel,
    /// The connection is over.
    Closed,
}

/// One connection to a server.
#[derive(Debug)]
pub struct Client {
    limits: Limits,
    state: State,
    writing: Writing,
    method: String,
    asks_upgrade: bool,
    interim: u32,
    keeps_alive: bool,
    outbox: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Idle,
    Head(HeadBuffer),
    Body(Body),
    Tunnel,
    Closed,
}

impl Client {
    /// Begins a connection.
    pub fn new(limits: Limits) -> Client {
        Client {
            limits,
            state: State::Idle,
            writing: Writing::Nothing,
            method: String::new(),
            asks_upgrade: false,
            interim: 0,
            keeps_alive: true,
            outbox: Vec::new(),
        }
    }

    /// Writes the head of a request. Does nothing, and returns false, while another is under way.
    pub fn request(&mut self, request: &Request) -> bool {
        if !self.is_reusable() {
            return false;
        }
        self.writing = writer::request(request, &mut self.outbox);
        self.method.clone_from(&request.method);
        self.asks_upgrade = request.fields.get("upgrade").is_some();
        self.interim = 0;
        self.state = State::Head(HeadBuffer::of_response());
        true
    }

    /// Writes content of the request's body.
    pub fn content(&mut self, bytes: &[u8]) {
        self.writing.content(bytes, &mut self.outbox);
    }

    /// Ends the request. One that is shorter than it promised leaves the connection without use.
    pub fn end(&mut self, trailer: &Fields) {
        self.keeps_alive &= self.writing.end(trailer, &mut self.outbox);
    }

    /// Takes a prefix of the input, and emits one event.
    pub fn step(&mut self, input: &[u8]) -> (usize, ClientEvent) {
        self.read(input).unwrap_or_else(|refusal| {
            self.state = State::Closed;
            (0, ClientEvent::Refused(refusal))
        })
    }

    fn read(&mut self, input: &[u8]) -> Result<(usize, ClientEvent), Refusal> {
        match &mut self.state {
            State::Idle if input.is_empty() => Ok((0, ClientEvent::Idle)),
            State::Idle => Err(Refusal::Unexpected),
            State::Head(head) => {
                let (count, complete) = head.take(input, &self.limits)?;
                let Some(head) = complete else { return Ok((count, ClientEvent::Idle)) };
                Ok((count, self.begin(Response::parse(&head, &self.method, &self.limits)?)?))
            }
            State::Body(body) => match body.step(input, &self.limits)? {
                Piece::Frame(count) => Ok((count, ClientEvent::Idle)),
                Piece::Content(0) => Ok((0, ClientEvent::Idle)),
                Piece::Content(count) => Ok((count, ClientEvent::Content)),
                Piece::End(trailer) => Ok((0, self.complete(trailer))),
            },
            State::Tunnel => Ok((0, ClientEvent::Tunnel)),
            State::Closed => Ok((input.len(), ClientEvent::Closed)),
        }
    }

    /// The server has ended its half of the connection, and all of it has been taken.
    pub fn finish(&mut self) -> ClientEvent {
        let is_endless = matches!(&self.state, State::Body(body) if body.finish().is_ok());
        if is_endless {
            self.keeps_alive = false;
            return self.complete(Fields::default());
        }
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Head(_) | State::Body(_) => ClientEvent::Refused(Refusal::Incomplete),
            State::Idle | State::Tunnel | State::Closed => ClientEvent::Closed,
        }
    }

    /// True when the connection can carry another request.
    pub fn is_reusable(&self) -> bool {
        matches!(self.state, State::Idle) && self.writing == Writing::Nothing && self.keeps_alive
    }

    /// The bytes to send.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// The outbox has been sent.
    pub fn sent(&mut self) {
        self.outbox.clear();
    }

    fn begin(&mut self, response: Response) -> Result<ClientEvent, Refusal> {
        let status = response.status;
        if status.0 == 101 && !self.asks_upgrade {
            return Err(Refusal::Unexpected);
        }
        if status.is_interim() && status.0 != 101 {
            self.interim = self.interim.saturating_add(1);
            self.state = State::Head(HeadBuffer::of_response());
            let is_one = self.interim <= self.limits.interim_max;
            return if is_one { Ok(ClientEvent::Interim(Box::new(response))) } else { Err(Refusal::TooManyInterim) };
        }
        self.keeps_alive &= response.fields.keeps_alive(response.version);
        self.state = match status {
            _ if status.opens_tunnel(&self.method) => State::Tunnel,
            _ if status.is_bodiless(&self.method) => State::Body(Body::Counted(0)),
            _ => State::Body(Body::of(response.framing, Manner::OfResponse)),
        };
        Ok(ClientEvent::Response(Box::new(response)))
    }

    fn complete(&mut self, trailer: Fields) -> ClientEvent {
        self.state = if self.keeps_alive { State::Idle } else { State::Closed };
        ClientEvent::End(trailer)
    }
}

impl Default for Client {
    fn default() -> Client {
        Client::new(Limits::default())
    }
}
