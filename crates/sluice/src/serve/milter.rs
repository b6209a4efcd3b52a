//! The milter door: a mail server tells what its client sends, and asks before it answers.
//!
//! The message stays with the mail server, so nothing is held here but what `blank` has to send back: where an action
//! asks for that, the message as far as it fits the head window. A larger one that is to be blanked is refused.
//!
//! Bounds: those of the protocol half; recipients beyond [`RECIPIENTS_MAX`] are counted and not named in the log.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use inspect::{Action, Policy, Verdict};
use proto::milter::{Decision, Server, ServerEvent};
use proto::smtp::Reply;
use tokio::time::timeout;

use super::content::Content;
use super::door::{Door, Ticket};
use super::edge::Edge;
use super::message::{self, new_id};
use super::metrics::SessionOpen;
use super::pool::Held;
use super::stream::Stream;
use super::wire::Wire;
use crate::config::{Listener, Parties};

/// How long a mail server may say nothing: as libmilter's default.
const SILENCE_WAIT: Duration = Duration::from_secs(7_210);

/// Recipients kept of one message.
const RECIPIENTS_MAX: usize = 1_000;

/// The field that marks a message; what a message brings itself of it is deleted.
const STATUS: &str = "X-Sluice-Status";

/// Runs a connection from its first byte to its last.
pub async fn run(edge: Rc<Edge>, door: Arc<Door>, peer: SocketAddr, ticket: Ticket, stream: Stream) {
    let _open = SessionOpen::new(&edge.site.borrow().metrics);
    let session = Session {
        edge,
        door,
        wire: Wire::new(stream),
        server: Server::new(),
        client: peer.ip(),
        hello: String::new(),
        envelope: None,
        message: None,
    };
    if let Err(error) = session.converse().await {
        tracing::debug!(%peer, %error, "connection broken off");
    }
    drop(ticket);
}

struct Session {
    edge: Rc<Edge>,
    door: Arc<Door>,
    wire: Wire,
    server: Server,
    client: IpAddr,
    hello: String,
    envelope: Option<Envelope>,
    message: Option<Box<Message>>,
}

/// From whom and for whom a message is.
#[derive(Default)]
struct Envelope {
    from: String,
    to: Vec<String>,
    recipients: usize,
}

/// A message under way.
struct Message {
    id: String,
    envelope: Envelope,
    listener: Listener,
    policy: Policy,
    content: Content,
    /// All of it is held.
    whole: bool,
    header_bytes: u64,
    /// Fields that it brings by the name of our own.
    forged: u32,
    started: Instant,
}

impl Session {
    async fn converse(mut self) -> io::Result<()> {
        loop {
            let (taken, event) = self.server.step(self.wire.input());
            match event {
                ServerEvent::Idle if taken == 0 => {
                    self.wire.write(self.server.outbox()).await?;
                    self.server.sent();
                    if !self.wait().await? {
                        return Ok(());
                    }
                }
                ServerEvent::Body(count) => {
                    self.begin();
                    let body = &self.wire.input()[taken - count..taken];
                    if let Some(message) = &mut self.message {
                        message.take(body).await;
                    }
                }
                ServerEvent::End => self.end().await,
                ServerEvent::Closed => return self.wire.write(self.server.outbox()).await,
                ServerEvent::Broken(reason) => return Err(io::Error::other(reason)),
                event => self.told(event).await,
            }
            self.wire.take(taken);
        }
    }

    /// Waits for more; whether any came.
    async fn wait(&mut self) -> io::Result<bool> {
        let mut control = self.edge.control.clone();
        tokio::select! {
            biased;
            read = timeout(SILENCE_WAIT, self.wire.read()) => read?,
            _ = control.wait_for(|control| control.stopping), if self.envelope.is_none() && self.message.is_none() => {
                Ok(false)
            }
        }
    }

