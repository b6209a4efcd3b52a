//! WebSocket (RFC 6455): messages in both directions, each inspected as a body of its own and written again.
//!
//! A message that fits into the head window goes on when all of it was inspected; a larger one goes on as it is inspected, but for
//! its end. Extensions are not offered to the server, so that nothing is compressed. What is found ends the connection with code 1008.

use std::io;
use std::pin::pin;
use std::time::Duration;

use flow::{Action, State};
use proto::http::Response;
use proto::websocket::{Event, Kind, POLICY_VIOLATION, Reader, Sender, frame};
use stream::Object;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::head;
use super::line::Ending;
use super::session::Session;
use super::subject::{Outcome, Subject};
use super::vet::Order;
use crate::net::tls::random;
use crate::porch::filter::Pass;
use crate::upstream::destination::Failure;
use crate::upstream::origin::Origin;

/// How long a side may say nothing.
const SILENCE_WAIT: Duration = Duration::from_secs(1_800);

/// How long a side may take to take what is said.
const WRITE_WAIT: Duration = Duration::from_secs(60);

/// How long a side may take to answer the last frame of the other.
const FAREWELL_WAIT: Duration = Duration::from_secs(5);

/// Bytes read at a time in each direction.
const PIECE_BYTES: usize = 16 << 10;

/// How a direction has ended.
enum End {
    /// By its last frame, or with the connection.
    Over,
    /// Something was found, or the bytes are no frames.
    Cut,
}

impl Session {
    /// Goes on as WebSocket behind the response of a server that agrees.
    pub(super) async fn socket(
        &mut self,
        order: &Order,
        origin: Origin,
        mut response: Box<Response>,
    ) -> Result<(), Failure> {
        let is_agreed = head::asks_for_socket(&order.request)
            && response.fields.lists("upgrade", "websocket")
            && response.fields.get("sec-websocket-extensions").is_none();
        if !is_agreed {
            return Err(Failure::Malformed(proto::http::Refusal::Unexpected));
        }
        self.prepare(&mut response);
        response.fields.set("Upgrade", b"websocket");
        self.server.respond(&response);
        self.send().await?;
        let (Some((mut client, asked)), Some((mut server, answered))) =
            (self.wire.take_parts(), origin.wire.into_parts())
        else {
            return Err(Failure::Ended);
        };
        let mut control = self.shared.control.clone();
        let (end, messages, bytes) = {
            let (client_reads, client_writes) = tokio::io::split(&mut client);
            let (server_reads, server_writes) = tokio::io::split(&mut server);
            let mut up = Direction::new(self, order, Sender::Client, asked);
            let mut down = Direction::new(self, order, Sender::Server, answered);
            let end = {
                let mut up = pin!(up.relay(client_reads, server_writes));
                let mut down = pin!(down.relay(server_reads, client_writes));
                tokio::select! {
                    end = up.as_mut() => farewell(end, down).await,
                    end = down.as_mut() => farewell(end, up).await,
                    _ = control.wait_for(|control| control.stopping) => Ok(End::Over),
                }
            };
            (end, up.messages + down.messages, up.bytes + down.bytes)
        };
        if matches!(end, Ok(End::Cut)) {
            let mut words = Vec::new();
            frame(Kind::Close, true, None, &POLICY_VIOLATION.to_be_bytes(), &mut words);
            let _ = timeout(WRITE_WAIT, client.write_all(&words)).await;
        }
        client.close().await;
        let action = if matches!(end, Ok(End::Cut)) { "cut" } else { "pass" };
        let ending = Ending { status: 101, messages: Some(messages), bytes, action, ..Ending::default() };
        self.log("WEBSOCKET", &order.url, &ending);
        Ok(())
    }
}

/// A direction has ended: the other may answer.
async fn farewell(end: io::Result<End>, other: impl Future<Output = io::Result<End>>) -> io::Result<End> {
    match end {
        Ok(End::Over) => timeout(FAREWELL_WAIT, other).await.unwrap_or(Ok(End::Over)),
        end => end,
    }
}

/// One direction of a connection.
struct Direction<'a> {
    session: &'a Session,
    order: &'a Order,
    sender: Sender,
    reader: Reader,
    input: Vec<u8>,
    message: Option<Message>,
    messages: u64,
    /// Bytes of their content.
    bytes: u64,
}

/// A message on its way.
struct Message {
    subject: Subject,
    /// The kind of its next frame.
    kind: Kind,
}

