//! Files of the folder below, by device and inode.
//!
//! A [`Node`] holds its file by a descriptor that opens nothing (`O_PATH`), so what it stands for cannot be exchanged under
//! it, and the inode's number not be given to another as long as there is the node. A name is only ever looked up as a single
//! component below such a descriptor, never through a link. `nodes.rs` has the table of them, and bounds their number.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, OFlags, ResolveFlags, Statx, StatxFlags, StatxTimestamp, openat, openat2, statx};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::judge::Generation;
use crate::overlay::Overlay;

/// For how long a change may leave a file's times as they were: a tick of the kernel's clock, and a margin.
const TICK_MILLIS_MAX: u32 = 20;

/// A file, as the system numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inode {
    /// Its device.
    pub device: (u32, u32),
    /// Its number there.
    pub number: u64,
}

impl Inode {
    /// That of a file.
    pub fn of(facts: &Statx) -> Inode {
        Inode { device: (facts.stx_dev_major, facts.stx_dev_minor), number: facts.stx_ino }
    }
}

/// Stamp by which a change of a file is recognised: times are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// When it was made: another file with the number of an old one was made later.
    pub born: i64,
    /// Its size.
    pub size: u64,
    /// When its content changed.
    pub mtime: i64,
    /// When anything about it changed.
    pub ctime: i64,
}

impl Stamp {
    /// That of a file.
    pub fn of(facts: &Statx) -> Stamp {
        let time =
            |time: &StatxTimestamp| time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.into());
        Stamp {
            born: time(&facts.stx_btime),
            size: facts.stx_size,
            mtime: time(&facts.stx_mtime),
            ctime: time(&facts.stx_ctime),
        }
    }

    /// That of an open file.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn of_file(file: &File) -> rustix::io::Result<Stamp> {
        Ok(Stamp::of(&facts(file)?))
    }

    /// Waits until whatever changes the file has to give it another stamp: the kernel stamps with a clock that stands
    /// still for some milliseconds. Not for long, since the stamp may be of a clock that was set back.
    pub fn outlast(&self) {
        for _ in 0..TICK_MILLIS_MAX {
            let now = clock_gettime(ClockId::RealtimeCoarse);
            if now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec) > self.ctime {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Facts of the kernel about an open file.
///
/// # Errors
/// When it does not.
pub fn facts(file: impl std::os::fd::AsFd) -> rustix::io::Result<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    statx(file, "", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, wanted)
}

/// When content is inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// As it passes, as far as it is written in order.
    #[default]
    Regular,
    /// The whole, when it is complete.
    Full,
}

/// Action for a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnInfected {
    /// An error at once.
    #[default]
    Immediate,
    /// The writer notices nothing, and the evidence is kept.
    Deferred,
}

/// Verdict on a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing was found in it.
    Clean,
    /// Something was.
    Infected,
}

/// Verdict on a file's content, with the stamp and the signatures that it holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub stamp: Stamp,
    pub generation: Generation,
    pub known: Known,
}

/// The content of a file, as those have it who opened it.
#[derive(Default)]
pub struct Content {
    /// Pending changes.
    pub overlay: Option<Box<Overlay>>,
    /// Verdict on the file below.
    pub known: Option<Verdict>,
    /// When that is inspected, and what is done about a hit.
    pub mode: Mode,
    pub on_infected: OnInfected,
    /// How often it is open.
    pub handles: u32,
    /// How often for writing.
    pub writers: u32,
    /// How often written data was dropped.
    pub taken_back: u32,
    /// How often data was dropped without an error for its writer.
    pub withheld: u64,
    /// The last that was written was taken back: it goes nowhere under another name until something else is written.
    pub is_tainted: bool,
    /// The kernel may have pages of it as it is known.
    pub is_cached: bool,
}

impl Content {
    /// Something is known of the file below, as it is now.
    pub fn learn(&mut self, stamp: Stamp, generation: Generation, known: Known) {
        self.is_cached &= self.known.is_some_and(|before| before.stamp == stamp);
        self.known = Some(Verdict { stamp, generation, known });
    }

    /// Whether nothing was found in it as it is, by whatever signatures.
    pub fn was_clean(&self, stamp: &Stamp) -> bool {
        self.known.is_some_and(|verdict| verdict.stamp == *stamp && verdict.known == Known::Clean)
    }
}

/// Changes that came through one opening: none, or some when [`Content::withheld`] was one less.
#[derive(Debug, Default)]
pub struct Share(AtomicU64);

impl Content {
    /// Something is to be changed through an opening. It is dropped, if what was changed through it before was: its writer,
    /// who notices nothing, means it for what the file does not have.
    pub fn drops(&self, share: &Share) -> bool {
        let now = self.withheld.saturating_add(1);
        share.0.compare_exchange(0, now, Relaxed, Relaxed).is_err_and(|before| before < now)
    }
}

/// One file.
pub struct Node {
    /// Number in the kernel's requests.
    pub id: u64,
    /// Type of the file.
    pub kind: FileType,
    /// Identity in the file system below.
    pub inode: Inode,
    /// Holds it.
    pub held: OwnedFd,
    content: RwLock<Content>,
    inspected: Mutex<()>,
    /// Whether the node was used since the last look.
    is_used: AtomicBool,
    /// The minute since 1970 in which it was last opened.
    opened: AtomicU32,
}

impl Node {
    /// One that holds this.
    pub fn new(id: u64, inode: Inode, kind: FileType, held: OwnedFd) -> Node {
        let (content, inspected, is_used) = (RwLock::default(), Mutex::new(()), AtomicBool::new(false));
        Node { id, kind, inode, held, content, inspected, is_used, opened: AtomicU32::new(0) }
    }

    /// Marks the node as used.
    pub fn use_it(&self) {
        self.is_used.store(true, Relaxed);
    }

    /// Whether somebody has asked for it since this was last called.
    pub fn was_used(&self) -> bool {
        self.is_used.swap(false, Relaxed)
    }

    /// It is opened; whether that is worth noting.
    pub fn is_opened(&self, minute: u32) -> bool {
        self.opened.swap(minute, Relaxed) != minute
    }

    /// The way to it that leads nowhere else.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.held.as_raw_fd())
    }

    /// Opens it.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(&self, flags: OFlags) -> rustix::io::Result<File> {
        rustix::fs::open(self.path(), flags | OFlags::CLOEXEC | OFlags::NOCTTY, rustix::fs::Mode::empty())
            .map(File::from)
    }

    /// Its content, to look at.
    pub fn content(&self) -> RwLockReadGuard<'_, Content> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, if nobody changes it just now.
    pub fn content_now(&self) -> Option<RwLockReadGuard<'_, Content>> {
        match self.content.try_read() {
            Ok(content) => Some(content),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Its content, to change.
    pub fn content_mut(&self) -> RwLockWriteGuard<'_, Content> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only one inspection of a file at a time.
    pub fn inspected(&self) -> MutexGuard<'_, ()> {
        self.inspected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A single name, and none that leads out of the folder.
fn is_single(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/')
}

/// Holds what has a name in a folder.
///
/// # Errors
/// As the system says; ENOENT for a name that is none.
pub fn hold(folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    if !is_single(name) {
        return Err(Errno::NOENT);
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(folder, name, flags, rustix::fs::Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
        // An older kernel, or a filter of system calls; one component cannot lead away.
        Err(Errno::NOSYS | Errno::PERM) => openat(folder, name, flags, rustix::fs::Mode::empty()),
        held => held,
    }
}
