//! The gateway as the [host](super::host) of its store: certificates, inspector and learner since the last reload.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use edge::message::memory::What;
use edge::message::passage::{Asked, Passage};
use edge::message::trace::new_id;
use edge::metrics::SessionOpen;
use edge::net::stream::Stream;
use edge::porch::runtime::Runtime;
use edge::settings::{Ruling, Spam};
use flow::{Action, Context, Flow, Inspecting, Inspector, Protocol, Scoring, Study, Terms};

use super::host::{Host, LocalWork, Mail, Nobody, Unlearned, Work};

/// Bytes of a mail that are read at a time to be learned.
const PIECE_BYTES: usize = 16 << 10;

/// An inspector, and the passwords that it tries.
pub type Lender = (Arc<dyn Inspector>, Arc<[Box<[u8]>]>);

/// The gateway as the host of its store: certificates, inspector and learner since the last reload.
#[derive(Default)]
pub struct Gateway(Mutex<Option<Shown>>);

#[derive(Clone)]
struct Shown {
    runtime: Arc<Runtime>,
    /// Settings for moved mail; none where it is not learned.
    lessons: Option<Arc<Ruling>>,
}

impl Gateway {
    /// From here on this holds.
    pub fn show(&self, runtime: &Arc<Runtime>, spam: Option<Spam>) {
        let spam = spam.filter(|spam| spam.bayes.as_ref().is_some_and(|bayes| bayes.moves));
        // Whose words are learned asks nobody.
        let lessons = spam.map(|spam| Arc::new(Ruling::to_learn(Spam { wait: None, ..spam })));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Shown { runtime: runtime.clone(), lessons });
    }

    /// The inspector, with the passwords that it tries; none before the gateway begins.
    pub fn lender(&self) -> Option<Lender> {
        let means = &self.now()?.runtime.means;
        Some((means.inspector.clone(), means.passwords.clone()))
    }

    fn now(&self) -> Option<Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Host for Gateway {
    fn has_tls(&self) -> bool {
        self.now().is_some_and(|shown| shown.runtime.tls.is_some())
    }

    fn secure(&self, stream: Stream) -> Work<'_, io::Result<Stream>> {
        let tls = self.now().and_then(|shown| shown.runtime.tls.clone());
        Box::pin(async { stream.accept_tls(tls.ok_or_else(|| io::Error::other("there is no certificate"))?).await })
    }

    fn session(&self) -> Option<Box<dyn Send + Sync>> {
        self.now().map(|shown| Box::new(SessionOpen::in_store(&shown.runtime.metrics)) as Box<dyn Send + Sync>)
    }

    fn inspect(&self, context: Context) -> Box<dyn Inspecting> {
        match self.lender() {
            Some((inspector, passwords)) => inspector.open(Context { passwords, ..context }),
            None => Box::new(Nobody),
        }
    }

    fn learns(&self) -> bool {
        self.now().is_some_and(|shown| shown.lessons.is_some())
    }

    fn learn<'a>(&'a self, is_spam: bool, mail: &'a mut dyn Mail) -> LocalWork<'a, Result<bool, Unlearned>> {
        Box::pin(async move {
            let shown = self.now().ok_or("the gateway begins")?;
            shown.learn(is_spam, mail).await
        })
    }

    fn lose_lesson(&self) {
        self.now().iter().for_each(|shown| shown.runtime.metrics.spam_lessons_lost_total.add(1));
    }
}

impl Shown {
    /// Has a mail inspected as a door has one that its client tells of, and what is to be learned of it learned.
    async fn learn(&self, is_spam: bool, mail: &mut dyn Mail) -> Result<bool, Unlearned> {
        let ruling = self.lessons.clone().ok_or("moved mail is not learned")?;
        let scoring = ruling.spam.as_ref().ok_or("mails are not scored")?.scoring.clone();
        if mail.size() > scoring.bytes_max {
            return Err("it is too large".into());
        }
        let asked = Asked {
            flow: Flow { protocol: Protocol::Imap, ..Flow::default() },
            terms: Terms { window_bytes: PIECE_BYTES, ..Terms::default() },
            scoring: Some(Scoring { study: Study::Always, ..scoring }),
            heaviest: Action::Reject,
            ..Asked::default()
        };
        let mut passage = Passage::mail(&self.runtime.means, &new_id(), ruling, asked);
        passage.forgo_copy();
        passage.hold().watch();
        let mut piece = vec![0; PIECE_BYTES];
        let mut offset = 0;
        loop {
            let count = mail.read(offset, &mut piece)?;
            if count == 0 {
                break;
            }
            passage.take(&piece[..count], false).await;
            offset += count as u64;
        }
        let verdict = passage.finish().await.map_err(|unfinished| unfinished.words())?;
        let lesson = verdict.score.and_then(|score| score.lesson).ok_or("there is nothing in it to learn")?;
        let what = if is_spam { What::Spam } else { What::Ham };
        passage.learn(what, *lesson).await.ok_or_else(|| "the ledger is unavailable".into())
    }
}
