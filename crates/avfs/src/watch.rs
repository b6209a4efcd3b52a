//! Watching folders: the kernel asks before a file is opened, and has its answer when the content was inspected.
//!
//! ```text
//!   open, exec ──► kernel (fanotify) ──► known to be clean? ── yes ──────────────────────────► allowed
//!                                              │ no                                              ▲ clean
//!                                              └──► one inspection, however many wait for it ──┤
//!                                                                        its deadline passes ──┴─► refused, or as set
//! ```
//!
//! Whole file systems are marked, so there is no folder that is noticed too late; what lies outside of the watched folders is
//! allowed at once. What is written is inspected when it is closed, so whoever opens it finds the verdict ready. Of a file that
//! somebody has open while another writes to it, nothing is known until it is opened again (fanotify(7)).
//!
//! A question is answered by the signatures of when it was asked, so one that comes after others were taken over does not wait for
//! an inspection of before. The kernel is told to ask about every open: nothing of what it knows has to be taken back.
//!
//! Bounds: a descriptor and an entry for each process that waits, since each waits for us; [`READY_MAX`] inspections that
//! nobody waits for; [`INFECTED_MAX`] hits that are remembered.

mod inspection;
mod table;

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyEvent, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::FileType;

use crate::evidence::Evidence;
use crate::judge::{InForce, Judge};
use crate::mount::raise_limit;
use crate::node::{Inode, Stamp, facts};
use crate::verdicts::{self, Verdicts};
use crate::who::Who;
use inspection::inspectors;
use table::{Chore, Due, Key, Question, Table};

/// Inspections of files that were closed, and that nobody waits for. More are left for when the file is opened.
const READY_MAX: usize = 1000;

/// Hits that are remembered.
const INFECTED_MAX: usize = 1000;

/// How often what is known to be clean is written down.
const SAVED_EVERY: Duration = Duration::from_secs(30);

/// Options of a watch.
pub struct WatchOptions {
    /// Folders, and files. One that a file system is mounted at stands for all of that, by whatever name.
    pub paths: Vec<PathBuf>,
    /// Where verdicts are kept.
    pub state: Option<OwnedFd>,
    /// Where infected content is kept, if it is.
    pub evidence: Option<OwnedFd>,
    /// Inspections at a time.
    pub threads: usize,
    /// How long a process waits for a verdict.
    pub deadline: Duration,
    /// Whether it goes on without one: after the deadline, and when an inspection died.
    pub allows_unjudged: bool,
    /// Whether hits are told, and nothing is refused.
    pub only_tells: bool,
    /// Folders below which nothing is inspected.
    pub excluded: Vec<PathBuf>,
    /// Users who are not asked about.
    pub users: Vec<u32>,
    /// Whether a process is one of ours: what it needs to open to answer cannot wait for the answer.
    pub is_ours: fn(process: u32) -> bool,
}

/// Folders that are watched, until it is dropped or its process ends: then everything is allowed.
pub struct Watching {
    watch: Arc<Watch>,
    stop: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
}

/// One path that is watched.
struct Place {
    path: PathBuf,
    /// Identity of the file system if the path stands for a whole one.
    whole: Option<(u32, u32)>,
}

struct Watch {
    group: Fanotify,
    places: Vec<Place>,
    options: WatchOptions,
    verdicts: Verdicts,
    in_force: InForce,
    evidence: Option<Evidence>,
    table: Mutex<Table>,
    is_due: Condvar,
}

