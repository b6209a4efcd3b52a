//! Doors whose clients hand over a mail and are told its score: spamd's and Rspamd's. One session for both; what is spoken is
//! a [`Dialect`].
//!
//! Nothing is refused here: what becomes of the mail is up to who asks. A mail that is larger than is scored is refused, as
//! unavailable.
//!
//! Bounds: a mail that is wanted back is held whole, up to `size_max`; what is compressed is undone as it comes, up to the same.

mod rspamd;
mod spamd;

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flate2::{Decompress, FlushDecompress, Status};
use flow::{Action, Flow, Points, Score, Scoring, State, Study, Terms, Unfinished, Verdict, Wants};
use tokio::time::timeout;

use crate::message::journal;
use crate::message::memory::What;
use crate::message::passage::{Asked, Passage};
use crate::message::preferences;
use crate::message::spam;
use crate::message::trace::{self, new_id};
use crate::metrics::SessionOpen;
use crate::net::stream::Stream;
use crate::net::wire::Wire;
use crate::porch::door::Door;
use crate::porch::gate::Ticket;
use crate::porch::shared::Shared;
use crate::settings::{BayesSettings, Spam};

/// How long a client may say nothing.
const SILENCE_WAIT: Duration = Duration::from_secs(300);

/// How much is read of what is refused, and how long is waited for more of it.
const DRAINED_BYTES_MAX: usize = 64 << 20;
const DRAIN_WAIT: Duration = Duration::from_secs(1);

/// From which score on a mail is spam, where nobody says so: what is shown where there is no score.
const USUAL_REQUIRED: Points = Points(5_000);

/// Bytes that are undone at a time.
const PIECE_BYTES: usize = 16 << 10;

/// Dialect: the server half of a protocol.
pub trait Dialect: Default {
    /// Request of a client, with its facts about the mail.
    type Request;

    /// Whether who wants to have a mail learned has to show a password, where one is set.
    const NEEDS_PASSWORD: bool;

    /// Whether nothing at all is a mail without a header, and has its score.
    const SCORES_NOTHING: bool;

