//! Taking over what has changed, while everything goes on.
//!
//! ```text
//!  SIGHUP, a client's RELOAD ── everything: configuration and signatures ─┐
//!  a list in a file has changed ──────────── the same                     │
//!  a file of recipients has changed ── recipients alone ──────────────────┤
//!  a folder of signatures has changed ── signatures alone ────────────────┼─► a new site for what begins afterwards
//!  what changed is too much for that ── compiled in the background ───────┘
//! ```
//! A configuration that is right, but more than a running process can take over, is left to a new one ([`NeedsProcess`]).
//! Reading is done on a thread of its own; what is wrong leaves the old in force. What is under way keeps the signatures
//! that it began with, and their memory goes with the last that has them.

use std::path::PathBuf;
use std::sync::Arc;

use edge::porch::control::Control;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

use super::reading::NeedsProcess;
use super::site::Site;
use super::watcher::{Stamp, Watcher, stamps};
use crate::cli::Serve;
use crate::output::Failure;
use crate::process::supervise::lead::{Lead, lead};
use crate::process::supervise::manager::Manager;

/// Scope of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anew {
    /// The files of recipients, if they have changed.
    Recipients,
    /// Signatures, if they have changed, and those.
    Signatures,
    /// Signatures, and the configuration.
    Everything,
}

/// Result of reading: nothing if nothing has changed.
type Read = Result<Option<Site>, Refused>;

/// A configuration that a running process does not take over.
struct Refused {
    reason: String,
    /// A new process can: it is right as far as this one can tell.
    needs_process: bool,
}

impl From<Failure> for Refused {
    fn from(error: Failure) -> Refused {
        Refused { reason: error.to_string(), needs_process: error.is::<NeedsProcess>() }
    }
}

/// Reads things anew, one after the other.
pub struct Reload<'a> {
    args: Arc<Serve>,
    /// Site in force.
    site: Arc<Site>,
    control: &'a watch::Sender<Control>,
    manager: &'a Manager,
    reading: Option<JoinHandle<Read>>,
    /// The last request that what is being read answers, where that is everything.
    answers: Option<u64>,
    /// Scope of the next reload.
    next: Option<Anew>,
    compiling: Option<JoinHandle<Result<(), String>>>,
    watcher: Option<Watcher>,
    /// The same for the files of recipients.
    recipients: Option<Watcher>,
    /// And for the lists that the configuration names.
    lists: Option<Watcher>,
    /// How they were when they were read.
    stamps: Vec<Option<Stamp>>,
}

