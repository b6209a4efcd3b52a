//! Learned data for the doors: a thread that keeps the ledger open, answers, and writes.
//!
//! Nobody waits here: orders that find no room, or that have waited longer than a mail does, are dropped, and whoever has asked is
//! told so by the channel that closes. A ledger that cannot be opened, is damaged, locked by somebody else or does not answer is told in
//! the log once, and tried again every few seconds; meanwhile mails are scored as if nothing were learned.
//!
//! The ledger is a file, or the database of a cluster ([`Source`]). A database has two threads: mails that ask do not wait for others
//! that are learned.
//!
//! Bounds: `ORDERS_MAX` orders that wait for a thread, each of one mail's words.

pub mod conduct;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use edge::message::memory::{Greeting, Mark, Memory, What};
use edge::metrics::Metrics;
use edge::settings::{BayesSettings, FuzzySettings, ReputationSettings};
use flow::{Alike, Conduct, Key, Lesson, Recall, Recalled, Standing, Word};
use ledger::{Counts, Error, Learned, Ledger, Sqlite};
use tokio::sync::oneshot;

use self::conduct::{compared, noted, rated, taught};
use crate::process::held::Held;

/// The file in the folder.
pub const FILE: &str = "learned.db";

/// Orders that wait.
const ORDERS_MAX: usize = 1_000;

/// How long lessons wait for a connection that is being made.
const CONNECTION_WAIT: Duration = Duration::from_secs(10);

/// How long a file that was not to be had is let alone.
const RETRY_WAIT: Duration = Duration::from_secs(5);

/// How often old words are looked for.
const EXPIRE_EVERY: Duration = Duration::from_secs(3_600);

/// Seconds in the future beyond which a date is ignored.
const AHEAD_SECONDS: i64 = 86_400;

const DAY_SECONDS: i64 = 86_400;

/// The file in a folder that is held open.
pub fn open(held: &Held) -> Result<Sqlite, Error> {
    Sqlite::open(&held.way().join(FILE))
}

/// The way to a ledger.
#[derive(Clone)]
pub struct Source {
    /// Tells it from others.
    name: String,
    /// Whether it is a database that all nodes of a cluster have.
    is_shared: bool,
    open: Arc<Open>,
}

/// Opens a ledger. Calls wait for its answers as long as mails wait; for a connection that is being made as long as is said.
type Open = dyn Fn(Waits) -> Result<Box<dyn Ledger>, Error> + Send + Sync;

/// How long calls wait.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// For a connection.
    pub connection: Duration,
    /// For an answer that a mail waits for.
    pub answer: Duration,
}

impl Waits {
    /// Those of a command.
    pub const COMMAND: Waits = Waits { connection: Duration::from_secs(20), answer: Duration::from_secs(10) };
}

impl Source {
    /// The file in a folder.
    pub fn file(folder: &Path) -> Source {
        let path = folder.join(FILE);
        let name = path.display().to_string();
        let open = move |_| Ok(Box::new(Sqlite::open(&path)?) as Box<dyn Ledger>);
        Source { name, is_shared: false, open: Arc::new(open) }
    }

    /// A database that all nodes have; its name tells it from others.
    pub fn shared(
        name: String,
        open: impl Fn(Waits) -> Result<Box<dyn Ledger>, Error> + Send + Sync + 'static,
    ) -> Source {
        Source { name, is_shared: true, open: Arc::new(open) }
    }

    /// Whether it is a database that all nodes have.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Opens it.
    ///
    /// # Errors
    /// When a file cannot be opened. A database is connected to later.
    pub fn open(&self, waits: Waits) -> Result<Box<dyn Ledger>, Error> {
        (self.open)(waits)
    }
}

/// Seconds since 1970.
pub fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// The threads; they end with the last who may ask.
pub struct Memories {
    /// What mails wait for.
    questions: SyncSender<Order>,
    /// All else; the same thread for a file.
    lessons: SyncSender<Order>,
    wait: Duration,
    /// The name of the ledger.
    name: String,
    /// Settings that it was started with.
    settings: BayesSettings,
    bounds: Bounds,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// How many words an owner has, if old ones are to be forgotten.
    pub words_max: Option<u64>,
    /// How many senders, and how long.
    pub senders: ReputationSettings,
    /// How many mails that were reported, and how long.
    pub reports: FuzzySettings,
}

