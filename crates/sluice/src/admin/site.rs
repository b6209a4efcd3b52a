//! What the pages are about.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::access::Access;
use super::history::{EVERY, History};
use crate::numbers::ask;
use crate::quarantine::place::Place;

/// What the pages are about.
pub struct Site {
    pub access: Access,
    pub history: History,
    /// Where the gateway's numbers are.
    pub metrics: Option<SocketAddr>,
    /// The quarantines and the configuration that names them.
    pub place: Place,
    /// The configuration.
    pub path: PathBuf,
    pub hostname: String,
}

impl Site {
    /// Asks the gateway for its numbers, again and again.
    pub async fn watch(self: Arc<Site>) {
        let Some(address) = self.metrics else {
            return self.history.take(Err("the configuration has no address in [metrics]".into()));
        };
        loop {
            let answer = spawn_blocking(move || ask(address).map_err(|error| format!("{address}: {error}"))).await;
            self.history.take(answer.unwrap_or_else(|error| Err(error.to_string())));
            tokio::time::sleep(EVERY).await;
        }
    }
}