    async fn told(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Connect(address) => {
                self.client = address.unwrap_or(IpAddr::from([127, 0, 0, 1]));
                self.hello.clear();
            }
            ServerEvent::Hello(name) => self.hello = name,
            ServerEvent::Mail(from) => {
                self.message = None;
                self.envelope = Some(Envelope { from, ..Envelope::default() });
            }
            ServerEvent::Recipient(to) => {
                if let Some(envelope) = &mut self.envelope {
                    envelope.recipients += 1;
                    if envelope.to.len() < RECIPIENTS_MAX {
                        envelope.to.push(to);
                    }
                }
            }
            ServerEvent::Header(field) => {
                self.begin();
                if let Some(message) = &mut self.message {
                    message.header(&field).await;
                }
            }
            ServerEvent::Abort => (self.envelope, self.message) = (None, None),
            _ => {}
        }
    }

    /// The first of a message has come: its envelope is complete, and with it what holds for it.
    fn begin(&mut self) {
        if let Some(envelope) = self.envelope.take() {
            let rule = self.rule(&envelope);
            self.message = Some(Box::new(Message::new(&self.edge, self.door.listener.under(rule), envelope)));
        }
    }

    /// The rule that holds for all recipients; none if they differ.
    fn rule(&self, envelope: &Envelope) -> Option<usize> {
        let means = |recipient: &String| {
            self.door.listener.rule_for(&Parties { client: self.client, sender: &envelope.from, recipient })
        };
        let mut rules = envelope.to.iter().map(means);
        let first = rules.next()?;
        if envelope.recipients == envelope.to.len() && rules.all(|rule| rule == first) { first } else { None }
    }

    /// The message is complete: the verdict, and what follows from it.
    async fn end(&mut self) {
        self.begin();
        let Some(mut message) = self.message.take() else { return self.server.decide(&Decision::Accept) };
        let asked = Instant::now();
        let (action, decision, verdict) = match message.content.finish().await {
            Err(unfinished) => (Action::Reject, refusal(unfinished.reply(), &message.id), None),
            Ok(verdict) => {
                let action = self.possible(&message, &verdict);
                (action, self.act(&mut message, action, &verdict), Some(verdict))
            }
        };
        self.record(&message, action, &decision, &verdict.unwrap_or_default(), asked);
        self.server.decide(&decision);
    }

    /// What can be done of what the findings ask for; the mail server may not have agreed to all of it.
    fn possible(&self, message: &Message, verdict: &Verdict) -> Action {
        let changes = self.server.changes();
        let possible = match verdict.action {
            Action::Blank => {
                message.whole && verdict.blankable && !message.content.is_late() && changes.may_replace_body()
            }
            Action::Quarantine => changes.may_quarantine(),
            Action::Tag => changes.may_add_fields(),
            Action::Pass | Action::Reject => true,
        };
        match verdict.action {
            action if possible => action,
            Action::Tag => message.listener.on_late_tag,
            _ => Action::Reject,
        }
    }

    fn act(&mut self, message: &mut Message, action: Action, verdict: &Verdict) -> Decision {
        let found = verdict.reason(&message.policy).map_or_else(|| "content".to_string(), message::describe);
        if action == Action::Reject {
            let words = message.listener.refusal().words(&found, &message.id);
            return refusal(Reply::with_text(554, (5, 7, 1), words), &message.id);
        }
        let changes = self.server.changes();
        if changes.may_change_fields() {
            // From the last to the first, so that the others keep their places.
            (1..=message.forged).rev().for_each(|index| self.server.change_field(index, STATUS, ""));
        }
        if matches!(action, Action::Tag | Action::Blank) && changes.may_add_fields() {
            let field = message::status(verdict).replace("\r\n", "\n");
            let value = field.strip_prefix(STATUS).and_then(|rest| rest.strip_prefix(": ")).unwrap_or_default();
            self.server.add_field(STATUS, value.trim_end());
        }
        match action {
            Action::Blank => message.replace_body(&mut self.server),
            Action::Quarantine => self.server.quarantine(&format!("{found} (id {})", message.id)),
            _ => {}
        }
        Decision::Accept
    }

    fn record(&self, message: &Message, action: Action, decision: &Decision, verdict: &Verdict, asked: Instant) {
        let site = self.edge.site.borrow();
        let metrics = &site.metrics;
        metrics.messages_total.add(1);
        metrics.content_bytes_total.add(message.content.received());
        metrics.inspect_microseconds_total.add(message.content.inspecting().as_micros() as u64);
        let counted = match action {
            Action::Reject => &metrics.messages_rejected_total,
            Action::Quarantine => &metrics.messages_quarantined_total,
            Action::Blank => &metrics.messages_blanked_total,
            Action::Tag => &metrics.messages_tagged_total,
            Action::Pass => &metrics.messages_passed_total,
        };
        counted.add(1);
        let found: Vec<String> = verdict.findings.iter().map(message::describe).collect();
        let reply = match decision {
            Decision::Accept => String::new(),
            Decision::Reply(reply) => reply.to_string(),
        };
        tracing::info!(
            id = message.id,
            queue_id = self.server.queue_id().unwrap_or_default(),
            client = %self.client,
            hello = message::printable(&self.hello),
            from = message::printable(&message.envelope.from),
            to = message::printable(&message.envelope.to.join(",")),
            recipients = message.envelope.recipients,
            bytes = message.content.received(),
            objects = verdict.objects,
            action = action.name(),
            found = found.join("; "),
            reply,
            inspect_us = message.content.inspecting().as_micros() as u64,
            after_end_us = asked.elapsed().as_micros() as u64,
            ms = message.started.elapsed().as_millis() as u64,
            "message filtered"
        );
    }
}

