//! ICAP (RFC 3507): a proxy asks about each request and each response that it passes on.
//!
//! What fits into the head window is answered when all of it was inspected: unchanged, or with a page in its place. What is larger
//! goes back as it is inspected, but for its end, and what is found then breaks it off: the chunks stay without an end, so that the
//! proxy knows that it is not whole.
//!
//! Bounds: the head window for each message, the two heads of it (64 KiB each), five minutes of silence.

use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flow::{Flow, Protocol, State, Unfinished, Verdict, Watched};
use proto::http::{Fields, Limits};
use proto::icap::{Head, Method, Request, Server, ServerEvent, Service};
use tokio::time::{sleep, timeout};

use super::language::Language;
use super::named;
use super::object;
use super::received::lines;
use super::subject::{Outcome, Subject};
use crate::message::trace;
use crate::metrics::SessionOpen;
use crate::net::stream::Stream;
use crate::net::wire::Wire;
use crate::porch::door::Door;
use crate::porch::filter::{ContentFacts, Decision, Identity, Notice, Pass, Reason, RequestFacts};
use crate::porch::gate::Ticket;
use crate::porch::runtime::{Runtime, Signatures};
use crate::porch::shared::Shared;

/// How long a client may say nothing.
const SILENCE_WAIT: Duration = Duration::from_secs(300);

/// Where Squid 5 stalls, with a response whose head and beginning come to it at once, until its answer begins: it has sent one byte less
/// than 64 KiB.
const STALL_BYTES: RangeInclusive<u64> = 60 << 10..=64 << 10;

/// How long a client may pause there before its answer begins.
const STALL_WAIT: Duration = Duration::from_millis(200);

/// The URL of a response whose request is not told: of a host that no list has.
const NO_URL: &[u8] = b"http://-/";

/// Bytes of a preview that are asked for. All of a small object is in it, and such a one needs no second round trip.
const PREVIEW_BYTES: u32 = 4 << 10;

/// How long a client may remember the properties of the service.
const OPTIONS_SECONDS: u32 = 3_600;

/// Connections at a time that a client is told to open at most, where the listener has no bound.
const CONNECTIONS_MAX: u32 = 1_000;

/// A message that is asked about.
struct Asking {
    subject: Subject,
    /// The client of the proxy, as far as it is named.
    client: IpAddr,
    /// The client has all of it, and takes that for the answer: nothing has to go back.
    stays: bool,
    /// Lists have decided against it.
    blocked: Option<Reason>,
    /// All of the body has come.
    is_whole: bool,
}

struct Session {
    shared: Rc<Shared>,
    door: Arc<Door>,
    peer: SocketAddr,
    wire: Wire,
    server: Server,
    asking: Option<Box<Asking>>,
}

/// Runs a connection from its first byte to its last.
pub async fn run(shared: Rc<Shared>, door: Arc<Door>, peer: SocketAddr, ticket: Ticket, stream: Stream) {
    let _open = SessionOpen::new(&shared.runtime.borrow().metrics);
    let server = Server::new(Limits::default(), &tag(&shared.runtime.borrow().signatures));
    let session = Session { shared, door, peer, wire: Wire::new(stream), server, asking: None };
    if let Err(error) = session.converse().await {
        tracing::debug!(%peer, %error, "connection aborted");
    }
    drop(ticket);
}

/// The first word of a line.
fn first_word(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b' ').next().unwrap_or_default()
}

/// The whole URL of a request: of one in origin form, as an origin server has it, with the host that it names (RFC 9112 section 3.3).
fn url_of(head: &Head) -> Cow<'_, [u8]> {
    let target = head.second_word();
    match head.fields.get("host") {
        Some(host) if target.starts_with(b"/") => [&b"http://"[..], host, target].concat().into(),
        _ => target.into(),
    }
}

/// `ISTag`: changes with every set of signatures; at most 32 characters.
fn tag(signatures: &Signatures) -> String {
    format!("{:x}-{:x}", signatures.loaded.unix_timestamp(), signatures.generation)
}

impl Session {
    async fn converse(mut self) -> io::Result<()> {
        loop {
            let (taken, event) = self.server.step(self.wire.input());
            let event = match event {
                ServerEvent::Idle if taken == 0 => {
                    self.send().await?;
                    if self.more().await? { ServerEvent::Idle } else { self.server.finish() }
                }
                event => event,
            };
            match event {
                ServerEvent::Idle => {}
                ServerEvent::Request => self.begin(),
                ServerEvent::Content => self.content(taken).await?,
                ServerEvent::Preview => self.preview().await?,
                ServerEvent::End => self.end().await?,
                ServerEvent::Refused(refusal) => {
                    tracing::debug!(peer = %self.peer, reason = refusal.reason(), "refused");
                    self.send().await?;
                    self.wire.close().await;
                    return Ok(());
                }
                ServerEvent::Closed => {
                    self.send().await?;
                    self.wire.close().await;
                    return Ok(());
                }
            }
            self.wire.take(taken);
        }
    }