    /// The header fields of the mail that an answer tells, in lower case.
    const FIELDS: &[Cow<'static, str>];

    /// Takes a prefix of the input, and tells one thing.
    fn step(&mut self, input: &[u8]) -> (usize, Event<Self::Request>);
    /// The client has ended its half of the connection.
    fn finish(&mut self) -> Event<Self::Request>;
    /// Facts about the mail before it comes.
    fn announced(request: &Self::Request) -> Announced;
    /// For whom, if the client says so.
    fn user(request: &Self::Request) -> Option<&str>;
    /// Lesson that the client asks for, if any.
    fn telling(request: &Self::Request) -> Option<Telling>;
    /// Tells the client whether that has changed anything.
    fn told(&mut self, request: &Self::Request, has_changed: bool);
    /// Tells the client.
    ///
    /// # Errors
    /// Why it cannot be told, in words for it.
    fn answer(&mut self, mail: &mut Mail<Self::Request>, verdict: &Verdict, score: &Score) -> Result<(), &'static str>;
    /// Tells the client why there is no answer.
    fn refuse(&mut self, refusal: Refusal);
    /// Whether it was refused: then the client may still be sending.
    fn is_refused(&self) -> bool;
    /// Bytes to send.
    fn outbox(&self) -> &[u8];
    /// It has been sent.
    fn sent(&mut self);
}

/// Event of a client.
pub enum Event<R> {
    /// Nothing that matters; more is needed.
    Idle,
    /// It asks for something about the mail that follows.
    Asked(R),
    /// The bytes taken are of that mail.
    Content,
    /// The mail is complete.
    End,
    /// The outbox is to be sent, and the connection closed.
    Closed,
}

/// Facts about a mail before it comes.
pub struct Announced {
    /// Sender and recipients.
    pub flow: Flow,
    /// Its bytes, compressed or not.
    pub length: Option<u64>,
    /// Whether it is in the format of zlib (RFC 1950).
    pub is_compressed: bool,
    /// Whether it is wanted back.
    pub gives_back: bool,
    /// Whether the report is wanted as a text.
    pub has_text: bool,
    /// Whether the links of the mail are wanted.
    pub has_links: bool,
}

/// A client wants to have a mail learned, or forgotten.
pub struct Telling {
    /// Lesson to take here; none where it is taken elsewhere.
    pub what: Option<What>,
    /// Password that permits it.
    pub password: Option<Box<str>>,
}

impl Telling {
    /// Why it is not done; none where it may be.
    fn refusal(&self, bayes: Option<&BayesSettings>, needs_password: bool) -> Option<Refusal> {
        let Some(bayes) = bayes.filter(|bayes| bayes.tell) else { return Some(Refusal::Untold) };
        let is_right = !needs_password
            || bayes.password.is_empty()
            || self.password.as_ref().is_some_and(|given| is_same(given.as_bytes(), bayes.password.as_bytes()));
        (!is_right).then_some(Refusal::Forbidden)
    }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Why there is no answer.
pub enum Refusal {
    /// Nothing is learned for clients here.
    Untold,
    /// The client has not shown that it may.
    Forbidden,
    /// The request makes no sense.
    Malformed(&'static str),
    /// The mail exceeds `size_max`.
    TooLarge,
    /// It cannot be had now.
    Unavailable(String),
    /// It took too long.
    Late,
}

/// A mail that comes.
pub struct Mail<R> {
    request: R,
    spam: Spam,
    passage: Passage,
    inflater: Option<Decompress>,
    /// Whether its last line ends in CRLF, as far as it has come.
    ends_in_crlf: bool,
    last: u8,
}

struct Session<D: Dialect> {
    shared: Rc<Shared>,
    door: Arc<Door>,
    peer: SocketAddr,
    wire: Wire,
    server: D,
    mail: Option<Box<Mail<D::Request>>>,
}

/// Runs a connection from its first byte to its last.
pub async fn run<D: Dialect>(shared: Rc<Shared>, door: Arc<Door>, peer: SocketAddr, ticket: Ticket, stream: Stream) {
    let _open = SessionOpen::new(&shared.runtime.borrow().metrics);
    let session = Session { shared, door, peer, wire: Wire::new(stream), server: D::default(), mail: None };
    if let Err(error) = session.converse().await {
        tracing::debug!(%peer, %error, "connection aborted");
    }
    drop(ticket);
}

impl<D: Dialect> Session<D> {
    async fn converse(mut self) -> io::Result<()> {
        loop {
            let (taken, event) = self.server.step(self.wire.input());
            let event = match event {
                Event::Idle if taken == 0 && !timeout(SILENCE_WAIT, self.wire.read()).await?? => self.server.finish(),
                event => event,
            };
            match event {
                Event::Idle => self.flush().await?,
                Event::Asked(request) => self.begin(request).await?,
                Event::Content => self.take(taken).await,
                Event::End => self.end().await,
                Event::Closed => {
                    self.wire.take(taken);
                    if self.server.is_refused() {
                        self.drain().await;
                    }
                    self.wire.write(self.server.outbox()).await?;
                    self.wire.close().await;
                    return Ok(());
                }
            }
            self.wire.take(taken);
        }
    }

    /// Reads on until the client has sent all: what is answered before might be lost with the connection.
    async fn drain(&mut self) {
        let mut bytes = 0;
        while bytes < DRAINED_BYTES_MAX && matches!(timeout(DRAIN_WAIT, self.wire.read()).await, Ok(Ok(true))) {
            let count = self.wire.input().len();
            self.wire.take(count);
            bytes += count;
        }
    }

    fn refuse(&mut self, why: &str) {
        self.server.refuse(Refusal::Unavailable(why.into()));
    }

