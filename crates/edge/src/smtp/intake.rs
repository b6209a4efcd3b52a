//! A mail on its way from a client to the next hop.
//!
//! ```text
//!   Held ── the window is used up ──► Begun ── end of content ──► Concluded ── the hop's replies ──► settled
//!     │                                 │                             ▲
//!     │ it cannot be delivered          ▼                             │
//!     └────────────────────────────► Failed ── read to its end ───────┤
//!     └── end of content ─────────────────────────────────────────────┘
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use flow::{
    Action, Capabilities, Disposition, Flow, Hold, Policy, Protocol as Speaks, Score, Scoring, Spotted, State, Terms,
    Verdict, Wants,
};
use proto::smtp::{MailFrom, RcptTo, Reply};
use stream::{Class, Finding};

use super::client::Client;
use crate::message::authenticity;
use crate::message::greylist::{Transaction, greylisted};
use crate::message::journal;
use crate::message::notice::{Incident, Nature, Notice};
use crate::message::passage::{Asked, Passage, try_again};
use crate::message::pool::Pool;
use crate::message::preferences;
use crate::message::spam;
use crate::message::trace::{self, Origin};
use crate::net::stream::Cipher;
use crate::porch::runtime::Runtime;
use crate::quarantine::Facts;
use crate::settings::{BareLineEnds, Protocol, Ruling, Spam};
use crate::trust::reputation::Seen;
use crate::upstream::hop::Hop;
use crate::upstream::smtp_hop::Leases;
use crate::upstream::smtp_hop::Peer;

/// From whom and for whom a mail is.
pub struct Envelope {
    /// The mail's name.
    pub id: String,
    /// From whom.
    pub mail: MailFrom,
    /// For whom; those that the hop has taken.
    pub recipients: Vec<RcptTo>,
    /// The rule that holds for all of them.
    pub rule: Option<usize>,
    /// The client's mail is relayed to any recipient.
    pub inside: bool,
}

/// A mail whose content comes.
pub struct Intake {
    mail: Mail,
    hop: Hop,
    stage: Stage,
}

/// Facts about a mail, and its progress.
struct Mail {
    envelope: Envelope,
    passage: Passage,
    runtime: Arc<Runtime>,
    client: IpAddr,
    door: Protocol,
    cipher: Option<Cipher>,
    /// The `Received` field, where one is added.
    trace: String,
    ruling: Arc<Ruling>,
}

/// How far the hop is with it.
enum Stage {
    /// It has heard nothing of the content.
    Held,
    /// Content goes there.
    Begun,
    /// It cannot be delivered; this is the reply.
    Failed(Reply),
}

impl Intake {
    /// A mail of this client, for this hop.
    pub async fn new(runtime: Arc<Runtime>, client: &Client, envelope: Envelope, hop: Hop) -> Intake {
        let listener = &client.door.listener;
        let ruling = client.door.rulings.under(envelope.rule);
        let with = match (listener.protocol(), client.extended, client.cipher.is_some()) {
            (Protocol::Lmtp, _, false) => "LMTP",
            (Protocol::Lmtp, _, true) => "LMTPS",
            (_, _, true) if client.leases.logged_in => "ESMTPSA",
            (_, _, true) => "ESMTPS",
            (_, true, false) if client.leases.logged_in => "ESMTPA",
            (_, true, false) => "ESMTP",
            (_, false, false) => "SMTP",
        };
        let (hello, address) = (client.hello.as_str(), client.address.ip());
        let origin = Origin { hello, address, with, hostname: &runtime.settings.hostname, id: &envelope.id };
        let mut trace = if client.settings.received { trace::received(&origin) } else { String::new() };
        if ruling.virus_scanned {
            // It arrives only if all of it was inspected.
            trace += &format!("{}: {}\r\n", trace::SCANNED, trace::scanned(&runtime.settings.hostname));
        }
        let size = envelope.mail.size;
        let flow = flow(client, &envelope);
        let recipients: Vec<&str> = flow.recipients.iter().map(|to| &**to).collect();
        let preferences = preferences::find(ruling.spam.as_ref(), &recipients).await;
        let scoring = ruling.spam.as_ref().map(|spam| Scoring {
            preferences,
            trace: trace::for_rules(envelope.mail.path.as_str(), &origin),
            ..spam.scoring.clone()
        });
        let head_window = window(&ruling, size, runtime.settings.head_window_bytes);
        // What will not fit need not wait, unless there is something to be done with it that needs the whole.
        let is_large = size.is_some_and(|bytes| bytes > head_window as u64);
        let streams = is_large && ruling.policy.only_rejects();
        let authentication = ruling.authentication.as_ref();
        let asked = Asked {
            authenticating: authentication.and_then(|settings| authenticity::asked(settings, &flow)),
            flow,
            terms: Terms { window_bytes: head_window, ..Terms::default() },
            wants: Wants {
                fields: Nature::FIELDS.into(),
                forged: spam::forged(marks(&ruling)),
                authserv_id: authentication.map(|settings| settings.authserv_id.clone()),
                ..Wants::default()
            },
            scoring,
            heaviest: Action::Blank,
            ..Asked::default()
        };
        let mut passage = Passage::mail(&runtime.means, &envelope.id, ruling.clone(), asked);
        if streams {
            passage.stream();
        }
        let mail = Mail {
            envelope,
            passage,
            runtime,
            client: address,
            door: listener.protocol(),
            cipher: client.cipher,
            trace,
            ruling,
        };
        Intake { mail, hop, stage: Stage::Held }
    }

