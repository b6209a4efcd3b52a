//! The milter door: a mail server tells what its client sends, and asks before it answers.
//!
//! The message stays with the mail server, so nothing is held here but what `blank` has to send back: where an action
//! asks for that, the message as far as it fits the head window. A larger one that is to be blanked is refused.
//!
//! Bounds: those of the protocol half; recipients beyond `RECIPIENTS_MAX` are counted and not named in the log.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::{Action, Capabilities, Disposition, Flow, Protocol, Score, Scoring, State, Terms, Verdict};
use proto::milter::{Decision, Server, ServerEvent};
use proto::smtp::Reply;
use tokio::time::timeout;

use crate::message::authenticity;
use crate::message::greylist::{Transaction, greylisted};
use crate::message::journal;
use crate::message::passage::{Asked, Passage, try_again};
use crate::message::preferences;
use crate::message::spam;
use crate::message::trace::{self, Origin, new_id};
use crate::metrics::SessionOpen;
use crate::net::stream::Stream;
use crate::net::wire::Wire;
use crate::porch::door::Door;
use crate::porch::gate::Ticket;
use crate::porch::shared::Shared;
use crate::settings::Parties;

/// How long a mail server may say nothing: as libmilter's default.
const SILENCE_WAIT: Duration = Duration::from_secs(7_210);

/// Recipients kept of one message.
const RECIPIENTS_MAX: usize = 1_000;

/// Prefix of fields with a score, in lower case.
const FORGED_START: &str = "x-spam-";

/// Names of forged fields that are kept of one message.
const NAMES_MAX: usize = 1_000;

/// The field that marks a message; what a message brings itself of it is deleted.
const STATUS: &str = "X-Sluice-Status";

/// Runs a connection from its first byte to its last.
pub async fn run(shared: Rc<Shared>, door: Arc<Door>, peer: SocketAddr, ticket: Ticket, stream: Stream) {
    let _open = SessionOpen::new(&shared.runtime.borrow().metrics);
    let session = Session {
        shared,
        door,
        wire: Wire::new(stream),
        server: Server::new(),
        client: peer.ip(),
        hello: String::new(),
        envelope: None,
        message: None,
    };
    if let Err(error) = session.converse().await {
        tracing::debug!(%peer, %error, "connection aborted");
    }
    drop(ticket);
}

