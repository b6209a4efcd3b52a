//! Writes checkpoints: the state into the log, its place into a superblock.

use super::Volume;
use crate::checkpoint;
use crate::device::Device;
use crate::error::Error;
use crate::log::Record;
use crate::record::{self, Kind, SECTOR_BYTES};
use crate::state::State;
use crate::superblock::{Root, SLOTS};

impl<D: Device> Volume<D> {
    /// Takes a checkpoint: after a crash only what comes later is read again. Nothing may be staged.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        self.writable()?;
        self.publish()?;
        self.write_checkpoint()
    }

    pub(super) fn write_checkpoint(&mut self) -> Result<(), Error> {
        let written = self.write_state();
        self.log.failed |= written.is_err() && !matches!(written, Err(Error::Full));
        written?;
        self.free_segments();
        Ok(())
    }

    fn write_state(&mut self) -> Result<(), Error> {
        let number = self.superblock.current.number + 1;
        let state = self.published.clone();
        let part_bytes = self.log.geometry.piece_bytes as usize;
        // A checkpoint that does not fit shall not begin.
        if self.log.free.len() < self.checkpoint_segments() && !self.fits(&state, part_bytes)? {
            return Err(Error::Full);
        }
        if self.log.head.is_none() {
            self.log.take_segment(0)?;
        }
        let free = self.log.free.clone();
        let (mut root, mut index, before) = (None, 0, self.log.written_bytes);
        let log = &mut self.log;
        checkpoint::encode(&state, &free, part_bytes, &mut |part, last| {
            let sequence = log.sequence;
            let position = log.append(Record {
                kind: Kind::Checkpoint,
                last,
                subject: number,
                index,
                payload: part,
                ends_commit: last,
                keep: 0,
            })?;
            index += 1;
            root.get_or_insert(Root { number, position, sequence, epoch: log.last_epoch, records: 0 }).records += 1;
            Ok(())
        })?;
        self.log.flush()?;
        self.checkpoint_size = self.log.written_bytes - before;
        (self.checkpoint_at, self.log_bytes_before) = (self.log.written_bytes, 0);
        self.grown_bytes = 0;
        self.superblock.previous = self.superblock.current;
        self.superblock.current = root.ok_or(Error::Failed)?;
        self.write_superblock()
    }

    /// Whether there is room for a checkpoint, exactly.
    fn fits(&self, state: &State, part_bytes: usize) -> Result<bool, Error> {
        let (mut bytes, stride) = (0, self.log.geometry.stride());
        checkpoint::encode(state, &self.log.free, part_bytes, &mut |part, _| {
            bytes += record::stored_bytes(part.len() as u64);
            Ok(())
        })?;
        // The end of a segment may be too short for a part.
        let segment = u64::from(self.log.geometry.segment_bytes) - SECTOR_BYTES as u64 - stride;
        Ok(bytes < self.log.free.len() as u64 * segment)
    }

    pub(super) fn write_superblock(&mut self) -> Result<(), Error> {
        if self.log.failed {
            return Err(Error::Failed);
        }
        self.superblock.generation += 1;
        let slot = SLOTS[(self.superblock.generation % 2) as usize];
        let device = &mut self.log.device;
        let written = device.write_at(slot, &self.superblock.encode(slot)).and_then(|()| device.flush());
        self.log.failed |= written.is_err();
        Ok(written?)
    }
}