    /// Takes more content. The inspection may lag behind: what is cleared goes on with the next piece, when there is no room
    /// for that, or when it [catches up](Intake::catch_up).
    pub async fn take(&mut self, content: &[u8]) {
        if !self.mail.passage.hold().has_room(content.len()) {
            self.catch_up().await;
            self.hand_on().await;
        }
        let piece_bytes = self.mail.passage.hold().piece_bytes(content.len());
        for piece in content.chunks(piece_bytes.max(1)) {
            self.take_piece(piece, piece.len() == content.len()).await;
        }
    }

    /// Whether it lags behind.
    pub fn lags(&self) -> bool {
        self.mail.passage.lags()
    }

    /// Waits until the inspection has caught up: then there is something to [hand on](Intake::hand_on). May be dropped, and asked
    /// for again.
    pub async fn catch_up(&mut self) {
        self.mail.passage.catch_up().await;
    }

    async fn take_piece(&mut self, piece: &[u8], may_lag: bool) {
        let passage = &mut self.mail.passage;
        let most = passage.ruling().message_bytes_max;
        if most > 0 && passage.received() + piece.len() as u64 > most {
            self.fail(Reply::new(552, (5, 3, 4), "Message too large"));
        }
        self.mail.passage.take(piece, may_lag).await;
        self.hand_on().await;
    }

    /// Hands on what is cleared, all but the tail.
    pub async fn hand_on(&mut self) {
        if let Some(unfinished) = self.mail.passage.lost() {
            self.fail(try_again(unfinished));
        }
        if self.mail.passage.state() == State::Streaming
            && let Err(reply) = self.send_cleared().await
        {
            self.fail(reply);
        }
    }

    async fn send_cleared(&mut self) -> Result<(), Reply> {
        if self.mail.passage.is_hopeless() {
            return Err(Reply::new(554, (5, 7, 1), "Message refused"));
        }
        if matches!(self.stage, Stage::Held) {
            self.hop.begin().await?;
            self.hop.write(self.mail.trace.as_bytes()).await?;
            self.stage = Stage::Begun;
        }
        let hold = self.mail.passage.hold();
        let count = hold.sendable(false);
        send(hold, count, &mut self.hop).await
    }

    /// Sends what was handed on and waits for company: to be called before the client is waited for.
    pub async fn flush(&mut self) {
        if matches!(self.stage, Stage::Begun)
            && let Err(reply) = self.hop.flush().await
        {
            self.fail(reply);
        }
    }

    fn fail(&mut self, reply: Reply) {
        self.mail.passage.drain();
        if !matches!(self.stage, Stage::Failed(_)) {
            self.stage = Stage::Failed(reply);
        }
    }

    /// Drops the mail before its end.
    pub async fn abandon(self, leases: &Leases) {
        self.hop.abandon(leases).await;
    }

