//! A Maildir as the next hop: <https://cr.yp.to/proto/maildir.html>.
//!
//! A mail is written to `tmp`, synced, renamed into `new`, and the folder synced: only then is it acknowledged. What a
//! crash leaves is a file in `tmp` that no reader shows. Disk work is done on tokio's blocking threads, so that a slow
//! disk stops nobody else.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;

/// Makes the three folders.
pub fn prepare(folder: &Path) -> io::Result<()> {
    ["tmp", "new", "cur"].iter().try_for_each(|part| std::fs::create_dir_all(folder.join(part)))
}

/// A mail on its way into a Maildir. Dropping it before [`Delivery::commit`] removes it.
pub struct Delivery {
    folder: PathBuf,
    name: String,
    file: Option<File>,
}

impl Delivery {
    /// Begins a file in `tmp`.
    pub async fn begin(folder: &Path, hostname: &str) -> io::Result<Delivery> {
        let name = unique_name(hostname);
        let path = folder.join("tmp").join(&name);
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path).await?;
        Ok(Delivery { folder: folder.into(), name, file: Some(file) })
    }

    /// Writes more of the mail; line ends become those of the system.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = self.file.as_mut().expect("the file is open until it is committed");
        file.write_all(bytes).await
    }

    /// Makes the mail durable and visible.
    pub async fn commit(mut self) -> io::Result<()> {
        let mut file = self.file.take().expect("the file is open until it is committed");
        let outcome = self.publish(&mut file).await;
        if outcome.is_err() {
            let _ = fs::remove_file(self.folder.join("tmp").join(&self.name)).await;
        }
        outcome
    }

    async fn publish(&self, file: &mut File) -> io::Result<()> {
        file.flush().await?;
        file.sync_all().await?;
        let new = self.folder.join("new");
        fs::rename(self.folder.join("tmp").join(&self.name), new.join(&self.name)).await?;
        File::open(new).await?.sync_all().await
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(self.folder.join("tmp").join(&self.name));
        }
    }
}

/// A name that no other delivery has: time, process, count, host.
fn unique_name(hostname: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let host: String = hostname.chars().map(|c| if matches!(c, '/' | ':' | '\0') { '_' } else { c }).collect();
    format!("{}.M{}P{}Q{}.{host}", now.as_secs(), now.subsec_micros(), std::process::id(), COUNT.fetch_add(1, Relaxed))
}