struct Order {
    owner: Box<str>,
    at: Instant,
    work: Work,
}

enum Work {
    Recall(Recall, oneshot::Sender<Recalled>),
    Touch(Vec<Key>),
    Learn(What, Lesson, Option<oneshot::Sender<bool>>),
    Count(Conduct),
    Greet(Greeting, oneshot::Sender<bool>),
    Vouch(Vec<Mark>),
}

impl Memories {
    /// Starts it; the `old` one goes on where nothing has changed.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(
        source: &Source,
        settings: &BayesSettings,
        bounds: Bounds,
        metrics: &Arc<Metrics>,
        old: Option<&Arc<Memories>>,
    ) -> Result<Arc<Memories>, String> {
        let is_same =
            |old: &&Arc<Memories>| old.settings == *settings && old.bounds == bounds && old.name == source.name;
        if let Some(old) = old.filter(is_same) {
            return Ok(old.clone());
        }
        let wait = Duration::from_millis(settings.wait_ms);
        let begin = |name: &str, connection: Duration, former: Option<PathBuf>| {
            let (orders, received) = sync_channel(ORDERS_MAX);
            let desk = Desk {
                source: source.clone(),
                waits: Waits { connection, answer: wait },
                bounds,
                metrics: metrics.clone(),
                ledger: None,
                is_lost: false,
                owners: HashMap::new(),
                senders_looked_at: None,
            };
            let thread = std::thread::Builder::new().name(name.into());
            let thread = thread.spawn(move || desk.serve(&received, former.as_deref()));
            thread.map(|_| orders).map_err(|error| format!("spam.bayes: {error}"))
        };
        // A mail waits for the answer, too.
        let questions = begin("learned", wait / 2, None)?;
        let lessons = match source.is_shared {
            true => begin("lessons", CONNECTION_WAIT, Some(settings.ledger.join(FILE)))?,
            false => questions.clone(),
        };
        let (name, settings) = (source.name.clone(), settings.clone());
        Ok(Arc::new(Memories { questions, lessons, wait, name, settings, bounds }))
    }

    fn order(&self, owner: &str, work: Work) {
        // Whoever has asked sees its channel closed.
        let orders = match work {
            Work::Recall(..) | Work::Greet(..) => &self.questions,
            Work::Touch(_) | Work::Learn(..) | Work::Count(_) | Work::Vouch(_) => &self.lessons,
        };
        let _ = orders.try_send(Order { owner: owner.into(), at: Instant::now(), work });
    }
}

impl Memory for Memories {
    fn wait(&self) -> Duration {
        self.wait
    }

    fn recall(&self, owner: &str, recall: Recall, tell: oneshot::Sender<Recalled>) {
        self.order(owner, Work::Recall(recall, tell));
    }

    fn touch(&self, owner: &str, keys: Vec<Key>) {
        self.order(owner, Work::Touch(keys));
    }

    fn learn(&self, owner: &str, what: What, lesson: Lesson, tell: Option<oneshot::Sender<bool>>) {
        self.order(owner, Work::Learn(what, lesson, tell));
    }

    fn count(&self, owner: &str, conduct: Conduct) {
        self.order(owner, Work::Count(conduct));
    }

    fn greet(&self, greeting: Greeting, tell: oneshot::Sender<bool>) {
        self.order("", Work::Greet(greeting, tell));
    }

    fn vouch(&self, vouchers: Vec<Mark>) {
        self.order("", Work::Vouch(vouchers));
    }
}

/// State of a thread.
struct Desk {
    source: Source,
    waits: Waits,
    bounds: Bounds,
    metrics: Arc<Metrics>,
    /// The ledger, or when it is tried again.
    ledger: Option<Result<Box<dyn Ledger>, Instant>>,
    /// Whether a database has not answered the last time.
    is_lost: bool,
    /// Owners who have learned since the last search for old words, and the time of that search.
    owners: HashMap<Box<str>, Option<Instant>>,
    /// When old senders were looked for last; none until there are some.
    senders_looked_at: Option<Instant>,
}

