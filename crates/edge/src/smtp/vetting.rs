//! A session of a client that has to earn trust: what is waited for, asked, counted and answered before there is work for it.
//!
//! ```text
//!  connect ─► the lists are asked ─► the first line of the greeting ─ wait ─► the rest ─► commands ─► RCPT: the score
//!     └─ turned away, or too many              └─ speaks already: counts          └─ errors: the answers come late
//! ```
//!
//! Nothing here ends in a reconnection: who has passed goes on in the same session. It holds a box of a few hundred bytes, and
//! a session that waits holds a timer besides.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use proto::smtp::{Faults, Reply};
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot::Receiver;
use tokio::time::{Instant, timeout, timeout_at};

use crate::metrics::{Count, Metrics};
use crate::net::listening::network_address;
use crate::net::stream::Stream;
use crate::porch::runtime::Runtime;
use crate::settings::Listener;
use crate::trust::access::Right;
use crate::trust::clients::{Arrival, Recipient, Who};
use crate::trust::limit::Limit;
use crate::trust::reputation::{Opinion, Seen};
use crate::trust::score::{Score, Standing, Test};
use crate::trust::tarpit;
use crate::trust::warden::Warden;

/// How long a client may take to take the first line of the greeting.
const TEASER_WAIT: Duration = Duration::from_secs(60);

/// State of a client that has to earn trust.
pub struct Vetting {
    warden: Arc<Warden>,
    metrics: Arc<Metrics>,
    client: IpAddr,
    who: Who,
    arrival: Arrival,
    score: Score,
    /// The lists have been asked, and are waited for until then.
    asked: Option<(Receiver<Opinion>, Instant)>,
    lists: Vec<String>,
    limit: Option<Limit>,
    /// Errors whose answers have waited.
    errors: u32,
    slowed: Duration,
    deferred: u32,
    rejected: u32,
}

impl Vetting {
    /// A client has come. None, if nothing is asked of it.
    ///
    /// # Errors
    /// What it is told before the connection is closed: it may not come, or there are too many like it.
    pub fn begin(runtime: &Runtime, listener: &Listener, client: SocketAddr) -> Result<Option<Box<Vetting>>, Reply> {
        let Some(address) = network_address(client).filter(|&address| listener.tests(address)) else { return Ok(None) };
        let (warden, metrics) = (&runtime.warden, &runtime.metrics);
        match warden.access.right(address) {
            Some(Right::Permit) => return Ok(None),
            Some(Right::Reject) => {
                metrics.sessions_refused_total.add(1);
                tracing::info!(client = %address, "client refused by trust.reject");
                return Err(Reply::new(554, (5, 7, 1), "Access denied"));
            }
            None => {}
        }
        let who = Who::new(&warden.settings, address, listener.guests.bits_of(address));
        let arrived = warden.clients().arrive(&warden.settings, who, warden.now());
        let arrival = arrived.map_err(|limit| {
            metrics.sessions_refused_total.add(1);
            tracing::info!(client = %address, limit = limit.name(), "client refused: limit reached");
            limit.reply()
        })?;
        let until = Instant::now() + Duration::from_millis(warden.settings.dnsbl.wait_ms);
        Ok(Some(Box::new(Vetting {
            asked: warden.ask(address).map(|ticket| (ticket, until)),
            warden: warden.clone(),
            metrics: metrics.clone(),
            client: address,
            who,
            arrival,
            score: Score::default(),
            lists: Vec::new(),
            limit: None,
            errors: 0,
            slowed: Duration::ZERO,
            deferred: 0,
            rejected: 0,
        })))
    }

