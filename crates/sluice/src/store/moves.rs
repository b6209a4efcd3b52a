//! Mail that users move into the mailbox for junk, or out of it, is learned: a thread has it inspected again, as a door has mail
//! that its client tells of, and hands what is to be learned to whoever keeps that.
//!
//! Bounds: `WAITING_MAX` messages that wait, of a few bytes each; one at a time is read, and none that is larger than is scored.
//! What finds no room, or cannot be inspected, is not learned: the log says so, and a metric counts it.

use std::sync::{Arc, Mutex, PoisonError};

use edge::message::memory::What;
use edge::message::passage::{Asked, Passage};
use edge::message::trace::new_id;
use edge::porch::runtime::Runtime;
use edge::settings::{Ruling, Spam};
use flow::{Action, Flow, Protocol, Scoring, Study, Terms};
use mailbox::{Body, Handle, Learner, Reader as _};
use tokio::sync::{mpsc, watch};

/// Messages that wait.
const WAITING_MAX: usize = 10_000;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 16 << 10;

/// Inspector and settings for moved mail; `None` if moved mail is not learned.
#[derive(Clone, Default)]
pub struct Teachers(Arc<Mutex<Option<Teacher>>>);

#[derive(Clone)]
struct Teacher {
    runtime: Arc<Runtime>,
    ruling: Arc<Ruling>,
}

/// The way to the thread, which ends with it.
pub struct Moves {
    teachers: Teachers,
    messages: mpsc::Sender<Moved>,
}

struct Moved {
    user: Box<str>,
    message: u64,
    is_spam: bool,
}

impl Teachers {
    /// From here on this holds.
    pub fn show(&self, runtime: &Arc<Runtime>, spam: Option<Spam>) {
        let spam = spam.filter(|spam| spam.bayes.as_ref().is_some_and(|bayes| bayes.moves));
        // Whose words are learned asks nobody.
        let ruling = spam.map(|spam| Arc::new(Ruling::to_learn(Spam { wait: None, ..spam })));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            ruling.map(|ruling| Teacher { runtime: runtime.clone(), ruling });
    }

    fn now(&self) -> Option<Teacher> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Moves {
    /// Starts the thread, for messages of this store. It ends when the store does, whatever waits.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn start(teachers: Teachers, store: Handle, mut end: watch::Receiver<bool>) -> std::io::Result<Moves> {
        let (messages, mut waiting) = mpsc::channel::<Moved>(WAITING_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let all = teachers.clone();
        let run = move || {
            let learn = async {
                while let Some(moved) = waiting.recv().await {
                    let Some(teacher) = all.now() else { continue };
                    teacher.teach(&store, &moved).await;
                }
            };
            runtime.block_on(async {
                tokio::select! {
                    () = learn => {}
                    _ = end.wait_for(|&ending| ending) => {}
                }
            });
        };
        std::thread::Builder::new().name("moves".into()).spawn(run)?;
        Ok(Moves { teachers, messages })
    }
}

impl Learner for Moves {
    fn moved(&self, user: &str, message: u64, is_spam: bool) {
        let Some(teacher) = self.teachers.now() else { return };
        if self.messages.try_send(Moved { user: user.into(), message, is_spam }).is_err() {
            teacher.lose(user, message, "too many wait");
        }
    }
}

impl Teacher {
    async fn teach(&self, store: &Handle, Moved { user, message, is_spam }: &Moved) {
        let what = if *is_spam { What::Spam } else { What::Ham };
        match self.learn(store, *message, what).await {
            Ok(changed) => tracing::info!(user, message, ?what, changed, "moved mail learned"),
            Err(why) => self.lose(user, *message, why),
        }
    }

    /// Has a message learned; whether that has changed anything.
    async fn learn(&self, store: &Handle, message: u64, what: What) -> Result<bool, &'static str> {
        let scoring = self.ruling.spam.as_ref().ok_or("mails are not scored")?.scoring.clone();
        let mut body = Body::open(store, message).ok_or("it was removed")?;
        if body.size() > scoring.bytes_max {
            return Err("it is too large");
        }
        let asked = Asked {
            flow: Flow { protocol: Protocol::Imap, ..Flow::default() },
            terms: Terms { window_bytes: PIECE_BYTES, ..Terms::default() },
            scoring: Some(Scoring { study: Study::Always, ..scoring }),
            heaviest: Action::Reject,
            ..Asked::default()
        };
        let mut passage = Passage::mail(&self.runtime.means, &new_id(), self.ruling.clone(), asked);
        passage.forgo_copy();
        passage.hold().watch();
        let mut piece = vec![0; PIECE_BYTES];
        let mut offset = 0;
        loop {
            let count = body.read(offset, &mut piece).map_err(|_| "it cannot be read")?;
            if count == 0 {
                break;
            }
            passage.take(&piece[..count], false).await;
            offset += count as u64;
        }
        let verdict = passage.finish().await.map_err(|unfinished| unfinished.words())?;
        let lesson = verdict.score.and_then(|score| score.lesson).ok_or("there is nothing in it to learn")?;
        passage.learn(what, *lesson).await.ok_or("the ledger is unavailable")
    }

    fn lose(&self, user: &str, message: u64, why: &str) {
        self.runtime.metrics.spam_lessons_lost_total.add(1);
        tracing::warn!(user, message, why, "moved mail is not learned");
    }
}