struct Session {
    shared: Rc<Shared>,
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
    envelope: Envelope,
    passage: Passage,
    header_bytes: u64,
    /// Fields that it brings by names of our own: how many of each, in lower case. At most [`NAMES_MAX`].
    forged: BTreeMap<String, u32>,
    /// How many fields `Authentication-Results` it brings along.
    results: u32,
    /// The octets of its first subject, with LF at the ends of lines.
    subject: Option<Vec<u8>>,
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
                    self.begin().await;
                    let body = &self.wire.input()[taken - count..taken];
                    if let Some(message) = &mut self.message {
                        message.take(body).await;
                    }
                }
                ServerEvent::LastBody(body) => {
                    self.begin().await;
                    if let Some(message) = &mut self.message {
                        message.take(&body).await;
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
        let mut control = self.shared.control.clone();
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
                self.begin().await;
                if let Some(message) = &mut self.message {
                    message.header(&field).await;
                }
            }
            ServerEvent::Abort => (self.envelope, self.message) = (None, None),
            _ => {}
        }
    }

    /// The first of a message has come: its envelope is complete, and with it what holds for it. Content without an envelope is
    /// inspected like any other.
    async fn begin(&mut self) {
        let missing = self.message.is_none().then(Envelope::default);
        if let Some(envelope) = self.envelope.take().or(missing) {
            self.message = Some(Box::new(Box::pin(Message::new(self, envelope)).await));
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
        self.begin().await;
        let Some(mut message) = self.message.take() else { return self.server.decide(&Decision::Accept) };
        let asked = Instant::now();
        let (action, decision, verdict) = match message.passage.finish().await {
            Err(unfinished) => {
                (Action::Reject, refusal(try_again(unfinished), message.passage.id()), Verdict::default())
            }
            Ok(verdict) => {
                let disposition = Disposition::of(&verdict, &self.capabilities(&message));
                message.passage.settle(disposition, &verdict);
                let decision = match self.is_to_come_again(&message, disposition, &verdict).await {
                    true => refusal(greylisted(), message.passage.id()),
                    false => self.act(&mut message, disposition, &verdict),
                };
                (disposition.action(), decision, verdict)
            }
        };
        self.record(&message, action, &decision, &verdict, asked);
        self.server.decide(&decision);
    }

    /// Whether it has to come again; what is taken vouches for who has sent it.
    async fn is_to_come_again(&self, message: &Message, disposition: Disposition, verdict: &Verdict) -> bool {
        let Message { envelope, passage, .. } = message;
        let recipients: Vec<&str> = envelope.to.iter().map(String::as_str).collect();
        let transaction = Transaction { client: self.client, sender: &envelope.from, recipients: &recipients };
        if disposition == Disposition::Pass {
            passage.vouch(verdict, &transaction);
        }
        let is_open = disposition != Disposition::Reject && verdict.findings.is_empty();
        is_open && passage.is_to_come_again(verdict, &transaction).await
    }

    /// Actions still possible, as far as the mail server has agreed to them.
    fn capabilities(&self, message: &Message) -> Capabilities {
        let (able, changes) = (message.passage.capabilities(), self.server.changes());
        Capabilities {
            pass: true,
            tag: changes.may_add_fields(),
            late_tag: message.passage.ruling().on_late_tag,
            blank: able.blank && message.passage.state() == State::Holding && changes.may_replace_body(),
            blank_whole: false,
            quarantine: changes.may_quarantine(),
        }
    }

    fn act(&mut self, message: &mut Message, disposition: Disposition, verdict: &Verdict) -> Decision {
        if disposition == Disposition::Reject {
            let words = message.passage.refusal(verdict);
            return refusal(Reply::with_text(554, (5, 7, 1), words), message.passage.id());
        }
        let changes = self.server.changes();
        if changes.may_change_fields() {
            for (name, &count) in &message.forged {
                let name = if name.eq_ignore_ascii_case(STATUS) { STATUS } else { name };
                // From the last to the first, so that the others keep their places.
                (1..=count).rev().for_each(|index| self.server.change_field(index, name, b""));
            }
        }
        self.mark_sender(message, verdict);
        self.mark(message, verdict);
        if matches!(disposition, Disposition::Tag | Disposition::Blank { .. }) && changes.may_add_fields() {
            let field = trace::status(verdict).replace("\r\n", "\n");
            let value = field.strip_prefix(STATUS).and_then(|rest| rest.strip_prefix(": ")).unwrap_or_default();
            self.server.add_field(STATUS, value.trim_end());
        }
        if message.passage.ruling().virus_scanned && changes.may_add_fields() {
            let value = trace::scanned(&self.shared.runtime.borrow().settings.hostname);
            self.server.add_field(trace::SCANNED, &value);
        }
        match disposition {
            Disposition::Blank { .. } => message.replace_body(&mut self.server),
            Disposition::Quarantine => {
                let (found, id) = (message.passage.reason(verdict), message.passage.id());
                self.server.quarantine(&format!("{found} (id {id})"));
            }
            _ => {}
        }
        Decision::Accept
    }

    /// Adds the authentication field at the top, and removes forged ones.
    fn mark_sender(&mut self, message: &Message, verdict: &Verdict) {
        let changes = self.server.changes();
        let settings = message.passage.ruling().authentication.as_ref();
        let Some((settings, found)) = settings.zip(verdict.authenticity.as_deref()) else { return };
        if changes.may_change_fields() {
            // Of a header that is too long nothing is known.
            let all = || (0..message.results).collect();
            let forged = found.forged.clone().unwrap_or_else(all);
            // From the last to the first, so that the others keep their places.
            for index in forged.into_iter().filter(|&index| index < message.results).rev() {
                self.server.change_field(index + 1, authenticity::NAME, b"");
            }
        }
        if settings.header && changes.may_add_fields() {
            self.server.insert_field(0, authenticity::NAME, &authenticity::value(settings, found, "\n"));
        }
    }

    /// Applies the score to the header.
    fn mark(&mut self, message: &Message, verdict: &Verdict) {
        let changes = self.server.changes();
        let spam = message.passage.ruling().spam.as_ref();
        let Some((spam, score)) = spam.zip(verdict.score.as_ref()).filter(|_| changes.may_add_fields()) else { return };
        for (name, value) in spam::fields(spam, score, "\n") {
            self.server.add_field(&name, &value);
        }
        let Some((_, tag)) = spam::subject(spam, score) else { return };
        match &message.subject {
            Some(subject) if changes.may_change_fields() => {
                self.server.change_field(1, "Subject", &[tag.as_bytes(), subject.as_slice()].concat());
            }
            Some(_) => {}
            None => self.server.add_field("Subject", &spam.subject_tag),
        }
    }

    fn record(&self, message: &Message, action: Action, decision: &Decision, verdict: &Verdict, asked: Instant) {
        let (passage, envelope) = (&message.passage, &message.envelope);
        journal::count(&self.shared.runtime.borrow().metrics, passage, action, true);
        journal::count_score(&self.shared.runtime.borrow().metrics, passage, verdict);
        journal::count_sender(&self.shared.runtime.borrow().means, verdict);
        let reply = match decision {
            Decision::Accept => String::new(),
            Decision::Reply(reply) => reply.to_string(),
        };
        tracing::info!(
            id = passage.id(),
            queue_id = self.server.queue_id().unwrap_or_default(),
            message_id = passage.message_id(),
            door = self.door.listener.protocol().name(),
            client = %self.client,
            hello = trace::printable(&self.hello),
            from = trace::address(&envelope.from),
            to = trace::printable(&envelope.to.join(",")),
            recipients = envelope.recipients,
            bytes = passage.received(),
            objects = verdict.objects,
            action = action.name(),
            found = journal::found(verdict),
            sender = authenticity::results(verdict),
            policy = authenticity::reason(verdict),
            score = spam::points(verdict),
            spam = verdict.score.as_ref().map(Score::is_spam),
            hits = spam::hits(verdict),
            reply,
            inspect_us = passage.inspect_time().as_micros() as u64,
            after_end_us = asked.elapsed().as_micros() as u64,
            ms = passage.age().as_millis() as u64,
            "message filtered"
        );
    }
}

