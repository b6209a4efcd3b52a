//! The content of one message on its way through: held back, inspected, handed on.
//!
//! ```text
//!  Holding ── head window used up ──► Streaming ── end of content ──► verdict
//!     └───────── end of content ────────────────────────────────────►   │
//!  (a message that cannot be delivered any more is Failed: it is read to its end, and refused there)
//! ```

use std::time::{Duration, Instant};

use inspect::{Action, Context, In, Inspection, Out, Policy, Progress, Verdict};
use proto::smtp::Reply;
use stream::{Fuel, Object};

use super::hop::Hop;
use super::message::{self, Origin};
use super::pool::Held;
use super::session::{Session, Transaction};
use super::smtp_hop::Peer;
use super::{notice, quarantine};
use crate::config::{BareLineEnds, Listener, Protocol};

/// Work done on one message before others have their turn.
const TURN_FUEL: u64 = 256 << 10;

/// How long the verdict may take after the end of the content; later it is a temporary refusal, never a clean.
const VERDICT_WAIT: Duration = Duration::from_secs(120);

/// Content under way.
pub struct Intake {
    id: String,
    listener: Listener,
    policy: Policy,
    held: Held,
    window_bytes: usize,
    inspection: Inspection,
    cleared: u64,
    received: u64,
    state: State,
    header: String,
    /// A part was to be overwritten of which something has been sent.
    late: bool,
    allow_list: bool,
    verdict: Option<Verdict>,
    /// When the verdict has to be there.
    deadline: Option<Instant>,
    started: Instant,
    inspecting: Duration,
}

enum State {
    /// Nothing has been handed on.
    Holding,
    /// All but the tail has been handed on, up to what is cleared.
    Streaming,
    /// It cannot be delivered; this is the reply.
    Failed(Reply),
}

impl Intake {
    /// For the message `id` of a session, whose client announced a size or not.
    pub fn new(session: &Session, id: &str, announced: Option<u64>) -> Intake {
        let site = session.edge.site.borrow().clone();
        let listener = session.door.listener.clone();
        let policy = listener.policy();
        let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
        let origin = Origin {
            hello: &session.hello,
            address: session.client.ip(),
            with: match (listener.protocol, session.extended, session.encrypted) {
                (Protocol::Lmtp, _, false) => "LMTP",
                (Protocol::Lmtp, _, true) => "LMTPS",
                (Protocol::Smtp, true, false) => "ESMTP",
                (Protocol::Smtp, _, true) => "ESMTPS",
                (Protocol::Smtp, false, false) => "SMTP",
            },
            hostname: &site.config.hostname,
            id,
        };
        let head_window = site.config.resources.head_window_bytes;
        // What will not fit need not wait, unless there is something to be done with it that needs the whole.
        let streams = policy.only_rejects() && announced.is_some_and(|bytes| bytes > head_window as u64);
        Intake {
            id: id.into(),
            header: if listener.received { message::received(&origin) } else { String::new() },
            listener,
            policy,
            held: Held::new(site.pool.clone()),
            window_bytes: if streams { 0 } else { head_window },
            inspection: Inspection::new(site.engine.clone(), Context { policy, object, explain: false }),
            cleared: 0,
            received: 0,
            state: State::Holding,
            late: false,
            allow_list: site.engine.database.census().allowed > 0,
            verdict: None,
            deadline: None,
            started: Instant::now(),
            inspecting: Duration::ZERO,
        }
    }

    /// Takes more content.
    pub async fn take(&mut self, transaction: &mut Transaction, content: &[u8]) {
        // Where the pool has nothing left, smaller steps need no more than every mail has.
        let piece = if self.held.grow(content.len(), self.window_bytes) { content.len() } else { Held::PIECE_BYTES };
        for piece in content.chunks(piece.max(1)) {
            self.take_piece(transaction, piece).await;
        }
    }