    /// A mail is announced; what the client waits for before it comes is sent.
    async fn begin(&mut self, request: D::Request) -> io::Result<()> {
        let runtime = self.shared.runtime.borrow().clone();
        let ruling = self.door.rulings.under(None);
        let Some(spam) = ruling.spam.clone() else {
            self.refuse("mails are not scored here");
            return Ok(());
        };
        let most = spam.scoring.bytes_max;
        let Announced { flow, length, is_compressed, gives_back, has_text, has_links } = D::announced(&request);
        if length.is_some_and(|length| length > most) {
            self.server.refuse(Refusal::TooLarge);
            return Ok(());
        }
        let telling = D::telling(&request);
        if let Some(telling) = &telling
            && let Some(refusal) = telling.refusal(spam.bayes.as_ref(), D::NEEDS_PASSWORD)
        {
            self.server.refuse(refusal);
            return Ok(());
        }
        let study = if telling.is_some() { Study::Always } else { spam.scoring.study };
        let has_users = spam.bayes.as_ref().is_some_and(|bayes| bayes.users);
        let owner = D::user(&request).filter(|_| has_users).unwrap_or_default().into();
        let users: Vec<&str> = D::user(&request).into_iter().collect();
        let preferences = Box::pin(preferences::find(Some(&spam), &users)).await;
        let flow = Flow { client: flow.client.or(Some(self.peer.ip())), ..flow };
        let asked = Asked {
            flow,
            terms: Terms { window_bytes: usize::try_from(most).unwrap_or(usize::MAX), ..Terms::default() },
            wants: Wants { forged: spam::FORGED.into(), fields: D::FIELDS.into(), ..Wants::default() },
            scoring: Some(Scoring { text: has_text, links: has_links, study, preferences, ..spam.scoring.clone() }),
            owner,
            heaviest: Action::Reject,
            ..Asked::default()
        };
        let mut passage = Passage::mail(&runtime.means, &new_id(), ruling, asked);
        passage.forgo_copy();
        if !gives_back {
            passage.hold().watch();
        }
        let inflater = is_compressed.then(|| Decompress::new(true));
        self.mail = Some(Box::new(Mail { request, spam, passage, inflater, ends_in_crlf: false, last: 0 }));
        self.flush().await
    }

    /// Sends what the client waits for.
    async fn flush(&mut self) -> io::Result<()> {
        if self.server.outbox().is_empty() {
            return Ok(());
        }
        self.wire.write(self.server.outbox()).await?;
        self.server.sent();
        Ok(())
    }

    async fn take(&mut self, count: usize) {
        let Some(mail) = &mut self.mail else { return };
        let taken = match &mut mail.inflater {
            None => mail.take(&self.wire.input()[..count]).await,
            Some(_) => mail.inflate(&self.wire.input()[..count]).await,
        };
        if let Err(refusal) = taken {
            self.server.refuse(refusal);
            self.mail = None;
        }
    }

