//! Putting a mail into the quarantine.
//!
//! The files are synced and renamed into place, the facts last, before the client is told anything. A mail that is held
//! whole is written on a hit only. Of a larger one, where something may be put aside at all, a [`Draft`] is written while it
//! passes: what has gone to the next hop cannot be had back. See [`crate::quarantine`].

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;

use super::Facts;

/// A mail on its way into the quarantine, in case it has to go there: a file `.ID.eml.part`. Dropping it removes it; what
/// a crash leaves of it is swept away.
pub struct Draft {
    folder: PathBuf,
    id: String,
    file: io::Result<File>,
    is_kept: bool,
}

impl Draft {
    /// Begins the file. Where that fails, or writing does, only who wants to keep the mail has to know.
    pub async fn begin(folder: &Path, id: &str) -> Draft {
        let file = create(&unfinished(folder, &format!("{id}.eml"))).await;
        Draft { folder: folder.into(), id: id.into(), file, is_kept: false }
    }

    /// Writes more of the mail.
    pub async fn write(&mut self, bytes: &[u8]) {
        let Ok(file) = &mut self.file else { return };
        if let Err(error) = file.write_all(bytes).await {
            self.file = Err(error);
            // What nobody can use takes no room.
            let _ = std::fs::remove_file(unfinished(&self.folder, &format!("{}.eml", self.id)));
        }
    }

    /// The mail is complete, and kept.
    ///
    /// # Errors
    /// When something could not be written, now or before; nothing is kept then.
    pub async fn keep(mut self, facts: &Facts) -> io::Result<()> {
        let file = std::mem::replace(&mut self.file, Err(io::ErrorKind::NotFound.into()))?;
        let text = format!("{:#}\n", serde_json::to_value(facts)?);
        publish(&self.folder, &format!("{}.eml", self.id), file).await?;
        self.is_kept = true;
        // The mail has its name for good before the facts say that it is there.
        File::open(&self.folder).await?.sync_all().await?;
        let name = format!("{}.json", self.id);
        let mut file = create(&unfinished(&self.folder, &name)).await?;
        file.write_all(text.as_bytes()).await?;
        publish(&self.folder, &name, file).await?;
        File::open(&self.folder).await?.sync_all().await
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(unfinished(&self.folder, &format!("{}.eml", self.id)));
        }
    }
}

fn unfinished(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}.part"))
}

async fn create(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).await
}

/// Makes a file durable, and gives it its name.
async fn publish(folder: &Path, name: &str, mut file: File) -> io::Result<()> {
    file.flush().await?;
    file.sync_all().await?;
    fs::rename(unfinished(folder, name), folder.join(name)).await
}
