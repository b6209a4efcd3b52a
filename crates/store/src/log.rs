//! The log: segments that are written from front to back, and how much of each is still needed.
//!
//! Records are gathered and written together. A segment begins with a sector that says, twice, which epoch it has, which
//! segment was before it in the log, and with which record it begins; so the end of the one before is known, too.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::device::Device;
use crate::error::Error;
use crate::record::{self, HEADER_BYTES, Header, Kind, SECTOR_BYTES};
use crate::superblock::Geometry;

/// How much is gathered before it is written.
const GATHERED_BYTES_MAX: usize = 256 << 10;
const SEGMENT_MAGIC: [u8; 8] = *b"SlSegmnt";
/// Where the second copy of a segment's head is.
const COPY_AT: usize = 256;

#[derive(Debug)]
pub(crate) struct Log<D> {
    pub device: D,
    pub geometry: Geometry,
    pub segments: Vec<Segment>,
    /// Segments that may be written anew.
    pub free: BTreeSet<u32>,
    pub head: Option<Head>,
    /// The epoch of the last segment of the log.
    pub last_epoch: u64,
    /// Sequence number of the next record.
    pub sequence: u64,
    /// All records before this one are on stable storage.
    pub durable: u64,
    /// How often the volume was opened to be written, and segments that were taken since.
    pub opened: u32,
    pub taken: u32,
    /// Bytes that went into the log since the volume was opened.
    pub written_bytes: u64,
    gathered: Vec<u8>,
    gathered_at: u64,
    /// A write or a flush has failed.
    pub failed: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// 0 if it was never written, or its head is damaged.
    pub epoch: u64,
    /// The epoch of the segment before it in the log.
    pub previous: u64,
    /// Its first record.
    pub first: u64,
    /// Bytes of records in it that messages need.
    pub live: u64,
    /// The last checkpoint that may point into it, where nothing is live any more.
    pub emptied: u64,
    /// Something in it cannot be moved.
    pub stuck: bool,
}

/// Where the next record goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub segment: u32,
    pub epoch: u64,
    pub offset: u32,
}

/// A record to be written.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub kind: Kind,
    pub last: bool,
    pub subject: u64,
    pub index: u32,
    pub payload: &'a [u8],
    /// A commit ends with it.
    pub ends_commit: bool,
    /// How many segments have to stay free.
    pub keep: usize,
}

impl<D: Device> Log<D> {
    pub fn new(device: D, geometry: Geometry, segments: Vec<Segment>, opened: u32) -> Self {
        Log {
            device,
            geometry,
            segments,
            free: BTreeSet::new(),
            head: None,
            last_epoch: 0,
            sequence: 1,
            durable: 1,
            opened,
            taken: 0,
            written_bytes: 0,
            gathered: Vec::new(),
            gathered_at: 0,
            failed: false,
        }
    }

    /// Adds a record; returns where it is.
    pub fn append(&mut self, record: Record<'_>) -> Result<u64, Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        let stored = record::stored_bytes(record.payload.len() as u64);
        let room = |head: &Head| u64::from(self.geometry.segment_bytes - head.offset);
        let head = match self.head.filter(|head| room(head) >= stored) {
            Some(head) => head,
            None => self.take_segment(record.keep)?,
        };
        let position = self.geometry.segment_at(head.segment) + u64::from(head.offset);
        let volume = self.geometry.volume();
        let end = match record.ends_commit {
            true => (u64::from(head.offset) + stored).next_multiple_of(SECTOR_BYTES as u64),
            false => u64::from(head.offset) + stored,
        };
        let pad = end - u64::from(head.offset) - (HEADER_BYTES + record.payload.len()) as u64;
        let header = Header {
            kind: record.kind,
            last: record.last,
            pad: pad as u16,
            length: record.payload.len() as u32,
            payload_checksum: record::payload_checksum(volume, head.epoch, record.payload),
            sequence: self.sequence,
            durable: self.durable,
            epoch: head.epoch,
            subject: record.subject,
            index: record.index,
        };
        if self.gathered.is_empty() {
            self.gathered_at = position;
        }
        self.gathered.extend_from_slice(&header.encode(volume, position));
        self.gathered.extend_from_slice(record.payload);
        self.gathered.resize(self.gathered.len() + pad as usize, 0);
        self.written_bytes += end - u64::from(head.offset);
        self.sequence += 1;
        self.head = Some(Head { offset: end as u32, ..head });
        if self.gathered.len() >= GATHERED_BYTES_MAX {
            self.write_out()?;
        }
        Ok(position)
    }

