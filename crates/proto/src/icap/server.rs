//! The server half.
//!
//! Reading and answering are two machines: an answer may begin before the body is whole. Content that comes after a whole
//! answer is passed over, and the next request follows it.

use alloc::string::String;
use alloc::vec::Vec;

use super::encapsulated::Encapsulated;
use super::method::Method;
use super::refusal::Refusal;
use super::request::Request;
use super::writer::{self, Service};
use crate::http::chunks::{Chunks, Piece};
use crate::http::head::HeadBuffer;
use crate::http::{Fields, Limits, Response};

/// An event of the server half.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// More input is needed, or the answer.
    Idle,
    /// The heads of a request are complete: [`Server::request`].
    Request,
    /// The bytes taken are content of the body.
    Content,
    /// The preview is over, and the client has more: [`Server::proceed`], or an answer.
    Preview,
    /// The body is complete, or there is none.
    End,
    /// The request is refused. Unless an answer had begun, one is in the outbox; the connection closes.
    Refused(Refusal),
    /// The connection is over: send the outbox and close.
    Closed,
}

/// One connection of a client.
#[derive(Debug)]
pub struct Server {
    limits: Limits,
    /// `ISTag`, for every answer.
    tag: String,
    reading: Reading,
    answer: Answer,
    /// The request under way.
    request: Option<Request>,
    /// Whether it was asked for what comes after its preview.
    has_proceeded: bool,
    /// The trailer of its body.
    trailer: Fields,
    keeps_alive: bool,
    outbox: Vec<u8>,
}

#[derive(Debug)]
enum Reading {
    Head(HeadBuffer),
    /// The encapsulated heads, as far as they have come.
    Heads(Encapsulated, Vec<u8>),
    /// No body.
    Empty,
    /// With the bytes that the preview may still have, while it is under way.
    Body(Chunks, Option<u64>),
    /// The preview is over, and nothing more comes unless it is asked for.
    Waiting,
    Complete,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    None,
    Body,
    Done,
}

impl Server {
    /// Begins a connection. `tag` is what changes whenever the answers of the service may.
    pub fn new(limits: Limits, tag: &str) -> Server {
        Server {
            limits,
            tag: tag.into(),
            reading: Reading::Head(HeadBuffer::default()),
            answer: Answer::None,
            request: None,
            has_proceeded: false,
            trailer: Fields::default(),
            keeps_alive: true,
            outbox: Vec::new(),
        }
    }

    /// Another tag, from the next answer on.
    pub fn set_tag(&mut self, tag: &str) {
        if self.tag != tag {
            self.tag = tag.into();
        }
    }

