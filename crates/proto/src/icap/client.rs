//! The client half: questions to a service, one at a time, and its answers.
//!
//! Writing and reading are two machines: an answer may begin before the body of the question is whole.
//!
//! Calls: [`Client::ask`], then [`content`](Client::content) and [`end`](Client::end), with [`end_preview`](Client::end_preview) where the
//! preview is not the whole body; [`Client::step`] for the answer. [`ClientEvent::Continue`] asks for the rest behind the preview.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::encapsulated::Encapsulated;
use super::fault::Fault;
use super::method::Method;
use super::question::{Offer, Question};
use super::{request, writer};
use crate::http::chunks::{Chunks, Piece};
use crate::http::head::{self, HeadBuffer};
use crate::http::{Fields, Limits, Request, Response};

/// An event of the client half.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// More input is needed.
    Idle,
    /// The properties of the service; nothing follows.
    Offer(Box<Offer>),
    /// The rest behind the preview is asked for.
    Continue,
    /// Nothing is to be changed; nothing follows.
    Unmodified,
    /// The heads of an answer are complete.
    Answer(Box<Answer>),
    /// The bytes taken are content of the answer's body.
    Content,
    /// The answer is complete; the trailer of its body.
    End(Fields),
    /// The answer is of no use, nor is the connection.
    Failed(Fault),
    /// The connection is over.
    Closed,
}

/// A message in the place of the one that was asked about.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The fields of ICAP.
    pub fields: Fields,
    /// The message.
    pub message: Message,
    /// A body follows.
    pub has_body: bool,
}

/// A message of HTTP.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// A request.
    Request(Request),
    /// A response, in the place of a response or instead of asking.
    Response(Response),
}

/// One connection to a service.
#[derive(Debug)]
pub struct Client {
    limits: Limits,
    /// The URI of the service.
    uri: String,
    host: String,
    reading: Reading,
    writing: Writing,
    /// The methods of the question under way: ICAP's, and that of the request in it.
    method: Method,
    http_method: String,
    /// 204 is taken for the whole body, and now.
    has_backup: bool,
    may_be_unmodified: bool,
    keeps_alive: bool,
    tag: Vec<u8>,
    outbox: Vec<u8>,
}

#[derive(Debug)]
enum Reading {
    Idle,
    Head(HeadBuffer),
    /// The encapsulated head, as far as it has come.
    Heads(Encapsulated, Fields, Vec<u8>),
    Body(Chunks),
    Complete,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    Done,
    Preview,
    /// The preview is over.
    Waiting,
    Body,
}

impl Client {
    /// Begins a connection to the service of this URI, at `host`.
    pub fn new(limits: Limits, uri: &str, host: &str) -> Client {
        Client {
            limits,
            uri: uri.into(),
            host: host.into(),
            reading: Reading::Idle,
            writing: Writing::Done,
            method: Method::Options,
            http_method: String::new(),
            has_backup: false,
            may_be_unmodified: false,
            keeps_alive: true,
            tag: Vec::new(),
            outbox: Vec::new(),
        }
    }

    /// Asks for the properties of the service. Does nothing while another question is under way.
    pub fn options(&mut self) {
        if self.is_reusable() {
            self.method = Method::Options;
            self.may_be_unmodified = false;
            writer::ask_options(&self.uri, &self.host, &mut self.outbox);
            self.reading = Reading::Head(HeadBuffer::default());
        }
    }

    /// Asks about a message. Does nothing while another question is under way.
    pub fn ask(&mut self, question: &Question<'_>) {
        if !self.is_reusable() {
            return;
        }
        self.method = question.method();
        self.http_method.clone_from(&question.request.method);
        self.has_backup = question.allows_204;
        self.may_be_unmodified = question.allows_204 || question.preview.is_some();
        question.write(&self.uri, &self.host, &mut self.outbox);
        self.writing = match (question.has_body, question.preview) {
            (false, _) => Writing::Done,
            (true, Some(_)) => Writing::Preview,
            (true, None) => Writing::Body,
        };
        self.reading = Reading::Head(HeadBuffer::default());
    }