/// Watches, and has `judge` inspect until others take over ([`Watching::renew`]). `confine` is called in the thread that asks the kernel, before that has begun: what it gives up, all others
/// that it starts do not have either.
///
/// # Errors
/// When the kernel has no fanotify, or not for us (`CAP_SYS_ADMIN`), or a path cannot be watched.
pub fn watch(
    mut options: WatchOptions,
    judge: Box<dyn Judge>,
    confine: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> io::Result<Watching> {
    raise_limit();
    let asks = InitFlags::FAN_CLASS_CONTENT
        | InitFlags::FAN_CLOEXEC
        | InitFlags::FAN_NONBLOCK
        | InitFlags::FAN_UNLIMITED_QUEUE
        | InitFlags::FAN_UNLIMITED_MARKS;
    let opened = EventFFlags::O_RDONLY | EventFFlags::O_LARGEFILE | EventFFlags::O_CLOEXEC | EventFFlags::O_NOATIME;
    let group = Fanotify::init(asks, opened)?;
    let places: Vec<Place> = options.paths.iter().map(|path| Place::find(path)).collect::<io::Result<_>>()?;
    let verdicts = Verdicts::open(options.state.take(), verdicts::ROWS)?;
    let evidence = options.evidence.take().map(Evidence::new);
    let excluded = options.excluded.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
    options.excluded = excluded.collect();
    let watch = Watch {
        group,
        places,
        options,
        verdicts,
        in_force: InForce::new(judge),
        evidence,
        table: Mutex::default(),
        is_due: Condvar::new(),
    };
    let watch = Arc::new(watch);
    let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (told, is_ready) = std::sync::mpsc::channel();
    let (asked, stopped) = (watch.clone(), stop.clone());
    let ask = std::thread::Builder::new().name("sluice: watch".into()).spawn(move || {
        let begun = confine().map_err(io::Error::other).and_then(|()| inspectors(&asked)).and_then(|threads| {
            asked.mark()?;
            Ok(threads)
        });
        let is_watching = begun.is_ok();
        let _ = told.send(begun);
        if is_watching {
            asked.ask(&stopped);
        }
    })?;
    let mut threads = is_ready.recv().map_err(|_| io::Error::other("the watching thread panicked"))??;
    threads.push(ask);
    Ok(Watching { watch, stop, threads })
}

impl Place {
    fn find(path: &Path) -> io::Result<Place> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let path = path.canonicalize().map_err(named)?;
        let device = |path: &Path| {
            Ok::<_, io::Error>(facts(File::open(path)?).map(|facts| (facts.stx_dev_major, facts.stx_dev_minor))?)
        };
        let own = device(&path)?;
        let is_whole = match path.parent() {
            Some(parent) => path.is_dir() && device(parent)? != own,
            None => true,
        };
        Ok(Place { path, whole: is_whole.then_some(own) })
    }
}

impl Watch {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the kernel asks.
    fn mark(&self) -> io::Result<()> {
        let asked = if self.options.only_tells { MaskFlags::FAN_OPEN } else { MaskFlags::FAN_OPEN_PERM };
        for place in &self.places {
            let folder = File::open(&place.path)?;
            let how = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
            let marked = self.group.mark(how, asked | MaskFlags::FAN_CLOSE_WRITE, &folder, None::<&Path>);
            marked.map_err(|error| io::Error::other(format!("{}: {}", place.path.display(), error.desc())))?;
        }
        Ok(())
    }