fn refusal(mut reply: Reply, id: &str) -> Decision {
    message::sign(&mut reply, id);
    Decision::Reply(reply)
}

impl Message {
    fn new(edge: &Edge, listener: Listener, envelope: Envelope) -> Message {
        let site = edge.site.borrow().clone();
        let policy = listener.policy();
        let rules = site.config.ways(&listener.attachments);
        let window = if listener.asks_for(Action::Blank) { site.config.resources.head_window_bytes } else { 0 };
        Message {
            id: new_id(),
            envelope,
            listener,
            policy,
            content: Content::mail(&site, policy, rules, window),
            whole: true,
            header_bytes: 0,
            forged: 0,
            started: Instant::now(),
        }
    }

    async fn header(&mut self, field: &[u8]) {
        let name = field.split(|&byte| byte == b':').next().unwrap_or_default();
        self.forged += u32::from(name.trim_ascii().eq_ignore_ascii_case(STATUS.as_bytes()));
        self.header_bytes += field.len() as u64;
        self.take(field).await;
    }

    /// Inspects more, and holds it as long as all of it can be held.
    async fn take(&mut self, bytes: &[u8]) {
        let piece = if self.content.grow(bytes.len()) { bytes.len() } else { Held::PIECE_BYTES };
        for piece in bytes.chunks(piece.max(1)) {
            if !self.content.grow(piece.len()) {
                self.whole = false;
            }
            if !self.whole {
                self.let_go();
                self.content.grow(piece.len());
            }
            self.content.push(piece).await;
        }
    }

    /// Forgets what is held: the mail server has it.
    fn let_go(&mut self) {
        loop {
            let count = self.content.held.front(usize::MAX).len();
            if count == 0 {
                return;
            }
            self.content.held.forget(count);
        }
    }

    /// Sends the body back, with what was marked overwritten.
    fn replace_body(&mut self, server: &mut Server) {
        let held = &mut self.content.held;
        while held.len() > 0 {
            // Never across the end of the header.
            let header_left = self.header_bytes.saturating_sub(held.sent());
            let most = if header_left > 0 { header_left as usize } else { usize::MAX };
            let piece = held.redacted(most);
            if header_left == 0 {
                server.replace_body(piece);
            }
            let count = piece.len();
            held.forget(count);
        }
    }
}
