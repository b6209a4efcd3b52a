//! A table: its thread, connections and cache.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Turn, mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::connection::{Connection, Plan};
use crate::memory::{Memory, Rows};
use crate::pattern::Key;
use crate::pending::{Pending, Waiter};
use crate::row::{Error, Row};
use crate::settings::Settings;

/// Maximum number of waiting questions; a further one gets an [`Error`] at once.
pub const WAITING_MAX: usize = 1_000;

/// Idle time after which a connection is closed.
const IDLE: Duration = Duration::from_secs(60);

/// Pause after a failed connection to all servers.
const AWAY: Duration = Duration::from_secs(2);

/// Counts since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Questions and password checks sent to a server.
    pub asked: AtomicU64,
    /// Questions answered by the cache or by another question in progress.
    pub spared: AtomicU64,
    /// Questions that ended in an [`Error`].
    pub failed: AtomicU64,
}

/// Table of a server. Its thread ends with the last reference.
pub struct Table {
    settings: Settings,
    kind: &'static str,
    memory: Mutex<Memory>,
    pending: Arc<Pending>,
    counts: Counts,
    questions: mpsc::Sender<Question>,
}

enum Question {
    /// Without a caller: the callers wait together.
    Rows(Key, Option<Waiter>),
    Password {
        name: String,
        password: String,
        answer: oneshot::Sender<Result<bool, Error>>,
    },
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.settings.name)
    }
}