impl<'a> Reload<'a> {
    /// Nothing is to be read yet.
    pub fn new(args: &Serve, site: Arc<Site>, control: &'a watch::Sender<Control>, manager: &'a Manager) -> Reload<'a> {
        let args = Arc::new(args.clone());
        let mut reload = Reload {
            args,
            site,
            control,
            manager,
            reading: None,
            answers: None,
            next: None,
            compiling: None,
            watcher: None,
            recipients: None,
            lists: None,
            stamps: Vec::new(),
        };
        reload.stamps.clone_from(&reload.site.stamps);
        reload.watch();
        reload
    }

    /// Reads something anew, as soon as what is being read has been.
    pub fn ask(&mut self, what: Anew) {
        self.next = self.next.max(Some(what));
        if self.reading.is_none() {
            self.begin();
        }
    }

    /// Goes on with whatever comes next. It may be dropped at any time.
    pub async fn go_on(&mut self) {
        tokio::select! {
            read = finished(&mut self.reading) => {
                self.reading = None;
                self.take_over(read);
            }
            compiled = finished(&mut self.compiling) => {
                self.compiling = None;
                match flatten(compiled) {
                    Ok(()) => self.ask(Anew::Signatures),
                    Err(error) => {
                        self.site.runtime.metrics.reload_failures_total.add(1);
                        tracing::error!(%error, "signatures not compiled, the old ones stay in force");
                    }
                }
            }
            () = changed(&self.watcher) => self.ask(Anew::Signatures),
            () = changed(&self.recipients) => self.ask(Anew::Recipients),
            // Others may lie in the same folder, the configuration itself among them.
            () = changed(&self.lists) => if self.stamps != stamps(&self.site.config.watched()) {
                self.ask(Anew::Everything);
            },
        }
    }

    fn begin(&mut self) {
        let Some(what) = self.next.take() else { return };
        let (args, old) = (self.args.clone(), self.site.clone());
        if what == Anew::Everything {
            self.stamps = stamps(&self.site.config.watched());
            self.manager.reloading();
            self.answers = Some(lead().map_or(0, Lead::requested));
        }
        self.reading = Some(tokio::task::spawn_blocking(move || match what {
            Anew::Everything => Site::load(&args, Some(&old)).map(Some).map_err(Refused::from),
            Anew::Signatures => {
                let signed = old.with_new_signatures()?;
                Ok(signed.as_ref().unwrap_or(&old).with_new_recipients().or(signed))
            }
            Anew::Recipients => Ok(old.with_new_recipients()),
        }));
    }

    fn take_over(&mut self, read: Result<Read, JoinError>) {
        let lost = |error: JoinError| Err(Refused { reason: error.to_string(), needs_process: false });
        let (read, answers) = (read.unwrap_or_else(lost), self.answers.take());
        let answer = |outcome, text: &str| {
            lead().zip(answers).iter().for_each(|(lead, up_to)| lead.answer(outcome, *up_to, text));
        };
        match read {
            Ok(Some(site)) => {
                let before = std::mem::replace(&mut self.site, Arc::new(site));
                if before.stamps != self.site.stamps {
                    self.stamps.clone_from(&self.site.stamps);
                }
                let runtime = self.site.runtime.clone();
                // Before the event loops take them.
                super::hand_up(&self.site);
                self.site.begin();
                let (generation, signatures) = (runtime.signatures.generation, runtime.signatures.count);
                self.control.send_modify(|control| control.runtime = runtime);
                tracing::info!(generation, signatures, "reloaded");
                answer("reloaded", &format!("reloaded, {}", super::status(&self.site.runtime)));
            }
            Ok(None) => answer("reloaded", "nothing has changed"),
            Err(Refused { reason, needs_process: true }) if lead().is_some() => {
                tracing::info!(reason, "a new process takes over the configuration");
                answer("replace", &reason);
                // The new process says when it is ready, or the supervisor that there is none.
                return self.begin();
            }
            Err(Refused { reason, .. }) => {
                self.site.runtime.metrics.reload_failures_total.add(1);
                tracing::error!(error = reason, "not reloaded, the old configuration stays in force");
                answer("failed", &reason);
            }
        }
        self.manager.ready(&super::status(&self.site.runtime));
        self.compile_what_is_due();
        self.begin();
        self.watch();
    }

    /// Has the whole compiled, if what is in force is not that.
    fn compile_what_is_due(&mut self) {
        let site = self.site.clone();
        if site.database.is_due && self.compiling.is_none() {
            tracing::info!("compiling signatures");
            let compile = move || site.wanted.compile(&mut |_, _| ()).map(drop).map_err(|error| error.to_string());
            self.compiling = Some(tokio::task::spawn_blocking(compile));
        }
    }

    /// Watches what the site in force was made from. Something may have changed since it was read.
    fn watch(&mut self) {
        let site = self.site.clone();
        let signatures = if site.config.database.watch { &*site.wanted.paths } else { &[] };
        let recipients: Vec<_> = site.runtime.recipients.lists().map(|list| list.path.clone()).collect();
        if watch(&mut self.watcher, signatures) {
            self.ask(Anew::Signatures);
        }
        if watch(&mut self.recipients, &recipients) {
            self.ask(Anew::Recipients);
        }
        let lists = site.config.watched();
        if watch(&mut self.lists, &lists) && self.stamps != stamps(&lists) {
            self.ask(Anew::Everything);
        }
    }

    /// Site in force.
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }
}

/// Watches these paths, unless they are watched already; whether there is anything new to be looked at.
fn watch(watcher: &mut Option<Watcher>, wanted: &[PathBuf]) -> bool {
    if watcher.as_ref().map_or(&[] as &[_], |watcher| &watcher.paths) == wanted {
        return false;
    }
    *watcher = None;
    match Watcher::new(wanted) {
        Ok(new) => *watcher = Some(new),
        Err(error) => tracing::warn!(%error, "files cannot be watched for changes"),
    }
    true
}

/// Waits for a task, if there is one.
async fn finished<T>(task: &mut Option<JoinHandle<T>>) -> Result<T, JoinError> {
    match task {
        Some(task) => task.await,
        None => std::future::pending().await,
    }
}

fn flatten<T>(outcome: Result<Result<T, String>, JoinError>) -> Result<T, String> {
    outcome.unwrap_or_else(|error| Err(error.to_string()))
}

async fn changed(watcher: &Option<Watcher>) {
    match watcher {
        Some(watcher) => watcher.changed().await,
        None => std::future::pending().await,
    }
}