    /// The content is complete. What follows from that is done, up to the hop's first reply.
    pub async fn conclude(mut self, client: &Client, bare_line_ends: bool) -> Concluded {
        let last_dot = Instant::now();
        let verdict = self.mail.passage.finish().await.unwrap_or_else(|unfinished| {
            self.fail(try_again(unfinished));
            Verdict::default()
        });
        if bare_line_ends && client.settings.bare_line_ends == BareLineEnds::Refuse {
            self.fail(Reply::new(521, (5, 5, 2), "Bare CR or LF in the message"));
        }
        let disposition = Disposition::of(&verdict, &self.capabilities());
        self.mail.passage.settle(disposition, &verdict);
        let Intake { mut mail, mut hop, stage } = self;
        let again = !matches!(stage, Stage::Failed(_)) && mail.is_to_come_again(client, disposition, &verdict).await;
        let refusal = match (disposition, &stage) {
            (Disposition::Reject, _) => Some(Reply::with_text(554, (5, 7, 1), mail.passage.refusal(&verdict))),
            _ if again => Some(greylisted()),
            (Disposition::Quarantine, _) => Some(mail.keep(client, &verdict).await),
            (_, Stage::Failed(reply)) => Some(reply.clone()),
            _ => None,
        };
        let reply = match refusal {
            Some(refusal) => Err(refusal),
            None => mail.deliver(&mut hop, &stage, disposition, &verdict).await,
        };
        let (mut reply, hop) = match reply {
            Ok(reply) => (reply, Some(hop)),
            Err(refusal) => {
                hop.abandon(&client.leases).await;
                (refusal, None)
            }
        };
        trace::sign(&mut reply, &mail.envelope.id);
        Concluded { mail, hop, verdict, disposition, replies: vec![reply], last_dot }
    }

    /// Actions still possible.
    fn capabilities(&self) -> Capabilities {
        let passage = &self.mail.passage;
        let able = passage.capabilities();
        let late_tag = passage.ruling().on_late_tag;
        match self.stage {
            // The reply is there already. Only what is worse than that counts.
            Stage::Failed(_) => {
                Capabilities { pass: true, tag: true, blank: true, blank_whole: true, late_tag, quarantine: false }
            }
            _ => Capabilities { late_tag, blank_whole: false, ..able },
        }
    }
}

impl Mail {
    /// Whether it has to come again: one that is not refused for good, of a stranger, who will know how.
    async fn is_to_come_again(&self, client: &Client, disposition: Disposition, verdict: &Verdict) -> bool {
        let is_strange = client.door.listener.protocol() == Protocol::Smtp && !client.leases.logged_in;
        // What was found in it is dealt with at once.
        let is_open = disposition != Disposition::Reject && verdict.findings.is_empty();
        let recipients = self.recipients();
        is_strange && is_open && self.passage.is_to_come_again(verdict, &self.transaction(&recipients)).await
    }

    fn recipients(&self) -> Vec<&str> {
        self.envelope.recipients.iter().map(|rcpt| rcpt.path.as_str()).collect()
    }

