//! The server half.
//!
//! Reading and writing are two machines: a response may begin before the request is whole.
//!
//! ```text
//!  reading   Head ──► Body ──► Complete ──┐            Tunnel (CONNECT, upgrade)
//!             ▲                           ├─ both ──► next request, or Closed
//!  writing   Waiting ─► Responding ─► Done┘
//! ```
//!
//! Calls: [`Server::step`] until a [`ServerEvent::Request`]; then, in any order, more steps for its body, and
//! [`respond`](Server::respond), [`content`](Server::content), [`end`](Server::end). Requests that follow (pipelining) are
//! taken when both are done.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::Version;
use super::body::Body;
use super::chunks::Piece;
use super::field::Fields;
use super::head::HeadBuffer;
use super::limits::Limits;
use super::refusal::Refusal;
use super::request::Request;
use super::response::Response;
use super::writer::{self, Answered, Writing};

/// An event of the server half.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// More input is needed, or the response.
    Idle,
    /// The head of a request is complete.
    Request(Box<Request>),
    /// The bytes taken are content of the request's body.
    Content,
    /// The request is complete; its trailer.
    End(Fields),
    /// The request is refused. Unless a response had begun, one is in the outbox; the connection closes.
    Refused(Refusal),
    /// The bytes that follow are no HTTP: the host takes them as they are.
    Tunnel,
    /// The connection is over: send the outbox and close.
    Closed,
}

/// One connection of a client.
#[derive(Debug)]
pub struct Server {
    limits: Limits,
    reading: Reading,
    responding: Responding,
    /// Method and version of the request under way.
    method: String,
    version: Version,
    /// Whether another request may follow the one under way.
    keeps_alive: bool,
    expects_continue: bool,
    outbox: Vec<u8>,
}

#[derive(Debug)]
enum Reading {
    Head(HeadBuffer),
    Body(Body),
    Complete,
    Tunnel,
    Closed,
}

#[derive(Debug, PartialEq, Eq)]
enum Responding {
    Waiting,
    Body(Writing),
    Done,
}

impl Server {
    /// Begins a connection.
    pub fn new(limits: Limits) -> Server {
        Server {
            limits,
            reading: Reading::Head(HeadBuffer::default()),
            responding: Responding::Waiting,
            method: String::new(),
            version: Version::Http11,
            keeps_alive: true,
            expects_continue: false,
            outbox: Vec::new(),
        }
    }

    /// Takes a prefix of the input, and emits one event.
    pub fn step(&mut self, input: &[u8]) -> (usize, ServerEvent) {
        match self.read(input) {
            Ok(step) => step,
            Err(refusal) => (0, self.refuse(refusal)),
        }
    }

    fn read(&mut self, input: &[u8]) -> Result<(usize, ServerEvent), Refusal> {
        self.turn();
        match &mut self.reading {
            Reading::Head(head) => {
                let (count, complete) = head.take(input, &self.limits)?;
                match complete {
                    Some(head) => Ok((count, self.begin(Request::parse(&head, &self.limits)?))),
                    None => Ok((count, ServerEvent::Idle)),
                }
            }
            Reading::Body(body) => match body.step(input, &self.limits)? {
                Piece::Frame(count) => Ok((count, ServerEvent::Idle)),
                Piece::Content(0) => Ok((0, ServerEvent::Idle)),
                Piece::Content(count) => Ok((count, ServerEvent::Content)),
                Piece::End(trailer) => {
                    self.reading = Reading::Complete;
                    Ok((0, ServerEvent::End(trailer)))
                }
            },
            Reading::Complete => Ok((0, ServerEvent::Idle)),
            Reading::Tunnel => Ok((0, ServerEvent::Tunnel)),
            Reading::Closed => Ok((input.len(), ServerEvent::Closed)),
        }
    }

    /// The client has ended its half of the connection, and all of it has been taken.
    pub fn finish(&mut self) -> ServerEvent {
        match &self.reading {
            Reading::Head(head) if !head.is_empty() => self.refuse(Refusal::Incomplete),
            Reading::Body(body) if body.finish().is_err() => self.refuse(Refusal::Incomplete),
            Reading::Complete if self.responding != Responding::Done => ServerEvent::Idle,
            _ => {
                self.reading = Reading::Closed;
                ServerEvent::Closed
            }
        }
    }

    /// Lets a client that waits for it send its body (`100 Continue`). Does nothing for others, and after a response.
    pub fn proceed(&mut self) {
        if core::mem::take(&mut self.expects_continue) && self.responding == Responding::Waiting {
            writer::interim(&Response::new(100), &mut self.outbox);
        }
    }