    /// Writes content of the message's body.
    pub fn content(&mut self, bytes: &[u8]) {
        if matches!(self.writing, Writing::Preview | Writing::Body) {
            writer::chunk(bytes, &mut self.outbox);
        }
    }

    /// Ends the preview: more follows if it is asked for.
    pub fn end_preview(&mut self) {
        if self.writing == Writing::Preview {
            writer::last_chunk("", &Fields::default(), &mut self.outbox);
            self.writing = Writing::Waiting;
        }
    }

    /// Ends the body, within its preview or behind it.
    pub fn end(&mut self, trailer: &Fields) {
        match self.writing {
            Writing::Preview => writer::last_chunk("; ieof", trailer, &mut self.outbox),
            Writing::Body => writer::last_chunk("", trailer, &mut self.outbox),
            Writing::Waiting | Writing::Done => return,
        }
        self.writing = Writing::Done;
    }

    /// Takes a prefix of the input, and emits one event.
    pub fn step(&mut self, input: &[u8]) -> (usize, ClientEvent) {
        self.read(input).unwrap_or_else(|fault| {
            self.reading = Reading::Closed;
            (0, ClientEvent::Failed(fault))
        })
    }

    fn read(&mut self, input: &[u8]) -> Result<(usize, ClientEvent), Fault> {
        match &mut self.reading {
            Reading::Idle if input.is_empty() => Ok((0, ClientEvent::Idle)),
            Reading::Idle => Err(Fault::Unexpected),
            Reading::Head(head) => {
                let (count, complete) = head.take(input, &self.limits)?;
                let Some(head) = complete else { return Ok((count, ClientEvent::Idle)) };
                Ok((count, self.begin(&head)?))
            }
            Reading::Heads(encapsulated, _, bytes) => {
                let count = input.len().min(encapsulated.head_bytes().saturating_sub(bytes.len()));
                bytes.extend_from_slice(input.get(..count).unwrap_or_default());
                let is_whole = bytes.len() >= encapsulated.head_bytes();
                Ok((count, if is_whole { self.answer()? } else { ClientEvent::Idle }))
            }
            Reading::Body(chunks) => match chunks.step(input, &self.limits)? {
                Piece::Frame(count) | Piece::Content(count @ 0) => Ok((count, ClientEvent::Idle)),
                Piece::Content(count) => Ok((count, ClientEvent::Content)),
                Piece::End(trailer) => Ok((0, self.complete(ClientEvent::End(trailer)))),
            },
            Reading::Complete => Ok((0, self.complete(ClientEvent::End(Fields::default())))),
            Reading::Closed => Ok((input.len(), ClientEvent::Closed)),
        }
    }

    /// A head of ICAP is complete.
    fn begin(&mut self, head: &[u8]) -> Result<ClientEvent, Fault> {
        let head = unfolded(head);
        let (line, fields) = head::split(&head, &self.limits)?;
        let status = status(line)?;
        if status != 100 {
            self.keeps_alive &= !fields.lists("connection", "close");
            self.tag = fields.get("istag").unwrap_or_default().into();
        }
        match status {
            100 if self.writing == Writing::Waiting => {
                self.writing = Writing::Body;
                self.may_be_unmodified = self.has_backup;
                self.reading = Reading::Head(HeadBuffer::default());
                Ok(ClientEvent::Continue)
            }
            200 if self.method == Method::Options => Ok(self.offered(&fields)),
            204 if self.may_be_unmodified => Ok(self.complete(ClientEvent::Unmodified)),
            200 => {
                let encapsulated = Encapsulated::parse_answer(&fields, self.method).map_err(|_| Fault::Encapsulated)?;
                if encapsulated.head_bytes() > self.limits.head_bytes_max {
                    return Err(crate::http::Refusal::HeadTooLong.into());
                }
                self.reading = Reading::Heads(encapsulated, fields, Vec::new());
                Ok(ClientEvent::Idle)
            }
            100 | 204 => Err(Fault::Unexpected),
            status => Err(Fault::Status(status)),
        }
    }