    fn transaction<'m>(&'m self, recipients: &'m [&'m str]) -> Transaction<'m> {
        Transaction { client: self.client, sender: self.envelope.mail.path.as_str(), recipients }
    }

    /// Hands on the rest of the message, and waits for the hop's reply.
    async fn deliver(
        &mut self,
        hop: &mut Hop,
        stage: &Stage,
        disposition: Disposition,
        verdict: &Verdict,
    ) -> Result<Reply, Reply> {
        if matches!(stage, Stage::Held) {
            hop.begin().await?;
            if let Some(field) = authenticity::field(self.ruling.authentication.as_ref(), verdict) {
                hop.write(field.as_bytes()).await?;
            }
            hop.write(self.trace.as_bytes()).await?;
            if disposition == Disposition::Tag {
                hop.write(trace::status(verdict).as_bytes()).await?;
            }
            self.mark(hop, verdict).await?;
        }
        let hold = self.passage.hold();
        let count = hold.held();
        send(hold, count, hop).await?;
        Ok(hop.commit().await)
    }

    /// Applies the score to the header, before anything of the mail has gone on.
    async fn mark(&mut self, hop: &mut Hop, verdict: &Verdict) -> Result<(), Reply> {
        let ruling = self.ruling.clone();
        let Some((spam, score)) = ruling.spam.as_ref().zip(verdict.score.as_ref()) else { return Ok(()) };
        hop.write(spam::header(spam, score).as_bytes()).await?;
        if let Some((at, tag)) = spam::subject(spam, score) {
            let hold = self.passage.hold();
            let count = usize::try_from(at).unwrap_or(usize::MAX).min(hold.held());
            send(hold, count, hop).await?;
            hop.write(tag.as_bytes()).await?;
        }
        Ok(())
    }

    async fn keep(&mut self, client: &Client, verdict: &Verdict) -> Reply {
        let facts = Facts {
            hello: client.hello.clone(),
            inside: self.envelope.inside,
            account: client.account().map(String::from),
            envelope: crate::quarantine::Envelope::new(&self.envelope.mail, &self.envelope.recipients),
            trace: self.trace.clone(),
            ..journal::facts(&self.envelope.id, self.client, client.door.way(), verdict)
        };
        match self.passage.keep(&facts).await {
            Ok(()) => Reply::with_text(250, (2, 0, 0), format!("Held back (id {})", self.envelope.id)),
            Err(_) => Reply::new(451, (4, 3, 0), "Cannot store the message now"),
        }
    }

    /// An infected mail counts against who has sent it.
    fn count_infected(&self, client: &Client, verdict: &Verdict) {
        if is_infected(verdict, &self.passage.ruling().policy)
            && client.door.gate.infected(&client.door.listener, self.client, Instant::now())
        {
            self.runtime.metrics.clients_infectious_total.add(1);
            tracing::warn!(id = self.envelope.id, client = %self.client, "too many infected messages, client deferred");
        }
    }

    /// Notifies those who are to know, in the background.
    fn notify(&self, client: &Client, verdict: &Verdict, action: Action) {
        let (runtime, id) = (self.runtime.clone(), self.envelope.id.clone());
        let policy = &self.passage.ruling().policy;
        // Nobody is told of each spam.
        if verdict.findings.is_empty() {
            return;
        }
        let asked = |spotted: &&Spotted| action != Action::Blank || policy.action(&spotted.finding) == Action::Blank;
        let incident = Incident {
            hostname: &runtime.settings.hostname,
            id: &id,
            client: self.client,
            sender: &self.envelope.mail.path,
            recipients: &self.envelope.recipients,
            action,
            found: &verdict.findings.iter().filter(asked).map(trace::describe).collect::<Vec<_>>(),
            nature: Nature::of(self.passage.fields()),
        };
        let (due, suppressed) = runtime.notices.due(&incident, Instant::now());
        runtime.metrics.notices_suppressed_total.add(suppressed);
        if due.is_empty() {
            return;
        }
        let (leases, door) = (client.leases.of_nobody(), client.door.clone());
        tokio::task::spawn_local(async move {
            let hostname = &runtime.settings.hostname;
            let peer = Peer { address: [127, 0, 0, 1].into(), port: 0, hello: hostname, xforward: &[], lmtp: false };
            for Notice { rcpt, text } in due {
                let null = MailFrom { smtputf8: rcpt.path.needs_utf8(), ..MailFrom::default() };
                let leased = Hop::lease(&door.route, hostname, &leases, &null, &rcpt, &peer).await;
                let reply = send_notice(leased, &text, &leases).await;
                if reply.is_positive() {
                    runtime.metrics.notices_sent_total.add(1);
                } else {
                    tracing::error!(id, to = %rcpt.path, %reply, "notification not delivered");
                }
            }
        });
    }

    /// One line in the log, and the metrics.
    fn record(&self, verdict: &Verdict, action: Action, replies: &[Reply], last_dot: Instant) {
        let (passage, envelope) = (&self.passage, &self.envelope);
        let taken = replies.iter().any(Reply::is_positive);
        journal::count(&self.runtime.metrics, passage, action, taken);
        journal::count_score(&self.runtime.metrics, passage, verdict);
        journal::count_sender(&self.runtime.means, verdict);
        if passage.is_streamed() && authenticity::field(self.ruling.authentication.as_ref(), verdict).is_some() {
            self.runtime.metrics.authentication_unmarked_total.add(1);
        }
        if verdict.score.is_some() && passage.is_streamed() && marks(&self.ruling) {
            self.runtime.metrics.spam_unmarked_total.add(1);
        }
        self.runtime.metrics.after_end_seconds.add(last_dot.elapsed().as_micros() as u64);
        let to = self.recipients();
        tracing::info!(
            id = envelope.id,
            message_id = passage.message_id(),
            door = self.door.name(),
            client = %self.client,
            tls = self.cipher.map(|cipher| cipher.to_string()),
            from = trace::address(envelope.mail.path.as_str()),
            to = to.join(","),
            envid = envelope.mail.envid.as_deref(),
            bytes = passage.received(),
            objects = verdict.objects,
            action = action.name(),
            rule = envelope.rule.map(|rule| rule as u64 + 1),
            found = journal::found(verdict),
            sender = authenticity::results(verdict),
            policy = authenticity::reason(verdict),
            score = spam::points(verdict),
            spam = verdict.score.as_ref().map(Score::is_spam),
            hits = spam::hits(verdict),
            reply = replies.iter().map(Reply::to_string).collect::<Vec<_>>().join("; "),
            streamed = passage.is_streamed(),
            inspect_us = passage.inspect_time().as_micros() as u64,
            after_end_us = last_dot.elapsed().as_micros() as u64,
            ms = passage.age().as_millis() as u64,
            "message"
        );
    }
}