    /// The request under way, once its heads are complete.
    pub fn request(&self) -> Option<&Request> {
        self.request.as_ref().filter(|_| !matches!(self.reading, Reading::Head(_) | Reading::Heads(..)))
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
                let Some(head) = complete else { return Ok((count, ServerEvent::Idle)) };
                let (request, encapsulated) = Request::parse(&head, &self.limits)?;
                if encapsulated.head_bytes() > self.limits.head_bytes_max.saturating_mul(2) {
                    return Err(crate::http::Refusal::HeadTooLong.into());
                }
                self.request = Some(request);
                self.reading = Reading::Heads(encapsulated, Vec::new());
                Ok((count, ServerEvent::Idle))
            }
            Reading::Heads(encapsulated, bytes) => {
                let count = input.len().min(encapsulated.head_bytes().saturating_sub(bytes.len()));
                bytes.extend_from_slice(input.get(..count).unwrap_or_default());
                if bytes.len() < encapsulated.head_bytes() {
                    return Ok((count, ServerEvent::Idle));
                }
                let Some(request) = &mut self.request else { return Err(Refusal::Encapsulated) };
                request.add_heads(bytes, encapsulated, &self.limits)?;
                self.has_proceeded = false;
                self.trailer = Fields::default();
                self.keeps_alive = request.keeps_alive();
                self.reading = match request.has_body {
                    true => Reading::Body(Chunks::default(), request.preview),
                    false => Reading::Empty,
                };
                Ok((count, ServerEvent::Request))
            }
            Reading::Empty => self.complete(Reading::Complete, ServerEvent::End, input),
            Reading::Body(..) => self.read_body(input),
            Reading::Waiting | Reading::Complete => Ok((0, ServerEvent::Idle)),
            Reading::Closed => Ok((input.len(), ServerEvent::Closed)),
        }
    }

    fn read_body(&mut self, input: &[u8]) -> Result<(usize, ServerEvent), Refusal> {
        let Reading::Body(chunks, preview) = &mut self.reading else { return Ok((0, ServerEvent::Idle)) };
        match chunks.step(input, &self.limits)? {
            Piece::Frame(count) => Ok((count, ServerEvent::Idle)),
            Piece::Content(count) => {
                if let Some(left) = preview {
                    *left = left.checked_sub(count as u64).ok_or(Refusal::Preview)?;
                }
                let is_wanted = count > 0 && self.answer != Answer::Done;
                Ok((count, if is_wanted { ServerEvent::Content } else { ServerEvent::Idle }))
            }
            Piece::End(_) if preview.is_some() && !chunks.is_whole() => {
                self.complete(Reading::Waiting, ServerEvent::Preview, input)
            }
            Piece::End(trailer) => {
                self.trailer = trailer;
                self.complete(Reading::Complete, ServerEvent::End, input)
            }
        }
    }

    /// All that the client sends by itself was read: that is told, unless it is answered already.
    fn complete(
        &mut self,
        reading: Reading,
        event: ServerEvent,
        input: &[u8],
    ) -> Result<(usize, ServerEvent), Refusal> {
        self.reading = reading;
        if self.answer == Answer::Done { self.read(input) } else { Ok((0, event)) }
    }

    /// The client has ended its half of the connection, and all of it has been taken.
    pub fn finish(&mut self) -> ServerEvent {
        match &self.reading {
            Reading::Head(head) if head.is_empty() => {}
            Reading::Complete | Reading::Waiting if self.answer != Answer::Done => return ServerEvent::Idle,
            Reading::Complete | Reading::Waiting | Reading::Closed => {}
            Reading::Body(..) if self.answer == Answer::Done => {}
            Reading::Head(_) | Reading::Heads(..) | Reading::Empty | Reading::Body(..) => {
                return self.refuse(crate::http::Refusal::Incomplete.into());
            }
        }
        self.reading = Reading::Closed;
        ServerEvent::Closed
    }

    /// Answers OPTIONS. `methods` are those of the service: `REQMOD`, `RESPMOD`, or both with a comma.
    pub fn options(&mut self, service: &Service, methods: &str) {
        if self.answers() {
            writer::options(service, methods, !self.keeps_alive, &mut self.outbox);
            self.answer = Answer::Done;
        }
    }

    /// Asks for what comes after the preview. Does nothing at another time.
    pub fn proceed(&mut self) {
        if matches!(self.reading, Reading::Waiting) && self.answer == Answer::None {
            writer::proceed(&mut self.outbox);
            self.has_proceeded = true;
            self.reading = Reading::Body(Chunks::default(), None);
        }
    }

    /// True when the client takes 204 now: where it allows that, and instead of the rest behind a preview (RFC 3507, section 4.6).
    pub fn may_be_unmodified(&self) -> bool {
        let Some(request) = self.is_read() else { return false };
        let is_preview = request.preview.is_some() && !self.has_proceeded;
        request.allows_204 || is_preview
    }

    /// The request, if all of it was read that comes by itself, and it has no answer.
    fn is_read(&self) -> Option<&Request> {
        let is_read = matches!(self.reading, Reading::Waiting | Reading::Complete) && self.answer == Answer::None;
        self.request.as_ref().filter(|request| is_read && request.method != Method::Options)
    }

    /// Answers that nothing is to be changed, with these fields: by 204, or by the head and the client's own body (206). Returns
    /// false, and does nothing, where the client does not take that.
    pub fn unmodified(&mut self, fields: &Fields) -> bool {
        let closes = !self.keeps_alive;
        if self.may_be_unmodified() {
            writer::unmodified(fields, &self.tag, closes, &mut self.outbox);
            self.answer = Answer::Done;
            return true;
        }
        let Some(request) = self.request.as_ref().filter(|request| request.keeps_body() && request.has_body) else {
            return false;
        };
        if self.is_read().is_none() {
            return false;
        }
        writer::partial(request, fields, &self.tag, closes, &mut self.outbox);
        self.answer = Answer::Done;
        true
    }

    /// Begins to answer with the message as it came: its head is written, [`Server::content`] and [`Server::end`] follow.
    pub fn original(&mut self, fields: &Fields) {
        let closes = !self.keeps_alive;
        let Some(request) = self.request.as_ref().filter(|_| self.answer == Answer::None) else { return };
        writer::original(request, fields, &self.tag, closes, &mut self.outbox);
        self.answer = if request.has_body { Answer::Body } else { Answer::Done };
    }

    /// Writes content of the body.
    pub fn content(&mut self, bytes: &[u8]) {
        if self.answer == Answer::Body {
            writer::chunk(bytes, &mut self.outbox);
        }
    }

    /// Ends the body, with the trailer that the client's body had.
    pub fn end(&mut self) {
        if self.answer == Answer::Body {
            writer::last_chunk("", &self.trailer, &mut self.outbox);
            self.answer = Answer::Done;
        }
    }

    /// Answers with a response in the place of the message. The framing is the writer's own.
    pub fn replace(&mut self, response: &Response, body: &[u8], fields: &Fields) {
        if !self.answers() {
            return;
        }
        writer::replacement(response, body.len(), fields, &self.tag, !self.keeps_alive, &mut self.outbox);
        if !body.is_empty() {
            writer::chunk(body, &mut self.outbox);
            writer::last_chunk("", &Fields::default(), &mut self.outbox);
        }
        self.answer = Answer::Done;
    }

    /// Breaks off an answer that has begun: its body stays without an end, and the connection closes.
    pub fn cut(&mut self) {
        self.reading = Reading::Closed;
    }

    /// Refuses the request: answers, unless an answer has begun, and closes.
    pub fn refuse(&mut self, refusal: Refusal) -> ServerEvent {
        if self.answer == Answer::None && !matches!(self.reading, Reading::Closed) {
            writer::refusal(refusal, &self.tag, &mut self.outbox);
        }
        self.reading = Reading::Closed;
        ServerEvent::Refused(refusal)
    }

    /// Ends the connection after the answer under way.
    pub fn close(&mut self) {
        self.keeps_alive = false;
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

    fn answers(&self) -> bool {
        self.answer == Answer::None && self.request.is_some()
    }

    /// Goes on to the next request when the one under way is complete and answered.
    fn turn(&mut self) {
        let is_complete = matches!(self.reading, Reading::Complete | Reading::Waiting);
        if self.answer != Answer::Done || !is_complete {
            return;
        }
        self.request = None;
        self.answer = Answer::None;
        self.reading = if self.keeps_alive { Reading::Head(HeadBuffer::default()) } else { Reading::Closed };
    }
}
