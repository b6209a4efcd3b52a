//! Files of the folder below, by device and inode.
//!
//! A [`Node`] holds its file by a descriptor that opens nothing (`O_PATH`), so what it stands for cannot be exchanged under
//! it, and the inode's number not be given to another while the kernel knows it. A name is only ever looked up as a single
//! component below such a descriptor, never through a link. Bounds: a descriptor for each file that the kernel remembers;
//! when there are no more, looking up fails until it forgets some.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, StatxTimestamp, openat, openat2, statx,
};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::overlay::Overlay;

/// The number of the folder that is mounted, for the kernel.
pub const ROOT: u64 = 1;

/// For how long a change may leave a file's times as they were: a tick of the kernel's clock, and a margin.
const TICK_MILLIS_MAX: u32 = 20;

/// Set in the numbers of files on other file systems than the folder's, and where a number is taken.
const FOREIGN: u64 = 1 << 63;

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

/// What tells a file as it is from the same file as it was: times are nanoseconds since 1970.
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

/// What the kernel says of an open file.
///
/// # Errors
/// When it does not.
pub fn facts(file: impl std::os::fd::AsFd) -> rustix::io::Result<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    statx(file, "", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, wanted)
}

/// What is known of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing was found in it.
    Clean,
    /// Something was.
    Infected,
}

/// The content of a file, as those have it who opened it.
#[derive(Default)]
pub struct Content {
    /// What was written and has no verdict.
    pub overlay: Option<Box<Overlay>>,
    /// What is known of the file below, as it was then.
    pub known: Option<(Stamp, Known)>,
    /// How often it is open.
    pub handles: u32,
    /// How often for writing.
    pub writers: u32,
    /// How often something that was written was taken back.
    pub taken_back: u32,
    /// The last that was written was taken back: it goes nowhere under another name until something else is written.
    pub is_tainted: bool,
    /// The kernel may have pages of it as it is known.
    pub is_cached: bool,
}

impl Content {
    /// Something is known of the file below, as it is now.
    pub fn learn(&mut self, stamp: Stamp, known: Known) {
        self.is_cached &= self.known.is_some_and(|before| before.0 == stamp);
        self.known = Some((stamp, known));
    }
}

/// One file.
pub struct Node {
    /// What the kernel calls it.
    pub id: u64,
    /// What it is.
    pub kind: FileType,
    /// What the system calls it.
    pub inode: Inode,
    /// Holds it.
    pub held: OwnedFd,
    content: RwLock<Content>,
    inspected: Mutex<()>,
    /// How often the kernel was told of it; changed with the table locked.
    lookups: AtomicU64,
}

impl Node {
    fn new(id: u64, inode: Inode, kind: FileType, held: OwnedFd) -> Node {
        Node {
            id,
            kind,
            inode,
            held,
            content: RwLock::default(),
            inspected: Mutex::new(()),
            lookups: AtomicU64::new(0),
        }
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
        rustix::fs::open(self.path(), flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty()).map(File::from)
    }

    /// Its content, to look at.
    pub fn content(&self) -> RwLockReadGuard<'_, Content> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
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
    match openat2(folder, name, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
        // An older kernel, or a filter of system calls; one component cannot lead away.
        Err(Errno::NOSYS | Errno::PERM) => openat(folder, name, flags, Mode::empty()),
        held => held,
    }
}

/// All files that the kernel remembers.
pub struct Nodes {
    root: Arc<Node>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_id: HashMap<u64, Arc<Node>>,
    /// Those whose number is not that of their inode.
    foreign: HashMap<Inode, u64>,
    foreign_last: u64,
}

impl Nodes {
    /// With the folder that is mounted.
    ///
    /// # Errors
    /// When the kernel says nothing of it.
    pub fn new(root: OwnedFd) -> rustix::io::Result<Nodes> {
        let inode = Inode::of(&facts(&root)?);
        let root = Arc::new(Node::new(ROOT, inode, FileType::Directory, root));
        Ok(Nodes { root, table: Mutex::default() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the kernel means by a number.
    ///
    /// # Errors
    /// ESTALE when there is no such file any more.
    pub fn get(&self, id: u64) -> rustix::io::Result<Arc<Node>> {
        if id == ROOT {
            return Ok(self.root.clone());
        }
        self.table().by_id.get(&id).cloned().ok_or(Errno::STALE)
    }

    /// The number of a file that keeps that of its inode.
    fn plain(&self, inode: Inode) -> Option<u64> {
        let is_plain = inode.device == self.root.inode.device && inode.number > ROOT && inode.number < FOREIGN;
        is_plain.then_some(inode.number)
    }

    /// The node of a file that is held, if there is one.
    pub fn find(&self, facts: &Statx) -> Option<Arc<Node>> {
        let inode = Inode::of(facts);
        if inode == self.root.inode {
            return Some(self.root.clone());
        }
        let table = self.table();
        let id = self.plain(inode).or_else(|| table.foreign.get(&inode).copied())?;
        table.by_id.get(&id).cloned()
    }

    /// The node of a file that is held, which the kernel is told of once more.
    pub fn enter(&self, held: OwnedFd, facts: &Statx) -> Arc<Node> {
        let inode = Inode::of(facts);
        if inode == self.root.inode {
            return self.root.clone();
        }
        let mut table = self.table();
        let Table { by_id, foreign, foreign_last } = &mut *table;
        let id = self.plain(inode).unwrap_or_else(|| {
            *foreign.entry(inode).or_insert_with(|| {
                *foreign_last += 1;
                FOREIGN | *foreign_last
            })
        });
        let kind = FileType::from_raw_mode(facts.stx_mode.into());
        let node = by_id.entry(id).or_insert_with(|| Arc::new(Node::new(id, inode, kind, held)));
        node.lookups.fetch_add(1, Relaxed);
        node.clone()
    }

    /// The kernel has forgotten it as often as it was told of it.
    pub fn forget(&self, id: u64, count: u64) {
        let mut table = self.table();
        let Some(node) = table.by_id.get(&id).cloned() else { return };
        let left = node.lookups.load(Relaxed).saturating_sub(count);
        node.lookups.store(left, Relaxed);
        if left == 0 {
            table.by_id.remove(&id);
            table.foreign.remove(&node.inode);
        }
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Node>> {
        self.table().by_id.values().cloned().collect()
    }
}