    /// Writes an interim response (1xx other than 101), for clients of HTTP/1.1 (RFC 9110, section 15.2).
    pub fn interim(&mut self, response: &Response) {
        let is_one = response.status.is_interim() && response.status.0 != 101;
        if is_one && self.version >= Version::Http11 && self.responding == Responding::Waiting {
            writer::interim(response, &mut self.outbox);
        }
    }

    /// Writes the head of the response. Its framing becomes the connection's: chunks for a body of unknown length, the end of
    /// the connection for a client of HTTP/1.0. A response before the end of the request ends the connection after it.
    pub fn respond(&mut self, response: &Response) {
        if self.responding != Responding::Waiting || matches!(self.reading, Reading::Closed) {
            return;
        }
        // Whoever still waits for `100 Continue` sends nothing more: its body is not there to be skipped.
        let is_whole = matches!(self.reading, Reading::Complete);
        let to = Answered { method: &self.method, version: self.version, keeps_alive: self.keeps_alive && is_whole };
        let (writing, keeps_alive) = writer::response(response, &to, &mut self.outbox);
        if response.status.opens_tunnel(&self.method) {
            self.reading = Reading::Tunnel;
        }
        self.keeps_alive = keeps_alive;
        self.responding = Responding::Body(writing);
    }

    /// Writes content of the response's body.
    pub fn content(&mut self, bytes: &[u8]) {
        if let Responding::Body(writing) = &mut self.responding {
            writing.content(bytes, &mut self.outbox);
        }
    }

    /// Ends the response. A trailer is written behind chunks alone.
    pub fn end(&mut self, trailer: &Fields) {
        if let Responding::Body(writing) = &mut self.responding {
            self.keeps_alive &= writing.end(trailer, &mut self.outbox);
            self.responding = Responding::Done;
        }
    }

    /// Writes a whole response.
    pub fn answer(&mut self, response: &Response, body: &[u8]) {
        self.respond(response);
        self.content(body);
        self.end(&Fields::default());
    }

    /// Refuses the request: answers, unless a response has begun, and closes.
    pub fn refuse(&mut self, refusal: Refusal) -> ServerEvent {
        if self.responding == Responding::Waiting && !matches!(self.reading, Reading::Closed) {
            let body = refusal.reason().as_bytes();
            self.keeps_alive = false;
            self.answer(&Response::with_body(refusal.status().0, "text/plain", body.len() as u64), body);
        }
        self.reading = Reading::Closed;
        ServerEvent::Refused(refusal)
    }

    /// Ends the connection after the response under way; a response that was cut stays without its end.
    pub fn close(&mut self) {
        self.keeps_alive = false;
    }

    /// True when the response is written whole, and nothing more is to be read: send the outbox and close.
    pub fn is_over(&self) -> bool {
        matches!(self.reading, Reading::Closed) || (self.responding == Responding::Done && !self.keeps_alive)
    }

    /// True between two requests: nothing of the next one has come.
    pub fn is_idle(&self) -> bool {
        matches!(&self.reading, Reading::Head(head) if head.is_empty())
    }

    /// The bytes to send.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// The outbox has been sent.
    pub fn sent(&mut self) {
        self.outbox.clear();
    }

    fn begin(&mut self, request: Request) -> ServerEvent {
        self.keeps_alive = request.keeps_alive();
        self.expects_continue = request.expects_continue();
        self.method.clone_from(&request.method);
        self.version = request.version;
        self.reading = Reading::Body(Body::new(request.framing));
        ServerEvent::Request(Box::new(request))
    }

    /// Goes on to the next request when the one under way is complete and answered.
    fn turn(&mut self) {
        if self.responding != Responding::Done || matches!(self.reading, Reading::Tunnel) {
            return;
        }
        if !self.keeps_alive {
            self.reading = Reading::Closed;
        } else if matches!(self.reading, Reading::Complete) {
            self.reading = Reading::Head(HeadBuffer::default());
            self.responding = Responding::Waiting;
            // A connection that waits holds no buffer.
            if self.outbox.is_empty() {
                self.outbox = Vec::new();
            }
        }
    }
}

impl Default for Server {
    fn default() -> Server {
        Server::new(Limits::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_waits_for_the_next_request_holds_no_buffer() {
        let mut server = Server::default();
        let (mut input, mut is_whole) = (&b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"[..], false);
        while !is_whole {
            let (count, event) = server.step(input);
            input = &input[count..];
            is_whole = matches!(event, ServerEvent::End(_));
        }
        let body = [b'a'; 100_000];
        server.answer(&Response::with_body(200, "text/plain", body.len() as u64), &body);
        assert!(server.outbox().len() > body.len());
        server.sent();
        assert_eq!(server.step(b""), (0, ServerEvent::Idle));
        assert_eq!(server.outbox.capacity(), 0);
    }
}