    async fn end(&mut self) {
        let Some(mut mail) = self.mail.take() else { return self.refuse("no message") };
        if mail.inflater.is_some() {
            return self.server.refuse(Refusal::Malformed("the compressed message is incomplete"));
        }
        let mut verdict = match mail.passage.finish().await {
            Ok(verdict) => verdict,
            Err(Unfinished::Late) => return self.server.refuse(Refusal::Late),
            Err(unfinished) => return self.refuse(unfinished.words()),
        };
        if let Some(telling) = D::telling(&mail.request) {
            return self.learn(&mail, telling, verdict.score.take()).await;
        }
        if mail.passage.received() == 0 && !D::SCORES_NOTHING {
            let nothing = |score: &Score| Score { required: score.required, ..Score::default() };
            verdict.score = verdict.score.as_ref().map(nothing);
        }
        journal::count_score(&self.shared.runtime.borrow().metrics, &mail.passage, &verdict);
        // What is refused for what it holds needs no score.
        let score = match &verdict.score {
            Some(score) => score,
            None if verdict.action == Action::Pass => return self.refuse("the message is not scored"),
            None => &Score { required: mail.spam.scoring.required.unwrap_or(USUAL_REQUIRED), ..Score::default() },
        };
        let flow = D::announced(&mail.request).flow;
        tracing::info!(
            id = mail.passage.id(),
            message_id = mail.passage.message_id(),
            door = self.door.listener.protocol().name(),
            client = %flow.client.unwrap_or(self.peer.ip()),
            hello = named(&flow.hello),
            from = named(&flow.sender),
            to = named(&flow.recipients.join(",")),
            user = D::user(&mail.request).map(trace::printable),
            bytes = mail.passage.received(),
            found = journal::found(&verdict),
            score = spam::points(&verdict),
            spam = score.is_spam(),
            hits = spam::hits(&verdict),
            ms = mail.passage.age().as_millis() as u64,
            "message scored"
        );
        if let Err(why) = self.server.answer(&mut mail, &verdict, score) {
            self.refuse(why);
        }
    }
}

impl<D: Dialect> Session<D> {
    /// Has a mail learned, or forgotten.
    async fn learn(&mut self, mail: &Mail<D::Request>, telling: Telling, score: Option<Score>) {
        let Some(lesson) = score.and_then(|score| score.lesson) else {
            return self.refuse("the message is not learned");
        };
        let Some(what) = telling.what else { return self.server.told(&mail.request, false) };
        let changed = mail.passage.learn(what, *lesson).await;
        let flow = D::announced(&mail.request).flow;
        tracing::info!(
            id = mail.passage.id(),
            message_id = mail.passage.message_id(),
            door = self.door.listener.protocol().name(),
            client = %flow.client.unwrap_or(self.peer.ip()),
            from = named(&flow.sender),
            to = named(&flow.recipients.join(",")),
            user = D::user(&mail.request).map(trace::printable),
            class = what.name(),
            changed,
            "message learned"
        );
        match changed {
            Some(changed) => self.server.told(&mail.request, changed),
            None => self.refuse("the ledger is unavailable"),
        }
    }
}

/// A name that the client has given, for the log.
fn named(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| trace::printable(text))
}

impl<R> Mail<R> {
    async fn take(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let most = self.spam.scoring.bytes_max;
        if self.passage.received() + bytes.len() as u64 > most {
            return Err(Refusal::TooLarge);
        }
        if let &[.., last] = bytes {
            let before = bytes.len().checked_sub(2).map_or(self.last, |at| bytes[at]);
            self.ends_in_crlf = [before, last] == *b"\r\n";
            self.last = last;
        }
        self.passage.take(bytes, false).await;
        // Where there is no memory to hold it, it is scored all the same.
        if self.passage.state() == State::Streaming {
            self.passage.hold().watch();
        }
        Ok(())
    }

    /// Takes what is compressed; at its end there is no more to undo.
    async fn inflate(&mut self, mut bytes: &[u8]) -> Result<(), Refusal> {
        let mut piece = vec![0; PIECE_BYTES];
        while let Some(inflater) = &mut self.inflater {
            let (before, wrote) = (inflater.total_in(), inflater.total_out());
            let status = inflater.decompress(bytes, &mut piece, FlushDecompress::None);
            let status = status.map_err(|_| Refusal::Malformed("the compressed message is malformed"))?;
            let taken = usize::try_from(inflater.total_in() - before).unwrap_or(bytes.len());
            let count = usize::try_from(inflater.total_out() - wrote).unwrap_or(0);
            if status == Status::StreamEnd {
                self.inflater = None;
            }
            bytes = &bytes[taken.min(bytes.len())..];
            self.take(&piece[..count.min(PIECE_BYTES)]).await?;
            if count == 0 && (bytes.is_empty() || taken == 0) {
                break;
            }
        }
        Ok(())
    }
}
