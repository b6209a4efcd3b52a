//! Logs of changes that administrators make, by the page and by commands: a JSON object a line, on stable storage before the change is acknowledged.
//!
//! Room is reserved before a change is made, so that a full disk stops changes and not their record. A log is never shortened by this
//! program; readers look at its last [`TAIL_BYTES_MAX`] bytes.

pub mod trail;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Room for one line.
const LINE_BYTES: u64 = 1 << 20;

/// Bytes at the end of a log that are read.
const TAIL_BYTES_MAX: u64 = 4 << 20;

/// A log.
#[derive(Debug, Clone)]
pub struct Log(Arc<Mutex<File>>);

/// The log in a file that is open for appending.
impl From<File> for Log {
    fn from(file: File) -> Log {
        Log(Arc::new(Mutex::new(file)))
    }
}

impl Log {
    /// Opens a log, and makes it if it is not there. Only its owner may read it.
    ///
    /// # Errors
    /// When that cannot be.
    pub fn open(path: &Path) -> io::Result<Log> {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let log = Log::from(file);
        // A change may be wanted most when the disk is full.
        let _ = log.reserve();
        Ok(log)
    }

    /// Takes room on the disk for a line, where the file system can.
    ///
    /// # Errors
    /// When there is no room.
    pub fn reserve(&self) -> io::Result<()> {
        let file = self.lock();
        let end = file.metadata()?.len();
        match rustix::fs::fallocate(&*file, FallocateFlags::KEEP_SIZE, end, LINE_BYTES) {
            Err(error) if error != Errno::OPNOTSUPP => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Appends a line.
    ///
    /// # Errors
    /// When it is not on stable storage.
    pub fn note(&self, line: &Value) -> io::Result<()> {
        let mut file = self.lock();
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }

    /// The last lines, the newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn last(&self, count: usize) -> io::Result<Vec<Value>> {
        let mut tail = Vec::new();
        let mut file = self.lock();
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(end.saturating_sub(TAIL_BYTES_MAX)))?;
        (&mut *file).take(TAIL_BYTES_MAX).read_to_end(&mut tail)?;
        drop(file);
        let lines = tail.rsplit(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Ok(lines.take(count).collect())
    }

    fn lock(&self) -> MutexGuard<'_, File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time of a line.
pub fn now() -> String {
    OffsetDateTime::now_utc()
        .replace_nanosecond(0)
        .unwrap_or_else(|_| OffsetDateTime::now_utc())
        .format(&Rfc3339)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_there_the_newest_first_and_a_torn_one_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let log = Log::open(&path).unwrap();
        log.reserve().unwrap();
        (0..5).for_each(|number| log.note(&number.into()).unwrap());
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"torn\":\n").unwrap();
        assert_eq!(Log::open(&path).unwrap().last(2).unwrap(), [4, 3]);
        assert_eq!(log.last(100).unwrap().len(), 5);
    }
}
