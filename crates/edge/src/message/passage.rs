//! A mail, or another object, on its way through a door: held back and inspected, and copied aside where it may have to be kept. What becomes of
//! it then is the door's to decide.
//!
//! Bounds: those of [`Hold`]; a copy is on the disk.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use flow::{
    Action, Authenticating, Capabilities, Context, Disposition, Field, Flow, Hold, Inspecting, Inspector, Lesson,
    NOBODY, Out, Paging, Parts, Progress, Scoring, State, Terms, Unfinished, Unsearched, Watched,
};
use flow::{Verdict, Wants};
use proto::smtp::Reply;
use stream::Object;
use tokio::time::timeout_at;

use crate::beat;
use crate::message::asking::{Asking, Resolver};
use crate::message::authenticity::{self, Evaluations};
use crate::message::greylist::{self, Transaction};
use crate::message::intrusion::{Guard, Sentinel};
use crate::message::memory::{Memory, Remembering, What};
use crate::message::pool::Pool;
use crate::message::spam;
use crate::message::trace;
use crate::metrics::Metrics;
use crate::quarantine::Facts;
use crate::quarantine::draft::Draft;
use crate::settings::Ruling;

/// How long the verdict may take after the end of the content; later it is a temporary refusal, never a clean.
const VERDICT_WAIT: Duration = Duration::from_secs(120);

/// The field that names a mail everywhere (RFC 5322, section 3.6.4).
const MESSAGE_ID: &str = "message-id";

/// Inspector and tables that inspections use.
#[derive(Clone)]
pub struct Means {
    /// The inspector, with its signatures and bounds.
    pub inspector: Arc<dyn Inspector>,
    /// Passwords that are tried where something is encrypted.
    pub passwords: Arc<[Box<[u8]>]>,
    /// The pool of head windows; one for the whole run.
    pub pool: Pool,
    /// Looks up what inspections ask, where they may.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// Keeps what was learned from mails, where anything does.
    pub memory: Option<Arc<dyn Memory>>,
    /// Hears of intrusion rules that match, where there are any.
    pub sentinel: Option<Arc<dyn Sentinel>>,
    /// Counts evaluations of DMARC, where reports are sent.
    pub evaluations: Option<Arc<dyn Evaluations>>,
    /// The metrics; one set for the whole run.
    pub metrics: Arc<Metrics>,
}

/// Wishes of a door besides its ruling.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Sender and recipients.
    pub flow: Flow,
    /// Facts about an object before it comes; none for a mail.
    pub object: Option<Object>,
    /// Terms of holding back; the policy is the ruling's.
    pub terms: Terms,
    /// Facts wanted of the mail.
    pub wants: Wants,
    /// Scoring wanted.
    pub scoring: Option<Scoring>,
    /// How it is authenticated.
    pub authenticating: Option<Authenticating>,
    /// How it is scored as a web page.
    pub paging: Option<Paging>,
    /// The conversation of the web for intrusion rules; none: they do not look at it, unless it is a mail.
    pub watched: Option<Box<Watched>>,
    /// No signature is searched for: an object of which nothing else is asked is not inspected.
    pub lacks_signatures: bool,
    /// Owner of the learned data to ask; empty: the site.
    pub owner: Box<str>,
    /// Heaviest action possible once something was sent; a mail that needs more is hopeless.
    pub heaviest: Action,
}

/// A mail under way.
pub struct Passage {
    id: String,
    ruling: Arc<Ruling>,
    hold: Hold<Pool>,
    inspecting: Box<dyn Inspecting>,
    asking: Asking,
    remembering: Remembering,
    /// Where intrusion rules look at it.
    guard: Option<Guard>,
    heaviest: Action,
    /// A copy, where the mail is larger than the head window and may have to be kept.
    draft: Option<Draft>,
    /// Whether none is made.
    without_copy: bool,
    fields: Vec<Field>,
    parts: Option<Parts>,
    /// It goes on as it comes, once the fields of its header that are left out are known.
    is_to_stream: bool,
    /// Somebody else inspects, and may not have taken all.
    lags: bool,
    verdict: Option<Verdict>,
    lost: Option<Unfinished>,
    deadline: Option<Instant>,
    inspect_time: Duration,
    started: Instant,
}

