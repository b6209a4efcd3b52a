//! Evidence of infected files: a folder with up to three files an item.
//!
//! | file | content |
//! |---|---|
//! | `ID.data` | the content that was found infected, as it came |
//! | `ID.before` | what the file held before it was written, where it held something |
//! | `ID.json` | where it was found, by what name, and who wrote or opened it |
//!
//! An item is there when its `ID.json` is: that comes last. All are mode 0600. Bounds: [`BYTES_MAX`] of a content, cut off
//! behind; [`ITEMS_MAX`] items in the life of a mount.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags, openat, renameat};

use crate::judge::Hit;
use crate::who::{Process, Who};

/// Kept bytes of one content.
const BYTES_MAX: u64 = 256 << 20;

/// Items kept.
const ITEMS_MAX: u64 = 10_000;

/// The folder.
pub struct Evidence {
    folder: OwnedFd,
    count: AtomicU64,
}

/// A hit, with its place and process.
pub struct Found<'a> {
    /// The hit.
    pub hit: &'a Hit,
    /// The file's path in the folder that is mounted.
    pub file: &'a str,
    /// Operation on it.
    pub operation: &'a str,
    /// By whom.
    pub who: Who,
    /// By which process.
    pub process: &'a Process,
}

/// Logs a hit, and keeps the content if there is a folder for evidence.
pub fn report(evidence: Option<&Evidence>, found: &Found<'_>, content: Option<impl Read>, before: Option<impl Read>) {
    let keep = |(evidence, content): (&Evidence, _)| {
        evidence.keep(found, content, before).unwrap_or_else(|error| {
            tracing::error!(file = found.file, %error, "evidence not kept");
            String::new()
        })
    };
    let kept = evidence.zip(content).map(keep).unwrap_or_default();
    tracing::warn!(
        file = found.file,
        signature = %found.hit,
        operation = found.operation,
        process = found.process.id,
        user = found.who.uid,
        program = found.process.program,
        command = found.process.command,
        quarantine = kept,
        "infected"
    );
}

impl Evidence {
    /// In this folder.
    pub fn new(folder: OwnedFd) -> Evidence {
        Evidence { folder, count: AtomicU64::new(0) }
    }

    /// Keeps one, and returns its name.
    ///
    /// # Errors
    /// When it cannot be written, or there are too many.
    pub fn keep(&self, found: &Found<'_>, content: impl Read, before: Option<impl Read>) -> io::Result<String> {
        let number = self.count.fetch_add(1, Relaxed);
        if number >= ITEMS_MAX {
            return Err(io::Error::other("too many files in the quarantine of this mount"));
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let id = format!("{}-{}-{number}", since.as_secs(), std::process::id());
        let bytes = self.copy(&format!("{id}.data"), content)?;
        let before = before.map(|before| self.copy(&format!("{id}.before"), before)).transpose()?;
        let facts = serde_json::json!({
            "format": 1,
            "id": id,
            "time": since.as_secs(),
            "file": found.file,
            "signature": found.hit.name,
            "within": found.hit.within,
            "operation": found.operation,
            "process": found.process.id,
            "user": found.who.uid,
            "group": found.who.gid,
            "program": found.process.program,
            "command": found.process.command,
            "bytes": bytes,
            "bytes_before": before,
        });
        let (part, name) = (format!(".{id}.part"), format!("{id}.json"));
        let mut file = self.create(&part)?;
        writeln!(file, "{facts:#}")?;
        file.sync_all()?;
        renameat(&self.folder, &part, &self.folder, &name)?;
        Ok(id)
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    fn copy(&self, name: &str, content: impl Read) -> io::Result<u64> {
        let mut file = self.create(name)?;
        let bytes = io::copy(&mut content.take(BYTES_MAX), &mut file)?;
        file.sync_all()?;
        Ok(bytes)
    }
}
