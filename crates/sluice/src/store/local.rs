//! The mail store of `sluice serve`: its sockets, the mail that doors hand to it, and where its server runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use edge::message::authenticity::Evaluations;
use edge::net::listening::Sockets;
use edge::porch::runtime::Runtime;
use edge::settings::Spam;
use edge::upstream::within;
use mailbox::Elsewhere;
use tokio::sync::mpsc;

use super::apart::{self, Apart};
use super::folder::Newcomer;
use super::gateway::Gateway;
use super::server::{Open, Server};
use super::{discovery, folder};
use crate::cluster::documents::State;
use crate::config::{Config, Door, StoreSettings};
use crate::output::Failure;
use crate::process::supervise::lead::lead;

/// Connections that wait for a store that is not open yet.
const WAITING_MAX: usize = 4_096;

/// The store, for the whole run.
pub struct Store {
    /// Settings of the store.
    pub settings: StoreSettings,
    /// Whether files of the edge are those of the cluster.
    pub documents: Arc<State>,
    is_shared: bool,
    open: Arc<Open>,
    gateway: Arc<Gateway>,
    place: Place,
}

/// Where the mail server runs.
enum Place {
    /// In this process, on a thread.
    Here(Arc<Server>, Mutex<Option<JoinHandle<()>>>),
    /// In a process of its own.
    Apart(Arc<Apart>),
}

impl Store {
    /// Opens the sockets.
    ///
    /// # Errors
    /// When an address cannot be had.
    pub fn open(settings: &StoreSettings, config: &Config) -> Result<Store, String> {
        let cluster = config.cluster.as_ref();
        let open = Arc::new(Open::new(settings, cluster)?);
        let gateway = Arc::new(Gateway::default());
        let place = match lead().filter(|_| apart::is_meant(config)) {
            Some(lead) => Place::Apart(Arc::new(Apart::new(
                gateway.clone(),
                lead,
                apart::fingerprint(config),
                settings.sessions_max,
            ))),
            None => {
                let (around, authorities) = ((cluster, config.resources.stop_seconds), &config.tls.authorities);
                let server = Server::new(settings, around, authorities, discovery::of(config), gateway.clone())?;
                Place::Here(Arc::new(server), Mutex::default())
            }
        };
        let (documents, is_shared) = (Arc::default(), cluster.is_some());
        Ok(Store { settings: settings.clone(), documents, is_shared, open, gateway, place })
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
        if let Place::Apart(apart) = &self.place {
            apart.show();
        }
    }

    /// Opens the store, which is made if it is not there, and begins to serve; `elsewhere` knows accounts that its file does not. A
    /// newcomer gets an account.
    ///
    /// # Errors
    /// As [`Server::prepare`].
    pub fn begin(
        &self,
        config: &Config,
        elsewhere: Option<Arc<dyn Elsewhere>>,
        is_newcomer: bool,
    ) -> Result<Option<Newcomer>, Failure> {
        let (server, thread) = match &self.place {
            Place::Here(server, thread) => (server.clone(), thread),
            Place::Apart(apart) => {
                let delivering = apart.clone();
                within::offer(Box::new(move |stream, caller| delivering.deliver(stream, caller)));
                let password = apart.begin(self.all_sockets())?;
                return Ok(password.map(|password| Newcomer { name: folder::NEWCOMER, password }));
            }
        };
        let newcomer = is_newcomer.then(|| folder::welcome(&self.settings, folder::NEWCOMER)).transpose()?;
        let prepared = server.prepare(&config.hostname, &config.dns, &config.tls, elsewhere)?;
        let (handed, waiting) = mpsc::channel(WAITING_MAX);
        let hand = move |stream, caller| {
            handed.try_send((stream, caller)).map_err(|error| {
                let (stream, _) = error.into_inner();
                stream
            })
        };
        within::offer(Box::new(hand));
        let open = self.open.clone();
        let run = move || {
            if let Err(error) = server.run(prepared, &open, waiting) {
                tracing::error!(%error, "the store is closed");
            }
        };
        let running = std::thread::Builder::new().name("store".into()).spawn(run)?;
        *thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(newcomer)
    }

    /// The counter of evaluations of DMARC, where reports are sent.
    pub fn evaluations(&self) -> Option<Arc<dyn Evaluations>> {
        match &self.place {
            Place::Here(server, _) => server.evaluations(),
            Place::Apart(apart) => {
                let are_reported = self.settings.queue.dmarc_reports.is_some();
                are_reported.then(|| apart.clone() as Arc<dyn Evaluations>)
            }
        }
    }

    /// Its numbers, in Prometheus' text format.
    pub fn numbers(&self) -> String {
        match &self.place {
            Place::Here(server, _) => server.numbers(),
            Place::Apart(apart) => apart.numbers(),
        }
    }

    /// Numbers of the edge about files of the cluster.
    pub fn documents_text(&self) -> String {
        if self.is_shared { self.documents.text("edge") } else { String::new() }
    }

    /// Closes the store as soon as the mails that are being handed over are in it.
    pub fn end(&self) {
        match &self.place {
            Place::Here(server, _) => server.end(),
            Place::Apart(apart) => apart.end(),
        }
    }

    /// The same where no door hands over anything any more, and waits for it.
    pub fn finish(&self) {
        match &self.place {
            Place::Here(server, thread) => {
                server.is_over();
                let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
                thread.map(JoinHandle::join);
            }
            Place::Apart(apart) => apart.finish(),
        }
    }
}
