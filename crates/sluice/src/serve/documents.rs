//! Files of the edge that the nodes of a cluster share: the folder of ACME, and those that `[cluster] documents` names. A reload takes them
//! into use.

use std::sync::Arc;

use edge::porch::caretaker::Orders;
use tokio::sync::watch;

use super::site::Site;
use crate::cluster::documents::{Document, Documents, Keeper, State, of_edge};
use crate::config::Config;
use crate::output::Failure;

/// The keeper of the files, on a thread of its own until the process ends.
pub struct Shared {
    files: watch::Sender<Vec<Document>>,
    written: watch::Receiver<u64>,
    /// Whether this machine orders certificates.
    pub orders: watch::Receiver<Orders>,
    /// Keeps the keeper.
    _end: watch::Sender<bool>,
}

impl Shared {
    /// Begins to keep the files of a site; there are none without a cluster.
    ///
    /// # Errors
    /// When files of `[cluster]` cannot be read.
    pub fn begin(site: &Site, state: Arc<State>) -> Result<Shared, Failure> {
        let (files, of_keeper) = watch::channel(of_edge(&site.config));
        let (end, ending) = watch::channel(false);
        let Some(documents) = Documents::of(&site.config)? else {
            let (written, orders) = (watch::channel(0).1, watch::channel(Orders::Own).1);
            return Ok(Shared { files, written, orders, _end: end });
        };
        let keeper = Keeper::new(documents, of_keeper, state);
        let (written, orders) = (keeper.written(), keeper.orders());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let keep = move || runtime.block_on(keeper.run(ending));
        std::thread::Builder::new().name("documents".into()).spawn(keep)?;
        Ok(Shared { files, written, orders, _end: end })
    }

    /// The files are those of this configuration from here on.
    pub fn show(&self, config: &Config) {
        self.files.send_replace(of_edge(config));
    }

    /// Waits until another node's version was written to a file.
    pub async fn written(&mut self) {
        if self.written.changed().await.is_err() {
            std::future::pending().await
        }
    }
}