    /// Waits for more of the client; whether any came. Between two messages it ends when the program stops.
    async fn more(&mut self) -> io::Result<bool> {
        let is_idle = self.server.is_idle();
        let may_stall = self.asking.as_ref().is_some_and(|asking| asking.may_stall());
        let mut control = self.shared.control.clone();
        tokio::select! {
            more = timeout(SILENCE_WAIT, self.wire.read()) => return more?,
            _ = control.wait_for(|control| control.stopping), if is_idle => return Ok(false),
            () = sleep(STALL_WAIT), if may_stall => {}
        }
        if let Some(asking) = &mut self.asking {
            asking.subject.passage.hold().stream();
            asking.begin(&mut self.server);
        }
        Ok(true)
    }

    async fn send(&mut self) -> io::Result<()> {
        self.wire.write(self.server.outbox()).await?;
        self.server.sent();
        Ok(())
    }

    /// The heads of a request are there.
    fn begin(&mut self) {
        let runtime = self.shared.runtime.borrow().clone();
        self.server.set_tag(&tag(&runtime.signatures));
        let Some(request) = self.server.request() else { return };
        let method = match request.method {
            Method::Options => return,
            Method::Reqmod => "REQMOD",
            Method::Respmod => "RESPMOD",
        };
        let stays = request.keeps_body();
        let url = request.http_request.as_ref().map(url_of).unwrap_or_default();
        let object = request.subject().map(|head| object::described(&url, &head.fields)).unwrap_or_default();
        let flow = self.flow(request);
        let client = flow.client.unwrap_or(self.peer.ip());
        let (pass, blocked) = match self.decide(&runtime, request, &url, &flow) {
            Decision::Pass(pass) => (pass, None),
            Decision::Block(reason) => (Pass::default(), Some(reason)),
            Decision::Redirect { location, .. } => {
                let (words, notice) = ("The page is elsewhere.".into(), Notice::Redirect(location));
                (Pass::default(), Some(Reason { words, notice, ..Reason::default() }))
            }
        };
        let watched = runtime.means.sentinel.as_ref().map(|_| Box::new(watched(request, &flow)));
        let mut subject = Subject::open(&runtime, &self.door, flow, object, (&pass, watched), method, &url);
        let language = request.http_request.as_ref().map(|head| Language::of(&head.fields)).unwrap_or_default();
        subject.language = language;
        self.asking = Some(Box::new(Asking { subject, client, stays, blocked, is_whole: false }));
    }

    /// Decides by the lists on a request, or on the head of its response.
    fn decide(&self, runtime: &Runtime, request: &Request, url: &[u8], flow: &Flow) -> Decision {
        // The head of the request may be left out (RFC 3507, section 4.8.2): types and phrases are decided on all the same.
        let (no_fields, asked) = (Fields::default(), request.http_request.as_ref());
        let (fields, line) = asked.map_or((&no_fields, &b"GET"[..]), |head| (&head.fields, head.line()));
        let url = if asked.is_some() { url } else { NO_URL };
        let method = String::from_utf8_lossy(first_word(line));
        let facts = RequestFacts {
            client: flow.client,
            user: flow.login.as_deref(),
            group: None,
            port: self.door.address.tcp().map_or(0, |address| address.port()),
            method: &method,
            url,
            fields,
            is_tls: url.starts_with(b"https://"),
            has_server_name: false,
            identity: Identity::Proved,
            is_icap: true,
            takes_tokens: false,
        };
        let decision = runtime.filter.request(&facts);
        let (Some(response), Decision::Pass(pass)) = (&request.http_response, &decision) else { return decision };
        let Some(course) = pass.course.clone() else { return decision };
        let names = response.fields.get("content-disposition").map(object::file_names).unwrap_or_default();
        let file_names = names.each_ref().map(Option::as_deref);
        course.content(&facts, &ContentFacts { media_type: response.fields.get("content-type"), file_names })
    }

    /// Client of the request, as the proxy names it if it is configured to.
    fn flow(&self, request: &Request) -> Flow {
        let said = |name| request.fields.get(name).map(|value| String::from_utf8_lossy(value).into_owned());
        Flow {
            protocol: Protocol::Icap,
            client: said("x-client-ip").and_then(|text| text.parse().ok()).or(Some(self.peer.ip())),
            login: said("x-client-username").map(Into::into).or_else(|| named::user(&request.fields)),
            ..Flow::default()
        }
    }

    /// More of the body.
    async fn content(&mut self, count: usize) -> io::Result<()> {
        let Some(asking) = &mut self.asking else { return Ok(()) };
        let mut at = 0;
        while at < count {
            let piece = asking.subject.passage.hold().piece_bytes(count - at);
            let end = count.min(at + piece);
            asking.subject.passage.take(&self.wire.input()[at..end], false).await;
            at = end;
            if asking.subject.passage.state() != State::Streaming {
                continue;
            }
            if asking.stays || asking.blocked.is_some() {
                asking.subject.passage.hold().watch();
            } else {
                while asking.go_on(&mut self.server, false) {
                    self.wire.write(self.server.outbox()).await?;
                    self.server.sent();
                }
            }
        }
        if !asking.subject.passage.is_hopeless() && asking.blocked.is_none() {
            return Ok(());
        }
        // What was found is known so.
        let verdict = asking.subject.passage.finish().await;
        self.conclude(verdict).await
    }

