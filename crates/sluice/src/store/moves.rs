//! Mail that users move into the mailbox for junk, or out of it, is learned: a thread has it inspected again, as a door has mail
//! that its client tells of, and hands what is to be learned to whoever keeps that.
//!
//! Bounds: `WAITING_MAX` messages that wait, of a few bytes each; one at a time is read, and none that is larger than is scored.
//! What finds no room, or cannot be inspected, is not learned: the log says so, and a metric counts it.

use std::sync::Arc;

use edge::message::memory::What;
use mailbox::{Body, Handle, Learner};
use tokio::sync::{mpsc, watch};

use super::host::{Host, Unlearned};

/// Messages that wait.
const WAITING_MAX: usize = 10_000;

/// The way to the thread, which ends with it.
pub struct Moves {
    host: Arc<dyn Host>,
    messages: mpsc::Sender<Moved>,
}

struct Moved {
    user: Box<str>,
    message: u64,
    is_spam: bool,
}

impl Moves {
    /// Starts the thread, for messages of this store. It ends when the store does, whatever waits.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn start(host: Arc<dyn Host>, store: Handle, mut end: watch::Receiver<bool>) -> std::io::Result<Moves> {
        let (messages, mut waiting) = mpsc::channel::<Moved>(WAITING_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let lent = host.clone();
        let run = move || {
            let learn = async {
                while let Some(moved) = waiting.recv().await {
                    if lent.learns() {
                        teach(&*lent, &store, &moved).await;
                    }
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
        Ok(Moves { host, messages })
    }
}

impl Learner for Moves {
    fn moved(&self, user: &str, message: u64, is_spam: bool) {
        if self.host.learns() && self.messages.try_send(Moved { user: user.into(), message, is_spam }).is_err() {
            lose(&*self.host, user, message, "too many wait");
        }
    }
}

async fn teach(host: &dyn Host, store: &Handle, Moved { user, message, is_spam }: &Moved) {
    let what = if *is_spam { What::Spam } else { What::Ham };
    match learn(host, store, *message, *is_spam).await {
        Ok(changed) => tracing::info!(user, message, ?what, changed, "moved mail learned"),
        Err(why) => lose(host, user, *message, &why),
    }
}

async fn learn(host: &dyn Host, store: &Handle, message: u64, is_spam: bool) -> Result<bool, Unlearned> {
    let mut body = Body::open(store, message).ok_or("it was removed")?;
    host.learn(is_spam, &mut body).await
}

fn lose(host: &dyn Host, user: &str, message: u64, why: &str) {
    host.lose_lesson();
    tracing::warn!(user, message, why, "moved mail is not learned");
}
