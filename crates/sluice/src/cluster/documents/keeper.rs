//! Keeps files and documents in step: at each notification of the database, and every 5 s.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use edge::porch::caretaker::Orders;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Document, Documents, Outcome};
use crate::cluster::postgres::Session;

/// How often files and documents are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The state of a keeper, for metrics.
#[derive(Debug, Default)]
pub struct State(Mutex<Option<Instant>>);

/// Files of a process that it keeps in step.
pub struct Keeper {
    documents: Documents,
    files: watch::Receiver<Vec<Document>>,
    state: Arc<State>,
    /// Counts files that were written, and whose users have to be told.
    written: watch::Sender<u64>,
    /// Whether this node orders certificates.
    orders: watch::Sender<Orders>,
    session: Option<Session>,
    /// Versions that this node is known to have.
    held: BTreeMap<String, u64>,
    /// Errors that were logged.
    troubles: BTreeMap<String, String>,
}

impl State {
    /// Seconds since everything was in step.
    pub fn behind_seconds(&self) -> u64 {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.map_or(0, |since| since.elapsed().as_secs())
    }

    /// The metric of the states of this process.
    pub fn text(&self, process: &str) -> String {
        let name = "sluice_cluster_documents_behind_seconds";
        let help = "Seconds since files of this node and documents of the cluster were in step.";
        format!(
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name}{{process=\"{process}\"}} {}\n",
            self.behind_seconds()
        )
    }

    fn set(&self, is_behind: bool) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *since = if is_behind { since.or_else(|| Some(Instant::now())) } else { None };
    }
}

impl Keeper {
    /// A keeper of these files.
    pub fn new(documents: Documents, files: watch::Receiver<Vec<Document>>, state: Arc<State>) -> Keeper {
        Keeper {
            documents,
            files,
            state,
            written: watch::channel(0).0,
            orders: watch::channel(Orders::Others).0,
            session: None,
            held: BTreeMap::new(),
            troubles: BTreeMap::new(),
        }
    }

    /// Counts files that were written, and whose users have to be told.
    pub fn written(&self) -> watch::Receiver<u64> {
        self.written.subscribe()
    }

    /// Whether this node orders certificates.
    pub fn orders(&self) -> watch::Receiver<Orders> {
        self.orders.subscribe()
    }

    /// Keeps until the end. It locks files and waits for it, so it has a thread of its own.
    pub async fn run(mut self, mut end: watch::Receiver<bool>) {
        loop {
            let passed = self.pass().await;
            if passed.is_err() {
                self.session = None;
                self.orders.send_if_modified(|orders| std::mem::replace(orders, Orders::Others) != Orders::Others);
            }
            let is_behind = passed.is_err() || !self.troubles.is_empty();
            self.heard("database", passed.err());
            self.state.set(is_behind);
            let bell = self.session.as_ref().map(|session| session.bell.clone());
            let rung = async {
                match bell {
                    Some(bell) => bell.notified().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = end.wait_for(|&ending| ending) => return,
                _ = timeout(LOOK_EVERY, rung) => {}
            }
        }
    }

    /// Looks at all files once.
    async fn pass(&mut self) -> Result<(), String> {
        let session = match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => session,
            None => {
                let session = self.documents.database.connect().await?;
                session.listen().await?;
                session
            }
        };
        let listed = session.documents().await?;
        let (node, sharer) = (self.documents.node.clone(), session.sharer().await?);
        let owner = session.look(&node).await?.and_then(|volume| volume.owner);
        let orders = match &sharer {
            None => Orders::Own,
            Some(_) if owner.as_ref() == Some(&node) => Orders::Shared,
            Some(_) => Orders::Others,
        };
        let makes_all = sharer.is_some_and(|sharer| sharer == node);
        let files = self.files.borrow().clone();
        for document in files {
            let listed = listed.iter().find(|listed| listed.name == document.name);
            let makes = makes_all || document.is_of_acme && orders == Orders::Shared;
            let outcome = self.documents.sync(&session, &document, listed, makes).await;
            let number = outcome.as_ref().ok().and_then(|outcome| self.told(&document, outcome));
            self.heard(&document.name, outcome.err());
            if let Some(number) = number.filter(|number| self.held.get(&document.name) != Some(number)) {
                session.hold_document(&self.documents.node, &document.name, number).await?;
                self.held.insert(document.name, number);
            }
        }
        self.session = Some(session);
        // Not before the files are those of the cluster.
        let orders = if self.troubles.keys().any(|name| name.starts_with("acme/")) { Orders::Others } else { orders };
        self.orders.send_if_modified(|before| std::mem::replace(before, orders) != orders);
        Ok(())
    }

    /// Logs what was done; the version that the file is.
    fn told(&self, Document { name, path, is_told, is_of_acme, .. }: &Document, outcome: &Outcome) -> Option<u64> {
        let file = path.display();
        match outcome {
            Outcome::Unshared | Outcome::Later => return None,
            Outcome::Same(number) => return Some(*number),
            Outcome::Pushed(version) => {
                tracing::info!(document = name, version, %file, "this file is shared with all nodes")
            }
            Outcome::Took(version, None) => tracing::info!(document = name, version, %file, "the document was taken"),
            Outcome::Took(version, Some(kept)) => {
                let kept = kept.display();
                tracing::warn!(document = name, version, %file, %kept, "the file was another one, and is kept beside the document");
            }
        }
        // An edit by hand has to be told as well.
        let is_new = matches!(outcome, Outcome::Took(..)) || !is_of_acme;
        if *is_told && is_new {
            self.written.send_modify(|count| *count += 1);
        }
        match outcome {
            Outcome::Pushed(number) | Outcome::Took(number, _) => Some(*number),
            _ => None,
        }
    }

    /// Logs a trouble once, and its end.
    fn heard(&mut self, about: &str, error: Option<String>) {
        match error {
            Some(error) if self.troubles.get(about) != Some(&error) => {
                tracing::warn!(document = about, error, "not in step with the cluster: the file stays as it is");
                self.troubles.insert(about.to_owned(), error);
            }
            None if self.troubles.remove(about).is_some() => {
                tracing::info!(document = about, "in step with the cluster again");
            }
            _ => {}
        }
    }
}