    async fn take_piece(&mut self, transaction: &mut Transaction, content: &[u8]) {
        self.received += content.len() as u64;
        let most = self.listener.message_bytes_max;
        if most > 0 && self.received > most {
            self.fail(Reply::new(552, (5, 3, 4), "Message too large"));
        }
        if matches!(self.state, State::Failed(_)) {
            return;
        }
        if !self.held.grow(content.len(), self.window_bytes) && matches!(self.state, State::Holding) {
            self.stream(transaction).await;
            self.held.grow(content.len(), self.window_bytes);
        }
        self.held.push(content);
        self.inspect(content).await;
        self.hand_on(transaction, Held::TAIL_BYTES).await;
    }

    /// Lets the inspection see `content`.
    async fn inspect(&mut self, mut content: &[u8]) {
        while !content.is_empty() {
            let taken = self.inspection.tell(In::Feed(content));
            content = &content[taken..];
            self.work().await;
        }
    }

    /// Lets the inspection work, in turns with everybody else, and hears what it says.
    async fn work(&mut self) {
        loop {
            let turn = Instant::now();
            let progress = self.inspection.work(&mut Fuel::new(TURN_FUEL));
            self.inspecting += turn.elapsed();
            while let Some(out) = self.inspection.hear() {
                match out {
                    Out::Cleared(offset) => self.cleared = offset,
                    Out::Blank(blank) => self.late |= !self.held.blank(blank),
                    Out::Verdict(verdict) => self.verdict = Some(verdict),
                    Out::Finding(_) | Out::Object(_) => {}
                }
            }
            let overdue = self.deadline.is_some_and(|deadline| Instant::now() > deadline);
            if progress != Progress::Tired || overdue {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The head window is used up: what is cleared goes out from here on.
    async fn stream(&mut self, transaction: &mut Transaction) {
        let hop = transaction.hop.as_mut().expect("a message with recipients has a hop");
        let mut outcome = hop.begin().await;
        if outcome.is_ok() {
            outcome = hop.write(self.header.as_bytes()).await;
        }
        match outcome {
            Ok(()) => self.state = State::Streaming,
            Err(reply) => return self.fail(reply),
        }
        self.hand_on(transaction, Held::TAIL_BYTES).await;
    }

    /// Hands on what is cleared, all but `tail` bytes.
    async fn hand_on(&mut self, transaction: &mut Transaction, tail: usize) {
        if !matches!(self.state, State::Streaming) {
            return;
        }
        if self.hopeless() {
            return self.fail(Reply::new(554, (5, 7, 1), "Message refused"));
        }
        let cleared = usize::try_from(self.cleared - self.held.sent()).expect("what is held fits memory");
        let count = self.held.len().saturating_sub(tail).min(cleared);
        let hop = transaction.hop.as_mut().expect("a message with recipients has a hop");
        if let Err(reply) = send(&mut self.held, count, hop).await {
            self.fail(reply);
        }
    }

    /// Whether it is known already that a message that streams will be refused: no use to send more of it. An allow
    /// list may still speak for it at its end.
    fn hopeless(&self) -> bool {
        !self.allow_list && (self.late || self.inspection.action() >= Action::Quarantine)
    }

    fn fail(&mut self, reply: Reply) {
        if !matches!(self.state, State::Failed(_)) {
            self.state = State::Failed(reply);
        }
    }

    /// The content is complete. Returns the replies for the client: one, or one for each recipient.
    pub async fn conclude(
        mut self,
        session: &Session,
        transaction: &mut Transaction,
        bare_line_ends: bool,
    ) -> Vec<Reply> {
        let last_dot = Instant::now();
        self.deadline = Some(last_dot + VERDICT_WAIT);
        self.inspection.tell(In::Finish);
        self.work().await;
        let verdict = self.verdict.take().unwrap_or_else(|| {
            self.fail(Reply::new(451, (4, 7, 1), "The inspection took too long"));
            Verdict::default()
        });
        if bare_line_ends && self.listener.bare_line_ends == BareLineEnds::Refuse {
            self.fail(Reply::new(550, (5, 6, 0), "Bare CR or LF in the message"));
        }
        let action = self.decide(&verdict);
        if action < Action::Blank {
            self.held.spare();
        }
        let mut replies = self.act(session, transaction, &verdict, action).await;
        replies.iter_mut().for_each(|reply| message::sign(reply, &self.id));
        self.record(session, transaction, &verdict, action, &replies, last_dot);
        replies
    }

    /// What can still be done of what the findings ask for.
    fn decide(&self, verdict: &Verdict) -> Action {
        let streaming = self.held.sent() > 0 || matches!(self.state, State::Streaming);
        match verdict.action {
            Action::Blank if self.late || !verdict.blankable => Action::Reject,
            // What is kept is kept whole.
            Action::Quarantine if streaming || matches!(self.state, State::Failed(_)) => Action::Reject,
            Action::Tag if streaming => self.listener.on_late_tag,
            action => action,
        }
    }

    async fn act(
        &mut self,
        session: &Session,
        transaction: &mut Transaction,
        verdict: &Verdict,
        action: Action,
    ) -> Vec<Reply> {
        let leases = &session.edge.leases;
        let refusal = match action {
            Action::Reject => Some(self.refusal(verdict)),
            Action::Quarantine => Some(self.quarantine(session, transaction, verdict).await),
            _ => match &self.state {
                State::Failed(reply) => Some(reply.clone()),
                _ => None,
            },
        };
        if let Some(refusal) = refusal {
            if let Some(hop) = transaction.hop.take() {
                hop.abandon(leases).await;
            }
            return vec![refusal];
        }
        match self.deliver(transaction, verdict, action).await {
            Ok(replies) => {
                let hop = transaction.hop.take().expect("a message with recipients has a hop");
                hop.release(leases);
                if action == Action::Blank && replies.iter().any(Reply::is_positive) {
                    self.notify(session, transaction, verdict);
                }
                replies
            }
            Err(reply) => {
                let hop = transaction.hop.take().expect("a message with recipients has a hop");
                hop.abandon(leases).await;
                vec![reply]
            }
        }
    }

    /// Hands on the rest, and asks for the hop's word.
    async fn deliver(
        &mut self,
        transaction: &mut Transaction,
        verdict: &Verdict,
        action: Action,
    ) -> Result<Vec<Reply>, Reply> {
        let hop = transaction.hop.as_mut().expect("a message with recipients has a hop");
        if matches!(self.state, State::Holding) {
            hop.begin().await?;
            let mut head = std::mem::take(&mut self.header);
            if action == Action::Tag {
                head.push_str(&message::status(verdict));
            }
            hop.write(head.as_bytes()).await?;
        }
        let count = self.held.len();
        send(&mut self.held, count, hop).await?;
        Ok(hop.commit().await)
    }

    fn refusal(&self, verdict: &Verdict) -> Reply {
        let found = verdict.reason(&self.policy).map_or_else(|| "content".to_string(), message::describe);
        Reply::with_text(554, (5, 7, 1), format!("Message refused: {found}"))
    }

    async fn quarantine(&self, session: &Session, transaction: &Transaction, verdict: &Verdict) -> Reply {
        let folder = self.listener.quarantine.as_ref().expect("checked with the configuration");
        let facts = serde_json::json!({
            "id": self.id,
            "date": message::date(),
            "client": session.client.ip(),
            "hello": session.hello,
            "from": transaction.mail.path.as_str(),
            "to": transaction.recipients.iter().map(|rcpt| rcpt.path.as_str()).collect::<Vec<_>>(),
            "found": verdict.findings.iter().map(message::describe).collect::<Vec<_>>(),
        });
        match quarantine::keep(folder, &self.id, &facts, self.held.pieces()).await {
            Ok(()) => Reply::with_text(250, (2, 0, 0), format!("Held back (id {})", self.id)),
            Err(error) => {
                tracing::error!(id = self.id, folder = %folder.display(), %error, "cannot write to the quarantine");
                Reply::new(451, (4, 3, 0), "Cannot store the message now")
            }
        }
    }

    /// Tells each recipient that a part was overwritten, in the background.
    fn notify(&self, session: &Session, transaction: &mut Transaction, verdict: &Verdict) {
        let (edge, door) = (session.edge.clone(), session.door.clone());
        let recipients = transaction.recipients.clone();
        let (id, policy, verdict) = (self.id.clone(), self.policy, verdict.clone());
        let sender = transaction.mail.path.to_string();
        tokio::task::spawn_local(async move {
            let hostname = edge.site.borrow().config.hostname.clone();
            let peer = Peer { address: [127, 0, 0, 1].into(), hello: &hostname, xforward: &[], lmtp: false };
            for rcpt in recipients {
                let text = notice::text(&hostname, &id, &sender, &rcpt.path.to_string(), &verdict, &policy);
                let null = Default::default();
                let leased = Hop::lease(&door.route, &hostname, &edge.leases, &null, &rcpt, &peer).await;
                let reply = send_notice(leased, &text, &edge.leases).await;
                if !reply.is_positive() {
                    tracing::error!(id, to = %rcpt.path, %reply, "the recipient could not be told");
                }
            }
        });
    }

    /// One line in the log, and the numbers.
    fn record(
        &self,
        session: &Session,
        transaction: &Transaction,
        verdict: &Verdict,
        action: Action,
        replies: &[Reply],
        last_dot: Instant,
    ) {
        let site = session.edge.site.borrow().clone();
        let metrics = &site.metrics;
        metrics.messages_total.add(1);
        metrics.content_bytes_total.add(self.received);
        metrics.inspect_microseconds_total.add(self.inspecting.as_micros() as u64);
        let streamed = self.held.sent() > 0 && matches!(self.state, State::Streaming);
        metrics.messages_streamed_total.add(u64::from(streamed));
        let taken = replies.iter().any(Reply::is_positive);
        let counted = match action {
            Action::Reject => &metrics.messages_rejected_total,
            _ if !taken => &metrics.messages_deferred_total,
            Action::Quarantine => &metrics.messages_quarantined_total,
            Action::Blank => &metrics.messages_blanked_total,
            Action::Tag => &metrics.messages_tagged_total,
            Action::Pass => &metrics.messages_passed_total,
        };
        counted.add(1);
        let found: Vec<String> = verdict.findings.iter().map(message::describe).collect();
        let to: Vec<&str> = transaction.recipients.iter().map(|rcpt| rcpt.path.as_str()).collect();
        tracing::info!(
            id = self.id,
            client = %session.client.ip(),
            from = %transaction.mail.path,
            to = to.join(","),
            bytes = self.received,
            objects = verdict.objects,
            action = action.name(),
            found = found.join("; "),
            reply = replies.iter().map(Reply::to_string).collect::<Vec<_>>().join("; "),
            streamed,
            inspect_us = self.inspecting.as_micros() as u64,
            after_dot_us = last_dot.elapsed().as_micros() as u64,
            ms = self.started.elapsed().as_millis() as u64,
            "message"
        );
    }
}

/// Sends the first `count` bytes held, with what was marked overwritten.
async fn send(held: &mut Held, mut count: usize, hop: &mut Hop) -> Result<(), Reply> {
    while count > 0 {
        let piece = held.redacted(count);
        let sent = piece.len();
        hop.write(piece).await?;
        held.forget(sent);
        count -= sent;
    }
    hop.flush().await
}

async fn send_notice(leased: (Option<Hop>, Reply), text: &str, leases: &super::hop::Leases) -> Reply {
    let (Some(mut hop), reply) = leased else { return leased.1 };
    if !reply.is_positive() {
        hop.abandon(leases).await;
        return reply;
    }
    let mut outcome = hop.begin().await;
    if outcome.is_ok() {
        outcome = hop.write(text.as_bytes()).await;
    }
    if let Err(reply) = outcome {
        hop.abandon(leases).await;
        return reply;
    }
    let replies = hop.commit().await;
    hop.release(leases);
    replies.into_iter().next().unwrap_or(reply)
}
