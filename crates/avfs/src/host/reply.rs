//! Answers of the kernel's kinds, from the result of an operation.

use std::time::{Duration, SystemTime};

use fuser::{Errno as Code, FileAttr, Generation, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyXattr};
use rustix::io::Errno;

use crate::files::Done;

/// How long the kernel may go by names and attributes: nobody but we changes them.
pub(super) const TTL: Duration = Duration::from_secs(1);

pub(super) const NOTHING: FileAttr = FileAttr {
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

pub(super) fn code(error: Errno) -> Code {
    Code::from_i32(error.raw_os_error())
}

pub(super) fn finish(reply: ReplyEmpty, done: Done<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(code(error)),
    }
}

pub(super) fn told(reply: ReplyAttr, done: Done<FileAttr>) {
    match done {
        Ok(attr) => reply.attr(&TTL, &attr),
        Err(error) => reply.error(code(error)),
    }
}

pub(super) fn enter(reply: ReplyEntry, done: Done<FileAttr>) {
    match done {
        Ok(attr) => reply.entry(&TTL, &attr, Generation(0)),
        Err(error) => reply.error(code(error)),
    }
}

pub(super) fn answer(reply: ReplyXattr, size: u32, done: Done<(usize, Vec<u8>)>) {
    match done {
        Ok((count, _)) if size == 0 => reply.size(u32::try_from(count).unwrap_or(u32::MAX)),
        Ok((_, value)) => reply.data(&value),
        Err(error) => reply.error(code(error)),
    }
}