impl Passage {
    /// A mail that begins.
    pub fn mail(means: &Means, id: &str, ruling: Arc<Ruling>, asked: Asked) -> Passage {
        let Asked { flow, object, terms, mut wants, scoring, authenticating, paging, watched, .. } = asked;
        let guard = Guard::over(means.sentinel.as_ref(), id, &flow, watched);
        if object.is_none() {
            // The log names it.
            wants.fields.to_mut().push(MESSAGE_ID.into());
        }
        wants.objects |= guard.as_ref().is_some_and(Guard::wants_files);
        let memory = means.memory.clone().filter(|_| scoring.is_some());
        let of_sender = ruling.authentication.as_ref().filter(|_| authenticating.is_some());
        let of_rules = ruling.spam.as_ref().filter(|_| scoring.is_some()).and_then(|spam| spam.wait);
        let wait = of_sender.map(|authentication| authentication.wait).max(of_rules);
        // Nobody asks the DNS for a mail that has nothing to ask.
        let resolver = means.resolver.clone().filter(|_| wait.is_some());
        let context = Context {
            flow,
            policy: ruling.policy.clone(),
            object: object.unwrap_or_else(|| Object { media_type: Some("message/rfc822".into()), ..Object::default() }),
            rules: ruling.attachments.clone(),
            passwords: means.passwords.clone(),
            wants,
            scoring,
            authenticating,
            paging,
            watched: guard.as_ref().map(Guard::watched),
            all_findings: false,
        };
        let inspecting: Box<dyn Inspecting> = match asked.lacks_signatures && !context.asks_for_more() {
            true => Box::new(Unsearched::default()),
            false => means.inspector.open(context),
        };
        let terms = Terms { policy: ruling.policy.clone(), takes_back: means.inspector.takes_back(), ..terms };
        Passage {
            id: id.into(),
            ruling,
            hold: Hold::new(means.pool.clone(), terms),
            inspecting,
            asking: Asking::new(resolver, means.metrics.clone(), wait.unwrap_or_default()),
            remembering: Remembering::new(memory, &asked.owner, means.metrics.clone()),
            guard,
            heaviest: asked.heaviest,
            draft: None,
            without_copy: false,
            fields: Vec::new(),
            parts: None,
            is_to_stream: false,
            lags: false,
            verdict: None,
            lost: None,
            deadline: None,
            inspect_time: Duration::ZERO,
            started: Instant::now(),
        }
    }

    /// The message's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its Message-ID, in printable characters; none where it has none, or the inspection has not seen it.
    pub fn message_id(&self) -> Option<String> {
        let field = self.fields.iter().find(|field| field.name().eq_ignore_ascii_case(MESSAGE_ID.as_bytes()))?;
        Some(trace::printable(String::from_utf8_lossy(field.value()).trim())).filter(|id| !id.is_empty())
    }

    /// Ruling of the mail.
    pub fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    /// The part held back.
    pub fn hold(&mut self) -> &mut Hold<Pool> {
        &mut self.hold
    }

    /// How far it has come.
    pub fn state(&self) -> State {
        self.hold.state()
    }

    /// Bytes that have come in.
    pub fn received(&self) -> u64 {
        self.hold.received()
    }

    /// Time spent in the inspection.
    pub fn inspect_time(&self) -> Duration {
        self.inspect_time
    }

    /// Time since it began.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// The header fields that were asked for.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The parts, if they were asked for; once.
    pub fn parts(&mut self) -> Option<Parts> {
        self.parts.take()
    }

    /// Why there will be no verdict, if that is known already.
    pub fn lost(&self) -> Option<Unfinished> {
        self.lost
    }

    /// It is kept already: no copy is made of what does not fit the window.
    pub fn forgo_copy(&mut self) {
        self.without_copy = true;
    }

    /// Takes more of it, a piece that [`Hold::piece_bytes`] allows. A mail that does not fit the window any more streams from
    /// here on; one of which a copy is wanted, and which cannot go on, is watched.
    /// The inspection may lag behind it where that is said; see [`Passage::catch_up`].
    pub async fn take(&mut self, piece: &[u8], may_lag: bool) {
        if !self.hold.has_room(piece.len()) && self.state() == State::Holding {
            if !self.without_copy {
                self.draft = self.begin_draft().await;
            }
            self.hold.stream();
            self.hold.has_room(piece.len());
        }
        if let Some(draft) = &mut self.draft {
            draft.write(piece).await;
        }
        self.hold.push(piece);
        if self.state() != State::Draining {
            self.inspect(piece, may_lag).await;
        }
        self.watch_if_hopeless();
    }

    fn watch_if_hopeless(&mut self) {
        if self.draft.is_some() && self.is_hopeless() && self.lost.is_none() {
            self.hold.watch();
        }
    }

    /// A copy of what is held, where the mail may have to be kept.
    async fn begin_draft(&self) -> Option<Draft> {
        let folder = self.ruling.quarantine.as_ref()?;
        let mut draft = Draft::begin(folder, &self.id).await;
        for piece in self.hold.pieces() {
            draft.write(piece).await;
        }
        Some(draft)
    }

