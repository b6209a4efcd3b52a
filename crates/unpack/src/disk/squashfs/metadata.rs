//! Tables of metadata: blocks of 8 KiB, packed each by itself, read as one stream from any place in them.
//!
//! Bounds: the block that was read last.

use stream::{Limits, ReadAt};

use crate::disk::kept::{Packing, read};
use crate::frame::codec::le16;

const BLOCK_BYTES: usize = 8 << 10;
const STORED: u16 = 0x8000;

/// A place in a table: where its block stands, and how far in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub block: u64,
    pub within: u16,
}

impl Place {
    /// As references tell it.
    pub const fn of(reference: u64) -> Place {
        Place { block: reference >> 16, within: reference as u16 }
    }
}

/// A place from which reading goes on.
pub(super) struct Cursor {
    at: u64,
    within: usize,
}

/// A table.
pub(super) struct Metadata {
    start: u64,
    packing: Packing,
    /// Where the block that is unpacked stands, and where the next one does.
    unpacked: Option<(u64, u64)>,
    block: Vec<u8>,
    work: usize,
    /// Whether a block was met that is not there whole.
    is_short: bool,
}

impl Metadata {
    /// The table that begins here.
    pub const fn new(start: u64, packing: Packing) -> Metadata {
        Metadata { start, packing, unpacked: None, block: Vec::new(), work: 0, is_short: false }
    }

    pub const fn cursor(&self, place: Place) -> Cursor {
        Cursor { at: self.start.saturating_add(place.block), within: place.within as usize }
    }

    /// Work done since this was asked last.
    pub fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// Whether a block was met that is not there whole.
    pub const fn is_short(&self) -> bool {
        self.is_short
    }

    /// The next `N` bytes.
    pub fn take<const N: usize>(&mut self, cursor: &mut Cursor, kept: &dyn ReadAt, limits: &Limits) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(cursor, &mut bytes, kept, limits)?;
        Some(bytes)
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, cursor: &mut Cursor, count: usize, kept: &dyn ReadAt, limits: &Limits) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.fill(cursor, &mut bytes, kept, limits)?;
        Some(bytes)
    }

    fn fill(&mut self, cursor: &mut Cursor, bytes: &mut [u8], kept: &dyn ReadAt, limits: &Limits) -> Option<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            let next = self.unpack(cursor.at, kept, limits)?;
            let from = self.block.get(cursor.within..)?;
            if from.is_empty() {
                // Only behind a whole block there is another.
                *cursor = Cursor { at: next, within: (self.block.len() == BLOCK_BYTES).then_some(0)? };
                continue;
            }
            let count = from.len().min(bytes.len() - filled);
            bytes[filled..filled + count].copy_from_slice(&from[..count]);
            (filled, cursor.within) = (filled + count, cursor.within + count);
        }
        Some(())
    }

    /// Makes the block that stands here the one that is unpacked; where the next one stands.
    fn unpack(&mut self, at: u64, kept: &dyn ReadAt, limits: &Limits) -> Option<u64> {
        if let Some((_, next)) = self.unpacked.filter(|unpacked| unpacked.0 == at) {
            return Some(next);
        }
        let header = read(kept, at, 2);
        self.is_short |= header.len() < 2;
        let header = (header.len() == 2).then(|| le16(&header, 0))?;
        let bytes = usize::from(header & !STORED);
        if bytes > BLOCK_BYTES {
            return None;
        }
        let packed = read(kept, at.checked_add(2)?, bytes);
        self.is_short |= packed.len() < bytes;
        self.block = match header & STORED {
            0 => self.packing.unpack(&packed, BLOCK_BYTES, limits).0,
            _ => packed,
        };
        self.work += BLOCK_BYTES;
        let next = at.checked_add(2 + bytes as u64)?;
        self.unpacked = Some((at, next));
        Some(next)
    }
}
