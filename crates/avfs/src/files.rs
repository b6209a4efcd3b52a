//! Operations of the kernel, done to the files below, by descriptor, as far as [`Guard`] lets them.
//!
//! Some of it has to wait for an inspection; [`Shared::waits_for`] and its kind say what may, from what is known without
//! waiting.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileHandle, FopenFlags, INodeNo, RenameFlags, TimeOrNow, WriteFlags};
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, RawDir, SeekFrom, Statx, StatxTimestamp, Timespec,
    Timestamps, UTIME_NOW, UTIME_OMIT, Uid, chmodat, chownat, fallocate, fdatasync, fsync, ftruncate, getxattr_query,
    linkat, openat, removexattr, renameat_with, seek, unlinkat, utimensat,
};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::guard::{Guard, Open, Refusal};
use crate::judge::Generation;
use crate::node::{Known, Node, Share, Stamp, facts};
use crate::nodes::Nodes;
use crate::overlay::timespec;
use crate::who::Who;

/// Bytes of directory entries read at a time.
const ENTRIES_BYTES: usize = 32 << 10;

const SET_IDS: u32 = 0o6000;

/// State shared by all threads.
pub struct Shared {
    /// The files.
    pub nodes: Nodes,
    /// The guard that decides.
    pub guard: Guard,
    handles: RwLock<HashMap<u64, Arc<Handle>>>,
    /// The open folders.
    pub folders: RwLock<HashMap<u64, Arc<Folder>>>,
    /// The number of the next that is opened.
    pub next: AtomicU64,
}

/// An open file.
pub struct Handle {
    pub node: Arc<Node>,
    below: File,
    pub reads: bool,
    writes: bool,
    /// As in [`Open`].
    skips: bool,
    /// [`Content::taken_back`](crate::node::Content::taken_back) when it was opened.
    epoch: u32,
    share: Share,
}

impl Handle {
    /// It, for who decides.
    pub fn open(&self) -> Open<'_> {
        let Handle { node, below, writes, skips, share, .. } = self;
        Open { node, below, writes: *writes, skips: *skips, share }
    }
}

/// An open folder, and where it is read.
pub struct Folder {
    pub node: Arc<Node>,
    pub entries: Mutex<(OwnedFd, u64)>,
}

/// Attributes to set.
pub struct Change {
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// The permissions.
    pub mode: Option<u32>,
    /// The size.
    pub size: Option<u64>,
    /// When it was read.
    pub atime: Option<TimeOrNow>,
    /// When it was written.
    pub mtime: Option<TimeOrNow>,
}

/// Result of an operation.
pub type Done<T> = Result<T, Errno>;

impl Shared {
    /// Over these files.
    pub fn new(nodes: Nodes, guard: Guard) -> Shared {
        let (handles, folders) = (RwLock::default(), RwLock::default());
        Shared { nodes, guard, handles, folders, next: AtomicU64::new(1) }
    }

    /// Gives all that waits its verdict, as far as there is still time.
    pub fn settle(&self) {
        for node in self.nodes.all() {
            if node.content().overlay.is_none() {
                continue;
            }
            if let Ok(below) = node.open(OFlags::RDWR) {
                let _ = self.guard.settle(&node, &below, "unmount", Who::nobody());
            }
        }
    }

    /// The node of a number of the kernel.
    pub fn node(&self, ino: INodeNo) -> Done<Arc<Node>> {
        self.nodes.get(ino.0)
    }