    /// Has a client of which nothing is known wait for its greeting, whose first line it gets: one that speaks now does not
    /// listen. What it says stands in `input`.
    ///
    /// # Errors
    /// When it has gone.
    pub async fn greet(&mut self, stream: &mut Stream, input: &mut Vec<u8>, hostname: &str) -> io::Result<()> {
        let wait = Duration::from_millis(self.warden.settings.greet_wait_ms);
        if self.arrival == Arrival::Known || wait.is_zero() {
            return Ok(());
        }
        let teaser = format!("220-{hostname} ESMTP Sluice\r\n");
        timeout(TEASER_WAIT, stream.write_all(teaser.as_bytes())).await??;
        timeout(TEASER_WAIT, stream.flush()).await??;
        match timeout(wait, stream.append(input)).await {
            Err(_) => self.warden.clients().passed(&self.warden.settings, self.who, self.warden.now()),
            Ok(Ok(1..)) => self.fail(Test::Pregreet, self.warden.settings.scores.pregreet),
            Ok(outcome) => {
                outcome?;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Scores protocol faults that no mail server makes.
    pub fn observe(&mut self, faults: Faults) {
        let scores = &self.warden.settings.scores;
        let (pipelining, bare_newline) = (scores.pipelining, scores.bare_newline);
        if faults.pipelining {
            self.fail(Test::Pipelining, pipelining);
        }
        if faults.bare_newline {
            self.fail(Test::BareNewline, bare_newline);
        }
        if faults.foreign {
            self.fail(Test::NonSmtp, 0);
        }
    }

    fn fail(&mut self, test: Test, points: i32) {
        if self.score.add(test, points) {
            counter(&self.metrics, test).add(1);
        }
    }

    /// The client begins a message; returns the reply that refuses it, if any.
    pub fn message(&mut self) -> Option<Reply> {
        let begun = self.warden.clients().message(&self.warden.settings, self.who, self.warden.now());
        begun.err().map(|limit| self.defer(limit))
    }

    /// It names a recipient: what it is told, if nobody else is to be asked. Waits for the lists, if their time is not over.
    pub async fn recipient(&mut self) -> Option<Reply> {
        self.hear().await;
        match self.score.standing(&self.warden.settings.scores) {
            Standing::Rejected => {
                self.rejected += 1;
                self.metrics.trust_rejected_total.add(1);
                return Some(Reply::with_text(550, (5, 7, 1), format!("Refused: your address {}", self.client)));
            }
            Standing::Deferred => {
                self.deferred += 1;
                self.metrics.trust_deferred_total.add(1);
                return Some(Reply::new(450, (4, 7, 1), "Try again later"));
            }
            Standing::Fine => {}
        }
        let named = self.warden.clients().recipient(&self.warden.settings, self.who, self.warden.now());
        named.err().map(|limit| self.defer(limit))
    }

    fn defer(&mut self, limit: Limit) -> Reply {
        self.limit = Some(limit);
        self.deferred += 1;
        self.metrics.trust_deferred_total.add(1);
        limit.reply()
    }

    /// Waits for the lists. Answers that come too late do not count.
    async fn hear(&mut self) {
        let Some((ticket, until)) = self.asked.take() else { return };
        let Ok(Ok(opinion)) = timeout_at(until, ticket).await else {
            self.metrics.trust_lists_late_total.add(1);
            return;
        };
        self.lists = opinion.lists;
        if opinion.score != 0 {
            self.fail(Test::Listed, opinion.score);
        }
    }

    /// Counts the answer about a recipient.
    pub fn answered(&mut self, reply: &Reply) {
        let recipient = match (reply.is_positive(), reply.enhanced, reply.code) {
            (true, ..) => Recipient::Known,
            (_, Some((5, 1, 1 | 2 | 3 | 6)), _) | (_, None, 550 | 551 | 553) => Recipient::Unknown,
            // A refusal of whatever else says nothing of who tries out what.
            _ => return,
        };
        let now = self.warden.now();
        if self.warden.clients().answered(&self.warden.settings, self.who, recipient, now) {
            self.metrics.trust_harvesters_total.add(1);
            tracing::warn!(client = %self.client, "address harvesting suspected, client deferred");
            self.note(Seen::Harvest);
        }
    }

    /// A message of its own was taken, and nothing was found in it.
    pub fn accepted(&mut self) {
        self.warden.clients().accepted(&self.warden.settings, self.who, self.warden.now());
        self.note(Seen::Trust);
    }

    /// Takes note of what was seen of it.
    pub fn note(&self, seen: Seen) {
        if let Some(reputation) = &self.warden.reputation {
            reputation.note(self.client, seen);
        }
    }

    /// Whether there are more errors than those whose answers have waited. A mail that is taken begins the count anew.
    pub fn is_behind(&mut self, errors: u32) -> bool {
        self.errors = self.errors.min(errors);
        self.errors < errors
    }

    /// Has the answer to an error wait, the longer the more there are; `errors` is how many there are.
    pub async fn slow_down(&mut self, errors: u32) {
        self.errors = errors;
        let settings = &self.warden.settings.tarpit;
        let delay = tarpit::delay(settings, errors);
        if delay.is_zero() {
            return;
        }
        let Some(_waiting) = self.warden.tarpit.wait(settings.sessions_max) else { return };
        self.metrics.trust_slowed_total.add(1);
        self.slowed += delay;
        tokio::time::sleep(delay).await;
    }
}

/// The session has ended: it makes room for another of its prefix, and what has stood against it is told in one line.
impl Drop for Vetting {
    fn drop(&mut self) {
        self.warden.clients().leave(self.who);
        if self.score.is_clean() && self.limit.is_none() && self.slowed.is_zero() {
            return;
        }
        tracing::info!(
            client = %self.client,
            failed = %self.score,
            score = self.score.sum(),
            lists = self.lists.join(","),
            limit = self.limit.map(Limit::name),
            deferred = self.deferred,
            rejected = self.rejected,
            slowed_ms = self.slowed.as_millis() as u64,
            "trust"
        );
    }
}

fn counter(metrics: &Metrics, test: Test) -> &Count {
    match test {
        Test::Pregreet => &metrics.trust_pregreet_total,
        Test::Pipelining => &metrics.trust_pipelining_total,
        Test::BareNewline => &metrics.trust_bare_newline_total,
        Test::NonSmtp => &metrics.trust_non_smtp_total,
        Test::Listed => &metrics.trust_listed_total,
    }
}