/// A mail whose content has ended, while its hop answers.
pub struct Concluded {
    mail: Mail,
    /// The hop that has it; none where it was refused.
    hop: Option<Hop>,
    verdict: Verdict,
    disposition: Disposition,
    replies: Vec<Reply>,
    last_dot: Instant,
}

impl Concluded {
    /// The replies for the client that are here: one for all, or one for each recipient in their order.
    pub fn replies(&self) -> &[Reply] {
        &self.replies
    }

    /// Whether the next reply will have to be waited for.
    pub fn is_late(&self) -> bool {
        self.hop.as_ref().is_some_and(Hop::is_late)
    }

    /// Waits for the hop's next reply; whether there was one to come.
    pub async fn another(&mut self) -> bool {
        let Some(hop) = &mut self.hop else { return false };
        let Some(mut reply) = hop.another().await else { return false };
        trace::sign(&mut reply, &self.mail.envelope.id);
        self.replies.push(reply);
        true
    }

    /// Event of the client for its reputation; none for mail that was refused for another reason.
    pub fn seen(&self) -> Option<Seen> {
        if is_infected(&self.verdict, &self.mail.passage.ruling().policy) {
            return Some(Seen::Infected);
        }
        if self.verdict.is_spam() {
            return Some(Seen::Spam);
        }
        let is_taken = self.disposition.action() == Action::Pass && self.replies.iter().any(Reply::is_positive);
        is_taken.then_some(Seen::Trust)
    }

    /// All replies are here: gives back the hop, and notifies whoever is to know.
    pub fn settle(self, client: &Client) {
        let Concluded { mail, hop, verdict, disposition, replies, last_dot } = self;
        if let Some(hop) = hop {
            hop.release(&client.leases);
        }
        let action = disposition.action();
        if action == Action::Reject || replies.iter().any(Reply::is_positive) {
            mail.notify(client, &verdict, action);
        }
        mail.record(&verdict, action, &replies, last_dot);
        if action == Action::Pass && replies.iter().any(Reply::is_positive) {
            mail.passage.vouch(&verdict, &mail.transaction(&mail.recipients()));
        }
        if action != Action::Pass {
            mail.count_infected(client, &verdict);
        }
    }
}

/// Whether the header of a mail changes by its score.
fn marks(ruling: &Ruling) -> bool {
    ruling.spam.as_ref().is_some_and(Spam::marks)
}

/// Size of the head window of a mail. A mail whose header changes by its score or its sender is held whole, if it is not
/// too large.
fn window(ruling: &Ruling, size: Option<u64>, head_window: usize) -> usize {
    let spam = ruling.spam.as_ref().filter(|spam| spam.marks()).map(|spam| spam.scoring.bytes_max);
    let sender = ruling.authentication.as_ref().filter(|settings| settings.header).map(|settings| settings.size_max);
    let bounds = [spam, sender].into_iter().flatten().filter(|&most| size.is_none_or(|size| size <= most));
    bounds.map(|most| usize::try_from(most).unwrap_or(usize::MAX)).fold(head_window, usize::max)
}

/// Whether a signature has matched that is taken no less seriously than signatures are.
fn is_infected(verdict: &Verdict, policy: &Policy) -> bool {
    let is_meant = |finding: &Finding| finding.class == Class::Match && policy.action(finding) >= policy.on_infected;
    verdict.findings.iter().any(|spotted| is_meant(&spotted.finding))
}

/// Facts of the mail for the inspection.
fn flow(client: &Client, envelope: &Envelope) -> Flow {
    Flow {
        protocol: if client.door.listener.protocol() == Protocol::Lmtp { Speaks::Lmtp } else { Speaks::Smtp },
        client: Some(client.address.ip()),
        hello: client.hello.as_str().into(),
        encrypted: client.cipher.is_some(),
        login: client.leases.logged_in.then(Box::default),
        sender: envelope.mail.path.as_str().into(),
        recipients: envelope.recipients.iter().map(|rcpt| rcpt.path.as_str().into()).collect(),
    }
}

/// Hands on the first `count` bytes held, with what was marked overwritten.
async fn send(hold: &mut Hold<Pool>, mut count: usize, hop: &mut Hop) -> Result<(), Reply> {
    while count > 0 {
        let gone = hold.left_out(count);
        if gone > 0 {
            hold.forget(gone);
            count -= gone;
            continue;
        }
        let piece = hold.redacted(count);
        let sent = piece.len();
        hop.write(piece).await?;
        hold.forget(sent);
        count -= sent;
    }
    Ok(())
}

async fn send_notice(leased: (Option<Hop>, Reply), text: &str, leases: &crate::upstream::smtp_hop::Leases) -> Reply {
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