    /// An open file.
    pub fn handle(&self, number: FileHandle) -> Done<Arc<Handle>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.get(&number.0).cloned().ok_or(Errno::BADF)
    }

    /// An open folder.
    pub fn folder(&self, number: FileHandle) -> Done<Arc<Folder>> {
        let folders = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        folders.get(&number.0).cloned().ok_or(Errno::BADF)
    }

    /// The same, for work on content: what was written through it may have been taken back.
    pub fn live(&self, number: FileHandle) -> Done<Arc<Handle>> {
        let handle = self.handle(number)?;
        let is_over = handle.writes && handle.node.content().taken_back != handle.epoch;
        if is_over { Err(Errno::IO) } else { Ok(handle) }
    }

    /// Whether it may have to wait until something that waits has its verdict, or for who inspects it.
    pub fn waits_for(&self, node: &Node) -> bool {
        let waits = || node.content_now().is_none_or(|content| content.overlay.is_some());
        self.guard.inspects() && node.kind == FileType::RegularFile && waits()
    }

    /// The same for an open file.
    pub fn waits_for_open(&self, number: FileHandle) -> bool {
        self.handle(number).is_ok_and(|handle| self.waits_for(&handle.node))
    }

    /// The same for what has a name.
    pub fn waits_for_name(&self, parent: INodeNo, name: &OsStr) -> bool {
        let named = || self.named(&*self.node(parent)?, name);
        self.guard.inspects() && named().ok().flatten().is_some_and(|node| self.waits_for(&node))
    }

    /// Whether opening a file may have to wait.
    pub fn waits_to_open(&self, ino: INodeNo, flags: i32) -> bool {
        let access = Access::of(flags);
        let is_ready = |node: Arc<Node>| match access.reads && !access.truncates {
            true => self.guard.is_ready(&node),
            false => !self.waits_for(&node),
        };
        self.guard.inspects() && !self.node(ino).is_ok_and(is_ready)
    }

    /// Whether reading may.
    pub fn waits_to_read(&self, number: FileHandle) -> bool {
        self.handle(number).is_ok_and(|handle| !self.guard.reads_at_once(handle.open()))
    }

    /// Whether writing may.
    pub fn waits_to_write(&self, number: FileHandle) -> bool {
        self.handle(number).is_ok_and(|handle| !self.guard.writes_at_once(&handle.node))
    }

    /// A file's attributes, as those have them who opened it.
    pub fn attributes(&self, node: &Node) -> Done<FileAttr> {
        Ok(self.shown(node, &facts(&node.held)?))
    }

    /// Attributes for the kernel, with pending changes.
    pub fn shown(&self, node: &Node, facts: &Statx) -> FileAttr {
        let mut attr = attributes(node.id, facts);
        if node.kind == FileType::RegularFile
            && let Some(overlay) = &node.content().overlay
        {
            attr.size = overlay.size();
            attr.mtime = overlay.mtime();
            attr.ctime = attr.ctime.max(overlay.mtime());
            attr.blocks += overlay.bytes().div_ceil(512);
        }
        attr
    }

    /// The kernel is told of what has a name: it knows it from here on.
    pub fn known(&self, parent: &Node, name: &OsStr) -> Done<(Arc<Node>, Statx)> {
        let held = self.nodes.hold(parent, name)?;
        let facts = facts(&held)?;
        Ok((self.nodes.enter(held, &facts, parent.id, name), facts))
    }

    fn enter(&self, parent: &Node, name: &OsStr) -> Done<FileAttr> {
        let (node, facts) = self.known(parent, name)?;
        Ok(self.shown(&node, &facts))
    }

    /// The node of a name, if the kernel knows it.
    fn named(&self, parent: &Node, name: &OsStr) -> Done<Option<Arc<Node>>> {
        let held = self.nodes.hold(parent, name)?;
        let facts = facts(&held)?;
        Ok(self.nodes.find(held, &facts))
    }

    /// The mode that something new gets.
    fn mode(&self, parent: &Node, mode: u32, umask: u32) -> Mode {
        // A default list takes the place of the mask.
        let has_list = getxattr_query(parent.path(), "system.posix_acl_default").is_ok_and(|bytes| bytes > 0);
        Mode::from_raw_mode(if has_list { mode } else { mode & !umask } & 0o7777)
    }

    /// Gives what was made to who asked for it.
    fn give(&self, parent: &Node, made: &OwnedFd, who: Who, mode: Mode) -> Done<()> {
        let above = facts(&parent.held)?;
        let group =
            if u32::from(above.stx_mode) & Mode::SGID.bits() != 0 { None } else { Some(Gid::from_raw(who.gid)) };
        if who.uid == 0 && group.is_none_or(Gid::is_root) {
            return Ok(());
        }
        chownat(made, "", Some(Uid::from_raw(who.uid)), group, AtFlags::EMPTY_PATH)?;
        let made_facts = facts(made)?;
        let is_folder = FileType::from_raw_mode(made_facts.stx_mode.into()) == FileType::Directory;
        if !is_folder && mode.bits() & SET_IDS != 0 {
            // Another owner takes them away.
            let bits = u32::from(made_facts.stx_mode) & 0o1777 | mode.bits() & SET_IDS;
            chmodat(rustix::fs::CWD, path_of(made), Mode::from_raw_mode(bits), AtFlags::empty())?;
        }
        Ok(())
    }

    /// Something new that is no open file.
    pub fn make(
        &self,
        who: Who,
        parent: INodeNo,
        name: &OsStr,
        mode: Option<(u32, u32)>,
        make: impl FnOnce(&OwnedFd, Mode) -> Done<()>,
    ) -> Done<FileAttr> {
        let parent = self.node(parent)?;
        let mode = mode.map_or(Mode::empty(), |(mode, umask)| self.mode(&parent, mode, umask));
        make(&parent.held, mode)?;
        self.give(&parent, &self.nodes.hold(&parent, name)?, who, mode)?;
        self.enter(&parent, name)
    }

    /// Puts an open file into the table, and says how the kernel has to treat it.
    fn register(
        &self,
        node: Arc<Node>,
        below: File,
        access: &Access,
        skips: bool,
        share: Share,
    ) -> (FileHandle, FopenFlags) {
        let mut content = node.content_mut();
        content.handles += 1;
        content.writers += u32::from(access.changes());
        let mut flags = FopenFlags::empty();
        if content.writers > 0 && self.guard.inspects() {
            flags |= FopenFlags::FOPEN_DIRECT_IO;
            content.is_cached = false;
        } else if let Ok(stamp) = Stamp::of_file(&below) {
            if !self.guard.inspects() {
                content.learn(stamp, Generation::of(b""), Known::Clean);
            }
            if content.is_cached && content.was_clean(&stamp) {
                flags |= FopenFlags::FOPEN_KEEP_CACHE;
            }
            content.is_cached = content.writers == 0 && content.was_clean(&stamp);
        }
        let epoch = content.taken_back;
        drop(content);
        let number = self.next.fetch_add(1, Relaxed);
        let (reads, writes) = (access.reads, access.changes());
        let handle = Arc::new(Handle { node, below, reads, writes, skips, epoch, share });
        self.handles.write().unwrap_or_else(PoisonError::into_inner).insert(number, handle);
        (FileHandle(number), flags)
    }

    /// Opens a file.
    pub fn open(&self, who: Who, ino: INodeNo, flags: i32) -> Done<(FileHandle, FopenFlags)> {
        let (node, access) = (self.node(ino)?, Access::of(flags));
        let wanted = if access.changes() { OFlags::RDWR } else { OFlags::RDONLY };
        let below = self.nodes.with_reserve(|| node.open(wanted))?;
        self.open_content(node, below, &access, who)
    }

    fn open_content(&self, node: Arc<Node>, below: File, access: &Access, who: Who) -> Done<(FileHandle, FopenFlags)> {
        let skips = self.guard.skips(&node, &below, who);
        let share = Share::default();
        let open = Open { node: &node, below: &below, writes: access.changes(), skips, share: &share };
        if access.truncates {
            self.truncate_open(open, 0, who)?;
        } else if access.reads {
            self.guard.admit(open, who).map_err(Refusal::opening)?;
        }
        Ok(self.register(node, below, access, skips, share))
    }

    /// Makes a file, or opens it if it is there.
    pub fn create(
        &self,
        who: Who,
        parent: INodeNo,
        name: &OsStr,
        mode: (u32, u32),
        flags: i32,
    ) -> Done<(FileAttr, FileHandle, FopenFlags)> {
        let (parent, access) = (self.node(parent)?, Access::of(flags));
        let mode = self.mode(&parent, mode.0, mode.1);
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What is made cannot be refused.
        drop(self.nodes.with_reserve(|| fcntl_dupfd_cloexec(&parent.held, 0))?);
        let opened = self.nodes.with_room(|| openat(&parent.held, name, made, mode));
        let held = self.nodes.hold(&parent, name)?;
        let below: File = match opened {
            Ok(below) => {
                self.give(&parent, &held, who, mode)?;
                below.into()
            }
            // Somebody was faster.
            Err(Errno::EXIST) if flags.cast_unsigned() & OFlags::EXCL.bits() == 0 => {
                let facts = facts(&held)?;
                if FileType::from_raw_mode(facts.stx_mode.into()) != FileType::RegularFile {
                    return Err(Errno::EXIST);
                }
                let node = self.nodes.enter(held, &facts, parent.id, name);
                let opened = node.open(OFlags::RDWR);
                let opened = opened.and_then(|below| self.open_content(node.clone(), below, &access, who));
                if opened.is_err() {
                    self.nodes.forget(node.id, 1);
                }
                let (number, flags) = opened?;
                return Ok((self.attributes(&node)?, number, flags));
            }
            Err(error) => return Err(error),
        };
        let facts = facts(&held)?;
        let node = self.nodes.enter(held, &facts, parent.id, name);
        let attr = self.shown(&node, &facts);
        let skips = self.guard.skips(&node, &below, who);
        let (number, flags) = self.register(node, below, &access, skips, Share::default());
        Ok((attr, number, flags))
    }

    fn truncate_open(&self, open: Open<'_>, size: u64, who: Who) -> Done<()> {
        if who.uid != 0 {
            drop_set_ids(open.node, who)?;
        }
        match self.guard.directly(open, || ftruncate(open.below, size))? {
            Some(()) => Ok(()),
            None => self.guard.change(open, who, |overlay| overlay.truncate(size)).map_err(Refusal::working),
        }
    }

    fn truncate(&self, node: &Node, number: Option<FileHandle>, size: u64, who: Who) -> Done<()> {
        if let Some(handle) = number.and_then(|number| self.handle(number).ok()).filter(|handle| handle.writes) {
            let handle_is_over = handle.node.content().taken_back != handle.epoch;
            return if handle_is_over { Err(Errno::IO) } else { self.truncate_open(handle.open(), size, who) };
        }
        let below = node.open(OFlags::WRONLY).and_then(|_| node.open(OFlags::RDWR))?;
        let skips = self.guard.skips(node, &below, who);
        let share = Share::default();
        self.truncate_open(Open { node, below: &below, writes: true, skips, share: &share }, size, who)?;
        // Nobody who has it open for writing will close it.
        if node.content().writers == 0 {
            let settled = self.guard.settle(node, &below, "truncate", who);
            return settled.map_err(|refusal| {
                // What has failed does not happen later.
                node.content_mut().overlay = None;
                refusal.working()
            });
        }
        Ok(())
    }

    /// Changes attributes, and says what they are then.
    pub fn change(&self, node: &Node, number: Option<FileHandle>, change: Change, who: Who) -> Done<FileAttr> {
        let Change { uid, gid, mode, size, atime, mtime } = change;
        if uid.is_some() || gid.is_some() {
            let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
            self.guard.aside(Some(node), || chownat(&node.held, "", uid, gid, AtFlags::EMPTY_PATH))?;
        }
        if let Some(mode) = mode {
            if node.kind == FileType::Symlink {
                return Err(Errno::OPNOTSUPP);
            }
            let mode = Mode::from_raw_mode(mode & 0o7777);
            self.guard.aside(Some(node), || chmodat(rustix::fs::CWD, node.path(), mode, AtFlags::empty()))?;
        }
        if let Some(size) = size {
            self.truncate(node, number, size, who)?;
        }
        if atime.is_some() || mtime.is_some() {
            self.guard.aside(Some(node), || self.set_times(node, atime, mtime))?;
        }
        self.attributes(node)
    }

    fn set_times(&self, node: &Node, atime: Option<TimeOrNow>, mtime: Option<TimeOrNow>) -> Done<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let spec = |time: Option<TimeOrNow>| match time {
            None => omit,
            Some(TimeOrNow::Now) => now,
            Some(TimeOrNow::SpecificTime(time)) => timespec(time),
        };
        let times = Timestamps { last_access: spec(atime), last_modification: spec(mtime) };
        if node.kind == FileType::Symlink {
            utimensat(&node.held, "", &times, AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?;
        } else {
            utimensat(rustix::fs::CWD, node.path(), &times, AtFlags::empty())?;
        }
        if let (Some(time), Some(overlay)) = (mtime, &mut node.content_mut().overlay) {
            overlay.set_mtime(match time {
                TimeOrNow::Now => SystemTime::now(),
                TimeOrNow::SpecificTime(time) => time,
            });
        }
        Ok(())
    }

    /// Before something gets another name, or takes another's place: what waits has its verdict.
    fn pass_on(&self, node: &Node, operation: &str, who: Who) -> Done<()> {
        if node.kind != FileType::RegularFile || !self.guard.inspects() {
            return Ok(());
        }
        if node.content().overlay.is_some() {
            let below = node.open(OFlags::RDWR)?;
            self.guard.settle(node, &below, operation, who).map_err(Refusal::opening)?;
        }
        if node.content().is_tainted { Err(Errno::PERM) } else { Ok(()) }
    }

    /// Gives something another name.
    pub fn rename(&self, who: Who, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr), flags: RenameFlags) -> Done<()> {
        let (parent, new_parent) = (self.node(from.0)?, self.node(to.0)?);
        let node = self.named(&parent, from.1)?;
        if let Some(node) = &node {
            self.pass_on(node, "rename", who)?;
        }
        let other = match self.named(&new_parent, to.1) {
            Err(Errno::NOENT) => None,
            other => other?,
        };
        let is_exchange = flags.contains(RenameFlags::RENAME_EXCHANGE);
        if let Some(other) = other.as_ref().filter(|_| is_exchange) {
            self.pass_on(other, "rename", who)?;
        }
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        self.guard.aside(node.as_deref(), || renameat_with(&parent.held, from.1, &new_parent.held, to.1, flags))?;
        // Two names of one file both stay.
        let is_same = || node.as_ref().zip(other.as_ref()).is_some_and(|(node, other)| node.id == other.id);
        if is_same() {
            return Ok(());
        }
        if let Some(other) = &other {
            match is_exchange {
                true => self.nodes.moved(other.id, parent.id, from.1),
                false => self.nodes.unnamed(other.id, new_parent.id, to.1),
            }
        }
        node.iter().for_each(|node| self.nodes.moved(node.id, new_parent.id, to.1));
        Ok(())
    }

    /// Gives a file one more name.
    pub fn link(&self, who: Who, ino: INodeNo, parent: INodeNo, name: &OsStr) -> Done<FileAttr> {
        let (node, parent) = (self.node(ino)?, self.node(parent)?);
        self.pass_on(&node, "link", who)?;
        self.guard.aside(Some(&node), || linkat(&node.held, "", &parent.held, name, AtFlags::EMPTY_PATH))?;
        self.enter(&parent, name)
    }

    /// Takes a name away.
    pub fn unlink(&self, parent: INodeNo, name: &OsStr, flags: AtFlags) -> Done<()> {
        let parent = self.node(parent)?;
        // Where another name remains, what is known of the file remains, too.
        let node = self.named(&parent, name)?;
        self.guard.aside(node.as_deref(), || unlinkat(&parent.held, name, flags))?;
        node.iter().for_each(|node| self.nodes.unnamed(node.id, parent.id, name));
        Ok(())
    }

    /// Writes to an open file.
    pub fn write(&self, who: Who, number: FileHandle, data: &[u8], offset: u64, flags: WriteFlags) -> Done<()> {
        let handle = self.live(number)?;
        if !handle.writes {
            return Err(Errno::BADF);
        }
        if flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            drop_set_ids(&handle.node, who)?;
        }
        self.guard.write(handle.open(), data, offset, who).map_err(Refusal::working)
    }

    /// The handle, once the changes of its file have a verdict, and none was dropped by another's inspection.
    pub fn settled(&self, who: Who, number: FileHandle, operation: &str) -> Done<Arc<Handle>> {
        let handle = self.live(number)?;
        if handle.writes {
            self.guard.settle(&handle.node, &handle.below, operation, who).map_err(Refusal::working)?;
        }
        self.live(number)
    }

    /// Brings changes to the disk, after their verdict.
    pub fn sync(&self, who: Who, number: FileHandle, only_data: bool) -> Done<()> {
        let handle = self.settled(who, number, "fsync")?;
        if only_data { fdatasync(&handle.below) } else { fsync(&handle.below) }
    }

    /// Makes room or holes.
    pub fn allocate(&self, who: Who, number: FileHandle, offset: u64, length: u64, mode: i32) -> Done<()> {
        let handle = self.live(number)?;
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        self.allocate_in(handle.open(), offset, length, mode, who)?;
        if who.uid == 0 { Ok(()) } else { drop_set_ids(&handle.node, who) }
    }

    fn allocate_in(&self, open: Open<'_>, offset: u64, length: u64, mode: FallocateFlags, who: Who) -> Done<()> {
        let Open { node, below, .. } = open;
        if let Some(done) = self.guard.directly(open, || fallocate(below, mode, offset, length))? {
            return Ok(done);
        }
        let keeps = mode.contains(FallocateFlags::KEEP_SIZE);
        let end = offset.checked_add(length).ok_or(Errno::FBIG)?;
        let changed = match mode & !FallocateFlags::KEEP_SIZE {
            // Room behind the content is no content.
            kind if kind.is_empty() => {
                fallocate(below, FallocateFlags::KEEP_SIZE, offset, length)?;
                let grows = !keeps && end > self.attributes(node)?.size;
                if !grows {
                    // The file below has a new time already; what waits brings its own.
                    node.content_mut().overlay.iter_mut().for_each(|overlay| overlay.set_mtime(SystemTime::now()));
                    return Ok(());
                }
                self.guard.change(open, who, |overlay| overlay.extend(end))
            }
            FallocateFlags::PUNCH_HOLE if keeps => {
                self.guard.change(open, who, |overlay| overlay.zero(offset, length, false))
            }
            FallocateFlags::ZERO_RANGE => self.guard.change(open, who, |overlay| overlay.zero(offset, length, !keeps)),
            _ => return Err(Errno::OPNOTSUPP),
        };
        changed.map_err(Refusal::working)
    }

    /// Where data or a hole begins.
    pub fn find_data(&self, number: FileHandle, offset: i64, whence: i32) -> Done<i64> {
        let handle = self.live(number)?;
        let at = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let is_hole = match whence {
            SEEK_DATA => false,
            SEEK_HOLE => true,
            _ => return Err(Errno::INVAL),
        };
        // While something waits, all of it counts as data.
        if let Some(overlay) = &handle.node.content().overlay {
            let found = if is_hole { overlay.size() } else { at };
            return if at < overlay.size() { Ok(found.cast_signed()) } else { Err(Errno::NXIO) };
        }
        let found = seek(&handle.below, if is_hole { SeekFrom::Hole(at) } else { SeekFrom::Data(at) })?;
        Ok(found.cast_signed())
    }

    /// An open file is closed.
    pub fn release(&self, who: Who, number: FileHandle) {
        let handle = self.handles.write().unwrap_or_else(PoisonError::into_inner).remove(&number.0);
        let Some(handle) = handle else { return };
        let is_last = {
            let mut content = handle.node.content_mut();
            content.handles = content.handles.saturating_sub(1);
            content.writers = content.writers.saturating_sub(u32::from(handle.writes));
            content.writers == 0
        };
        if is_last {
            self.guard.release(&handle.node, &handle.below, who);
        }
    }

    /// Goes through a folder from a place on; `add` says whether there is room for no more.
    pub fn entries(
        &self,
        number: FileHandle,
        offset: u64,
        mut add: impl FnMut(&Node, &OsStr, u64, FileType, u64) -> bool,
    ) -> Done<()> {
        let folder = self.folder(number)?;
        let mut entries = folder.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, place) = &mut *entries;
        if *place != offset {
            seek(&*file, SeekFrom::Start(offset))?;
        }
        // Unknown until it is known how far was read.
        *place = u64::MAX;
        let mut space: Vec<u8> = Vec::with_capacity(ENTRIES_BYTES);
        let mut listed = RawDir::new(&*file, space.spare_capacity_mut());
        let mut last = offset;
        while let Some(entry) = listed.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if add(&folder.node, name, entry.ino(), entry.file_type(), entry.next_entry_cookie()) {
                return Ok(());
            }
            last = entry.next_entry_cookie();
            if listed.is_buffer_empty() {
                *place = last;
            }
        }
        *place = last;
        Ok(())
    }
}

