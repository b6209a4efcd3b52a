//! The kernel's requests, and the answers. What may have to wait for an inspection is done in a [`Pool`], so that the threads
//! that read requests wait for nothing. `files.rs` does what is asked for.
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

mod reply;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno as Code, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use rustix::fs::{
    AtFlags, FileType, OFlags, fdatasync, fstatvfs, fsync, makedev, mkdirat, mknodat, readlinkat, symlinkat,
};
use rustix::io::Errno;

use crate::files::{Change, Done, Folder, Shared, kind_of};
use crate::guard::Refusal;
use crate::pool::{Pool, Turn};
use crate::who::Who;
use reply::{NOTHING, TTL, answer, code, enter, finish, told};

/// The most that is written or read ahead in one request.
const REQUEST_BYTES: u32 = 1 << 20;

thread_local! {
    /// Buffer of a thread for reading: fresh memory for each request would have to be cleared.
    static READ: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Requests of the kernel's own that may wait (reading ahead, writing back).
const BACKGROUND_MAX: u16 = 64;

/// Requests that may wait for a thread.
const WAITING_MAX: usize = 1024;

/// The file system.
pub struct Host {
    shared: Arc<Shared>,
    pool: Arc<Pool>,
}

impl Host {
    /// With what other threads share.
    pub fn new(shared: Arc<Shared>, threads: usize) -> Host {
        Host { shared, pool: Pool::new(threads, WAITING_MAX) }
    }

    /// Does something here, or in a thread that may wait; EIO when too many wait already.
    fn run(&self, may_wait: bool, work: impl FnOnce(Done<&Shared>) + Send + 'static) {
        if !may_wait {
            return work(Ok(&self.shared));
        }
        let shared = self.shared.clone();
        self.pool.run(move |turn| match turn {
            Turn::Now => work(Ok(&shared)),
            Turn::Refused => work(Err(Errno::IO)),
        });
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
        let entered = self.shared.node(parent).and_then(|parent| self.shared.known(&parent, name));
        let (node, facts) = match entered {
            Ok(entered) => entered,
            // Remembered as nothing, too.
            Err(Errno::NOENT) => return reply.entry(&TTL, &NOTHING, Generation(0)),
            Err(error) => return reply.error(code(error)),
        };
        let is_busy = node.content_now().is_none();
        self.run(is_busy, move |shared| enter(reply, shared.map(|shared| shared.shown(&node, &facts))));
    }

    fn forget(&self, _: &Request, ino: INodeNo, count: u64) {
        self.shared.nodes.forget(ino.0, count);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let node = match self.shared.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(code(error)),
        };
        let is_busy = node.content_now().is_none();
        self.run(is_busy, move |shared| told(reply, shared.and_then(|shared| shared.attributes(&node))));
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
        let who = Who::of(request);
        let change = Change { uid, gid, mode, size, atime, mtime };
        let node = match self.shared.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(code(error)),
        };
        let may_wait = self.shared.waits_for(&node) || size.is_some() && self.shared.guard.inspects();
        self.run(may_wait, move |shared| {
            told(reply, shared.and_then(|shared| shared.change(&node, number, change, who)));
        });
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
        let done = self.shared.make(Who::of(request), parent, name, Some((mode, umask)), |folder, mode| {
            mknodat(folder, name, kind, mode, device)
        });
        enter(reply, done);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let done = self
            .shared
            .make(Who::of(request), parent, name, Some((mode, umask)), |folder, mode| mkdirat(folder, name, mode));
        enter(reply, done);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        finish(reply, self.shared.unlink(parent, name, AtFlags::empty()));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        finish(reply, self.shared.unlink(parent, name, AtFlags::REMOVEDIR));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let done = self.shared.make(Who::of(request), parent, name, None, |folder, _| symlinkat(target, folder, name));
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
        let (who, name, new_name) = (Who::of(request), name.to_owned(), new_name.to_owned());
        let may_wait = self.shared.waits_for_name(parent, &name) || self.shared.waits_for_name(new_parent, &new_name);
        self.run(may_wait, move |shared| {
            let (from, to) = ((parent, &*name), (new_parent, &*new_name));
            finish(reply, shared.and_then(|shared| shared.rename(who, from, to, flags)));
        });
    }

    fn link(&self, request: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (who, name) = (Who::of(request), name.to_owned());
        let may_wait = self.shared.node(ino).is_ok_and(|node| self.shared.waits_for(&node));
        self.run(may_wait, move |shared| {
            enter(reply, shared.and_then(|shared| shared.link(who, ino, parent, &name)));
        });
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let who = Who::of(request);
        let may_wait = self.shared.waits_to_open(ino, flags.0);
        self.run(may_wait, move |shared| match shared.and_then(|shared| shared.open(who, ino, flags.0)) {
            Ok((number, flags)) => reply.opened(number, flags),
            Err(error) => reply.error(code(error)),
        });
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
        match self.shared.create(Who::of(request), parent, name, (mode, umask), flags) {
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
        let who = Who::of(request);
        let may_wait = self.shared.waits_to_read(number);
        self.run(may_wait, move |shared| {
            READ.with_borrow_mut(|buffer| {
                let most = size.min(REQUEST_BYTES) as usize;
                buffer.resize(buffer.len().max(most), 0);
                let buffer = &mut buffer[..most];
                let done = shared.and_then(|shared| {
                    let handle = shared.live(number)?;
                    if !handle.reads {
                        return Err(Errno::BADF);
                    }
                    shared.guard.read(handle.open(), buffer, offset, who).map_err(Refusal::working)
                });
                match done {
                    Ok(count) => reply.data(&buffer[..count]),
                    Err(error) => reply.error(code(error)),
                }
            });
        });
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
        let who = Who::of(request);
        let answer = move |reply: ReplyWrite, done: Done<()>, count: usize| match done {
            Ok(()) => reply.written(count as u32),
            Err(error) => reply.error(code(error)),
        };
        if !self.shared.waits_to_write(number) {
            return answer(reply, self.shared.write(who, number, data, offset, write_flags), data.len());
        }
        let data = data.to_vec();
        self.run(true, move |shared| {
            let done = shared.and_then(|shared| shared.write(who, number, &data, offset, write_flags));
            answer(reply, done, data.len());
        });
    }

    fn flush(&self, request: &Request, _: INodeNo, number: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        let who = Who::of(request);
        self.run(self.shared.waits_for_open(number), move |shared| {
            finish(reply, shared.and_then(|shared| shared.settled(who, number, "close").map(drop)));
        });
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
        let (who, kept) = (Who::of(request), self.shared.clone());
        // It is closed, however many wait.
        self.run(self.shared.waits_for_open(number), move |_| {
            kept.release(who, number);
            reply.ok();
        });
    }

    fn fsync(&self, request: &Request, _: INodeNo, number: FileHandle, only_data: bool, reply: ReplyEmpty) {
        let who = Who::of(request);
        self.run(self.shared.waits_for_open(number), move |shared| {
            finish(reply, shared.and_then(|shared| shared.sync(who, number, only_data)));
        });
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let shared = &self.shared;
        let opened = shared.node(ino).and_then(|node| {
            let file = shared.nodes.with_reserve(|| node.open(OFlags::RDONLY | OFlags::DIRECTORY))?;
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
            let attr = match shared.known(folder, name) {
                Ok((node, facts)) if node.content_now().is_some() => shared.shown(&node, &facts),
                // The kernel asks for it by itself.
                Ok((node, _)) => {
                    shared.nodes.forget(node.id, 1);
                    unknown
                }
                Err(_) => unknown,
            };
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
        finish(reply, self.shared.set_extended(ino, name, value, flags));
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        answer(reply, size, self.shared.extended(ino, name, size));
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        answer(reply, size, self.shared.extended_names(ino, size));
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        finish(reply, self.shared.remove_extended(ino, name));
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
        let who = Who::of(request);
        self.run(self.shared.waits_for_open(number), move |shared| {
            finish(reply, shared.and_then(|shared| shared.allocate(who, number, offset, length, mode)));
        });
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
