//! Makes room: segments are freed, and reclaimed when few are left.

use alloc::collections::BTreeSet;

use super::Volume;
use crate::device::Device;
use crate::error::Error;
use crate::log::Segment;
use crate::superblock::{Geometry, Root, Superblock};

/// A segment is compacted on its own accord when less than this much of it is live.
const LIVE_PERCENT_MAX: u64 = 90;

impl<D: Device> Volume<D> {
    /// Segments that neither of the two checkpoints nor what came after them needs.
    pub(super) fn free_segments(&mut self) {
        self.unpin();
        let pinned = self.pinned();
        let Superblock { current, previous, .. } = self.superblock;
        let oldest = if previous.number == 0 { current } else { previous };
        let head = self.log.head.map(|head| head.segment);
        for (number, segment) in self.log.segments.iter().enumerate() {
            let number = number as u32;
            let is_needed = segment.live != 0
                || segment.emptied >= oldest.number
                || segment.epoch >= oldest.epoch
                || head == Some(number)
                || pinned.contains(&number);
            if !is_needed && self.log.free.insert(number) {
                let at = self.log.geometry.segment_at(number);
                // A wish: what becomes of it changes nothing.
                let _ = self.log.device.discard(at, u64::from(self.log.geometry.segment_bytes));
            }
        }
    }

    /// Segments with pieces of messages that are still coming in.
    pub(crate) fn pinned(&self) -> BTreeSet<u32> {
        let incoming = self.pins.values().filter(|pin| pin.alive.strong_count() > 0);
        incoming.flat_map(|pin| pin.segments.iter().copied()).collect()
    }

    /// Forgets messages that come in no more: those that never became visible have died.
    fn unpin(&mut self) {
        let mut died = 0u64;
        self.pins.retain(|&number, pin| {
            let is_alive = pin.alive.strong_count() > 0;
            if !is_alive && self.working.messages.get(number).is_none() {
                died = died.saturating_add(pin.bytes);
            }
            is_alive
        });
        self.died = self.died.saturating_add(died);
    }

