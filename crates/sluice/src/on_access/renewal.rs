//! New signatures while a folder is mounted or watched.
//!
//! ```text
//!  SIGHUP, a folder of signatures has changed ──► loaded ──► processes that inspect ──► handed on to the mount, or the watch
//! ```
//! What cannot be loaded leaves the old in force. It is done in threads that have kept their rights, since processes are started.

use std::sync::Arc;

use avfs::Judge;
use tokio::signal::unix::Signal;

use super::Inspections;
use crate::cli::OnAccess;
use crate::database;
use crate::database::{Loaded, Wanted};
use crate::output::Failure;
use crate::serve::watcher::Watcher;

/// Loads signatures, and notices when there are others.
pub struct Renewal {
    args: Arc<OnAccess>,
    wanted: Arc<Wanted>,
    /// Nobody, where the kernel will not.
    watcher: Option<Watcher>,
    loaded: Arc<Loaded>,
}

impl Renewal {
    /// Loads what the options name, and watches for changes from before that.
    ///
    /// # Errors
    /// As [`Wanted::open`].
    pub fn open(args: &OnAccess) -> Result<Renewal, Failure> {
        let wanted = database::wanted(&args.database);
        let watcher = Watcher::new(&wanted.paths);
        if let Err(error) = &watcher {
            tracing::warn!(%error, "signature folders cannot be watched for changes");
        }
        let loaded = wanted.open_told()?;
        loaded.warn();
        let (args, wanted, loaded) = (Arc::new(args.clone()), Arc::new(wanted), Arc::new(loaded));
        Ok(Renewal { args, wanted, watcher: watcher.ok(), loaded })
    }

    /// The signatures in force.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Inspector for background work.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub async fn aside(&self) -> Result<Box<dyn Judge>, String> {
        let (args, loaded) = (self.args.clone(), self.loaded.clone());
        apart(move || Ok(Box::new(Inspections::aside(&args, &loaded)?) as Box<dyn Judge>)).await
    }

    /// Waits for other signatures, and hands on who inspects by them.
    pub async fn next(&mut self, hangup: &mut Signal, hand_on: impl Fn(Box<dyn Judge>)) {
        loop {
            self.changed(hangup).await;
            match self.renewed().await {
                Ok(Some((loaded, inspections))) => {
                    loaded.warn();
                    hand_on(Box::new(inspections));
                    tracing::info!(signatures = loaded.signatures, "new signatures");
                    self.loaded = Arc::new(loaded);
                    return;
                }
                Ok(None) => {}
                Err(error) => tracing::error!(%error, "new signatures not loaded, the old ones stay in force"),
            }
        }
    }

    /// Loads signatures again, if they have changed.
    async fn renewed(&self) -> Result<Option<(Loaded, Inspections)>, String> {
        let (args, wanted, old) = (self.args.clone(), self.wanted.clone(), self.loaded.clone());
        apart(move || {
            let Some(new) = wanted.renew(&old)? else { return Ok(None) };
            let inspections = Inspections::new(&args, &new)?;
            Ok(Some((new, inspections)))
        })
        .await
    }

    async fn changed(&self, hangup: &mut Signal) {
        let told = async {
            match &self.watcher {
                Some(watcher) => watcher.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = hangup.recv() => {}
            () = told => {}
        }
    }
}

/// Does something in a thread of its own.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(move || work().map_err(|error| error.to_string()));
    done.await.unwrap_or_else(|error| Err(error.to_string()))
}
