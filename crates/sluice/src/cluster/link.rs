//! The engine of an owner: statements of the writer's thread, which waits for each.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cluster::{Answer, Engine, Lost, Standing};
use tokio::runtime::Runtime;

use super::cache::Notes;
use super::postgres::{Database, Session};

/// How long a flush is tried. A failover of the database takes half a minute.
const PATIENCE: Duration = Duration::from_secs(120);

const PAUSE: Duration = Duration::from_millis(100);

/// The connection of a writer.
pub struct Link {
    database: Database,
    session: Option<Session>,
    notes: Arc<Notes>,
    runtime: Runtime,
    /// When the flush began that is being tried.
    began: Option<Instant>,
}

impl Link {
    /// An engine that is not connected yet.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn new(database: Database, notes: Arc<Notes>) -> std::io::Result<Link> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Link { database, session: None, notes, runtime, began: None })
    }

    fn connected(&mut self) -> Option<&Session> {
        if self.session.as_ref().is_none_or(Session::is_closed) {
            self.session = match self.runtime.block_on(self.database.connect()) {
                Ok(session) => Some(session),
                Err(error) => {
                    tracing::warn!(%error, "the database of the cluster cannot be reached");
                    None
                }
            };
        }
        self.session.as_ref()
    }

    /// A connection over which nothing is known of a statement is given up.
    fn heard(&mut self, answer: Answer) -> Answer {
        if answer == Answer::Unknown {
            self.session = None;
        }
        answer
    }

    fn done(&mut self, answer: Answer, flush: u64, bytes: usize) -> Answer {
        if answer == Answer::Done {
            if let Some(began) = self.began.take().filter(|began| began.elapsed() > Duration::from_secs(1)) {
                tracing::warn!(flush, seconds = began.elapsed().as_secs(), "a flush took long");
            }
            self.notes.flushed(flush, bytes);
        }
        self.heard(answer)
    }
}

impl Engine for Link {
    fn append(&mut self, epoch: u64, flush: u64, runs: &[u8]) -> Answer {
        self.began.get_or_insert_with(Instant::now);
        if self.connected().is_none() {
            return Answer::Unknown;
        }
        let Link { session: Some(session), runtime, .. } = self else { return Answer::Unknown };
        let answer = runtime.block_on(session.append(epoch, flush, runs));
        self.done(answer, flush, runs.len())
    }

    fn standing(&mut self) -> Option<Standing> {
        // An earlier statement must not arrive after this one by the same way.
        self.session = None;
        self.connected()?;
        let Link { session: Some(session), runtime, .. } = self else { return None };
        runtime.block_on(session.standing()).ok()
    }

    fn settle(&mut self, epoch: u64, flush: u64) -> Answer {
        let Link { session: Some(session), runtime, .. } = self else { return Answer::Unknown };
        let answer = runtime.block_on(session.settle(epoch, flush));
        self.done(answer, flush, 0)
    }

    fn wait(&mut self) -> bool {
        sleep(PAUSE);
        self.began.is_none_or(|began| began.elapsed() < PATIENCE)
    }

    fn touch(&mut self, block: u64) {
        self.notes.touch(block);
    }

    /// An owner that cannot write gives up: its process ends, and a new one waits for its turn.
    fn lose(&mut self, lost: Lost) {
        let why = match lost {
            Lost::Taken => "another node has the store",
            Lost::Unreachable => "the database of the cluster does not answer",
            Lost::Diverged => "the database of the cluster has another history",
        };
        tracing::error!("{why}: this process ends");
        std::process::exit(1);
    }
}
