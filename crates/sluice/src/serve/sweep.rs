//! The sweeping of the quarantine, as long as the gateway runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use edge::quarantine::expiry;

use super::site::Site;

/// How often is looked for what has to go.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Removes what is too old or too much from each folder, in a thread of its own.
pub async fn sweep(site: Arc<Site>) {
    let _ = tokio::task::spawn_blocking(move || {
        let mut folders: Vec<PathBuf> = site.config.quarantines().map(Path::to_path_buf).collect();
        folders.sort();
        folders.dedup();
        for folder in folders {
            match expiry::sweep(&folder, &site.config.quarantine, SystemTime::now()) {
                Ok(expired) => {
                    let count = expired.too_old + expired.too_much;
                    site.runtime.metrics.quarantine_expired_total.add(count.into());
                }
                Err(error) => tracing::error!(folder = %folder.display(), %error, "cannot sweep the quarantine"),
            }
        }
    })
    .await;
}
