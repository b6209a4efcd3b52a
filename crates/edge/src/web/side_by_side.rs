//! A request and its response side by side, message by message: calls of gRPC, and streams of events.
//!
//! Both directions go on at the same time, and each message as soon as it was inspected ([`Relay`]). The response of a call may be no stream
//! of messages: then it is one like any other, and the rest of the request is of no more use.
//!
//! Bounds: the head window for a message in each direction, 16 KiB read of either side.

use std::cell::RefCell;
use std::io;
use std::pin::pin;
use std::time::Duration;

use proto::http::{Client, ClientEvent, Framing, Refusal, Response, Server, ServerEvent};
use proto::messages::Form;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::line::Ending;
use super::received;
use super::refused::Refused;
use super::relay::{Relay, Stopped, form_of_response};
use super::session::Session;
use super::vet::Order;
use super::watch::Objection;
use crate::net::wire::Wire;
use crate::porch::filter::Pass;
use crate::upstream::destination::Failure;
use crate::upstream::origin::Origin;

/// How long a side may say nothing.
const SILENCE_WAIT: Duration = Duration::from_secs(1_800);

/// How long a side may take to take what is said.
const WRITE_WAIT: Duration = Duration::from_secs(300);

/// How long the head of a response waits for its first event: a page can stand in the place of what goes on with it.
const HEAD_WAIT: Duration = Duration::from_secs(1);

/// Bytes read at a time in each direction.
const PIECE_BYTES: usize = 16 << 10;

/// How an exchange has ended.
enum End {
    /// The response is complete.
    Over,
    /// The response is no stream of messages.
    Other(Box<Response>),
    /// The response is refused by its head.
    Refused(Refused),
    /// Intrusion rules refuse it by its head.
    Objected(Box<Objection>),
    /// Something was found.
    Stopped(Stopped),
    /// The program stops.
    Stopping,
}

/// A response whose messages go on, and the terms of that.
pub(super) struct Answer {
    pub response: Box<Response>,
    pub form: Form,
    pub pass: Pass,
}

/// Facts about an exchange for the log.
#[derive(Default)]
struct Told {
    media_type: Option<Vec<u8>>,
    messages: u64,
    bytes: u64,
    has_begun: bool,
    is_whole: bool,
}

impl Session {
    /// A call of gRPC: messages go on in both directions as they come.
    pub(super) async fn call(&mut self, order: &Order) -> Result<(), Failure> {
        if !self.may_pass(order, &order.request.fields, None).await? {
            return Ok(());
        }
        self.server.proceed();
        self.send().await?;
        let mut origin = self.lease(order).await?;
        origin.request(&order.request);
        origin.send().await?;
        match self.side_by_side(order, &mut origin, None).await? {
            Some(response) => Box::pin(self.download(order, origin, response)).await,
            None => Ok(()),
        }
    }

    /// Hands on the messages of a response, whose request is complete.
    pub(super) async fn messages(&mut self, order: &Order, mut origin: Origin, answer: Answer) -> Result<(), Failure> {
        self.side_by_side(order, &mut origin, Some(answer)).await.map(|_| ())
    }

