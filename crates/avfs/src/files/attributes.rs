//! Reads and changes attributes. The size and the time of writing are those of the pending changes, where there are some.

use std::time::{Duration, SystemTime};

use fuser::{FileAttr, FileHandle, INodeNo, TimeOrNow};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Statx, StatxTimestamp, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
    chmodat, chownat, removexattr, utimensat,
};
use rustix::io::Errno;

use super::{Done, Shared};
use crate::guard::Open;
use crate::node::{Node, Share, facts};
use crate::overlay::timespec;
use crate::who::Who;

pub(super) const SET_IDS: u32 = 0o6000;

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

impl Shared {
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

    /// Changes attributes and returns the new ones.
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
}

/// Removes the set-user and set-group rights of a program that is written to.
pub(super) fn drop_set_ids(node: &Node, who: Who) -> Done<()> {
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

pub(super) fn attributes(id: u64, facts: &Statx) -> FileAttr {
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
