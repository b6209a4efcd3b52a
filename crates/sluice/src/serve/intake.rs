//! The content of one message on its way through: held back, inspected, handed on.
//!
//! ```text
//!  Holding ── head window used up ──► Streaming ── end of content ──► verdict
//!     │                                 │ a finding: nothing more goes to the hop    ▲
//!     │                                 └──────────────► Aside ── end of content ────┤
//!     └───────── end of content ─────────────────────────────────────────────────────┘
//!  (a message that cannot be delivered any more is Failed: it is read to its end, and refused there)
//! ```

use std::time::Instant;

use inspect::{Action, Policy, Spotted, Verdict};
use proto::smtp::{MailFrom, Reply};
use stream::Class;

use super::content::{Content, Unfinished};
use super::hop::Hop;
use super::message::{self, Origin};
use super::notice::{Incident, Nature, Notice};
use super::pool::Held;
use super::quarantine::{self, Draft};
use super::session::{Session, Transaction};
use super::smtp_hop::Peer;
use crate::config::{BareLineEnds, Listener, Protocol};
use crate::quarantine::{Envelope, Facts};

/// Content under way.
pub struct Intake {
    id: String,
    listener: Listener,
    policy: Policy,
    content: Content,
    state: State,
    /// What goes into the quarantine, where the message is larger than the head window and may have to.
    draft: Option<Draft>,
    header: String,
    started: Instant,
}

enum State {
    /// Nothing has been handed on.
    Holding,
    /// All but the tail has been handed on, up to what is cleared.
    Streaming,
    /// It goes to nobody, and may have to be kept: it is inspected and written to its end.
    Aside,
    /// It cannot be delivered; this is the reply.
    Failed(Reply),
}

