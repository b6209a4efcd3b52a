//! Whether folders of signatures, and files of recipients, have changed.
//!
//! The kernel tells of files that were written, moved or removed there; what is said within [`QUIET`] of each other is
//! one change, so that an update of many files is taken over once. What has changed, if anything that matters, is found
//! out by whoever asked. A thread waits for the kernel, and does nothing meanwhile.
//!
//! A folder may be replaced as a whole, by a rename, a link that leads elsewhere, or because it was removed and is made
//! anew. The kernel watches what a folder is and not what it is called, so the folder above is watched for that, and after
//! each change all are looked up again by their names.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::sync::Notify;

/// The quiet time after a change before files are read.
const QUIET: Duration = Duration::from_millis(150);
/// No change waits longer than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// Watches folders.
pub struct Watcher {
    /// Paths to watch.
    pub paths: Vec<PathBuf>,
    change: Arc<Notify>,
    /// The thread ends when this is closed.
    _end: PipeWriter,
}

impl Watcher {
    /// Watches these folders, and those that these files are in.
    ///
    /// # Errors
    /// When the kernel will not.
    pub fn new(paths: &[PathBuf]) -> io::Result<Watcher> {
        let events = watches(paths)?;
        let (end, other_end) = io::pipe()?;
        let change = Arc::new(Notify::new());
        let thread = Thread { paths: paths.to_vec(), events, end, change: change.clone() };
        std::thread::Builder::new().name("watcher".into()).spawn(move || thread.run())?;
        Ok(Watcher { paths: paths.to_vec(), change, _end: other_end })
    }

    /// Waits for a change. Nothing is lost when it is not waited for to the end.
    pub async fn changed(&self) {
        self.change.notified().await;
    }
}

/// Identity of a file's version: time of change, size, and inode.
pub type Stamp = (i64, i64, u64, u64);

/// How files are now; of a folder it counts which one it is.
pub fn stamps(paths: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |facts: std::fs::Metadata| match facts.is_dir() {
        true => (0, 0, 0, facts.ino()),
        false => (facts.ctime(), facts.ctime_nsec(), facts.len(), facts.ino()),
    };
    paths.iter().map(|path| std::fs::metadata(path).ok().map(stamp)).collect()
}

struct Thread {
    paths: Vec<PathBuf>,
    events: OwnedFd,
    end: PipeReader,
    change: Arc<Notify>,
}

impl Thread {
    fn run(mut self) {
        while self.event(None) {
            let latest = Instant::now() + PATIENCE;
            while Instant::now() < latest && self.event(Some(QUIET)) {}
            // Whoever is told looks after that, so nothing happens unseen in between.
            match watches(&self.paths) {
                Ok(events) => self.events = events,
                Err(error) => tracing::warn!(%error, "replaced path is not watched"),
            }
            self.change.notify_one();
        }
    }

    /// Waits for an event; no if there is none in time, or nobody wants to know any more.
    fn event(&self, patience: Option<Duration>) -> bool {
        let time = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let mut waiting = [PollFd::new(&self.events, PollFlags::IN), PollFd::new(&self.end, PollFlags::IN)];
        let polled = poll(&mut waiting, time.as_ref());
        let [events, end] = waiting.map(|one| !one.revents().is_empty());
        // What the events say does not matter.
        while events && rustix::io::read(&self.events, &mut [0; 4096]).is_ok_and(|count| count > 0) {}
        // A signal is taken for an event: somebody looks once too often.
        polled.map_or_else(|error| error == Errno::INTR, |count| count > 0) && !end
    }
}

/// Has the kernel watch these folders and those that these files are in, as far as they are there, and what they are
/// called in the folders above.
fn watches(paths: &[PathBuf]) -> io::Result<OwnedFd> {
    let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let moved = WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE;
    let watch = |folder: &Path, kinds| {
        inotify::add_watch(&events, folder, kinds | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD).map(drop)
    };
    for path in paths {
        let path = std::path::absolute(path)?;
        let folder = path.parent().filter(|_| path.is_file()).unwrap_or(&path);
        match watch(folder, moved | WatchFlags::CLOSE_WRITE) {
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            outcome => outcome?,
        }
        if let Some(above) = folder.ancestors().skip(1).find(|above| above.is_dir()) {
            watch(above, moved | WatchFlags::CREATE)?;
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_moved_or_removed_is_one_change() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("signatures");
        std::fs::create_dir(&folder).expect("a folder");
        let file = folder.join("a.ndb");
        let watcher = Watcher::new(&[folder.clone(), file.clone()]).expect("a watcher");
        let patience = Duration::from_secs(10);
        for act in [
            &|| std::fs::write(&file, "A").and_then(|()| std::fs::write(folder.join("b.ndb"), "B")),
            &|| std::fs::rename(folder.join("b.ndb"), &file),
            &|| std::fs::remove_file(&file),
        ] as [&dyn Fn() -> io::Result<()>; 3]
        {
            act().expect("done");
            tokio::time::timeout(patience, watcher.changed()).await.expect("a change");
            assert!(tokio::time::timeout(3 * QUIET, watcher.changed()).await.is_err(), "it is told once");
        }
    }

    #[tokio::test]
    async fn a_folder_that_is_replaced_is_watched_on() {
        let place = tempfile::tempdir().expect("a folder");
        let [folder, other, link] = ["signatures", "other", "link"].map(|name| place.path().join(name));
        for folder in [&folder, &other] {
            std::fs::create_dir(folder).expect("a folder");
        }
        std::os::unix::fs::symlink("signatures", &link).expect("a link");
        let watcher = Watcher::new(&[folder.clone(), link.clone()]).expect("a watcher");
        let patience = Duration::from_secs(10);
        for act in [
            &|| std::fs::remove_file(&link).and_then(|()| std::os::unix::fs::symlink("other", &link)),
            &|| std::fs::write(other.join("a.ndb"), "A"),
            &|| std::fs::remove_dir(&folder),
            &|| std::fs::create_dir(&folder),
            &|| std::fs::write(folder.join("a.ndb"), "A"),
        ] as [&dyn Fn() -> io::Result<()>; 5]
        {
            act().expect("done");
            tokio::time::timeout(patience, watcher.changed()).await.expect("a change");
            // What follows it is another change.
            while tokio::time::timeout(3 * QUIET, watcher.changed()).await.is_ok() {}
        }
    }
}