    /// Returns when everything is on stable storage.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.write_out()?;
        let flushed = self.device.flush();
        self.failed |= flushed.is_err();
        flushed?;
        self.durable = self.sequence;
        Ok(())
    }

    /// Where the log ends.
    pub fn end(&self) -> u64 {
        self.head.map_or(0, |head| self.geometry.segment_at(head.segment) + u64::from(head.offset))
    }

    /// Starts a segment with the next record.
    pub fn take_segment(&mut self, keep: usize) -> Result<Head, Error> {
        self.write_out()?;
        if self.free.len() <= keep {
            return Err(Error::Full);
        }
        let segment = self.free.pop_first().ok_or(Error::Full)?;
        self.taken += 1;
        let epoch = u64::from(self.opened) << 32 | u64::from(self.taken);
        let head =
            Segment { epoch, previous: self.last_epoch, first: self.sequence, live: 0, emptied: 0, stuck: false };
        let at = self.geometry.segment_at(segment);
        self.gathered_at = at;
        self.gathered.extend_from_slice(&head.encode(self.geometry.volume(), at));
        self.written_bytes += SECTOR_BYTES as u64;
        if let Some(slot) = self.segments.get_mut(segment as usize) {
            *slot = head;
        }
        self.last_epoch = epoch;
        let head = Head { segment, epoch, offset: SECTOR_BYTES as u32 };
        self.head = Some(head);
        Ok(head)
    }

    /// Passes gathered records to the device, without a flush.
    pub fn write_out(&mut self) -> Result<(), Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        if !self.gathered.is_empty() {
            let written = self.device.write_at(self.gathered_at, &self.gathered);
            self.failed |= written.is_err();
            written?;
            self.gathered.clear();
        }
        Ok(())
    }
}

impl<D> Log<D> {
    pub fn segment_mut(&mut self, position: u64) -> Option<&mut Segment> {
        let segment = self.geometry.segment_of(position)?;
        self.segments.get_mut(segment as usize)
    }
}

impl Segment {
    fn encode(&self, volume: u64, at: u64) -> [u8; SECTOR_BYTES] {
        let mut out = [0; SECTOR_BYTES];
        out[..8].copy_from_slice(&SEGMENT_MAGIC);
        out[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        out[16..24].copy_from_slice(&self.previous.to_le_bytes());
        out[24..32].copy_from_slice(&self.first.to_le_bytes());
        let checksum = record::seeded(volume, at, &out[..32]);
        out[32..36].copy_from_slice(&checksum.to_le_bytes());
        out.copy_within(..36, COPY_AT);
        out
    }

    /// Decodes the first sector of a segment; `None` if it is not one.
    pub fn decode(sector: &[u8; SECTOR_BYTES], volume: u64, at: u64) -> Option<Self> {
        let copies = [sector.get(..36)?, sector.get(COPY_AT..COPY_AT + 36)?];
        let copy = copies.into_iter().find(|copy| {
            copy[..8] == SEGMENT_MAGIC && u64::from(record::seeded(volume, at, &copy[..32])) == record::number(copy, 32)
        })?;
        let number = |at| record::long(copy, at);
        Some(Segment { epoch: number(8), previous: number(16), first: number(24), live: 0, emptied: 0, stuck: false })
    }
}
