//! The quarantine: a folder with two files a message, `ID.eml` as it came and `ID.json` with what is known of it.
//!
//! They are written only on a hit, synced, and renamed into place, before the client is told anything.

use std::io;
use std::path::Path;

use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;

/// Puts a mail aside.
pub async fn keep<'a>(
    folder: &Path,
    id: &str,
    facts: &serde_json::Value,
    mail: impl Iterator<Item = &'a [u8]>,
) -> io::Result<()> {
    write(folder, &format!("{id}.json"), std::iter::once(format!("{facts:#}\n").as_bytes())).await?;
    write(folder, &format!("{id}.eml"), mail).await?;
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