impl Intake {
    /// For the message `id` of a session, whose client announced a size or not.
    pub fn new(session: &Session, id: &str, rule: Option<usize>, announced: Option<u64>) -> Intake {
        let site = session.edge.site.borrow().clone();
        let listener = session.door.listener.under(rule);
        let rules = site.config.ways(&listener.attachments);
        let policy = listener.policy();
        let origin = Origin {
            hello: &session.hello,
            address: session.client.ip(),
            with: match (listener.protocol, session.extended, session.encrypted) {
                (Protocol::Lmtp, _, false) => "LMTP",
                (Protocol::Lmtp, _, true) => "LMTPS",
                (_, _, true) if session.leases.logged_in => "ESMTPSA",
                (_, _, true) => "ESMTPS",
                (_, true, false) if session.leases.logged_in => "ESMTPA",
                (_, true, false) => "ESMTP",
                (_, false, false) => "SMTP",
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
            content: Content::mail(&site, policy, rules, if streams { 0 } else { head_window }),
            state: State::Holding,
            draft: None,
            started: Instant::now(),
        }
    }

    /// Takes more content.
    pub async fn take(&mut self, transaction: &mut Transaction, content: &[u8]) {
        // Where the pool has nothing left, smaller steps need no more than every mail has.
        let piece = if self.content.grow(content.len()) { content.len() } else { Held::PIECE_BYTES };
        for piece in content.chunks(piece.max(1)) {
            self.take_piece(transaction, piece).await;
        }
    }

    async fn take_piece(&mut self, transaction: &mut Transaction, content: &[u8]) {
        let most = self.listener.message_bytes_max;
        if most > 0 && self.content.received() + content.len() as u64 > most {
            self.fail(Reply::new(552, (5, 3, 4), "Message too large"));
        }
        if matches!(self.state, State::Failed(_)) {
            return self.content.pass_over(content.len());
        }
        if !self.content.grow(content.len()) && matches!(self.state, State::Holding) {
            self.draft = Draft::of(&self.listener, &self.id, &self.content.held).await;
            self.stream(transaction).await;
            self.content.grow(content.len());
        }
        if let Some(draft) = &mut self.draft {
            draft.write(content).await;
        }
        if matches!(self.state, State::Aside) {
            self.content.pass_over(content.len());
            self.content.inspect(content).await;
        } else {
            self.content.push(content).await;
        }
        if self.content.is_starved() {
            self.fail(Unfinished::Starved.reply());
        }
        self.hand_on(transaction, Held::TAIL_BYTES).await;
    }

    /// The head window is used up: what is cleared goes out from here on.
    async fn stream(&mut self, transaction: &mut Transaction) {
        if self.draft.is_some() && self.content.is_hopeless(Action::Blank) {
            self.state = State::Aside;
            return;
        }
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
        if self.content.is_hopeless(Action::Blank) {
            if self.draft.is_some() && !self.content.is_starved() {
                self.state = State::Aside;
                return;
            }
            return self.fail(Reply::new(554, (5, 7, 1), "Message refused"));
        }
        let count = self.content.sendable(tail);
        let hop = transaction.hop.as_mut().expect("a message with recipients has a hop");
        if let Err(reply) = send(&mut self.content.held, count, hop).await {
            self.fail(reply);
        }
    }

    fn fail(&mut self, reply: Reply) {
        self.draft = None;
        if !matches!(self.state, State::Failed(_)) {
            self.state = State::Failed(reply);
        }
    }

    /// The content is complete. What follows from that is done, up to the hop's first reply.
    pub async fn conclude(
        mut self,
        session: &Session,
        transaction: &mut Transaction,
        bare_line_ends: bool,
    ) -> Concluded {
        let last_dot = Instant::now();
        let verdict = self.content.finish().await.unwrap_or_else(|unfinished| {
            self.fail(unfinished.reply());
            Verdict::default()
        });
        if bare_line_ends && self.listener.bare_line_ends == BareLineEnds::Refuse {
            self.fail(Reply::new(521, (5, 5, 2), "Bare CR or LF in the message"));
        }
        let action = self.decide(&verdict);
        if action < Action::Blank {
            self.content.spare();
        }
        let nature = match self.content.held.sent() {
            0 => Nature::of(self.content.held.pieces()),
            _ => Nature::default(),
        };
        let mut replies = self.act(session, transaction, &verdict, action).await;
        replies.iter_mut().for_each(|reply| message::sign(reply, &self.id));
        Concluded { intake: self, verdict, action, nature, replies, last_dot }
    }

    /// An infected mail counts against who has sent it.
    fn count_infected(&self, session: &Session, verdict: &Verdict) {
        let infected = verdict.findings.iter().any(|spotted| spotted.finding.class == Class::Match);
        if infected && session.door.gate.infected(&self.listener, session.client.ip(), Instant::now()) {
            session.edge.site.borrow().metrics.clients_infectious_total.add(1);
            tracing::warn!(id = self.id, client = %session.client.ip(), "too many infected mails, told to come later");
        }
    }

    /// What can still be done of what the findings ask for.
    fn decide(&self, verdict: &Verdict) -> Action {
        let streaming = self.content.held.sent() > 0 || matches!(self.state, State::Streaming);
        match verdict.action {
            Action::Quarantine if self.draft.is_some() => Action::Quarantine,
            // Not all of it has gone to the hop.
            _ if matches!(self.state, State::Aside) => Action::Reject,
            Action::Blank if self.content.is_late() || !verdict.blankable => Action::Reject,
            // What is kept is kept whole. Without a draft this is a message that failed.
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
        let leases = &session.leases;
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
            Ok(replies) => replies,
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
        let count = self.content.held.len();
        send(&mut self.content.held, count, hop).await?;
        Ok(vec![hop.commit().await])
    }

    fn refusal(&self, verdict: &Verdict) -> Reply {
        let found = verdict.reason(&self.policy).map_or_else(|| "content".to_string(), message::describe);
        Reply::with_text(554, (5, 7, 1), self.listener.refusal().words(&found, &self.id))
    }

    async fn quarantine(&mut self, session: &Session, transaction: &Transaction, verdict: &Verdict) -> Reply {
        let folder = self.listener.quarantine.as_ref().expect("checked with the configuration");
        let facts = Facts {
            format: crate::quarantine::FORMAT,
            id: self.id.clone(),
            date: crate::quarantine::now(),
            client: session.client.ip(),
            hello: session.hello.clone(),
            listener: session.door.address.to_string(),
            hop: self.listener.forward.to_string(),
            mailbox: None,
            envelope: Envelope::new(&transaction.mail, &transaction.recipients),
            trace: self.header.clone(),
            found: verdict.findings.iter().map(message::describe).collect(),
            releases: Vec::new(),
            trained: Vec::new(),
        };
        let kept = match self.draft.take() {
            Some(draft) => draft.keep(&facts).await,
            None => quarantine::keep(folder, &facts, self.content.held.pieces()).await,
        };
        match kept {
            Ok(()) => Reply::with_text(250, (2, 0, 0), format!("Held back (id {})", self.id)),
            Err(error) => {
                tracing::error!(id = self.id, folder = %folder.display(), %error, "cannot write to the quarantine");
                Reply::new(451, (4, 3, 0), "Cannot store the message now")
            }
        }
    }

    /// Tells those who are to be told, in the background.
    fn notify(&self, session: &Session, transaction: &Transaction, verdict: &Verdict, action: Action, nature: Nature) {
        let site = session.edge.site.borrow().clone();
        let asked =
            |spotted: &&Spotted| action != Action::Blank || self.policy.action(spotted.finding.class) == Action::Blank;
        let incident = Incident {
            hostname: &site.config.hostname,
            id: &self.id,
            client: session.client.ip(),
            sender: &transaction.mail.path,
            recipients: &transaction.recipients,
            action,
            found: &verdict.findings.iter().filter(asked).map(message::describe).collect::<Vec<_>>(),
            nature,
        };
        let (due, suppressed) = site.notices.due(&incident, Instant::now());
        site.metrics.notices_suppressed_total.add(suppressed);
        if due.is_empty() {
            return;
        }
        let (leases, door, id) = (session.leases.of_nobody(), session.door.clone(), self.id.clone());
        tokio::task::spawn_local(async move {
            let hostname = &site.config.hostname;
            let peer = Peer { address: [127, 0, 0, 1].into(), port: 0, hello: hostname, xforward: &[], lmtp: false };
            for Notice { rcpt, text } in due {
                let null = MailFrom { smtputf8: rcpt.path.needs_utf8(), ..MailFrom::default() };
                let leased = Hop::lease(&door.route, hostname, &leases, &null, &rcpt, &peer).await;
                let reply = send_notice(leased, &text, &leases).await;
                if reply.is_positive() {
                    site.metrics.notices_sent_total.add(1);
                } else {
                    tracing::error!(id, to = %rcpt.path, %reply, "somebody could not be told");
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
        metrics.content_bytes_total.add(self.content.received());
        metrics.inspect_microseconds_total.add(self.content.inspecting().as_micros() as u64);
        metrics.after_end_microseconds_total.add(last_dot.elapsed().as_micros() as u64);
        let streamed = self.content.held.sent() > 0 && matches!(self.state, State::Streaming);
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
            bytes = self.content.received(),
            objects = verdict.objects,
            action = action.name(),
            rule = transaction.rule.map(|rule| rule as u64 + 1),
            found = found.join("; "),
            reply = replies.iter().map(Reply::to_string).collect::<Vec<_>>().join("; "),
            streamed,
            inspect_us = self.content.inspecting().as_micros() as u64,
            after_dot_us = last_dot.elapsed().as_micros() as u64,
            ms = self.started.elapsed().as_millis() as u64,
            "message"
        );
    }
}

/// A message whose content has ended, while its hop answers.
pub struct Concluded {
    intake: Intake,
    verdict: Verdict,
    action: Action,
    nature: Nature,
    replies: Vec<Reply>,
    last_dot: Instant,
}

impl Concluded {
    /// The replies for the client that are here: one for all, or one for each recipient in their order.
    pub fn replies(&self) -> &[Reply] {
        &self.replies
    }

    /// Waits for the hop's next reply; whether there was one to come.
    pub async fn another(&mut self, transaction: &mut Transaction) -> bool {
        let Some(hop) = &mut transaction.hop else { return false };
        let Some(mut reply) = hop.another().await else { return false };
        message::sign(&mut reply, &self.intake.id);
        self.replies.push(reply);
        true
    }

    /// All replies are here: gives back the hop, and tells whoever is to be told.
    pub fn settle(self, session: &Session, transaction: &mut Transaction) {
        let Concluded { intake, verdict, action, nature, replies, last_dot } = self;
        if let Some(hop) = transaction.hop.take() {
            hop.release(&session.leases);
        }
        if action == Action::Reject || replies.iter().any(Reply::is_positive) {
            intake.notify(session, transaction, &verdict, action, nature);
        }
        intake.record(session, transaction, &verdict, action, &replies, last_dot);
        if action != Action::Pass {
            intake.count_infected(session, &verdict);
        }
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
    let reply = hop.commit().await;
    hop.release(leases);
    reply
}
