//! Compaction: what is still needed of the emptiest segments is written anew, so that they can be freed.
//!
//! The copies, and the transaction that says where they are, are flushed before anything is freed; and a segment is freed only
//! when both checkpoints know of the copies.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::device::Device;
use crate::error::Error;
use crate::log::Record;
use crate::operation::Operation;
use crate::record::{self, HEADER_BYTES, Header, Kind, SECTOR_BYTES};
use crate::state::{Message, Place};
use crate::volume::Volume;

/// Copied part of a message: pieces with their new positions, and its digest.
#[derive(Default)]
struct Copied {
    pieces: BTreeMap<u32, u64>,
    digest: Option<u64>,
}

impl<D: Device> Volume<D> {
    /// Copies the live records of the segment with the fewest, if less than `live_percent_max` of it is live. Returns
    /// whether there was one. Its room is free after two [checkpoints](Volume::checkpoint).
    pub fn compact(&mut self, live_percent_max: u64) -> Result<bool, Error> {
        self.writable()?;
        self.publish()?;
        let Some(victim) = self.victim(live_percent_max) else { return Ok(false) };
        if self.log.free.len() <= self.checkpoint_segments() + 1 {
            return Ok(false);
        }
        let copied = self.copy_segment(victim)?;
        let mut operations = Vec::new();
        for (number, copied) in &copied {
            let Some(message) = self.working.message(*number).cloned() else { continue };
            operations.push(self.relocation(*number, &message, copied));
        }
        while !operations.is_empty() {
            let mut transaction = self.begin()?;
            while let Some(operation) = operations.pop() {
                match transaction.relocate(&operation) {
                    Ok(()) => {}
                    Err(Error::Refused(crate::Refused::TransactionTooLarge)) if transaction.is_begun() => {
                        operations.push(operation);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            transaction.stage()?;
        }
        self.publish()?;
        let is_emptied = self.log.segments.get(victim as usize).is_some_and(|segment| segment.live == 0);
        if let Some(segment) = self.log.segments.get_mut(victim as usize).filter(|_| !is_emptied) {
            // Something in it is damaged: it stays as it is.
            segment.stuck = true;
        }
        Ok(true)
    }

    fn victim(&mut self, live_percent_max: u64) -> Option<u32> {
        let pinned = self.pinned();
        let size = u64::from(self.log.geometry.segment_bytes);
        let head = self.log.head.map(|head| head.segment);
        let is_candidate = |number: u32| {
            let segment = &self.log.segments[number as usize];
            segment.live != 0
                && !segment.stuck
                && !pinned.contains(&number)
                && Some(number) != head
                && segment.live.saturating_mul(100) < size.saturating_mul(live_percent_max)
        };
        let candidates = (0..self.log.geometry.segments).filter(|&number| is_candidate(number));
        candidates.min_by_key(|&number| self.log.segments[number as usize].live)
    }

    /// Writes the live records of a segment anew. Damaged ones stay where they are.
    fn copy_segment(&mut self, victim: u32) -> Result<BTreeMap<u64, Copied>, Error> {
        let geometry = self.log.geometry;
        let at = geometry.segment_at(victim);
        let mut bytes = vec![0; geometry.segment_bytes as usize];
        self.log.device.read_at(at, &mut bytes)?;
        let mut copied: BTreeMap<u64, Copied> = BTreeMap::new();
        let mut offset = SECTOR_BYTES;
        while let Some(rest) = bytes.get(offset..).filter(|rest| rest.len() >= HEADER_BYTES) {
            let position = at + offset as u64;
            let Some(header) = Header::decode(rest, geometry.volume(), position) else {
                offset += 8;
                continue;
            };
            let payload = rest.get(HEADER_BYTES..).and_then(|rest| rest.get(..header.length as usize));
            let Some(payload) = payload else {
                offset += 8;
                continue;
            };
            let is_whole =
                record::payload_checksum(geometry.volume(), header.epoch, payload) == header.payload_checksum;
            if is_whole && self.is_live(&header, position) {
                let keep = self.checkpoint_segments();
                let record = Record {
                    kind: header.kind,
                    last: false,
                    subject: header.subject,
                    index: header.index,
                    payload,
                    ends_commit: false,
                    keep,
                };
                let moved = self.log.append(record)?;
                let copied = copied.entry(header.subject).or_default();
                match header.kind {
                    Kind::Digest => copied.digest = Some(moved),
                    _ => drop(copied.pieces.insert(header.index, moved)),
                }
            }
            offset += header.stored_bytes() as usize;
        }
        Ok(copied)
    }

    /// Whether a message has this record, here.
    fn is_live(&self, header: &Header, position: u64) -> bool {
        let Some(message) = self.working.message(header.subject) else { return false };
        match header.kind {
            Kind::Digest => message.digest == position,
            Kind::Piece => {
                header.index < message.pieces(self.log.geometry.piece_bytes)
                    && message.place.piece(header.index, self.log.geometry.stride()) == Some(position)
            }
            _ => false,
        }
    }

    fn relocation(&self, number: u64, message: &Message, copied: &Copied) -> Operation {
        let geometry = &self.log.geometry;
        let place = match copied.pieces.is_empty() {
            true => message.place.clone(),
            false => {
                let former = |piece| message.place.piece(piece, geometry.stride()).unwrap_or(0);
                let position = |piece| copied.pieces.get(&piece).copied().unwrap_or_else(|| former(piece));
                let positions: Vec<u64> = (0..message.pieces(geometry.piece_bytes)).map(position).collect();
                Place::of(&positions, geometry.stride())
            }
        };
        Operation::Relocate { number, place, digest: copied.digest.unwrap_or(message.digest) }
    }
}
