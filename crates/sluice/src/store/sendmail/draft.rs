//! A file of the maildrop while it is written. One that is not whole is taken away again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use super::Fault;

/// The mode of a file that is whole: its group, the server's, reads it.
pub const WHOLE: u32 = 0o640;

/// A mail that is being written.
pub struct Draft<'a> {
    folder: &'a Path,
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
    is_whole: bool,
}

impl<'a> Draft<'a> {
    /// Begins one of at most so many bytes behind its envelope.
    ///
    /// # Errors
    /// When the maildrop takes no file.
    pub fn begin(folder: &'a Path, envelope: &str, bytes_max: u64) -> Result<Draft<'a>, Fault> {
        let failed = |error: io::Error| Fault::output(folder, &error);
        let path = folder.join(name().map_err(failed)?);
        // The mode has to be the one that is asked for, whatever the caller's mask is.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        let mut draft = Draft { folder, path, file, bytes: 0, bytes_max, is_whole: false };
        draft.write(envelope.as_bytes())?;
        Ok(draft)
    }

    /// Adds to it.
    ///
    /// # Errors
    /// When it is too long, or cannot be written.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > self.bytes_max {
            return Err(Fault::data(format!("the mail is longer than {} bytes", self.bytes_max)));
        }
        self.write(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.file.write_all(bytes).map_err(|error| Fault::output(self.folder, &error))
    }

    /// Returns when the server has to find it, whatever happens.
    ///
    /// # Errors
    /// When it cannot be made durable.
    pub fn finish(mut self) -> Result<(), Fault> {
        let failed = |error: io::Error| Fault::output(self.folder, &error);
        self.file.sync_all().map_err(failed)?;
        self.file.set_permissions(std::fs::Permissions::from_mode(WHOLE)).map_err(failed)?;
        self.file.sync_all().map_err(failed)?;
        self.is_whole = true;
        // The server looks when the folder has changed, which the file's new mode alone does not show.
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let _ = utimensat(CWD, self.folder, &times, AtFlags::empty());
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.is_whole {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A name that nobody guesses.
fn name() -> io::Result<PathBuf> {
    let mut random = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(format!("{now:x}.{:032x}", u128::from_ne_bytes(random)).into())
}
