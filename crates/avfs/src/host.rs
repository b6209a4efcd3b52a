//! The kernel's requests: each is done to the file below, by descriptor, as far as [`Guard`] lets it.
//!
//! Who may do what is decided by the kernel before it asks (`default_permissions`), with the owners, modes and lists that it is
//! told here; what is done below is done as root, and given to its owner where it is made. Locks are the kernel's own: whoever
//! uses the mount sees them, and nobody else does.
//!
//! Files that somebody has open for writing are read and written without the kernel's page cache (`FOPEN_DIRECT_IO`), so that
//! each read is asked about. Files that are only read are cached.
//!
//! Not there: `O_TMPFILE` through the mount (EOPNOTSUPP), ioctls of the file system below (ENOTTY), extended attributes of
//! links. `copy_file_range` is done by the kernel with reads and writes, so all of it is seen.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno as Code, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, Gid, Mode, OFlags, RawDir, SeekFrom, Statx, StatxTimestamp, Timespec,
    Timestamps, UTIME_NOW, UTIME_OMIT, Uid, XattrFlags, chmodat, chownat, fallocate, fdatasync, fstatvfs, fsync,
    ftruncate, getxattr, getxattr_query, linkat, listxattr, listxattr_query, makedev, mkdirat, mknodat, openat,
    readlinkat, removexattr, renameat_with, seek, setxattr, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use crate::guard::{Guard, Open, Refusal};
use crate::node::{Known, Node, Stamp, facts};
use crate::nodes::Nodes;
use crate::overlay::timespec;
use crate::who::Who;

/// How long the kernel may go by names and attributes: nobody but we changes them.
const TTL: Duration = Duration::from_secs(1);

/// The most that is written or read ahead in one request.
const REQUEST_BYTES: u32 = 1 << 20;

/// Bytes of directory entries read at a time.
const ENTRIES_BYTES: usize = 32 << 10;

/// Requests of the kernel's own that may wait (reading ahead, writing back).
const BACKGROUND_MAX: u16 = 64;

const SET_IDS: u32 = 0o6000;

/// The file system.
pub struct Host {
    shared: Arc<Shared>,
}

/// What all threads share.
pub struct Shared {
    /// The files.
    pub nodes: Nodes,
    /// Who decides.
    pub guard: Guard,
    handles: RwLock<HashMap<u64, Arc<Handle>>>,
    folders: RwLock<HashMap<u64, Arc<Folder>>>,
    next: AtomicU64,
}

/// An open file.
struct Handle {
    node: Arc<Node>,
    below: File,
    reads: bool,
    writes: bool,
    /// As in [`Open`].
    skips: bool,
    /// [`Content::taken_back`](crate::node::Content::taken_back) when it was opened.
    epoch: u32,
}

impl Handle {
    fn open(&self) -> Open<'_> {
        Open { node: &self.node, below: &self.below, writes: self.writes, skips: self.skips }
    }
}

/// An open folder, and where it is read.
struct Folder {
    node: Arc<Node>,
    entries: Mutex<(OwnedFd, u64)>,
}

type Done<T> = Result<T, Errno>;

