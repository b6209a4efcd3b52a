//! The connection of a ledger: made in the background, used by one call at a time, and made anew after an error.
//!
//! ```text
//!  Idle ── the pause is over ──► Connecting ── connected ──► Ready
//!   ▲                                │ failed, paused          │ an error or closed; no answer in time, paused
//!   └────────────────────────────────┴─────────────────────────┘
//! ```
//! A call waits for a connection until it has been made for as long as the caller is patient, and after that fails at once: an
//! unreachable database costs one mail that time, and not each. No statement is cancelled: its connection is dropped.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ledger::Error;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::{RETRIES_MAX, tables};
use crate::cluster::postgres::{Database, describe};

/// The pause after a connection that could not be made, or did not answer in time.
const PAUSE: Duration = Duration::from_secs(2);

/// How long it may take to make the tables: others may be at it.
const TABLES_WAIT: Duration = Duration::from_secs(30);

/// The outcome of statements.
pub type Done<T> = Result<T, tokio_postgres::Error>;

/// Values of a statement.
pub type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A way to the database.
pub struct Line {
    runtime: Runtime,
    database: Database,
    patience: Duration,
    state: State,
    /// Why there was no connection the last time.
    reason: String,
}

enum State {
    Idle(Instant),
    Connecting(JoinHandle<Result<Session, String>>, Instant),
    Ready(Session),
}

impl Line {
    /// A way to this database: a connection is begun.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn new(database: Database, patience: Duration) -> Result<Line, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Error::Database(error.to_string()))?;
        let reason = "no connection yet".into();
        let mut line = Line { runtime, database, patience, state: State::Idle(Instant::now()), reason };
        line.state = line.connecting();
        Ok(line)
    }

    fn connecting(&self) -> State {
        let database = self.database.clone();
        let session = async move { Session::prepare(database.client("sluice ledger").await?).await };
        State::Connecting(self.runtime.spawn(session), Instant::now())
    }

    /// A session to use; it is put back after the call.
    fn take(&mut self) -> Result<Session, Error> {
        loop {
            match std::mem::replace(&mut self.state, State::Idle(Instant::now())) {
                State::Ready(session) if session.client.is_closed() => self.reason = "the connection was closed".into(),
                State::Ready(session) => return Ok(session),
                State::Idle(until) if Instant::now() < until => {
                    self.state = State::Idle(until);
                    return Err(Error::Database(self.reason.clone()));
                }
                State::Idle(_) => self.state = self.connecting(),
                State::Connecting(mut connecting, since) => {
                    let left = self.patience.saturating_sub(since.elapsed());
                    match self.runtime.block_on(async { timeout(left, &mut connecting).await }) {
                        Ok(Ok(Ok(session))) => return Ok(session),
                        Ok(failed) => {
                            self.reason =
                                failed.map_or_else(|error| error.to_string(), |done| done.err().unwrap_or_default());
                            self.state = State::Idle(Instant::now() + PAUSE);
                        }
                        Err(_) => {
                            self.state = State::Connecting(connecting, since);
                            return Err(Error::Database(self.reason.clone()));
                        }
                    }
                }
            }
        }
    }

    /// Has work done, again if it lost to the work of another node.
    ///
    /// # Errors
    /// When there is no connection, no answer in time, or the work fails. It may have been done then.
    pub fn call<T>(&mut self, limit: Duration, mut work: impl AsyncFnMut(&Session) -> Done<T>) -> Result<T, Error> {
        self.once(limit, async |session: &Session| {
            for _ in 0..RETRIES_MAX {
                match work(session).await {
                    Err(error) if lost(&error) => {}
                    done => return done,
                }
            }
            work(session).await
        })
    }

    /// Has work done, and not again.
    ///
    /// # Errors
    /// As [`Line::call`].
    pub fn once<T>(&mut self, limit: Duration, mut work: impl AsyncFnMut(&Session) -> Done<T>) -> Result<T, Error> {
        let session = self.take()?;
        let answer = self.runtime.block_on(async { timeout(limit, work(&session)).await });
        let reason = match answer {
            Ok(Ok(answer)) => {
                self.state = State::Ready(session);
                return Ok(answer);
            }
            Ok(Err(error)) => describe(&error),
            Err(_) => {
                // All mails of the pause go on at once.
                self.state = State::Idle(Instant::now() + PAUSE);
                format!("no answer in {} ms", limit.as_millis())
            }
        };
        self.reason.clone_from(&reason);
        Err(Error::Database(reason))
    }
}

/// Whether a transaction was undone because of another one.
fn lost(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE))
}

/// A connection that is ready.
pub struct Session {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Session {
    async fn prepare(client: Client) -> Result<Session, String> {
        let prepared = timeout(TABLES_WAIT, tables::prepare(&client)).await;
        prepared.map_err(|_| "no answer about the tables".to_owned())??;
        Ok(Session { client, statements: Mutex::default() })
    }

    /// Whether all tables may be changed.
    pub async fn check(&self) -> Done<()> {
        tables::check(&self.client).await
    }

    async fn statement(&self, text: &'static str) -> Done<Statement> {
        let known = || self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(text).cloned();
        if let Some(found) = found {
            return Ok(found);
        }
        let statement = self.client.prepare(text).await?;
        known().insert(text, statement.clone());
        Ok(statement)
    }

    /// Rows of a query.
    pub async fn rows(&self, text: &'static str, values: Values<'_>) -> Done<Vec<Row>> {
        let statement = self.statement(text).await?;
        self.client.query(&statement, values).await
    }

    /// The row of a query, if there is one.
    pub async fn row(&self, text: &'static str, values: Values<'_>) -> Done<Option<Row>> {
        Ok(self.rows(text, values).await?.into_iter().next())
    }

    /// The first number of a query; 0 if there is no row.
    pub async fn number(&self, text: &'static str, values: Values<'_>) -> Done<i64> {
        Ok(self.row(text, values).await?.map_or(0, |row| row.get(0)))
    }

    /// Runs a statement; returns the number of rows.
    pub async fn run(&self, text: &'static str, values: Values<'_>) -> Done<u64> {
        let statement = self.statement(text).await?;
        self.client.execute(&statement, values).await
    }

    /// Calls `each` for the rows of a query until it returns `false`. Rows are not gathered.
    pub async fn each(&self, text: &'static str, values: Values<'_>, mut each: impl FnMut(&Row) -> bool) -> Done<()> {
        let statement = self.statement(text).await?;
        let rows = self.client.query_raw(&statement, values.iter().copied()).await?;
        let mut rows = std::pin::pin!(rows);
        while let Some(row) =
            std::future::poll_fn(|context| futures_core::Stream::poll_next(rows.as_mut(), context)).await
        {
            if !each(&row?) {
                break;
            }
        }
        Ok(())
    }

    /// One transaction: all of the work, or nothing.
    pub async fn transaction<T>(&self, begin: &str, work: impl AsyncFnOnce() -> Done<T>) -> Done<T> {
        self.client.batch_execute(begin).await?;
        match work().await {
            Ok(done) => self.client.batch_execute("commit").await.map(|()| done),
            Err(error) => {
                let _ = self.client.batch_execute("rollback").await;
                Err(error)
            }
        }
    }
}