    /// Takes checkpoints and compacts when it is time.
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        let since = self.log_bytes_before.saturating_add(self.log.written_bytes - self.checkpoint_at);
        if since >= self.options.checkpoint_bytes.max(self.checkpoint_size.saturating_mul(16)) {
            match self.write_checkpoint() {
                Err(Error::Full) => {}
                outcome => outcome?,
            }
        }
        self.reclaim_if_low()
    }

    /// Makes room if only the reserve is left, and if some is to be had.
    pub(crate) fn reclaim_if_low(&mut self) -> Result<(), Error> {
        self.leaves(0).map(drop)
    }

    /// Whether so many bytes are free besides the reserve. Makes room first if there are not, and if some is to be had.
    pub fn leaves(&mut self, bytes: u64) -> Result<bool, Error> {
        self.writable()?;
        let segments = bytes.div_ceil(u64::from(self.log.geometry.segment_bytes));
        let more = usize::try_from(segments).unwrap_or(usize::MAX);
        if self.log.free.len() <= self.reserve().saturating_add(more) && self.is_worth_reclaiming() {
            self.reclaim_beyond(more)?;
        }
        Ok(self.log.free.len() > self.reserve().saturating_add(more))
    }

    /// Whether there was room to be made the last time, or more than making it costs: bytes that died or were written since
    /// then, or segments that a checkpoint would free. The last is counted anew, since a counter does not survive a restart.
    pub(crate) fn is_worth_reclaiming(&mut self) -> bool {
        self.unpin();
        let since = self.log.written_bytes - self.reclaimed_at;
        let cost = u64::from(self.log.geometry.segment_bytes).saturating_add(self.checkpoint_size);
        self.has_empty_segments() || self.has_garbage || self.died.saturating_add(since) >= cost
    }

    /// Whether a checkpoint would free more segments than it takes.
    pub(super) fn has_empty_segments(&self) -> bool {
        self.reclaimable_segments() > self.log.free.len().saturating_add(self.checkpoint_segments())
    }

    /// Segments that are free, or would be after a checkpoint: no message is in them, and none is coming in.
    pub(super) fn reclaimable_segments(&self) -> usize {
        let pinned = self.pinned();
        let head = self.log.head.map(|head| head.segment);
        let is_empty = |(number, segment): &(u32, &Segment)| {
            segment.live == 0 && head != Some(*number) && !pinned.contains(number)
        };
        (0u32..).zip(&self.log.segments).filter(is_empty).count()
    }

    /// Makes room: frees what nothing points into, and if that is not enough compacts the segments that are emptiest. The
    /// checkpoint before the last one is given up for it.
    pub fn reclaim(&mut self) -> Result<(), Error> {
        self.reclaim_beyond(0)
    }

    /// Reclaims until there are so many segments more than the reserve.
    fn reclaim_beyond(&mut self, more: usize) -> Result<(), Error> {
        self.publish()?;
        (self.died, self.has_garbage) = (0, false);
        let outcome = self.reclaim_all(more);
        self.reclaimed_at = self.log.written_bytes;
        outcome
    }

    fn reclaim_all(&mut self, more: usize) -> Result<(), Error> {
        self.checkpoint_alone()?;
        while self.log.free.len() <= self.reserve().saturating_add(more) {
            let before = self.log.free.len();
            let mut compacted = 0;
            while compacted < 8 && self.compact(LIVE_PERCENT_MAX)? {
                compacted += 1;
            }
            // Where little has died the copies take what they free.
            if compacted == 0 || !self.checkpoint_alone()? || self.log.free.len() <= before {
                break;
            }
        }
        self.has_garbage = self.log.free.len() > self.reserve().saturating_add(more);
        Ok(())
    }

    /// Where there is no room for a checkpoint, the one before the last is given up for what it points into.
    pub(super) fn give_up_previous(&mut self) {
        if self.log.free.len() >= self.checkpoint_segments() {
            return;
        }
        let given_up = self.superblock.previous.number;
        self.superblock.previous = Root::NONE;
        let is_theirs = |segment: &&mut Segment| segment.emptied == given_up;
        self.log.segments.iter_mut().filter(is_theirs).for_each(|segment| segment.emptied = 0);
    }

    /// A checkpoint that has none before it; whether there was room for it.
    pub(super) fn checkpoint_alone(&mut self) -> Result<bool, Error> {
        match self.write_checkpoint() {
            Err(Error::Full) => return Ok(false),
            outcome => outcome?,
        }
        self.superblock.previous = Root::NONE;
        // Both: what is freed now is needed by the checkpoint before.
        self.write_superblock()?;
        self.write_superblock()?;
        self.free_segments();
        Ok(true)
    }

    /// Takes what the device has beyond the volume as new segments; how many.
    pub fn grow(&mut self) -> Result<u32, Error> {
        self.writable()?;
        let segments = Geometry::segments_of(self.log.device.len(), self.log.geometry.segment_bytes);
        let more = segments.saturating_sub(self.log.geometry.segments);
        if more > 0 {
            self.log.geometry.segments = segments;
            self.superblock.geometry.segments = segments;
            self.log.segments.resize(segments as usize, Segment::default());
            // Both, so that no superblock is left by which a record could be beyond the end.
            self.write_superblock()?;
            self.write_superblock()?;
            self.free_segments();
        }
        Ok(more)
    }

    /// Segments that a checkpoint may need.
    pub(crate) fn checkpoint_segments(&self) -> usize {
        let grown = self.checkpoint_size + self.checkpoint_size / 4 + self.grown_bytes;
        1 + (grown / u64::from(self.log.geometry.segment_bytes)) as usize
    }

    /// Segments that messages leave free, so that deleting, compacting and checkpoints always find some.
    pub(crate) fn reserve(&self) -> usize {
        2 * self.checkpoint_segments() + 4
    }
}