fn code(error: Errno) -> Code {
    Code::from_i32(error.raw_os_error())
}

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

    fn node(&self, ino: INodeNo) -> Done<Arc<Node>> {
        self.nodes.get(ino.0)
    }

    fn handle(&self, number: FileHandle) -> Done<Arc<Handle>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.get(&number.0).cloned().ok_or(Errno::BADF)
    }

    fn folder(&self, number: FileHandle) -> Done<Arc<Folder>> {
        let folders = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        folders.get(&number.0).cloned().ok_or(Errno::BADF)
    }

    /// The same, for work on content: what was written through it may have been taken back.
    fn live(&self, number: FileHandle) -> Done<Arc<Handle>> {
        let handle = self.handle(number)?;
        let is_over = handle.writes && handle.node.content().taken_back != handle.epoch;
        if is_over { Err(Errno::IO) } else { Ok(handle) }
    }

    /// A file's attributes, as those have them who opened it.
    fn attributes(&self, node: &Node) -> Done<FileAttr> {
        Ok(self.shown(node, &facts(&node.held)?))
    }

    fn shown(&self, node: &Node, facts: &Statx) -> FileAttr {
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

    /// The kernel is told of what has a name.
    fn enter(&self, parent: &Node, name: &OsStr) -> Done<FileAttr> {
        let held = self.nodes.hold(parent, name)?;
        let facts = facts(&held)?;
        let node = self.nodes.enter(held, &facts, parent.id, name);
        Ok(self.shown(&node, &facts))
    }

    /// What has a name, if the kernel knows it.
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
        let is_file = FileType::from_raw_mode(made_facts.stx_mode.into()) == FileType::RegularFile;
        if is_file && mode.bits() & SET_IDS != 0 {
            // Another owner takes them away.
            let bits = u32::from(made_facts.stx_mode) & 0o777 | mode.bits() & SET_IDS;
            chmodat(rustix::fs::CWD, path_of(made), Mode::from_raw_mode(bits), AtFlags::empty())?;
        }
        Ok(())
    }

    /// Something new that is no open file.
    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: Option<(u32, u32)>,
        make: impl FnOnce(&OwnedFd, Mode) -> Done<()>,
    ) -> Done<FileAttr> {
        let parent = self.node(parent)?;
        let mode = mode.map_or(Mode::empty(), |(mode, umask)| self.mode(&parent, mode, umask));
        make(&parent.held, mode)?;
        self.give(&parent, &self.nodes.hold(&parent, name)?, Who::of(request), mode)?;
        self.enter(&parent, name)
    }

    /// Puts an open file into the table, and says how the kernel has to treat it.
    fn register(&self, node: Arc<Node>, below: File, access: &Access, skips: bool) -> (FileHandle, FopenFlags) {
        let mut content = node.content_mut();
        content.handles += 1;
        content.writers += u32::from(access.changes());
        let mut flags = FopenFlags::empty();
        if content.writers > 0 && self.guard.judge().is_some() {
            flags |= FopenFlags::FOPEN_DIRECT_IO;
            content.is_cached = false;
        } else if let Ok(stamp) = Stamp::of_file(&below) {
            if self.guard.judge().is_none() {
                content.learn(stamp, Known::Clean);
            }
            if content.is_cached && content.known == Some((stamp, Known::Clean)) {
                flags |= FopenFlags::FOPEN_KEEP_CACHE;
            }
            content.is_cached = content.writers == 0 && content.known == Some((stamp, Known::Clean));
        }
        let epoch = content.taken_back;
        drop(content);
        let number = self.next.fetch_add(1, Relaxed);
        let (reads, writes) = (access.reads, access.changes());
        let handle = Arc::new(Handle { node, below, reads, writes, skips, epoch });
        self.handles.write().unwrap_or_else(PoisonError::into_inner).insert(number, handle);
        (FileHandle(number), flags)
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: i32) -> Done<(FileHandle, FopenFlags)> {
        let (node, access, who) = (self.node(ino)?, Access::of(flags), Who::of(request));
        let wanted = if access.changes() { OFlags::RDWR } else { OFlags::RDONLY };
        let below = self.nodes.with_room(|| node.open(wanted))?;
        self.open_content(node, below, &access, who)
    }

    fn open_content(&self, node: Arc<Node>, below: File, access: &Access, who: Who) -> Done<(FileHandle, FopenFlags)> {
        let skips = self.guard.skips(&node, &below, who);
        let open = Open { node: &node, below: &below, writes: access.changes(), skips };
        if access.truncates {
            self.truncate_open(open, 0, who)?;
        } else if access.reads {
            self.guard.admit(open, who).map_err(Refusal::opening)?;
        }
        Ok(self.register(node, below, access, skips))
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: (u32, u32),
        flags: i32,
    ) -> Done<(FileAttr, FileHandle, FopenFlags)> {
        let (parent, access, who) = (self.node(parent)?, Access::of(flags), Who::of(request));
        let mode = self.mode(&parent, mode.0, mode.1);
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
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
        let (number, flags) = self.register(node, below, &access, skips);
        Ok((attr, number, flags))
    }

    fn truncate_open(&self, open: Open<'_>, size: u64, who: Who) -> Done<()> {
        if who.uid != 0 {
            drop_set_ids(open.node)?;
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
        self.truncate_open(Open { node, below: &below, writes: true, skips }, size, who)?;
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
        if node.kind != FileType::RegularFile || self.guard.judge().is_none() {
            return Ok(());
        }
        if node.content().overlay.is_some() {
            let below = node.open(OFlags::RDWR)?;
            self.guard.settle(node, &below, operation, who).map_err(Refusal::opening)?;
        }
        if node.content().is_tainted { Err(Errno::PERM) } else { Ok(()) }
    }

    fn rename(
        &self,
        request: &Request,
        from: (INodeNo, &OsStr),
        to: (INodeNo, &OsStr),
        flags: RenameFlags,
    ) -> Done<()> {
        let (parent, new_parent) = (self.node(from.0)?, self.node(to.0)?);
        let node = self.named(&parent, from.1)?;
        if let Some(node) = &node {
            self.pass_on(node, "rename", Who::of(request))?;
        }
        let other = match self.named(&new_parent, to.1) {
            Err(Errno::NOENT) => None,
            other => other?,
        };
        let is_exchange = flags.contains(RenameFlags::RENAME_EXCHANGE);
        if let Some(other) = other.as_ref().filter(|_| is_exchange) {
            self.pass_on(other, "rename", Who::of(request))?;
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

    fn link(&self, request: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr) -> Done<FileAttr> {
        let (node, parent) = (self.node(ino)?, self.node(parent)?);
        self.pass_on(&node, "link", Who::of(request))?;
        self.guard.aside(Some(&node), || linkat(&node.held, "", &parent.held, name, AtFlags::EMPTY_PATH))?;
        self.enter(&parent, name)
    }

    fn unlink(&self, parent: INodeNo, name: &OsStr, flags: AtFlags) -> Done<()> {
        let parent = self.node(parent)?;
        // Where another name remains, what is known of the file remains, too.
        let node = self.named(&parent, name)?;
        self.guard.aside(node.as_deref(), || unlinkat(&parent.held, name, flags))?;
        node.iter().for_each(|node| self.nodes.unnamed(node.id, parent.id, name));
        Ok(())
    }

    fn write(&self, request: &Request, number: FileHandle, data: &[u8], offset: u64, flags: WriteFlags) -> Done<()> {
        let handle = self.live(number)?;
        if !handle.writes {
            return Err(Errno::BADF);
        }
        if flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            drop_set_ids(&handle.node)?;
        }
        let who = Who::of(request);
        self.guard.write(handle.open(), data, offset, who).map_err(Refusal::working)
    }

    /// What was written through a file has its verdict, and has not been taken back by another's inspection either.
    fn settled(&self, request: &Request, number: FileHandle, operation: &str) -> Done<Arc<Handle>> {
        let handle = self.live(number)?;
        if handle.writes {
            let who = Who::of(request);
            self.guard.settle(&handle.node, &handle.below, operation, who).map_err(Refusal::working)?;
        }
        self.live(number)
    }

    fn sync(&self, request: &Request, number: FileHandle, only_data: bool) -> Done<()> {
        let handle = self.settled(request, number, "fsync")?;
        if only_data { fdatasync(&handle.below) } else { fsync(&handle.below) }
    }

    fn allocate(&self, request: &Request, number: FileHandle, offset: u64, length: u64, mode: i32) -> Done<()> {
        let handle = self.live(number)?;
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        self.allocate_in(handle.open(), offset, length, mode, Who::of(request))?;
        if request.uid() == 0 { Ok(()) } else { drop_set_ids(&handle.node) }
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

    fn find_data(&self, number: FileHandle, offset: i64, whence: i32) -> Done<i64> {
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

    fn release(&self, request: &Request, number: FileHandle) {
        let handle = self.handles.write().unwrap_or_else(PoisonError::into_inner).remove(&number.0);
        let Some(handle) = handle else { return };
        let is_last = {
            let mut content = handle.node.content_mut();
            content.handles = content.handles.saturating_sub(1);
            content.writers = content.writers.saturating_sub(u32::from(handle.writes));
            content.writers == 0
        };
        if is_last {
            self.guard.release(&handle.node, &handle.below, Who::of(request));
        }
    }

    /// Goes through a folder from a place on; `add` says whether there is room for no more.
    fn entries(
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

/// Whoever writes to a program takes its rights away.
fn drop_set_ids(node: &Node) -> Done<()> {
    let mode = u32::from(facts(&node.held)?.stx_mode);
    let group = if mode & 0o010 != 0 { 0o2000 } else { 0 };
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

fn kind_of(kind: FileType) -> fuser::FileType {
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

fn finish(reply: ReplyEmpty, done: Done<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(code(error)),
    }
}

fn enter(reply: ReplyEntry, done: Done<FileAttr>) {
    match done {
        Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
        Err(error) => reply.error(code(error)),
    }
}

impl Host {
    /// With what other threads share.
    pub fn new(shared: Arc<Shared>) -> Host {
        Host { shared }
    }
}

impl Filesystem for Host {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for wanted in [
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_DONT_MASK,
            InitFlags::FUSE_POSIX_ACL,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_ABORT_ERROR,
        ] {
            if config.add_capabilities(wanted).is_err() {
                tracing::debug!(?wanted, "not known to the kernel");
            }
        }
        let _ = config.set_max_write(REQUEST_BYTES);
        let _ = config.set_max_readahead(REQUEST_BYTES);
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.shared.node(parent).and_then(|parent| self.shared.enter(&parent, name)) {
            // Remembered as nothing, too.
            Err(Errno::NOENT) => {
                let none = FileAttr { ino: INodeNo(0), ..NOTHING };
                reply.entry(&TTL, &none, Generation(0));
            }
            found => enter(reply, found),
        }
    }

    fn forget(&self, _: &Request, ino: INodeNo, count: u64) {
        self.shared.nodes.forget(ino.0, count);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.shared.node(ino).and_then(|node| self.shared.attributes(&node)) {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(code(error)),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        number: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let shared = &self.shared;
        let done = shared.node(ino).and_then(|node| {
            if uid.is_some() || gid.is_some() {
                let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
                shared.guard.aside(Some(&node), || chownat(&node.held, "", uid, gid, AtFlags::EMPTY_PATH))?;
            }
            if let Some(mode) = mode {
                if node.kind == FileType::Symlink {
                    return Err(Errno::OPNOTSUPP);
                }
                let mode = Mode::from_raw_mode(mode & 0o7777);
                shared.guard.aside(Some(&node), || chmodat(rustix::fs::CWD, node.path(), mode, AtFlags::empty()))?;
            }
            if let Some(size) = size {
                shared.truncate(&node, number, size, Who::of(request))?;
            }
            if atime.is_some() || mtime.is_some() {
                shared.guard.aside(Some(&node), || shared.set_times(&node, atime, mtime))?;
            }
            shared.attributes(&node)
        });
        match done {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(code(error)),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.shared.node(ino).and_then(|node| readlinkat(&node.held, "", Vec::new())) {
            Ok(target) => reply.data(target.as_bytes()),
            Err(error) => reply.error(code(error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let kind = FileType::from_raw_mode(mode);
        let device = makedev((rdev >> 8) & 0xfff, (rdev & 0xff) | ((rdev >> 12) & 0xfff00));
        let done = self
            .shared
            .make(request, parent, name, Some((mode, umask)), |folder, mode| mknodat(folder, name, kind, mode, device));
        enter(reply, done);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let done =
            self.shared.make(request, parent, name, Some((mode, umask)), |folder, mode| mkdirat(folder, name, mode));
        enter(reply, done);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        finish(reply, self.shared.unlink(parent, name, AtFlags::empty()));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        finish(reply, self.shared.unlink(parent, name, AtFlags::REMOVEDIR));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let done = self.shared.make(request, parent, name, None, |folder, _| symlinkat(target, folder, name));
        enter(reply, done);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        finish(reply, self.shared.rename(request, (parent, name), (new_parent, new_name), flags));
    }

    fn link(&self, request: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        enter(reply, self.shared.link(request, ino, parent, name));
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.shared.open(request, ino, flags.0) {
            Ok((number, flags)) => reply.opened(number, flags),
            Err(error) => reply.error(code(error)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.shared.create(request, parent, name, (mode, umask), flags) {
            Ok((attr, number, flags)) => reply.created(&TTL, &attr, Generation(0), number, flags),
            Err(error) => reply.error(code(error)),
        }
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        number: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut buffer = vec![0; size.min(REQUEST_BYTES) as usize];
        let done = self.shared.live(number).and_then(|handle| {
            if !handle.reads {
                return Err(Errno::BADF);
            }
            let who = Who::of(request);
            self.shared.guard.read(handle.open(), &mut buffer, offset, who).map_err(Refusal::working)
        });
        match done {
            Ok(count) => reply.data(&buffer[..count]),
            Err(error) => reply.error(code(error)),
        }
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        number: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.shared.write(request, number, data, offset, write_flags) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(code(error)),
        }
    }

    fn flush(&self, request: &Request, _: INodeNo, number: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        finish(reply, self.shared.settled(request, number, "close").map(drop));
    }

    fn release(
        &self,
        request: &Request,
        _: INodeNo,
        number: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.shared.release(request, number);
        reply.ok();
    }

    fn fsync(&self, request: &Request, _: INodeNo, number: FileHandle, only_data: bool, reply: ReplyEmpty) {
        finish(reply, self.shared.sync(request, number, only_data));
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let shared = &self.shared;
        let opened = shared.node(ino).and_then(|node| {
            let file = shared.nodes.with_room(|| node.open(OFlags::RDONLY | OFlags::DIRECTORY))?;
            let number = shared.next.fetch_add(1, Relaxed);
            let folder = Arc::new(Folder { node, entries: Mutex::new((file.into(), 0)) });
            shared.folders.write().unwrap_or_else(PoisonError::into_inner).insert(number, folder);
            Ok(FileHandle(number))
        });
        match opened {
            Ok(number) => reply.opened(number, FopenFlags::empty()),
            Err(error) => reply.error(code(error)),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, number: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let done = self
            .shared
            .entries(number, offset, |_, name, inode, kind, next| reply.add(INodeNo(inode), next, kind_of(kind), name));
        match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(code(error)),
        }
    }

    fn readdirplus(&self, _: &Request, _: INodeNo, number: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        let shared = &self.shared;
        let done = shared.entries(number, offset, |folder, name, inode, kind, next| {
            let unknown = FileAttr { ino: INodeNo(0), kind: kind_of(kind), ..NOTHING };
            let attr = shared.enter(folder, name).unwrap_or(unknown);
            let is_full = reply.add(INodeNo(inode), next, name, &TTL, &attr, Generation(0));
            if is_full && attr.ino.0 != 0 {
                shared.nodes.forget(attr.ino.0, 1);
            }
            is_full
        });
        match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(code(error)),
        }
    }

    fn releasedir(&self, _: &Request, _: INodeNo, number: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.shared.folders.write().unwrap_or_else(PoisonError::into_inner).remove(&number.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, number: FileHandle, only_data: bool, reply: ReplyEmpty) {
        let done = self.shared.folder(number).and_then(|folder| {
            let entries = folder.entries.lock().unwrap_or_else(PoisonError::into_inner);
            if only_data { fdatasync(&entries.0) } else { fsync(&entries.0) }
        });
        finish(reply, done);
    }

    fn statfs(&self, _: &Request, ino: INodeNo, reply: ReplyStatfs) {
        let done = self.shared.node(ino).and_then(|node| fstatvfs(&node.held));
        match done {
            Ok(facts) => reply.statfs(
                facts.f_blocks,
                facts.f_bfree,
                facts.f_bavail,
                facts.f_files,
                facts.f_ffree,
                facts.f_bsize as u32,
                facts.f_namemax as u32,
                facts.f_frsize as u32,
            ),
            Err(error) => reply.error(code(error)),
        }
    }

    fn setxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, value: &[u8], flags: i32, _: u32, reply: ReplyEmpty) {
        let done = self.shared.node(ino).and_then(|node| {
            let flags = XattrFlags::from_bits_retain(flags.cast_unsigned());
            plain(&node)?;
            self.shared.guard.aside(Some(&node), || setxattr(node.path(), name, value, flags))
        });
        finish(reply, done);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let done = self.shared.node(ino).and_then(|node| {
            plain(&node)?;
            match size {
                0 => Ok((getxattr_query(node.path(), name)?, Vec::new())),
                _ => {
                    let mut value = vec![0; size as usize];
                    let count = getxattr(node.path(), name, &mut value[..])?;
                    value.truncate(count);
                    Ok((count, value))
                }
            }
        });
        answer(reply, size, done);
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let done = self.shared.node(ino).and_then(|node| match size {
            _ if node.kind == FileType::Symlink => Ok((0, Vec::new())),
            0 => Ok((listxattr_query(node.path())?, Vec::new())),
            _ => {
                let mut names = vec![0; size as usize];
                let count = listxattr(node.path(), &mut names[..])?;
                names.truncate(count);
                Ok((count, names))
            }
        });
        answer(reply, size, done);
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.shared.node(ino).and_then(|node| {
            plain(&node)?;
            self.shared.guard.aside(Some(&node), || removexattr(node.path(), name))
        });
        finish(reply, done);
    }

    fn fallocate(
        &self,
        request: &Request,
        _: INodeNo,
        number: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        finish(reply, self.shared.allocate(request, number, offset, length, mode));
    }

    fn lseek(&self, _: &Request, _: INodeNo, number: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        match self.shared.find_data(number, offset, whence) {
            Ok(found) => reply.offset(found),
            Err(error) => reply.error(code(error)),
        }
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        // The kernel reads and writes instead.
        reply.error(Code::ENOSYS);
    }
}

fn plain(node: &Node) -> Done<()> {
    if node.kind == FileType::Symlink { Err(Errno::OPNOTSUPP) } else { Ok(()) }
}

fn answer(reply: ReplyXattr, size: u32, done: Done<(usize, Vec<u8>)>) {
    match done {
        Ok((count, _)) if size == 0 => reply.size(u32::try_from(count).unwrap_or(u32::MAX)),
        Ok((_, value)) => reply.data(&value),
        Err(error) => reply.error(code(error)),
    }
}

const NOTHING: FileAttr = FileAttr {
    ino: INodeNo(0),
    size: 0,
    blocks: 0,
    atime: SystemTime::UNIX_EPOCH,
    mtime: SystemTime::UNIX_EPOCH,
    ctime: SystemTime::UNIX_EPOCH,
    crtime: SystemTime::UNIX_EPOCH,
    kind: fuser::FileType::RegularFile,
    perm: 0,
    nlink: 0,
    uid: 0,
    gid: 0,
    rdev: 0,
    blksize: 0,
    flags: 0,
};
