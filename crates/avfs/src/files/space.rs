//! Reserves room in an open file, makes holes in it, and finds them.

use std::time::SystemTime;

use fuser::FileHandle;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

use super::attributes::drop_set_ids;
use super::{Done, Shared};
use crate::guard::{Open, Refusal};
use crate::who::Who;

const SEEK_DATA: i32 = 3;

const SEEK_HOLE: i32 = 4;

impl Shared {
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
}