impl<'a> Direction<'a> {
    fn new(session: &'a Session, order: &'a Order, sender: Sender, input: Vec<u8>) -> Direction<'a> {
        Direction { session, order, sender, reader: Reader::new(sender), input, message: None, messages: 0, bytes: 0 }
    }

    /// Hands messages on until a side ends.
    async fn relay(&mut self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<End> {
        let mut out = Vec::new();
        loop {
            let end = self.advance(&mut out).await?;
            if !out.is_empty() {
                timeout(WRITE_WAIT, to.write_all(&out)).await??;
                timeout(WRITE_WAIT, to.flush()).await??;
                out.clear();
            }
            match end {
                Some(end) => return Ok(end),
                None if self.input.capacity() - self.input.len() < PIECE_BYTES => self.input.reserve(PIECE_BYTES),
                None => {}
            }
            if timeout(SILENCE_WAIT, from.read_buf(&mut self.input)).await?? == 0 {
                return Ok(End::Over);
            }
        }
    }

    /// Takes what has come, as far as it goes.
    async fn advance(&mut self, out: &mut Vec<u8>) -> io::Result<Option<End>> {
        let mut at = 0;
        let end = loop {
            let (taken, event) = self.reader.step(&self.input[at..]);
            at += taken;
            match event {
                Event::Idle if taken == 0 => break None,
                Event::Idle => {}
                Event::Begin(kind) => self.begin(kind),
                Event::Content if !self.take(out).await? => break Some(End::Cut),
                Event::Content => {}
                Event::End if !self.conclude(out).await? => break Some(End::Cut),
                Event::End => self.messages += 1,
                Event::Control(kind) => {
                    frame(kind, true, self.key()?, self.reader.content(), out);
                    if kind == Kind::Close {
                        break Some(End::Over);
                    }
                }
                Event::Refused(refusal) => {
                    tracing::info!(client = %self.session.peer.ip(), reason = refusal.reason(), "frame refused");
                    break Some(End::Cut);
                }
            }
        };
        self.input.drain(..at);
        Ok(end)
    }

    fn begin(&mut self, kind: Kind) {
        let media_type = if kind == Kind::Text { "text/plain" } else { "application/octet-stream" };
        let object = Object { media_type: Some(media_type.into()), ..Object::default() };
        let runtime = self.session.shared.runtime.borrow().clone();
        let subject = self.session.message(&runtime, object, self.order, &Pass::default());
        self.message = Some(Message { subject, kind });
    }

    /// Has content inspected, and hands on what may go; whether the message goes on.
    async fn take(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let key = self.key()?;
        let Some(message) = &mut self.message else { return Ok(false) };
        let mut rest = self.reader.content();
        self.bytes += rest.len() as u64;
        while !rest.is_empty() {
            let passage = &mut message.subject.passage;
            let count = passage.hold().piece_bytes(rest.len()).min(rest.len());
            let (piece, behind) = rest.split_at(count);
            passage.take(piece, false).await;
            rest = behind;
            if passage.is_hopeless() {
                return self.conclude(out).await.map(|_| false);
            }
            if passage.state() == State::Streaming {
                message.subject.has_begun = true;
                let kind = &mut message.kind;
                while message.subject.go_on(false, |piece| {
                    frame(std::mem::replace(kind, Kind::Continuation), false, key, piece, out);
                }) {}
            }
        }
        Ok(true)
    }

    /// The message is over: hands on the rest of it under its verdict; whether it has passed.
    async fn conclude(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let key = self.key()?;
        let Some(Message { mut subject, kind }) = self.message.take() else { return Ok(false) };
        let verdict = subject.passage.finish().await;
        let outcome = subject.outcome(&verdict, true);
        let session = self.session;
        if outcome != Outcome::Passed {
            let runtime = session.shared.runtime.borrow().clone();
            subject.conclude(&runtime, &session.door, session.peer.ip(), None, outcome, verdict.as_ref().ok());
            return Ok(false);
        }
        subject.count(&session.shared.runtime.borrow().metrics, Action::Pass);
        let (mut kind, mut held) = (kind, Vec::new());
        loop {
            let mut next = Vec::new();
            if !subject.go_on(true, |piece| next.extend_from_slice(piece)) {
                break;
            }
            if !held.is_empty() {
                frame(std::mem::replace(&mut kind, Kind::Continuation), false, key, &held, out);
            }
            held = next;
        }
        frame(kind, true, key, &held, out);
        Ok(true)
    }

    /// The mask of the next frames, which those of a client have.
    fn key(&self) -> io::Result<Option<[u8; 4]>> {
        match self.sender {
            Sender::Client => random().map(Some),
            Sender::Server => Ok(None),
        }
    }
}
