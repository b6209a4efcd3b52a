//! Putting a mail into the quarantine, and the sweeping of it.
//!
//! The files are written only on a hit, synced, and renamed into place, the facts last, before the client is told
//! anything. See [`crate::quarantine`].

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;

use super::site::Site;
use crate::quarantine::{Facts, expiry};

/// How often is looked for what has to go.
pub const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Puts a mail aside.
pub async fn keep<'a>(folder: &Path, facts: &Facts, mail: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
    let (id, text) = (&facts.id, format!("{:#}\n", serde_json::to_value(facts)?));
    write(folder, &format!("{id}.eml"), mail).await?;
    // The mail has its name for good before the facts say that it is there.
    File::open(folder).await?.sync_all().await?;
    write(folder, &format!("{id}.json"), std::iter::once(text.as_bytes())).await?;
    File::open(folder).await?.sync_all().await
}

async fn write<'a>(folder: &Path, name: &str, pieces: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
    let unfinished = folder.join(format!(".{name}.part"));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).await?;
    for piece in pieces {
        file.write_all(piece).await?;
    }
    file.flush().await?;
    file.sync_all().await?;
    fs::rename(unfinished, folder.join(name)).await
}

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
                    site.metrics.quarantine_expired_total.add(count.into());
                }
                Err(error) => tracing::error!(folder = %folder.display(), %error, "cannot sweep the quarantine"),
            }
        }
    })
    .await;
}
