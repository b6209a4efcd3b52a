//! Small files that several processes change: under the lock of their folder, and replaced as a whole.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an edit waits for another.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// How often it tries again.
const LOCK_EVERY: Duration = Duration::from_millis(10);

/// Replaces the text of a small file as a whole, and makes the file if need be; only its owner may read it. Edits of several processes
/// wait for each other.
///
/// # Errors
/// When the file cannot be read or written, and what `change` fails with.
pub fn rewrite(path: &Path, change: impl FnOnce(&str) -> Result<String, String>) -> io::Result<()> {
    let _lock = lock(path)?;
    let before = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    replace(path, change(&before).map_err(io::Error::other)?.as_bytes())
}

/// The lock of the folder of a file, which leaves nothing behind. One that somebody else holds for long is an error.
///
/// # Errors
/// When it cannot be had.
pub fn lock(path: &Path) -> io::Result<fs::File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::File::open(folder)?;
    let began = Instant::now();
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(fs::TryLockError::WouldBlock) if began.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_EVERY),
            Err(fs::TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    "another process holds the lock of its folder",
                ));
            }
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| {
        // Whoever could read it can still.
        if let Ok(found) = fs::metadata(path) {
            let _ = std::os::unix::fs::fchown(&file, Some(found.uid()), Some(found.gid()));
            file.set_permissions(found.permissions())?;
        }
        fs::rename(&beside, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