fn refusal(mut reply: Reply, id: &str) -> Decision {
    trace::sign(&mut reply, id);
    Decision::Reply(reply)
}

impl Message {
    async fn new(session: &Session, envelope: Envelope) -> Message {
        let runtime = session.shared.runtime.borrow().clone();
        let ruling = session.door.rulings.under(session.rule(&envelope));
        let flow = Flow {
            protocol: Protocol::Milter,
            client: Some(session.client),
            hello: session.hello.as_str().into(),
            sender: envelope.from.as_str().into(),
            recipients: envelope.to.iter().map(|to| to.as_str().into()).collect(),
            ..Flow::default()
        };
        let may_change = ruling.policy.asks_for(Action::Blank);
        let terms = Terms { window_bytes: runtime.settings.head_window_bytes, ..Terms::default() };
        let id = new_id();
        let (hello, hostname) = (session.hello.as_str(), runtime.settings.hostname.as_str());
        let origin = Origin { hello, address: session.client, with: "ESMTP", hostname, id: &id };
        let is_whole = envelope.recipients == envelope.to.len();
        let recipients: Vec<&str> = envelope.to.iter().filter(|_| is_whole).map(String::as_str).collect();
        let preferences = preferences::find(ruling.spam.as_ref(), &recipients).await;
        let scoring = ruling.spam.as_ref().map(|spam| Scoring {
            trace: trace::for_rules(&envelope.from, &origin),
            preferences,
            ..spam.scoring.clone()
        });
        let authenticating = ruling.authentication.as_ref().and_then(|settings| authenticity::asked(settings, &flow));
        let asked = Asked { flow, terms, scoring, authenticating, heaviest: Action::Reject, ..Asked::default() };
        let mut passage = Passage::mail(&runtime.means, &id, ruling, asked);
        if !may_change {
            passage.hold().watch();
        }
        Message { envelope, passage, header_bytes: 0, forged: BTreeMap::new(), results: 0, subject: None }
    }

    async fn header(&mut self, field: &[u8]) {
        let name = field.split(|&byte| byte == b':').next().unwrap_or_default();
        let own = String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase();
        self.results = self.results.saturating_add(u32::from(own.eq_ignore_ascii_case(authenticity::NAME)));
        let is_spam_s = self.passage.ruling().spam.is_some() && own.starts_with(FORGED_START);
        if (is_spam_s || own.eq_ignore_ascii_case(STATUS))
            && (self.forged.len() < NAMES_MAX || self.forged.contains_key(&own))
        {
            *self.forged.entry(own).or_default() += 1;
        } else if own == "subject" && self.subject.is_none() && self.passage.ruling().spam.is_some() {
            let value = field.get(name.len() + 1..).unwrap_or_default().trim_ascii();
            self.subject = Some(with_lf(value));
        }
        self.header_bytes += field.len() as u64;
        self.take(field).await;
    }

    /// Inspects more, and holds it as long as all of it can be held: the mail server has it, too.
    async fn take(&mut self, bytes: &[u8]) {
        let piece_bytes = self.passage.hold().piece_bytes(bytes.len());
        for piece in bytes.chunks(piece_bytes.max(1)) {
            if !self.passage.hold().has_room(piece.len()) {
                self.passage.hold().watch();
            }
            self.passage.take(piece, false).await;
        }
    }

    /// Sends the body back, with what was marked overwritten.
    fn replace_body(&mut self, server: &mut Server) {
        let hold = self.passage.hold();
        while hold.held() > 0 {
            // Never across the end of the header.
            let header_left = self.header_bytes.saturating_sub(hold.sent());
            let most = if header_left > 0 { header_left as usize } else { usize::MAX };
            let piece = hold.redacted(most);
            if header_left == 0 {
                server.replace_body(piece);
            }
            let count = piece.len();
            hold.forget(count);
        }
    }
}

/// A value with LF at the ends of its lines, and its other octets as they came.
fn with_lf(value: &[u8]) -> Vec<u8> {
    let lines = value.split_inclusive(|&byte| byte == b'\n').map(|line| match line.strip_suffix(b"\r\n") {
        Some(text) => [text, b"\n"].concat(),
        None => line.to_vec(),
    });
    lines.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_of_a_subject_stay() {
        assert_eq!(with_lf(b"Gr\xfc\xdfe\r\n an\n alle\r"), b"Gr\xfc\xdfe\n an\n alle\r");
    }
}