impl Desk {
    fn serve(mut self, orders: &Receiver<Order>, former: Option<&Path>) {
        if self.source.is_shared {
            // The first mail finds it connected.
            let begun = self.with(|ledger| former.map_or(Ok(()), |former| compare(ledger, former)));
            begun.unwrap_or_else(|error| self.lose(&error));
        }
        loop {
            match orders.recv_timeout(EXPIRE_EVERY) {
                Ok(order) => self.take(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.expire();
            self.forget_senders();
        }
    }

    fn take(&mut self, order: Order) {
        let Order { owner, at, work } = order;
        let is_late = at.elapsed() > self.waits.answer;
        let done = match work {
            Work::Recall(_, tell) if is_late || tell.is_closed() => Ok(()),
            Work::Recall(recall, tell) => self.with(|file| {
                let fuzzy = recall.fuzzy.map(compared);
                let found = file.ask(&owner, &recall.keys, &recall.names, fuzzy.as_ref())?;
                let alike = found.alike.map(|alike| Alike { places: alike.places, has_part: alike.has_part });
                let standings = found.standings.into_iter().map(|known| Standing::new(known.count, known.total));
                let words = found.words.into_iter().map(|word| Word { key: word.key, spam: word.spam, ham: word.ham });
                let _ = tell.send(Recalled {
                    spam: found.corpus.spam,
                    ham: found.corpus.ham,
                    words: words.collect(),
                    standings: standings.collect(),
                    alike,
                });
                Ok(())
            }),
            // What is touched now is touched by the next mail.
            Work::Touch(_) if is_late => Ok(()),
            Work::Touch(keys) => self.with(|file| file.touch(&owner, &keys, now())),
            Work::Greet(_, tell) if is_late || tell.is_closed() => Ok(()),
            Work::Greet(Greeting { triplets, vouchers, delay }, tell) => self.with(|file| {
                let delay = i64::try_from(delay.as_secs()).unwrap_or(i64::MAX);
                let has_waited = file.greet(&ledger::Greeting { triplets, vouchers, delay }, now())?;
                let _ = tell.send(has_waited);
                Ok(())
            }),
            // Who has delivered delivers again.
            Work::Vouch(_) if is_late => Ok(()),
            Work::Vouch(vouchers) => self.with(|file| file.vouch(&vouchers, now())),
            // It is noted, however late.
            Work::Count(conduct) => {
                self.senders_looked_at.get_or_insert_with(Instant::now);
                let counts = rated(&conduct);
                self.with(|file| file.count(&owner, &noted(conduct), counts, now()))
            }
            Work::Learn(what, lesson, tell) => {
                self.owners.entry(owner.clone()).or_default();
                self.senders_looked_at.get_or_insert_with(Instant::now);
                let mut is_done = false;
                let done = self.with(|file| {
                    let changed = learn(file, &owner, what, lesson)?;
                    is_done = true;
                    tell.into_iter().for_each(|tell| _ = tell.send(changed));
                    Ok(())
                });
                self.metrics.spam_lessons_lost_total.add(u64::from(!is_done));
                done
            }
        };
        if let Err(error) = done {
            self.lose(&error);
        }
    }

    /// Works with the ledger, opened if need be; nothing is done where it is not to be had.
    fn with(&mut self, work: impl FnOnce(&mut dyn Ledger) -> Result<(), Error>) -> Result<(), Error> {
        let is_due = match &self.ledger {
            None => true,
            Some(Err(again)) => Instant::now() >= *again,
            Some(Ok(_)) => false,
        };
        if is_due {
            self.ledger = Some(Ok(self.source.open(self.waits)?));
        }
        let Some(Ok(ledger)) = &mut self.ledger else { return Ok(()) };
        work(&mut **ledger)?;
        if std::mem::take(&mut self.is_lost) {
            tracing::info!("learned data available again");
        }
        Ok(())
    }

    /// Notes what went wrong: a file that somebody else is at is tried again with the next order, all others in a while. A database
    /// connects again by itself, and answers at once until it has.
    fn lose(&mut self, error: &Error) {
        match error {
            // What is there can be read on a full disk.
            Error::Full(_) => tracing::warn!(%error, "disk full, no more mails are learned"),
            Error::Database(_) if std::mem::replace(&mut self.is_lost, true) => {}
            Error::Database(_) => tracing::warn!(%error, "learned data unavailable, mails are scored without it"),
            _ => {
                tracing::warn!(%error, "learned data unavailable, mails are scored without it");
                self.ledger = Some(Err(Instant::now() + RETRY_WAIT));
            }
        }
    }

    /// Forgets senders that were not seen for long, and mails that were not reported again.
    fn forget_senders(&mut self) {
        let ReputationSettings { senders_max, keep_days } = self.bounds.senders;
        if self.senders_looked_at.is_none_or(|at| at.elapsed() < EXPIRE_EVERY) {
            return;
        }
        self.senders_looked_at = Some(Instant::now());
        let since = now().saturating_sub(i64::from(keep_days) * DAY_SECONDS);
        let FuzzySettings { reports_max, keep_days, .. } = self.bounds.reports;
        let reported_since = now().saturating_sub(i64::from(keep_days) * DAY_SECONDS);
        let done = self.with(|file| {
            file.forget_senders(senders_max, since)?;
            file.forget_reports(reports_max, reported_since)
        });
        done.unwrap_or_else(|error| self.lose(&error));
    }

    /// Forgets old words of those who have learned.
    fn expire(&mut self) {
        let Some(words_max) = self.bounds.words_max else { return };
        let mut owners = self.owners.iter();
        let due = owners.find(|(_, at)| at.is_none_or(|at| at.elapsed() > EXPIRE_EVERY));
        let Some(owner) = due.map(|(owner, _)| owner.clone()) else { return };
        let done = self.with(|file| {
            let forgotten = file.expire(&owner, words_max, now())?;
            if forgotten > 0 {
                tracing::info!(user = &*owner, words = forgotten, "old tokens expired");
            }
            Ok(())
        });
        self.owners.insert(owner, Some(Instant::now()));
        done.unwrap_or_else(|error| self.lose(&error));
    }
}

/// Says that a cluster has learned nothing, and the file that this node had before has.
fn compare(shared: &mut dyn Ledger, former: &Path) -> Result<(), Error> {
    let nothing = learn::Corpus::default();
    if shared.summary("")?.corpus != nothing || !former.exists() {
        return Ok(());
    }
    let found = Sqlite::open(former).and_then(|mut file| file.summary(""));
    if let Some(corpus) = found.ok().map(|summary| summary.corpus).filter(|corpus| *corpus != nothing) {
        let (spam, ham, folder) = (corpus.spam, corpus.ham, former.parent().unwrap_or(former).display());
        let advice = format!("sluice learn export --ledger {folder} | sluice learn import -");
        tracing::warn!(spam, ham, advice, "the cluster has learned nothing yet, and this node had");
    }
    Ok(())
}

/// Learns or forgets a mail; whether that has changed anything.
fn learn(file: &mut dyn Ledger, owner: &str, what: What, lesson: Lesson) -> Result<bool, Error> {
    let tokens = learn::Tokens::of(lesson.keys);
    let conduct = lesson.conduct;
    let count = |file: &mut dyn Ledger, counts: &dyn Fn(&Conduct) -> Counts| {
        conduct
            .as_ref()
            .map_or(Ok(()), |conduct| file.count(owner, &noted((**conduct).clone()), counts(conduct), now()))
    };
    let fuzzy = lesson.fuzzy.map(compared);
    let (is_spam, corrects) = match what {
        What::Forget => {
            count(file, &|_| Counts::Forgotten)?;
            fuzzy.map_or(Ok(()), |fuzzy| file.report(owner, &fuzzy, false, now()))?;
            return file.forget(owner, &lesson.ids, &tokens);
        }
        What::Spam => (true, true),
        What::Ham => (false, true),
        What::Surely { is_spam } => (is_spam, false),
    };
    let now = now();
    let at = lesson.at.filter(|at| at.saturating_sub(now) <= AHEAD_SECONDS).unwrap_or(now);
    let lesson = ledger::Lesson { is_spam, ids: lesson.ids, at, tokens, corrects };
    let is_new = file.learn(owner, &[lesson])?.first() != Some(&Learned::Known);
    if is_new {
        count(file, &|conduct| taught(conduct, is_spam))?;
        // What the rules are sure of is no report.
        let fuzzy = fuzzy.filter(|_| corrects);
        fuzzy.map_or(Ok(()), |fuzzy| file.report(owner, &fuzzy, is_spam, now))?;
    }
    Ok(is_new)
}

/// Makes the folder for us alone.
///
/// # Errors
/// When it cannot be made.
pub fn prepare(folder: &Path) -> Result<(), String> {
    crate::process::held::Held::private(Some(folder)).map(drop)
}