impl Table {
    /// Starts the thread, without connecting; `authorities` are the certificate authorities of servers.
    ///
    /// # Errors
    /// Invalid settings, or no thread.
    pub fn start(settings: &Settings, authorities: &Path) -> Result<Table, String> {
        let kind = settings.kind()?.name();
        let plan = Plan::new(settings, authorities)?;
        let (questions, asked) = mpsc::channel(WAITING_MAX);
        let (name, most, wait) = (settings.name.clone(), settings.connections_max, settings.wait());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(most).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let pending: Arc<Pending> = Arc::default();
        let told = pending.clone();
        let serve = move || {
            LocalSet::new().block_on(&runtime, serve(Rc::new(Desk::new(name, plan, wait, asked, told)), most));
            // Do not wait for a hanging disk.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("lookup".into());
        thread.spawn(serve).map_err(|error| format!("no thread: {error}"))?;
        let seconds = Duration::from_secs;
        let memory =
            Memory::new(seconds(settings.valid_seconds), seconds(settings.unknown_seconds), settings.entries_max);
        Ok(Table {
            settings: settings.clone(),
            kind,
            memory: Mutex::new(memory),
            pending,
            counts: Counts::default(),
            questions,
        })
    }

    /// Returns the settings of the table.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// `postgresql`, `mysql`, `sqlite` or `ldap`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the counts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the rows of a key, from the cache if possible. Simultaneous calls for one key share a question.
    ///
    /// # Errors
    /// The server gives no answer.
    pub async fn find(&self, key: &Key) -> Result<Arc<[Row]>, Error> {
        if let Some(rows) = self.memory().find(key, Instant::now()) {
            self.counts.spared.fetch_add(1, Relaxed);
            return Ok(rows);
        }
        let (waiter, answered) = oneshot::channel();
        if !self.pending.join(key, waiter) {
            self.counts.spared.fetch_add(1, Relaxed);
        } else if let Err(error) = self.put(Question::Rows(key.clone(), None)) {
            self.pending.answer(key, &Err(error));
        }
        self.learned(key, self.answer(answered).await)
    }

    /// Returns the rows of a key by a question that begins after this call.
    ///
    /// # Errors
    /// As for [`Table::find`].
    pub async fn find_now(&self, key: &Key) -> Result<Arc<[Row]>, Error> {
        let (waiter, answered) = oneshot::channel();
        self.put(Question::Rows(key.clone(), Some(waiter)))?;
        self.learned(key, self.answer(answered).await)
    }

    fn learned(&self, key: &Key, answer: Result<Rows, Error>) -> Result<Rows, Error> {
        if let Ok(rows) = &answer {
            self.memory().learn(key, rows, Instant::now());
        }
        answer
    }

    /// Asks the LDAP server whether this is the password of an entry; an empty password never is.
    ///
    /// # Errors
    /// The server gives no answer.
    pub async fn is_password(&self, name: &str, password: &str) -> Result<bool, Error> {
        let (answer, answered) = oneshot::channel();
        let question = Question::Password { name: name.to_owned(), password: password.to_owned(), answer };
        self.put(question)?;
        self.answer(answered).await
    }

    fn put(&self, question: Question) -> Result<(), Error> {
        self.questions.try_send(question).map_err(|_| Error::away("too many questions wait"))?;
        self.counts.asked.fetch_add(1, Relaxed);
        Ok(())
    }

    async fn answer<T>(&self, answer: oneshot::Receiver<Result<T, Error>>) -> Result<T, Error> {
        let answer = match timeout(self.settings.wait(), answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Error::away("the question was dropped")),
            Err(_) => Err(Error::away("it takes too long")),
        };
        self.counts.failed.fetch_add(u64::from(answer.is_err()), Relaxed);
        answer
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Queue of questions and the state that connections share.
struct Desk {
    name: String,
    plan: Plan,
    wait: Duration,
    asked: Turn<mpsc::Receiver<Question>>,
    pending: Arc<Pending>,
    /// End of the pause after failed connections, with the error.
    away: RefCell<Option<(Instant, Error)>>,
}

async fn serve(desk: Rc<Desk>, most: usize) {
    let workers: Vec<_> = (0..most).map(|_| tokio::task::spawn_local(desk.clone().work())).collect();
    for worker in workers {
        let _ = worker.await;
    }
}

impl Desk {
    fn new(name: String, plan: Plan, wait: Duration, asked: mpsc::Receiver<Question>, pending: Arc<Pending>) -> Desk {
        Desk { name, plan, wait, asked: Turn::new(asked), pending, away: RefCell::default() }
    }

    /// Answers questions over one connection until the queue is empty.
    async fn work(self: Rc<Desk>) {
        let mut kept = None;
        loop {
            let next = async { self.asked.lock().await.recv().await };
            match timeout(IDLE, next).await {
                Err(_) => kept = None,
                Ok(None) => return,
                Ok(Some(question)) => kept = self.clone().take(question, kept).await,
            }
        }
    }

    /// Answers one question; returns the connection if it can be reused. It runs in a separate task, so that a panic of
    /// a client library is an error of one answer.
    async fn take(self: Rc<Desk>, question: Question, kept: Option<Connection>) -> Option<Connection> {
        match question {
            Question::Rows(_, Some(waiter)) if waiter.is_closed() => kept,
            Question::Rows(key, None) if !self.pending.is_wanted(&key) => kept,
            Question::Password { answer, .. } if answer.is_closed() => kept,
            Question::Rows(key, waiter) => {
                let (desk, asked) = (self.clone(), key.clone());
                let task = tokio::task::spawn_local(async move {
                    let mut kept = kept;
                    let rows = timeout(desk.wait, desk.rows(&mut kept, &asked)).await;
                    (rows.unwrap_or(Err(Error::away("it takes too long"))), kept)
                });
                let odd = Error::refused("the answer cannot be understood");
                let (rows, kept) = task.await.unwrap_or((Err(odd), None));
                let kept = kept.filter(|_| rows.is_ok());
                let rows = rows.map(Rows::from);
                match waiter {
                    Some(waiter) => _ = waiter.send(rows),
                    None => self.pending.answer(&key, &rows),
                }
                kept
            }
            Question::Password { name, password, answer } => {
                let desk = self.clone();
                let task = tokio::task::spawn_local(async move {
                    let known = timeout(desk.wait, desk.is_password(&name, &password)).await;
                    known.unwrap_or(Err(Error::away("it takes too long")))
                });
                let _ = answer.send(task.await.unwrap_or(Err(Error::refused("the answer cannot be understood"))));
                kept
            }
        }
    }

    /// Asks over the open connection, or over a new one if that has died.
    async fn rows(&self, kept: &mut Option<Connection>, key: &Key) -> Result<Vec<Row>, Error> {
        if let Some(connection) = kept {
            match connection.rows(&self.plan, key).await {
                Err(Error::Away(_)) => *kept = None,
                answered => return answered,
            }
        }
        let mut connection = self.open().await?;
        let rows = connection.rows(&self.plan, key).await;
        *kept = Some(connection);
        rows
    }

    /// Connects to the first reachable server.
    async fn open(&self) -> Result<Connection, Error> {
        self.look_away()?;
        let mut failed = Error::away("no server");
        for server in self.plan.servers() {
            match Connection::open(&self.plan, server).await {
                Ok(connection) => {
                    self.is_there();
                    return Ok(connection);
                }
                Err(error) => failed = error,
            }
        }
        self.is_away(&failed);
        Err(failed)
    }

    async fn is_password(&self, name: &str, password: &str) -> Result<bool, Error> {
        self.look_away()?;
        let mut failed = Error::away("no server");
        for server in self.plan.servers() {
            match self.plan.is_password(server, name, password).await {
                Err(error) => failed = error,
                known => return known,
            }
        }
        Err(failed)
    }

    /// Returns the error of the last failed connection during the pause.
    fn look_away(&self) -> Result<(), Error> {
        match &*self.away.borrow() {
            Some((until, error)) if Instant::now() < *until => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn is_there(&self) {
        if self.away.borrow_mut().take().is_some() {
            tracing::info!(lookup = self.name, "the table answers again");
        }
    }

    fn is_away(&self, error: &Error) {
        if self.away.borrow().is_none() {
            tracing::warn!(lookup = self.name, %error, "the table cannot be asked");
        }
        *self.away.borrow_mut() = Some((Instant::now() + AWAY, error.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> (Settings, Result<Table, String>) {
        let mut settings: Settings = toml::from_str(&format!("name = 'people'\n{text}")).unwrap();
        settings.seconds_max = settings.seconds_max.min(1);
        let table = Table::start(&settings, Path::new("/nonexistent"));
        (settings, table)
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_away_and_keeps_nobody_waiting() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let key = Key::of("tim@a.test").unwrap();
        for server in [
            format!("servers = ['postgresql://sluice@{address}/mail']\nquery = \"SELECT '%s'\""),
            format!("servers = ['mysql://sluice@{address}/mail']\nquery = \"SELECT '%s'\""),
            format!("servers = ['ldap://{address}']\nbase = 'dc=a'\nfilter = '(uid=%s)'"),
        ] {
            let (_, table) = table(&server);
            let table = table.unwrap();
            assert!(matches!(table.find(&key).await, Err(Error::Away(_))), "{server}");
            let all = (0..2 * WAITING_MAX).map(|_| table.find(&key));
            for found in futures_of(all).await {
                assert!(matches!(found, Err(Error::Away(_))), "{server}");
            }
        }
    }

    async fn futures_of<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
        let mut all: Vec<_> = all.map(Box::pin).collect();
        let mut done = Vec::new();
        std::future::poll_fn(|context| {
            all.retain_mut(|future| match future.as_mut().poll(context) {
                std::task::Poll::Ready(value) => {
                    done.push(value);
                    false
                }
                std::task::Poll::Pending => true,
            });
            if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        done
    }

    #[test]
    fn settings_that_do_not_go_together_are_refused() {
        for (text, wanted) in [
            ("servers = []\nquery = \"'%s'\"", "servers is empty"),
            ("servers = ['http://x']\nquery = \"'%s'\"", "a server is"),
            ("servers = ['mysql://x/y', 'ldap://x']\nquery = \"'%s'\"", "of one kind"),
            ("servers = ['mysql://x/y']", "mysql takes a query"),
            ("servers = ['mysql://x/y']\nquery = 'SELECT 1'", "same for everybody"),
            ("servers = ['ldap://x']\nbase = 'dc=x'\nfilter = '(uid=%s'", "cannot be understood"),
            ("servers = ['ldap://x']\nbase = 'dc=x'\nfilter = '(uid=tim)'", "same for everybody"),
            ("servers = ['ldap://x']\nbase = 'dc=x'\nfilter = '(uid=%s)'\nbind_dn = 'cn=x'", "needs a password"),
            ("servers = ['ldap://']\nbase = 'dc=x'\nfilter = '(uid=%s)'", "no host"),
            ("servers = ['sqlite:x']\nquery = \"'%s'\"", "sqlite:/PATH"),
            // A server on another machine has to show a certificate of a trusted authority.
            ("servers = ['postgresql://u@db.a.test/x']\nquery = \"'%s'\"", "/nonexistent"),
        ] {
            let error = table(text).1.err().unwrap_or_default();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn a_password_is_in_no_log() {
        let (settings, _) = table("servers = ['mysql://x:secret@y/z']\npassword = 'secret'\nquery = \"'%s'\"");
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