const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// How a file is opened.
struct Access {
    reads: bool,
    writes: bool,
    truncates: bool,
}

impl Access {
    fn changes(&self) -> bool {
        self.writes || self.truncates
    }

    fn of(flags: i32) -> Access {
        let flags = OFlags::from_bits_retain(flags.cast_unsigned());
        let access = flags & OFlags::RWMODE;
        let writes = access == OFlags::WRONLY || access == OFlags::RDWR;
        // Whoever opens it for reading may cut it all the same.
        Access { reads: access != OFlags::WRONLY, writes, truncates: flags.contains(OFlags::TRUNC) }
    }
}

fn path_of(held: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(held))
}

/// Removes the set-user and set-group rights of a program that is written to.
fn drop_set_ids(node: &Node, who: Who) -> Done<()> {
    let facts = facts(&node.held)?;
    let mode = u32::from(facts.stx_mode);
    // Where the group may not run it, this bit is not one of rights: whoever is in the group leaves it.
    let keeps_group = mode & 0o2000 == 0 || mode & 0o010 == 0 && who.is_in(facts.stx_gid);
    let group = if keeps_group { 0 } else { 0o2000 };
    let dropped = mode & (0o4000 | group);
    if dropped != 0 {
        let mode = Mode::from_raw_mode(mode & 0o7777 & !dropped);
        chmodat(rustix::fs::CWD, node.path(), mode, AtFlags::empty())?;
    }
    match removexattr(node.path(), "security.capability") {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error),
    }
}

