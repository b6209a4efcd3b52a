//! Whether the folders of signatures have changed.
//!
//! The kernel tells of files that were written, moved or removed there; what is said within [`QUIET`] of each other is
//! one change, so that an update of many files is taken over once. What has changed, if anything that matters, is found
//! out by whoever asked. A thread waits for the kernel, and does nothing meanwhile.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::sync::Notify;

/// So long nothing must have happened.
const QUIET: Duration = Duration::from_millis(150);
/// No change waits longer than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// Watches folders.
pub struct Watcher {
    /// What was asked to be watched.
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
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let kinds = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE;
        for path in paths {
            inotify::add_watch(&events, folder_of(path), kinds | WatchFlags::ONLYDIR)?;
        }
        let (end, other_end) = io::pipe()?;
        let change = Arc::new(Notify::new());
        let thread = Thread { events, end, change: change.clone() };
        std::thread::Builder::new().name("watcher".into()).spawn(move || thread.run())?;
        Ok(Watcher { paths: paths.to_vec(), change, _end: other_end })
    }

    /// Waits for a change. Nothing is lost when it is not waited for to the end.
    pub async fn changed(&self) {
        self.change.notified().await;
    }
}

struct Thread {
    events: OwnedFd,
    end: PipeReader,
    change: Arc<Notify>,
}

impl Thread {
    fn run(self) {
        while self.event(None) {
            let latest = Instant::now() + PATIENCE;
            while Instant::now() < latest && self.event(Some(QUIET)) {}
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

fn folder_of(path: &Path) -> &Path {
    if path.is_dir() {
        return path;
    }
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_moved_or_removed_is_one_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.ndb");
        let watcher = Watcher::new(&[folder.path().into(), file.clone()]).expect("a watcher");
        let patience = Duration::from_secs(10);
        for act in [
            &|| std::fs::write(&file, "A").and_then(|()| std::fs::write(folder.path().join("b.ndb"), "B")),
            &|| std::fs::rename(folder.path().join("b.ndb"), &file),
            &|| std::fs::remove_file(&file),
        ] as [&dyn Fn() -> io::Result<()>; 3]
        {
            act().expect("done");
            tokio::time::timeout(patience, watcher.changed()).await.expect("a change");
            assert!(tokio::time::timeout(3 * QUIET, watcher.changed()).await.is_err(), "it is told once");
        }
    }
}