    /// Whether something that was taken goes on when it is inspected, and may not be yet.
    pub fn lags(&self) -> bool {
        self.lags && self.goes_on() && self.lost.is_none()
    }

    /// Whether it goes on before its end.
    fn goes_on(&self) -> bool {
        self.is_to_stream || self.state() == State::Streaming
    }

    /// Lets it go on as it comes, once the fields of its header that are left out are known.
    pub fn stream(&mut self) {
        self.is_to_stream = true;
    }

    /// Waits until all that was taken is inspected. May be dropped, and asked for again.
    pub async fn catch_up(&mut self) {
        if self.lags() {
            self.work(true).await;
            self.watch_if_hopeless();
        }
    }

    async fn inspect(&mut self, mut bytes: &[u8], may_lag: bool) {
        while !bytes.is_empty() && self.lost.is_none() {
            let taken = self.inspecting.feed(bytes);
            bytes = &bytes[taken..];
            // Nothing can go on while all of it is held.
            let may_lag = may_lag || !self.goes_on();
            self.work(!bytes.is_empty() || !may_lag).await;
        }
    }

    /// Lets the inspection work, in turns with everybody else, and hears what it reports; another process that works on it is
    /// waited for if it is asked for.
    async fn work(&mut self, waits: bool) {
        loop {
            while let Some(answer) = self.asking.take() {
                self.inspecting.answer(answer);
            }
            let turn = Instant::now();
            let progress = self.turn(waits).await;
            self.inspect_time += turn.elapsed();
            self.lags = progress.is_none();
            while let Some(out) = self.inspecting.hear() {
                self.hear(out);
            }
            let is_overdue = self.deadline.is_some_and(|deadline| Instant::now() > deadline);
            match progress {
                Some(Progress::Lost(why)) => return self.lost = Some(why),
                Some(Progress::Tired) if is_overdue => return self.lost = Some(Unfinished::Late),
                Some(Progress::Tired) => tokio::task::yield_now().await,
                Some(Progress::Waiting) if self.answer_one().await => {}
                // It waits for what it has not asked.
                Some(Progress::Waiting) => return self.lost = Some(Unfinished::Gone),
                None | Some(Progress::Hungry | Progress::Stopped | Progress::Done) => return,
            }
        }
    }

    /// Waits for one of the answers that are to come, and hands it in; whether there was one.
    async fn answer_one(&mut self) -> bool {
        tokio::select! {
            biased;
            recalled = self.remembering.next(), if self.remembering.is_open() => {
                self.inspecting.recalled(recalled);
                true
            }
            answer = self.asking.next(), if self.asking.is_open() => {
                let has_one = answer.is_some();
                answer.into_iter().for_each(|answer| self.inspecting.answer(answer));
                has_one
            }
            else => false,
        }
    }

    /// One turn; none if somebody else works, and is not waited for.
    async fn turn(&mut self, waits: bool) -> Option<Progress> {
        if !waits {
            return match beat::turn(|| self.inspecting.poll(&mut std::task::Context::from_waker(NOBODY))) {
                Poll::Ready(progress) => Some(progress),
                Poll::Pending => None,
            };
        }
        let turn = poll_fn(|context| beat::turn(|| self.inspecting.poll(context)));
        let Some(deadline) = self.deadline else { return Some(turn.await) };
        Some(timeout_at(deadline.into(), turn).await.unwrap_or(Progress::Lost(Unfinished::Late)))
    }

    fn hear(&mut self, out: Out) {
        self.hold.hear(&out);
        if matches!(out, Out::Body(_)) && std::mem::take(&mut self.is_to_stream) {
            self.hold.stream();
        }
        match out {
            Out::Finding(spotted) => tracing::debug!(found = trace::describe(&spotted), "found"),
            Out::Field(field) => self.fields.push(field),
            Out::Parts(parts) => self.parts = Some(parts),
            Out::Ask(ask) => self.asking.ask(ask),
            Out::Recall(recall) => self.remembering.ask(recall),
            Out::Verdict(verdict) => self.verdict = Some(verdict),
            Out::Object(report) => self.guard.iter().for_each(|guard| guard.file(&report)),
            Out::Cleared(_) | Out::Body(_) | Out::Forged(_) | Out::Blank(_) => {}
            Out::Alert(alert) => self.alarm(alert),
            Out::Terms(_) | Out::Present => {}
        }
    }

    /// An intrusion rule has matched.
    fn alarm(&mut self, alert: flow::Alert) {
        if let Some(spotted) = self.guard.as_mut().and_then(|guard| guard.hear(alert)) {
            self.hold.hear(&Out::Finding(spotted));
        }
    }