fn time(stamp: &StatxTimestamp) -> SystemTime {
    let part = Duration::from_nanos(stamp.tv_nsec.into());
    let whole = Duration::from_secs(stamp.tv_sec.unsigned_abs());
    let second = match stamp.tv_sec {
        0.. => SystemTime::UNIX_EPOCH.checked_add(whole),
        _ => SystemTime::UNIX_EPOCH.checked_sub(whole),
    };
    second.and_then(|second| second.checked_add(part)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Type in the kernel's words.
pub fn kind_of(kind: FileType) -> fuser::FileType {
    match kind {
        FileType::Directory => fuser::FileType::Directory,
        FileType::Symlink => fuser::FileType::Symlink,
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::Socket => fuser::FileType::Socket,
        FileType::CharacterDevice => fuser::FileType::CharDevice,
        FileType::BlockDevice => fuser::FileType::BlockDevice,
        _ => fuser::FileType::RegularFile,
    }
}

fn attributes(id: u64, facts: &Statx) -> FileAttr {
    let (major, minor) = (facts.stx_rdev_major, facts.stx_rdev_minor);
    FileAttr {
        ino: INodeNo(id),
        size: facts.stx_size,
        blocks: facts.stx_blocks,
        atime: time(&facts.stx_atime),
        mtime: time(&facts.stx_mtime),
        ctime: time(&facts.stx_ctime),
        crtime: time(&facts.stx_btime),
        kind: kind_of(FileType::from_raw_mode(facts.stx_mode.into())),
        perm: facts.stx_mode & 0o7777,
        nlink: facts.stx_nlink,
        uid: facts.stx_uid,
        gid: facts.stx_gid,
        rdev: (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12),
        blksize: facts.stx_blksize,
        flags: 0,
    }
}
