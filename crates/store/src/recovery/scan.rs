//! Goes through the records of the log behind a checkpoint, and finds its end.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::{Attempt, Place};
use crate::device::Device;
use crate::error::{Damage, Damaged, Error};
use crate::record::{self, HEADER_BYTES, Header, Kind, SECTOR_BYTES};
use crate::superblock::Root;

/// Where a scan ended.
pub(super) struct End {
    pub(super) segment: u32,
    pub(super) offset: u32,
    pub(super) sequence: u64,
}

impl<D: Device> Attempt<'_, D> {
    /// The segments of the log from the checkpoint on, in order: back from the newest.
    ///
    /// The head of a segment that was begun since the last flush may be missing. What is behind it is no part of the log then, but
    /// what the log says to be on stable storage has to be there.
    pub(super) fn chain(&mut self, root: &Root) -> Result<Vec<u32>, Error> {
        let by_epoch: BTreeMap<u64, u32> = (0u32..)
            .zip(self.segments)
            .filter(|(_, segment)| segment.epoch != 0)
            .map(|(number, segment)| (segment.epoch, number))
            .collect();
        let mut chain = Vec::new();
        let mut epoch = by_epoch.last_key_value().map_or(0, |(&epoch, _)| epoch);
        while epoch >= root.epoch {
            let Some(&number) = by_epoch.get(&epoch) else {
                for number in chain.drain(..) {
                    self.durable = self.durable.max(self.told_durable(number)?);
                }
                let below = by_epoch.range(..epoch).next_back();
                epoch = *below.ok_or(Error::damaged(Damaged::Segment, root.position))?.0;
                continue;
            };
            chain.push(number);
            let previous = self.segments[number as usize].previous;
            if epoch == root.epoch && self.geometry.segment_of(root.position) == Some(number) {
                chain.reverse();
                return Ok(chain);
            }
            epoch = previous.min(epoch - 1);
        }
        Err(Error::damaged(Damaged::Segment, root.position))
    }

    /// The sequence number before which all is on stable storage, as the records of a segment say.
    fn told_durable(&self, number: u32) -> Result<u64, Error> {
        let (at, epoch) = (self.geometry.segment_at(number), self.segments[number as usize].epoch);
        let (mut offset, mut durable) = (SECTOR_BYTES as u64, 0);
        let mut bytes = [0; HEADER_BYTES];
        while offset + HEADER_BYTES as u64 <= u64::from(self.geometry.segment_bytes) {
            self.device.read_at(at + offset, &mut bytes)?;
            let header = Header::decode(&bytes, self.geometry.volume(), at + offset);
            let Some(header) = header.filter(|header| header.epoch == epoch) else { break };
            durable = durable.max(header.durable.min(header.sequence));
            offset += header.stored_bytes().max(1);
        }
        Ok(durable)
    }

    /// Goes through all records from the checkpoint on.
    pub(super) fn scan(&mut self, root: &Root, chain: &[u32]) -> Result<End, Error> {
        let mut end = End { segment: 0, offset: 0, sequence: root.sequence };
        let start = root.position - self.geometry.segment_at(*chain.first().unwrap_or(&0));
        for (at, &segment) in chain.iter().enumerate() {
            // A segment ends where any later one begins: a recovery that discarded records went on before them.
            let firsts = chain[at..].iter().map(|&number| self.segments[number as usize].first);
            let limit = firsts.clone().skip(1).min();
            end.sequence = end.sequence.min(firsts.min().unwrap_or(u64::MAX).max(root.sequence));
            let mut bytes = vec![0; self.geometry.segment_bytes as usize];
            self.device.read_at(self.geometry.segment_at(segment), &mut bytes)?;
            let offset = if at == 0 { start as usize } else { SECTOR_BYTES };
            end = self.scan_segment(segment, &bytes, offset, end.sequence, limit)?;
        }
        // What was known to be there has to be there.
        if end.sequence < self.durable {
            let position = self.geometry.segment_at(end.segment) + u64::from(end.offset);
            self.miss(end.sequence, self.durable, position);
            end.sequence = self.durable;
        }
        Ok(end)
    }

    fn scan_segment(
        &mut self,
        segment: u32,
        bytes: &[u8],
        mut offset: usize,
        mut expected: u64,
        limit: Option<u64>,
    ) -> Result<End, Error> {
        let at = self.geometry.segment_at(segment);
        let epoch = self.segments[segment as usize].epoch;
        let end = limit.unwrap_or(u64::MAX);
        let from = offset;
        while expected < end {
            let found = self.find(bytes, offset, at, epoch, expected, end);
            let Some((found_at, header)) = found else { break };
            if header.sequence > expected {
                self.miss(expected, header.sequence, at + offset as u64);
            }
            let position = at + found_at as u64;
            let payload = bytes.get(found_at + HEADER_BYTES..).and_then(|rest| rest.get(..header.length as usize));
            let is_whole = payload.is_some_and(|payload| {
                record::payload_checksum(self.geometry.volume(), epoch, payload) == header.payload_checksum
            });
            if is_whole {
                self.durable = self.durable.max(header.durable.min(header.sequence));
            } else {
                let what = match header.kind {
                    Kind::Piece => Damaged::Message(header.subject),
                    Kind::Digest => Damaged::Digest(header.subject),
                    Kind::Checkpoint => Damaged::Checkpoint,
                    Kind::Transaction => Damaged::Transaction,
                };
                self.damaged.push((header.sequence, Damage { what, position }));
            }
            if is_whole && header.kind == Kind::Transaction {
                self.transactions.push(Place { sequence: header.sequence, position, header });
            }
            expected = header.sequence + 1;
            offset = found_at.saturating_add(header.stored_bytes() as usize).min(bytes.len());
        }
        self.report.scanned_bytes += (offset - from.min(offset)) as u64;
        // Records behind what the next segment says is the end of this one were discarded by an earlier recovery.
        if let Some(first) = limit.filter(|&first| expected < first) {
            self.miss(expected, first, at + offset as u64);
            expected = first;
        }
        Ok(End { segment, offset: offset as u32, sequence: expected })
    }

    /// Records of the log that are not there. Those of checkpoints are missed by nobody.
    fn miss(&mut self, from: u64, to: u64, position: u64) {
        let mut roots = self.checkpoints.iter();
        let what = match roots.any(|root| root.holds(from) && root.holds(to.saturating_sub(1))) {
            true => Damaged::Checkpoint,
            false => Damaged::Log,
        };
        self.damaged.push((from, Damage { what, position }));
    }

    /// The next record of the log at `offset`, or behind what is damaged there.
    fn find(
        &self,
        bytes: &[u8],
        offset: usize,
        at: u64,
        epoch: u64,
        expected: u64,
        limit: u64,
    ) -> Option<(usize, Header)> {
        let volume = self.geometry.volume();
        let mut offset = offset;
        while let Some(rest) = bytes.get(offset..).filter(|rest| rest.len() >= HEADER_BYTES) {
            let header = Header::decode(rest, volume, at + offset as u64);
            let header = header.filter(|header| header.epoch == epoch && (expected..limit).contains(&header.sequence));
            if let Some(header) = header {
                return Some((offset, header));
            }
            offset += 8;
        }
        None
    }

    /// The first record that does not count. Damage before it is reported.
    pub(super) fn cut(&mut self, end: u64) -> Result<u64, Error> {
        let durable = self.durable;
        let cut = self.damaged.iter().map(|&(sequence, _)| sequence).filter(|&at| at >= durable).min().unwrap_or(end);
        self.report.discarded_records = end - cut;
        for (sequence, damage) in core::mem::take(&mut self.damaged) {
            if sequence >= cut {
                continue;
            }
            self.report.damage.push(damage);
            if !matches!(damage.what, Damaged::Transaction | Damaged::Log) {
                continue;
            }
            if !self.options.salvage {
                return Err(Error::Damaged(damage));
            }
            self.report.lost_transactions = true;
        }
        Ok(cut)
    }
}