    /// Hands on both sides of an exchange. A response that is no stream of messages comes back.
    async fn side_by_side(
        &mut self,
        order: &Order,
        origin: &mut Origin,
        answer: Option<Answer>,
    ) -> Result<Option<Box<Response>>, Failure> {
        let mut control = self.shared.control.clone();
        let (Some((mut client_side, asked)), Some((mut origin_side, answered))) =
            (self.wire.take_parts(), origin.wire.take_parts())
        else {
            return Err(Failure::Ended);
        };
        let server = RefCell::new(std::mem::take(&mut self.server));
        let client = RefCell::new(std::mem::take(&mut origin.client));
        let has_answer = answer.is_some();
        let (end, told, asked, answered) = {
            let session: &Session = self;
            let mut up = Up::new(session, order, !has_answer, asked);
            let mut down =
                Down { session, order, address: origin.address, answer: None, input: answered, has_begun: false };
            down.answer = answer.map(|answer| down.relayed(answer));
            let end = {
                let (client_reads, client_writes) = tokio::io::split(&mut client_side);
                let (origin_reads, origin_writes) = tokio::io::split(&mut origin_side);
                let mut up = pin!(up.run((&server, &client), client_reads, origin_writes));
                let mut down = pin!(down.run((&server, &client), origin_reads, client_writes));
                tokio::select! {
                    end = down.as_mut() => end,
                    end = up.as_mut() => end,
                    _ = control.wait_for(|control| control.stopping) => Ok(End::Stopping),
                }
            };
            let of_answer = down.answer.as_ref().map_or((0, 0), |(_, relay)| (relay.messages, relay.bytes));
            let of_request = up.relay.as_ref().map_or(0, |relay| relay.messages);
            let media_type = down.answer.as_ref().and_then(|(answer, _)| answer.response.fields.get("content-type"));
            let told = Told {
                media_type: media_type.map(Into::into),
                messages: of_request + of_answer.0,
                bytes: of_answer.1,
                has_begun: down.has_begun,
                is_whole: up.is_whole,
            };
            (end, told, up.input, down.input)
        };
        (self.wire, self.server) = (Wire::resumed(client_side, asked), server.into_inner());
        (origin.wire, origin.client) = (Wire::resumed(origin_side, answered), client.into_inner());
        // The request may have stopped within a message.
        origin.is_proved = false;
        self.is_sending = !told.is_whole;
        let end = end.map_err(|failure| if matches!(failure, Failure::Ended) { origin.ended() } else { failure });
        self.conclude_messages(order, end, told).await
    }

    /// What the client is told at the end, and the log.
    async fn conclude_messages(
        &mut self,
        order: &Order,
        end: Result<End, Failure>,
        told: Told,
    ) -> Result<Option<Box<Response>>, Failure> {
        let (mut action, mut reason) = ("cut", None);
        let outcome = match end {
            Ok(End::Other(response)) => return Ok(Some(response)),
            Ok(End::Refused(refused)) => {
                self.refuse(&refused, &order.request.method, &order.url).await?;
                return Ok(None);
            }
            Ok(End::Objected(objection)) => return self.object(*objection).await.map(|()| None),
            Ok(End::Over) => {
                action = "pass";
                Ok(None)
            }
            Ok(End::Stopped(stopped)) => match self.stopped(order, stopped, told.has_begun).await {
                Ok(()) => return Ok(None),
                Err(failure) => Err(failure),
            },
            Ok(End::Stopping) => Err(self.cut()),
            // A client ends a stream of events by its leave.
            Err(Failure::Client(error)) if told.has_begun => {
                action = "pass";
                Err(Failure::Client(error))
            }
            Err(failure) if told.has_begun => {
                reason = Some(failure.detail());
                Err(self.cut())
            }
            Err(failure) => {
                // A request that is refused has its answer already.
                self.send().await?;
                return Err(failure);
            }
        };
        let ending = Ending {
            status: 200,
            media_type: told.media_type.as_deref(),
            messages: Some(told.messages),
            bytes: told.bytes,
            action,
            reason: reason.as_deref(),
            ..Ending::default()
        };
        self.log(&order.request.method, &order.url, &ending);
        outcome
    }

    /// Ends an exchange in which something was found: by a page where the response has not begun.
    async fn stopped(&mut self, order: &Order, stopped: Stopped, has_begun: bool) -> Result<(), Failure> {
        let (mut subject, verdict) = match stopped {
            Stopped::Found(found) => *found,
            Stopped::Malformed(reason) if has_begun => {
                tracing::info!(client = %self.peer.ip(), reason, "response broken off");
                return Err(self.cut());
            }
            Stopped::Malformed(reason) => {
                let refused = Refused { detail: reason.into(), ..Refused::new(502, "The messages are malformed.") };
                return Ok(self.refuse(&refused, &order.request.method, &order.url).await?);
            }
        };
        subject.has_begun = has_begun;
        let mut status = 200;
        let told = match has_begun {
            true => Err(self.cut()),
            false => {
                let (page, body) = subject.page(&verdict);
                status = page.status.0;
                self.server.answer(&page, &body);
                self.send().await.map_err(Failure::from)
            }
        };
        let (outcome, runtime) = (subject.outcome(&verdict, true), self.shared.runtime.borrow().clone());
        subject.conclude(&runtime, &self.door, self.peer.ip(), Some(status), outcome, verdict.as_ref().ok());
        told
    }
}

