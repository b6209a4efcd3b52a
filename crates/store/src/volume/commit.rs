//! Commits: staged transactions go into the log, are flushed, and become visible.

use super::{Volume, id_of, records_of};
use crate::device::Device;
use crate::error::Error;
use crate::log::Record;
use crate::record::{self, Kind, SECTOR_BYTES};
use crate::state::{Message, State};
use crate::superblock::Superblock;

/// When what is written is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    Now,
    Later,
}

impl<D: Device> Volume<D> {
    /// Makes what was staged durable and visible: one flush for all of it. If it fails nothing is written any more until the
    /// volume has been opened anew.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.publish()?;
        // What was staged is durable. If this fails the volume is failed, and the next call says so.
        let _ = self.make_room();
        Ok(())
    }

    /// Makes what was staged visible without a flush: a power failure may undo it, alone or with what was committed so after it,
    /// until the next [commit](Self::commit). For what may as well happen twice.
    pub fn commit_unflushed(&mut self) -> Result<(), Error> {
        self.publish_as(Flush::Later)?;
        let _ = self.make_room();
        Ok(())
    }

    /// Writes and flushes what was staged, and makes it visible; flushes what became visible without.
    pub(crate) fn publish(&mut self) -> Result<(), Error> {
        self.publish_as(Flush::Now)
    }

    fn publish_as(&mut self, flush: Flush) -> Result<(), Error> {
        self.writable()?;
        let is_behind = flush == Flush::Now && self.is_unflushed;
        if self.staged.is_empty() && !is_behind {
            return Ok(());
        }
        let written = self.append_staged().and_then(|()| match flush {
            Flush::Now => self.log.flush(),
            Flush::Later => self.log.write_out(),
        });
        // Part of it may be in the log: what is in memory is not what would be read.
        self.log.failed |= written.is_err();
        written?;
        self.is_unflushed = flush == Flush::Later;
        self.published = self.working.clone();
        self.settle();
        Ok(())
    }

    /// Whether there is room for another transaction. One that makes the volume fuller leaves the reserve alone.
    pub(crate) fn admits(&self, payload_bytes: usize, grows: bool) -> Result<(), Error> {
        let waiting: u64 = self.staged.iter().map(|staged| record::stored_bytes(staged.payload.len() as u64)).sum();
        let needed = waiting + record::stored_bytes(payload_bytes as u64) + SECTOR_BYTES as u64;
        let segment = u64::from(self.log.geometry.segment_bytes);
        let room = self.log.head.map_or(0, |head| segment - u64::from(head.offset));
        if needed <= room {
            return Ok(());
        }
        let keep = if grows { self.reserve() } else { self.checkpoint_segments() };
        match self.log.free.len() > keep + (needed / (segment / 2)) as usize {
            true => Ok(()),
            false => Err(Error::Full),
        }
    }

    fn append_staged(&mut self) -> Result<(), Error> {
        let count = self.staged.len();
        for (at, staged) in core::mem::take(&mut self.staged).into_iter().enumerate() {
            self.grown_bytes += if staged.grows { staged.payload.len() as u64 } else { 0 };
            self.log.append(Record {
                kind: Kind::Transaction,
                last: true,
                subject: staged.commit,
                index: 0,
                payload: &staged.payload,
                ends_commit: at + 1 == count,
                // It was admitted.
                keep: 0,
            })?;
        }
        Ok(())
    }

    /// Counts what messages take after a commit.
    fn settle(&mut self) {
        let effects = core::mem::take(&mut self.effects);
        for (number, message) in effects.added {
            self.count(&message, true);
            if id_of(self.log.geometry.identity, number) != message.id {
                self.known.insert(message.id, number);
            }
        }
        for (number, message) in effects.freed {
            self.count(&message, false);
            if self.known.get(&message.id) == Some(&number) && self.working.messages.get(number).is_none() {
                self.known.remove(&message.id);
            }
        }
    }

    fn count(&mut self, message: &Message, is_added: bool) {
        let current = self.superblock.current.number;
        let geometry = self.log.geometry;
        for (position, bytes) in records_of(message, &geometry) {
            let Some(segment) = self.log.segment_mut(position) else { continue };
            if is_added {
                segment.live = segment.live.saturating_add(bytes);
                continue;
            }
            segment.live = segment.live.saturating_sub(bytes);
            segment.emptied = current;
            self.died = self.died.saturating_add(bytes);
        }
    }

    /// Counts what messages take, and notes which segments the checkpoints point into: the last one had the state `before`.
    pub(super) fn count_live(&mut self, before: &State) {
        let (geometry, Superblock { current, previous, .. }) = (self.log.geometry, self.superblock);
        self.log.segments.iter_mut().for_each(|segment| (segment.live, segment.emptied) = (0, previous.number));
        for (position, _) in before.messages.iter().flat_map(|(_, message)| records_of(message, &geometry)) {
            if let Some(segment) = self.log.segment_mut(position) {
                segment.emptied = current.number;
            }
        }
        let state = self.published.clone();
        state.messages.iter().for_each(|(_, message)| self.count(message, true));
    }
}
