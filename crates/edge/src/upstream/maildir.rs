//! A Maildir as the next hop: <https://cr.yp.to/proto/maildir.html>.
//!
//! A mail is written to `tmp`, synced, renamed into `new`, and the folder synced: only then is it acknowledged. What a
//! crash leaves is a file in `tmp` that no reader shows; at each start those of ours go that are older than Maildirs keep
//! them. Disk work is done on tokio's blocking threads, so that a slow
//! disk stops nobody else.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;

/// How long a file in `tmp` may be somebody's who is still writing it: the convention of Maildirs.
const TMP_KEPT: Duration = Duration::from_secs(36 * 3_600);

/// Makes the three folders, and removes what a crash of ours has left long ago.
pub fn prepare(folder: &Path) -> io::Result<()> {
    ["tmp", "new", "cur"].iter().try_for_each(|part| std::fs::create_dir_all(folder.join(part)))?;
    let removed = clean(&folder.join("tmp"), SystemTime::now())?;
    if removed > 0 {
        tracing::info!(folder = %folder.display(), removed, "temporary files of a crash removed");
    }
    Ok(())
}

/// Removes our files from `tmp` that were not written to for [`TMP_KEPT`]; returns their number.
fn clean(tmp: &Path, now: SystemTime) -> io::Result<usize> {
    let mut removed = 0;
    for entry in std::fs::read_dir(tmp)? {
        let entry = entry?;
        let Ok(facts) = entry.metadata() else { continue };
        let since = facts.modified().unwrap_or(now);
        let is_old = now.duration_since(since).is_ok_and(|age| age > TMP_KEPT);
        let is_ours = entry.file_name().to_str().is_some_and(is_unique_name);
        if facts.is_file() && is_old && is_ours && std::fs::remove_file(entry.path()).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
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

/// Whether a file has a name such as [`unique_name`] makes.
fn is_unique_name(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = name.splitn(3, '.');
    let (seconds, delivery, host) = (parts.next(), parts.next(), parts.next());
    let numbers = delivery.and_then(|text| text.strip_prefix('M')).and_then(|text| {
        let (micros, rest) = text.split_once('P')?;
        let (process, count) = rest.split_once('Q')?;
        Some([micros, process, count])
    });
    seconds.is_some_and(digits) && host.is_some() && numbers.is_some_and(|numbers| numbers.into_iter().all(digits))
}

/// A name that no other delivery has: time, process, count, host.
fn unique_name(hostname: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let host: String = hostname.chars().map(|c| if matches!(c, '/' | ':' | '\0') { '_' } else { c }).collect();
    format!("{}.M{}P{}Q{}.{host}", now.as_secs(), now.subsec_micros(), std::process::id(), COUNT.fetch_add(1, Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crash_left_long_ago_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path()).unwrap();
        let tmp = folder.path().join("tmp");
        let (old, new) = (unique_name("mx.test"), unique_name("mx.test"));
        for name in [&old, &new, "1700000000.12345.other", "note"] {
            std::fs::write(tmp.join(name), "x").unwrap();
        }
        let day = Duration::from_secs(86_400);
        for name in [&old, "1700000000.12345.other", "note"] {
            let file = std::fs::File::options().write(true).open(tmp.join(name)).unwrap();
            file.set_modified(SystemTime::now() - 2 * day).unwrap();
        }
        prepare(folder.path()).unwrap();
        assert!(!tmp.join(old).exists() && tmp.join(new).exists(), "the old one goes, the new one stays");
        assert!(tmp.join("note").exists() && tmp.join("1700000000.12345.other").exists(), "others' files stay");
    }
}
