//! The mail store within `sluice serve`: its sockets, the mail that doors hand to it, and the gateway as its [host](super::host).

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use edge::message::authenticity::Evaluations;
use edge::message::memory::What;
use edge::message::passage::{Asked, Passage};
use edge::message::trace::new_id;
use edge::metrics::SessionOpen;
use edge::net::listening::Sockets;
use edge::net::stream::Stream;
use edge::porch::runtime::Runtime;
use edge::settings::{Ruling, Spam, Tls};
use edge::upstream::within;
use flow::{Action, Context, Flow, Inspecting, Protocol, Scoring, Study, Terms};
use mailbox::Elsewhere;
use mailbox::discovery::Discovery;
use tokio::sync::mpsc;

use super::host::{Host, LocalWork, Mail, Nobody, Unlearned, Work};
use super::server::{Open, Server};
use crate::config::dns::DnsSettings;
use crate::config::{ClusterSettings, Door, StoreSettings};
use crate::output::Failure;

/// Connections that wait for a store that is not open yet.
const WAITING_MAX: usize = 4_096;

/// Bytes of a mail that are read at a time to be learned.
const PIECE_BYTES: usize = 16 << 10;

/// The store, for the whole run.
pub struct Store {
    /// Settings of the store.
    pub settings: StoreSettings,
    open: Arc<Open>,
    gateway: Arc<Gateway>,
    server: Arc<Server>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Opens the sockets.
    ///
    /// # Errors
    /// When an address cannot be had.
    pub fn open(
        settings: &StoreSettings,
        (cluster, stop_seconds): (Option<&ClusterSettings>, u64),
        authorities: &std::path::Path,
        discovery: Discovery,
    ) -> Result<Store, String> {
        let open = Arc::new(Open::new(settings, cluster)?);
        let gateway = Arc::new(Gateway::default());
        let server = Server::new(settings, (cluster, stop_seconds), authorities, discovery, gateway.clone())?;
        let server = Arc::new(server);
        Ok(Store { settings: settings.clone(), open, gateway, server, thread: Mutex::default() })
    }

    /// The doors, and where they listen.
    pub fn doors(&self) -> &[(Door, Sockets)] {
        &self.open.doors
    }

    /// The sockets of all its doors.
    pub fn all_sockets(&self) -> impl Iterator<Item = &Sockets> {
        self.open.doors.iter().map(|(_, sockets)| sockets).chain(&self.open.reception)
    }

    /// Sets certificates, inspector and learner of the store since the last reload.
    pub fn show(&self, runtime: &Arc<Runtime>, spam: Option<Spam>) {
        self.gateway.show(runtime, spam);
    }

    /// Opens the store, which is made if it is not there, and begins to serve; `elsewhere` knows accounts that its file does not.
    ///
    /// # Errors
    /// As [`Server::prepare`].
    pub fn begin(
        &self,
        hostname: &str,
        dns: &DnsSettings,
        tls: &Tls,
        elsewhere: Option<Arc<dyn Elsewhere>>,
    ) -> Result<(), Failure> {
        let prepared = self.server.prepare(hostname, dns, tls, elsewhere)?;
        let (handed, waiting) = mpsc::channel(WAITING_MAX);
        let hand = move |stream, caller| {
            handed.try_send((stream, caller)).map_err(|error| {
                let (stream, _) = error.into_inner();
                stream
            })
        };
        within::offer(Box::new(hand));
        let (server, open) = (self.server.clone(), self.open.clone());
        let run = move || {
            if let Err(error) = server.run(prepared, &open, waiting) {
                tracing::error!(%error, "the store is closed");
            }
        };
        let thread = std::thread::Builder::new().name("store".into()).spawn(run)?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// The counter of evaluations of DMARC, where reports are sent.
    pub fn evaluations(&self) -> Option<Arc<dyn Evaluations>> {
        self.server.evaluations()
    }

    /// Its numbers, in Prometheus' text format.
    pub fn numbers(&self) -> String {
        self.server.numbers()
    }

    /// Closes the store as soon as the mails that are being handed over are in it.
    pub fn end(&self) {
        self.server.end();
    }

    /// The same where no door hands over anything any more, and waits for it.
    pub fn finish(&self) {
        self.server.is_over();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.map(JoinHandle::join);
    }
}

/// The gateway as the host of its store: certificates, inspector and learner since the last reload.
#[derive(Default)]
struct Gateway(Mutex<Option<Shown>>);

#[derive(Clone)]
struct Shown {
    runtime: Arc<Runtime>,
    /// Settings for moved mail; none where it is not learned.
    lessons: Option<Arc<Ruling>>,
}

impl Gateway {
    fn show(&self, runtime: &Arc<Runtime>, spam: Option<Spam>) {
        let spam = spam.filter(|spam| spam.bayes.as_ref().is_some_and(|bayes| bayes.moves));
        // Whose words are learned asks nobody.
        let lessons = spam.map(|spam| Arc::new(Ruling::to_learn(Spam { wait: None, ..spam })));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Shown { runtime: runtime.clone(), lessons });
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
        match self.now() {
            Some(Shown { runtime, .. }) => {
                runtime.means.inspector.open(Context { passwords: runtime.means.passwords.clone(), ..context })
            }
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