    /// OPTIONS is answered. A body, which RFC 3507 does not define, ends the connection.
    fn offered(&mut self, fields: &Fields) -> ClientEvent {
        let is_body = |section: &[u8]| section.starts_with(b"opt-body");
        self.keeps_alive &= !fields.elements("encapsulated").any(is_body);
        self.complete(ClientEvent::Offer(Box::new(Offer::of(fields))))
    }

    /// The encapsulated head is complete.
    fn answer(&mut self) -> Result<ClientEvent, Fault> {
        let Reading::Heads(encapsulated, fields, bytes) = core::mem::replace(&mut self.reading, Reading::Complete)
        else {
            return Err(Fault::Encapsulated);
        };
        let lines = request::lines(&bytes, &self.limits).map_err(|_| Fault::Encapsulated)?;
        let message = match encapsulated.request_bytes {
            Some(_) => Message::Request(Request::parse(&lines, &self.limits)?),
            None => Message::Response(Response::parse(&lines, &self.http_method, &self.limits)?),
        };
        let has_body = encapsulated.has_body;
        if has_body {
            self.reading = Reading::Body(Chunks::default());
        }
        Ok(ClientEvent::Answer(Box::new(Answer { fields, message, has_body })))
    }

    /// The answer is complete. A question whose end was not sent leaves the connection without use.
    fn complete(&mut self, event: ClientEvent) -> ClientEvent {
        let is_sent = matches!(self.writing, Writing::Done | Writing::Waiting);
        self.reading = if self.keeps_alive && is_sent { Reading::Idle } else { Reading::Closed };
        self.writing = Writing::Done;
        event
    }

    /// The service has ended its half of the connection, and all of it has been taken.
    pub fn finish(&mut self) -> ClientEvent {
        match core::mem::replace(&mut self.reading, Reading::Closed) {
            Reading::Idle | Reading::Closed => ClientEvent::Closed,
            _ => ClientEvent::Failed(Fault::Incomplete),
        }
    }

    /// True when the connection can carry another question.
    pub fn is_reusable(&self) -> bool {
        matches!(self.reading, Reading::Idle)
    }

    /// True when content may be written now.
    pub fn takes_content(&self) -> bool {
        matches!(self.writing, Writing::Preview | Writing::Body)
    }

    /// Asks another service of the same host from now on.
    pub fn turn_to(&mut self, uri: &str) {
        if self.uri != uri {
            self.uri = uri.into();
            self.tag.clear();
        }
    }

    /// `ISTag` of the last answer.
    pub fn tag(&self) -> &[u8] {
        &self.tag
    }

    /// The bytes to send.
    pub fn outbox(&self) -> &[u8] {
        &self.outbox
    }

    /// So many bytes of the outbox have been sent.
    pub fn sent(&mut self, count: usize) {
        self.outbox.drain(..count.min(self.outbox.len()));
    }
}

/// A head with each folded field as one line: c-icap says `X-Violations-Found` so.
fn unfolded(head: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.len());
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        if matches!(line.first(), Some(b' ' | b'\t')) && out.ends_with(b"\r\n") {
            out.truncate(out.len().saturating_sub(2));
        }
        out.extend_from_slice(line);
    }
    out
}

/// The status of a first line.
fn status(line: &[u8]) -> Result<u16, Fault> {
    let rest = line.strip_prefix(b"ICAP/1.0 ").ok_or(Fault::StatusLine)?;
    let (digits, rest) = rest.split_at_checked(3).ok_or(Fault::StatusLine)?;
    let is_status = digits.iter().all(u8::is_ascii_digit) && matches!(rest.first(), None | Some(b' '));
    let text = core::str::from_utf8(digits).ok().filter(|_| is_status).ok_or(Fault::StatusLine)?;
    text.parse().map_err(|_| Fault::StatusLine)
}