    /// Reads the kernel's questions until `stop` is ready. This thread waits for nothing else, neither an inspection nor a
    /// reader of the log.
    fn ask(&self, stop: &OwnedFd) {
        let mut saved = Instant::now();
        loop {
            let wait = Timespec::try_from(self.until_next()).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
            let mut both = [PollFd::new(&self.group, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            let polled = poll(&mut both, Some(&wait));
            if polled.is_ok() && !both[1].revents().is_empty() {
                return self.end();
            }
            match self.group.read_events() {
                Ok(events) => events.into_iter().for_each(|event| self.take(event)),
                // The kernel has refused what it could not open for us.
                Err(Errno::EAGAIN | Errno::EINTR | Errno::EACCES | Errno::EPERM | Errno::ENXIO | Errno::ETXTBSY) => {}
                Err(error) => self.leave(&mut self.table(), Chore::Deaf(error)),
            }
            self.expire();
            if saved.elapsed() >= SAVED_EVERY {
                saved = Instant::now();
                self.leave(&mut self.table(), Chore::Save);
            }
        }
    }

    fn leave(&self, table: &mut Table, chore: Chore) {
        if table.chores.len() < READY_MAX {
            table.chores.push(chore);
        }
        self.is_due.notify_one();
    }

    fn until_next(&self) -> Duration {
        let table = self.table();
        let waiting = table.asked.values().flatten().map(|question| question.since);
        let left = waiting.min().map(|since| self.options.deadline.saturating_sub(since.elapsed()));
        left.unwrap_or(SAVED_EVERY).min(SAVED_EVERY)
    }

    /// One thing that the kernel asks or tells.
    fn take(&self, event: FanotifyEvent) {
        let Some((inode, stamp, who)) = self.concerns(&event) else { return self.answer(&event, true) };
        let current = self.in_force.now();
        let key = (inode, stamp, current.generation);
        let mut table = self.table();
        if let Some(is_allowed) = self.known(&table, &key) {
            drop(table);
            return self.answer(&event, is_allowed);
        }
        let asks = event.mask().contains(MaskFlags::FAN_OPEN_PERM);
        if !asks && table.due.len() >= READY_MAX {
            return;
        }
        let event = Arc::new(event);
        let question = asks.then(|| Question { event: event.clone(), since: Instant::now() });
        match table.asked.get_mut(&key) {
            Some(waiting) => waiting.extend(question),
            None => {
                table.asked.insert(key, question.into_iter().collect());
                table.due.push_back(Due { key, event, who, current });
                self.is_due.notify_one();
            }
        }
    }

    /// File and process of an event, if both are watched.
    fn concerns(&self, event: &FanotifyEvent) -> Option<(Inode, Stamp, Who)> {
        let process = u32::try_from(event.pid()).ok()?;
        let file = event.fd().filter(|_| process != std::process::id())?;
        let facts = facts(file).ok()?;
        if FileType::from_raw_mode(facts.stx_mode.into()) != FileType::RegularFile {
            return None;
        }
        let inode = Inode::of(&facts);
        let path = path(file);
        let is_watched = |place: &Place| place.whole == Some(inode.device) || path.starts_with(&place.path);
        if !self.places.iter().any(is_watched) || self.options.excluded.iter().any(|other| path.starts_with(other)) {
            return None;
        }
        let owner = fs::metadata(format!("/proc/{process}"));
        let (uid, gid) = owner.map_or((u32::MAX, u32::MAX), |owner| (owner.uid(), owner.gid()));
        if self.options.users.contains(&uid) || (self.options.is_ours)(process) {
            return None;
        }
        Some((inode, Stamp::of(&facts), Who { thread: process, uid, gid }))
    }

    /// Whether what is known of a file is enough for an answer.
    fn known(&self, table: &Table, key: &Key) -> Option<bool> {
        let (inode, stamp, generation) = key;
        if stamp.size == 0 || self.verdicts.is_clean(*inode, stamp, *generation) {
            return Some(true);
        }
        table.infected.contains_key(key).then_some(false)
    }

    /// Answers, if somebody waits.
    fn answer(&self, event: &FanotifyEvent, is_allowed: bool) {
        if !event.mask().contains(MaskFlags::FAN_OPEN_PERM) {
            return;
        }
        let Some(file) = event.fd() else { return };
        let response = if is_allowed { Response::FAN_ALLOW } else { Response::FAN_DENY };
        // Whoever waited may be gone.
        let _ = self.group.write_response(FanotifyResponse::new(file, response));
    }

    /// Answers those who have waited too long.
    fn expire(&self) {
        let deadline = self.options.deadline;
        let mut table = self.table();
        let mut late = Vec::new();
        for waiting in table.asked.values_mut() {
            late.extend(waiting.extract_if(.., |question| question.since.elapsed() >= deadline));
        }
        for question in &late {
            self.answer(&question.event, self.options.allows_unjudged);
            let name = question.event.fd().map(|file| printable(&path(file)));
            self.leave(&mut table, Chore::Late(name.unwrap_or_default()));
        }
    }

    /// Allows whatever waits.
    fn end(&self) {
        let mut table = self.table();
        table.is_over = true;
        for question in table.asked.drain().flat_map(|(_, waiting)| waiting) {
            self.answer(&question.event, true);
        }
        table.due.clear();
        self.is_due.notify_all();
    }

    fn save(&self) {
        if let Err(error) = self.verdicts.save() {
            tracing::warn!(%error, "verdicts not written");
        }
    }
}

/// Path of an open file.
fn path(file: BorrowedFd<'_>) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default()
}

fn printable(path: &Path) -> String {
    path.to_string_lossy().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

impl Watching {
    /// Has others inspect from here on, by other signatures: what was known before is known no longer. What was asked before
    /// is answered by those of then.
    pub fn renew(&self, judge: Box<dyn Judge>) {
        self.watch.in_force.renew(judge);
    }

    /// Ends it: whatever waits is allowed, and what is known is written down.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        for thread in self.threads.drain(..).rev() {
            let _ = thread.join();
        }
        self.watch.save();
    }
}