    /// Whether it is known already that what streams will not go on as a whole: no use to send more of it.
    pub fn is_hopeless(&self) -> bool {
        self.state() == State::Streaming && (self.lost.is_some() || self.hold.is_hopeless(self.heaviest))
    }

    /// Actions still possible, for a door that can do all of them.
    pub fn capabilities(&self) -> Capabilities {
        let able = self.hold.capabilities();
        Capabilities { quarantine: able.quarantine || self.draft.is_some(), ..able }
    }

    /// Whether it went on, or was to, before its end.
    pub fn is_streamed(&self) -> bool {
        self.state() == State::Streaming
    }

    /// It will not go on, whatever comes, and no copy is wanted.
    pub fn drain(&mut self) {
        self.draft = None;
        self.hold.drain();
    }

    /// It is complete: the verdict.
    ///
    /// # Errors
    /// When there is none, and so nothing is known to be clean.
    pub async fn finish(&mut self) -> Result<Verdict, Unfinished> {
        self.deadline = Some(Instant::now() + VERDICT_WAIT);
        if self.lost.is_none() {
            self.inspecting.finish();
            self.asking.begin_to_wait();
            self.work(true).await;
        }
        let mut verdict = self.verdict.take().ok_or(self.lost.unwrap_or(Unfinished::Late))?;
        if let Some(guard) = &mut self.guard {
            guard.conclude(self.hold.received(), &mut verdict);
        }
        if let Some(score) = &mut verdict.score {
            score.complaints.iter().for_each(|error| tracing::warn!(%error, "line of a user's preferences ignored"));
            self.remembering.settle(score);
            self.asking.hear(&score.hits);
        }
        Ok(verdict)
    }

    /// Whether it has to come again, by its score and by what is known of who sends it.
    pub async fn is_to_come_again(&self, verdict: &Verdict, transaction: &Transaction<'_>) -> bool {
        let spam = self.ruling.spam.as_ref();
        match spam.and_then(|spam| greylist::greeting(spam, verdict, transaction)) {
            Some(greeting) => self.remembering.is_to_come_again(greeting).await,
            None => false,
        }
    }

    /// It was delivered, which speaks for who sends it.
    pub fn vouch(&self, verdict: &Verdict, transaction: &Transaction<'_>) {
        if let Some(spam) = &self.ruling.spam {
            self.remembering.vouch(greylist::vouchers(spam, verdict, transaction));
        }
    }

    /// Has it learned or forgotten; whether anything was changed. None where nobody can say in time.
    pub async fn learn(&self, what: What, lesson: Lesson) -> Option<bool> {
        self.remembering.learn(what, lesson).await
    }

    /// Settles which parts are overwritten.
    pub fn settle(&mut self, disposition: Disposition, verdict: &Verdict) {
        match disposition {
            Disposition::Blank { whole: true } => self.hold.mark_whole(verdict),
            Disposition::Pass | Disposition::Tag => self.hold.spare(),
            Disposition::Blank { whole: false } | Disposition::Quarantine | Disposition::Reject => {}
        }
    }

    /// Keeps all of it aside.
    ///
    /// # Errors
    /// When it cannot be written; nothing is kept then.
    pub async fn keep(&mut self, facts: &Facts) -> io::Result<()> {
        let draft = match self.draft.take() {
            Some(draft) => draft,
            None => self.begin_draft().await.ok_or(io::ErrorKind::NotFound)?,
        };
        let kept = draft.keep(facts).await;
        if let Err(error) = &kept {
            tracing::error!(id = self.id, folder = self.ruling.quarantine.as_ref().map(|folder| tracing::field::display(folder.display())), %error, "cannot write to the quarantine");
        }
        kept
    }

    /// Finding that decided, in words for the client.
    pub fn reason(&self, verdict: &Verdict) -> String {
        let found = verdict.reason(&self.ruling.policy).map(trace::describe);
        let by_sender = || authenticity::reason(verdict);
        let by_score = || verdict.score.as_ref().map(spam::reason);
        found.or_else(by_sender).or_else(by_score).unwrap_or_else(|| "content".into())
    }

    /// The text of a refusal, as far as the client is to know why.
    pub fn refusal(&self, verdict: &Verdict) -> String {
        self.ruling.refusal.words(&self.reason(verdict), &self.id)
    }
}

/// The reply to a client that may try again.
pub fn try_again(unfinished: Unfinished) -> Reply {
    let status = match unfinished {
        Unfinished::Late => (4, 7, 1),
        Unfinished::Starved => (4, 3, 2),
        Unfinished::Gone => (4, 3, 0),
    };
    Reply::new(451, status, unfinished.words())
}