/// The protocol halves of both sides.
type Halves<'a> = (&'a RefCell<Server>, &'a RefCell<Client>);

/// The messages of the request.
struct Up<'a> {
    /// None of a request that is complete.
    relay: Option<Relay<'a>>,
    input: Vec<u8>,
    is_whole: bool,
}

impl<'a> Up<'a> {
    fn new(session: &'a Session, order: &'a Order, is_open: bool, input: Vec<u8>) -> Up<'a> {
        let relay = || Relay::new(session, order, &order.request.fields, order.pass.clone(), Form::Grpc);
        Up { relay: is_open.then(relay), input, is_whole: !is_open }
    }

    /// Hands messages on, and waits then until the client has gone.
    async fn run(
        &mut self,
        (server, client): Halves<'_>,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> Result<End, Failure> {
        while let Some(relay) = self.relay.as_mut().filter(|_| !self.is_whole) {
            let (taken, event) = server.borrow_mut().step(&self.input);
            let mut out = Vec::new();
            let passed = match event {
                ServerEvent::Content => relay.take(&self.input[..taken], &mut out).await,
                ServerEvent::End(_) => relay.finish(&mut out).await,
                ServerEvent::Idle if taken == 0 => {
                    if more(&mut from, &mut self.input, SILENCE_WAIT).await? == 0 {
                        server.borrow_mut().finish();
                        return Err(Failure::Client(io::ErrorKind::UnexpectedEof.into()));
                    }
                    continue;
                }
                ServerEvent::Idle => Ok(()),
                ServerEvent::Refused(refusal) => {
                    return Err(Failure::Client(io::Error::other(refusal.reason())));
                }
                _ => return Err(Failure::Client(io::ErrorKind::UnexpectedEof.into())),
            };
            self.input.drain(..taken);
            client.borrow_mut().content(&out);
            if let (ServerEvent::End(mut trailer), Ok(())) = (event, &passed) {
                trailer.remove_hop_by_hop();
                client.borrow_mut().end(&trailer);
                self.is_whole = true;
            }
            let said = client.borrow().outbox().to_vec();
            client.borrow_mut().sent();
            // Whoever has not taken it may have said why.
            let is_taken = write(&mut to, &said).await.is_ok();
            if let Err(stopped) = passed {
                return Ok(End::Stopped(stopped));
            }
            if !is_taken {
                break;
            }
        }
        while self.input.is_empty() {
            if from.read_buf(&mut self.input).await? == 0 {
                return Err(Failure::Client(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        // A further request waits for the end of this one.
        std::future::pending().await
    }
}

/// The messages of the response.
struct Down<'a> {
    session: &'a Session,
    order: &'a Order,
    address: std::net::SocketAddr,
    /// The response, when its head has come.
    answer: Option<(Answer, Relay<'a>)>,
    input: Vec<u8>,
    /// The head has gone on.
    has_begun: bool,
}

impl<'a> Down<'a> {
    /// The response with the messages behind it.
    fn relayed(&self, answer: Answer) -> (Answer, Relay<'a>) {
        let relay = Relay::new(self.session, self.order, &answer.response.fields, answer.pass.clone(), answer.form);
        (answer, relay)
    }

    /// Hands messages on to the end of the response.
    async fn run(
        &mut self,
        (server, client): Halves<'_>,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> Result<End, Failure> {
        loop {
            let (taken, mut event) = client.borrow_mut().step(&self.input);
            if taken == 0 && event == ClientEvent::Idle {
                let wait = if self.waits_for_event() { HEAD_WAIT } else { SILENCE_WAIT };
                match more(&mut from, &mut self.input, wait).await {
                    Ok(0) => event = client.borrow_mut().finish(),
                    Ok(_) => continue,
                    Err(error) if error.kind() == io::ErrorKind::TimedOut && self.waits_for_event() => {
                        self.begin(server);
                        send(server, &mut to).await?;
                        continue;
                    }
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(Failure::Late),
                    Err(_) => return Err(Failure::Ended),
                }
            }
            let piece: Vec<u8> = self.input.drain(..taken).collect();
            match event {
                ClientEvent::Idle => {}
                ClientEvent::Interim(interim) if interim.status.0 == 100 => {}
                ClientEvent::Interim(mut interim) => {
                    self.session.prepare(&mut interim);
                    server.borrow_mut().interim(&interim);
                }
                ClientEvent::Response(response) => {
                    if let Some(end) = self.admit(response).await? {
                        return Ok(end);
                    }
                    self.begin(server);
                }
                ClientEvent::Content => {
                    if let Err(stopped) = self.take(server, Some(&piece)).await {
                        send(server, &mut to).await?;
                        return Ok(End::Stopped(stopped));
                    }
                }
                ClientEvent::End(mut trailer) => {
                    if let Err(stopped) = self.take(server, None).await {
                        return Ok(End::Stopped(stopped));
                    }
                    self.begin(server);
                    trailer.remove_hop_by_hop();
                    server.borrow_mut().end(&trailer);
                    send(server, &mut to).await?;
                    return Ok(End::Over);
                }
                ClientEvent::Refused(Refusal::Incomplete) | ClientEvent::Closed | ClientEvent::Tunnel => {
                    return Err(Failure::Ended);
                }
                ClientEvent::Refused(refusal) => return Err(Failure::Malformed(refusal)),
            }
            send(server, &mut to).await?;
        }
    }

    /// Whether the head waits for the first event.
    fn waits_for_event(&self) -> bool {
        !self.has_begun && self.answer.as_ref().is_some_and(|(_, relay)| !relay.is_other())
    }

    /// Has content inspected, or the rest at the end, and hands on what may go.
    async fn take(&mut self, server: &RefCell<Server>, piece: Option<&[u8]>) -> Result<(), Stopped> {
        let Some((_, relay)) = &mut self.answer else { return Ok(()) };
        let mut out = Vec::new();
        let passed = match piece {
            Some(piece) => relay.take(piece, &mut out).await,
            None => relay.finish(&mut out).await,
        };
        if !out.is_empty() {
            self.begin(server);
            server.borrow_mut().content(&out);
        }
        passed
    }

    /// Begins the response, once.
    fn begin(&mut self, server: &RefCell<Server>) {
        if let Some((answer, _)) = &self.answer
            && !std::mem::replace(&mut self.has_begun, true)
        {
            server.borrow_mut().respond(&answer.response);
        }
    }

    /// Looks at the head of the response to a call; an end where no messages of it go on.
    async fn admit(&mut self, mut response: Box<Response>) -> Result<Option<End>, Failure> {
        let (session, order) = (self.session, self.order);
        if response.status.0 == 407 && order.asks_proxy() {
            return Err(Failure::Ahead(407));
        }
        let Some(form) = form_of_response(order, &response) else { return Ok(Some(End::Other(response))) };
        let is_watched = session.shared.runtime.borrow().means.sentinel.is_some();
        let received = is_watched.then(|| (received::of_response(&response), self.address));
        session.prepare(&mut response);
        if let Some(cookie) = &order.pass.cookie {
            response.fields.push("Set-Cookie", cookie);
        }
        response.framing = Framing::Chunked;
        if let Some(refused) = session.refused_before(order, &response) {
            return Ok(Some(End::Refused(refused)));
        }
        let pass = match session.filter_content(order, &response) {
            Ok(pass) => pass,
            Err(refused) => return Ok(Some(End::Refused(refused))),
        };
        if let Some(objection) = session.objection(order, &response.fields, received).await {
            return Ok(Some(End::Objected(Box::new(objection))));
        }
        self.answer = Some(self.relayed(Answer { response, form, pass }));
        Ok(None)
    }
}

/// Waits for more, and appends it; 0 at the end.
async fn more(from: &mut (impl AsyncRead + Unpin), input: &mut Vec<u8>, wait: Duration) -> io::Result<usize> {
    input.reserve(PIECE_BYTES);
    timeout(wait, from.read_buf(input)).await?
}

/// Sends what is to be sent to the client.
async fn send(server: &RefCell<Server>, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let words = server.borrow().outbox().to_vec();
    server.borrow_mut().sent();
    write(to, &words).await
}

async fn write(to: &mut (impl AsyncWrite + Unpin), words: &[u8]) -> io::Result<()> {
    if words.is_empty() {
        return Ok(());
    }
    timeout(WRITE_WAIT, to.write_all(words)).await??;
    timeout(WRITE_WAIT, to.flush()).await?
}