    /// All of the preview has come: the rest is wanted, unless it is decided already.
    async fn preview(&mut self) -> io::Result<()> {
        match &mut self.asking {
            Some(asking) if asking.blocked.is_some() => {
                let verdict = asking.subject.passage.finish().await;
                self.conclude(verdict).await
            }
            _ => {
                self.server.proceed();
                Ok(())
            }
        }
    }

    /// The body is complete.
    async fn end(&mut self) -> io::Result<()> {
        match &mut self.asking {
            Some(asking) => {
                asking.is_whole = true;
                let verdict = asking.subject.passage.finish().await;
                self.conclude(verdict).await
            }
            None => {
                self.answer_options();
                Ok(())
            }
        }
    }

    fn answer_options(&mut self) {
        let Some(request) = self.server.request().filter(|request| request.method == Method::Options) else { return };
        let methods = match &*request.service {
            service if service.to_ascii_lowercase().contains("reqmod") => "REQMOD",
            service if service.to_ascii_lowercase().contains("respmod") => "RESPMOD",
            _ => "RESPMOD, REQMOD",
        };
        let runtime = self.shared.runtime.borrow();
        let service = Service {
            name: "Sluice".into(),
            tag: tag(&runtime.signatures),
            preview_bytes: PREVIEW_BYTES,
            connections_max: CONNECTIONS_MAX,
            seconds: OPTIONS_SECONDS,
        };
        self.server.options(&service, methods);
    }

    /// Answers, and writes it down.
    async fn conclude(&mut self, verdict: Result<Verdict, Unfinished>) -> io::Result<()> {
        let Some(mut asking) = self.asking.take() else { return Ok(()) };
        let runtime = self.shared.runtime.borrow().clone();
        let outcome = asking.answer(&mut self.server, &verdict);
        self.send().await?;
        while outcome == Outcome::Passed && asking.subject.has_begun && asking.go_on(&mut self.server, true) {
            self.send().await?;
        }
        if outcome == Outcome::Passed {
            self.server.end();
        }
        self.send().await?;
        asking.subject.conclude(&runtime, &self.door, asking.client, None, outcome, verdict.as_ref().ok());
        Ok(())
    }
}

/// An exchange as intrusion rules see it.
fn watched(request: &Request, flow: &Flow) -> Watched {
    let head = |head: &Head| flow::Head { line: head.line().into(), fields: lines(&head.fields) };
    Watched {
        client: flow.client.map(|address| (address, 0).into()),
        request: request.http_request.as_ref().map(head),
        response: request.http_response.as_ref().map(head),
        ..Watched::default()
    }
}

impl Asking {
    /// Answers as far as the verdict decides it; what is passed on and held has to follow.
    fn answer(&mut self, server: &mut Server, verdict: &Result<Verdict, Unfinished>) -> Outcome {
        if let Some(reason) = &self.blocked {
            let (response, body) = self.subject.blocked(reason);
            server.replace(&response, &body, &Fields::default());
            return Outcome::Replaced;
        }
        let outcome = self.subject.outcome(verdict, self.is_whole);
        match outcome {
            Outcome::Passed if !self.subject.has_begun && server.unmodified(&Fields::default()) => {
                self.subject.passage.drain();
            }
            Outcome::Passed => self.begin(server),
            Outcome::Cut => server.cut(),
            Outcome::Lost if self.subject.has_begun => server.cut(),
            Outcome::Replaced | Outcome::Lost => {
                let (response, body) = self.subject.page(verdict);
                let mut fields = Fields::default();
                if let Ok(verdict) = verdict {
                    // As other scanners tell it (draft-stecher-icap-subid, section 3).
                    let threat = trace::printable(&self.subject.passage.reason(verdict));
                    let found = format!("Type=0; Resolution=2; Threat={threat};");
                    fields.push("X-Infection-Found", found.as_bytes());
                }
                server.replace(&response, &body, &fields);
            }
        }
        outcome
    }

    /// Whether a client that pauses now may be waiting for the answer.
    fn may_stall(&self) -> bool {
        let is_held = self.subject.passage.state() == State::Holding && !self.stays && self.blocked.is_none();
        is_held && STALL_BYTES.contains(&self.subject.passage.received())
    }

    /// Begins to send it back, once.
    fn begin(&mut self, server: &mut Server) {
        if !std::mem::replace(&mut self.subject.has_begun, true) {
            server.original(&Fields::default());
        }
    }

    /// Sends back what may go.
    fn go_on(&mut self, server: &mut Server, has_verdict: bool) -> bool {
        self.begin(server);
        self.subject.go_on(has_verdict, |piece| server.content(piece))
    }
}
