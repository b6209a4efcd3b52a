//! Operations of the kernel, done to the files below, by descriptor, as far as [`Guard`] lets them.
//!
//! Some of it has to wait for an inspection; [`Shared::waits_for`] and its kind say what may, from what is known without
//! waiting.

mod attributes;
mod extended;
mod names;
mod space;
mod waits;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use fuser::{FileAttr, FileHandle, FopenFlags, INodeNo, WriteFlags};
use rustix::fs::{FileType, OFlags, RawDir, SeekFrom, Statx, fdatasync, fsync, ftruncate, openat, seek};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::guard::{Guard, Open, Refusal};
use crate::judge::Generation;
use crate::node::{Known, Node, Share, Stamp, facts};
use crate::nodes::Nodes;
use crate::who::Who;
use attributes::drop_set_ids;
pub use attributes::{Change, kind_of};

/// Bytes of directory entries read at a time.
const ENTRIES_BYTES: usize = 32 << 10;

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
    /// The opening, for the guard.
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

    /// An open file for work on its content. EIO if changes written through it were taken back.
    pub fn live(&self, number: FileHandle) -> Done<Arc<Handle>> {
        let handle = self.handle(number)?;
        let is_over = handle.writes && handle.node.content().taken_back != handle.epoch;
        if is_over { Err(Errno::IO) } else { Ok(handle) }
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
