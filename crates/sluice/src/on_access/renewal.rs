//! New signatures while a folder is mounted.
//!
//! ```text
//!  SIGHUP, a folder of signatures has changed ──► loaded ──► processes that inspect ──► the mount ──► what was clean, again
//! ```
//! What cannot be loaded leaves the old in force. It is done in threads that have kept their rights, since processes are started.

use std::sync::Arc;

use avfs::Mounted;
use tokio::signal::unix::Signal;

use super::Inspections;
use crate::cli::{Mount, MountRescan};
use crate::database::{Loaded, Wanted};
use crate::serve::watcher::Watcher;
use crate::{Failure, database};

/// Loads signatures, and notices when there are others.
pub struct Renewal {
    wanted: Arc<Wanted>,
    /// Nobody, where the kernel will not.
    watcher: Option<Watcher>,
}

impl Renewal {
    /// Watches for changes from here on.
    pub fn new(args: &Mount) -> Renewal {
        let wanted = Arc::new(database::wanted(&args.common.database));
        let watcher = Watcher::new(&wanted.paths);
        if let Err(error) = &watcher {
            tracing::warn!(%error, "changes of signatures are not watched for");
        }
        Renewal { wanted, watcher: watcher.ok() }
    }

    /// The signatures as they are.
    ///
    /// # Errors
    /// As [`Wanted::open`].
    pub fn open(&self) -> Result<Loaded, Failure> {
        self.wanted.open_told()
    }

    /// Has what was known by others inspected in the background, and takes over new signatures, as long as it is waited for.
    pub async fn run(self, args: &Mount, mounted: &Mounted, loaded: Loaded, mut hangup: Signal) {
        if args.pass_all {
            return std::future::pending().await;
        }
        let (args, mut loaded) = (Arc::new(args.clone()), Arc::new(loaded));
        loop {
            rescan(&args, mounted, &loaded).await;
            while !self.take_over(&args, mounted, &mut loaded).await {
                self.changed(&mut hangup).await;
            }
        }
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

    /// Takes over what has changed; whether something has.
    async fn take_over(&self, args: &Arc<Mount>, mounted: &Mounted, loaded: &mut Arc<Loaded>) -> bool {
        let (args, wanted, old) = (args.clone(), self.wanted.clone(), loaded.clone());
        let renewed = apart(move || {
            let Some(new) = wanted.renew(&old)? else { return Ok(None) };
            let inspections = Inspections::new(&args.common, &new)?;
            Ok(Some((new, inspections)))
        });
        match renewed.await {
            Ok(None) => false,
            Ok(Some((new, inspections))) => {
                new.warn();
                mounted.renew(Box::new(inspections));
                tracing::info!(signatures = new.signatures, "new signatures");
                *loaded = Arc::new(new);
                true
            }
            Err(error) => {
                tracing::error!(%error, "no new signatures, the old ones stay in force");
                false
            }
        }
    }
}

/// Has what is not known by these signatures inspected, if that is wanted.
async fn rescan(args: &Arc<Mount>, mounted: &Mounted, loaded: &Arc<Loaded>) {
    if args.rescan == MountRescan::Off {
        return;
    }
    let (args, loaded) = (args.clone(), loaded.clone());
    match apart(move || Inspections::aside(&args.common, &loaded)).await {
        Ok(inspections) => mounted.rescan(Box::new(inspections)),
        Err(error) => tracing::error!(%error, "nothing is inspected in the background"),
    }
}

/// Does something in a thread of its own.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(move || work().map_err(|error| error.to_string()));
    done.await.unwrap_or_else(|error| Err(error.to_string()))
}
