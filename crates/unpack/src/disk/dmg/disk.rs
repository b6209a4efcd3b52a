//! The disk that an image holds, read anywhere: the chunk that was read last is kept unpacked.
//!
//! Bounds: a chunk of [`CHUNK_BYTES_MAX`] (longer ones are not read here); unpacked again and again, up to
//! [`AGAIN`] times what the disk holds. Work that is done is told to the outbox.

use stream::{Limits, ReadAt};

use super::tables::{Chunk, Packing, Tables};
use super::{PIECE_BYTES, decoder, read};
use crate::disk::hfs::Disk;
use crate::frame::codec::Told;

const SECTOR: u64 = 512;
const CHUNK_BYTES_MAX: u64 = 4 << 20;
/// Files lie in order, so a chunk is unpacked for its files, once for each of their kinds, and for trees.
const AGAIN: u64 = 4;

pub(super) struct Chunks {
    tables: Tables,
    limits: Limits,
    /// The chunk that is unpacked.
    unpacked: Option<(usize, Vec<u8>)>,
    /// Bytes that may still be unpacked.
    left: u64,
    work: usize,
}

impl Chunks {
    pub fn new(tables: Tables, limits: &Limits) -> Chunks {
        let bytes = tables.chunks.iter().fold(0, |sum: u64, chunk| sum.saturating_add(chunk.bytes()));
        let left = bytes.saturating_mul(AGAIN);
        Chunks { tables, limits: limits.clone(), unpacked: None, left, work: 0 }
    }

    /// Returns the disk over the kept bytes of the image.
    pub fn on<'a>(&'a mut self, kept: &'a dyn ReadAt) -> OnDisk<'a> {
        OnDisk { chunks: self, kept }
    }

    pub fn get(&self, index: usize) -> Option<&Chunk> {
        self.tables.chunks.get(index)
    }

    /// The next place at which a partition begins, in bytes.
    pub fn next_start(&mut self) -> Option<u64> {
        self.tables.starts.pop().map(|sector| sector.saturating_mul(SECTOR))
    }

    /// Work done since this was asked last.
    pub fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// Makes this chunk the one that is unpacked.
    fn unpack(&mut self, index: usize, kept: &dyn ReadAt) -> Option<&[u8]> {
        if self.unpacked.as_ref().is_none_or(|unpacked| unpacked.0 != index) {
            let chunk = &self.tables.chunks[index];
            self.left = self.left.checked_sub(chunk.bytes())?;
            let bytes = chunk.unpack(&self.limits, kept)?;
            self.work += bytes.len();
            self.unpacked = Some((index, bytes));
        }
        self.unpacked.as_ref().map(|(_, bytes)| &bytes[..])
    }
}

impl Chunk {
    const fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(SECTOR)
    }

    fn unpack(&self, limits: &Limits, kept: &dyn ReadAt) -> Option<Vec<u8>> {
        if self.bytes() > CHUNK_BYTES_MAX {
            return None;
        }
        let mut content = vec![0; self.bytes() as usize];
        if self.packing == Packing::Stored {
            let stored = read(kept, self.at, self.length.min(self.bytes()));
            content[..stored.len()].copy_from_slice(&stored);
            return Some(content);
        }
        let (mut decoder, mut at, mut left, mut wrote) = (decoder(self.packing, limits)?, self.at, self.length, 0);
        let (mut piece, mut used) = (Vec::new(), 0);
        while wrote < content.len() {
            if used == piece.len() {
                piece = read(kept, at, left.min(PIECE_BYTES as u64));
                (at, left, used) = (at.saturating_add(piece.len() as u64), left - piece.len() as u64, 0);
            }
            let progress = decoder.decode(&piece[used..], &mut content[wrote..]);
            (used, wrote) = (used + progress.taken, wrote + progress.wrote);
            match progress.told {
                Told::Over => break,
                Told::Fault(fault) if fault.fatal => break,
                Told::Nothing if progress.taken == 0 && progress.wrote == 0 && piece.is_empty() => break,
                _ => {}
            }
        }
        Some(content)
    }
}

pub(super) struct OnDisk<'a> {
    chunks: &'a mut Chunks,
    kept: &'a dyn ReadAt,
}

impl Disk for OnDisk<'_> {
    fn read(&mut self, at: u64, buffer: &mut [u8]) -> usize {
        let tables = &self.chunks.tables;
        let behind = tables.chunks.partition_point(|chunk| chunk.sector.saturating_mul(SECTOR) <= at);
        let within = behind.checked_sub(1).filter(|&index| {
            let chunk = &tables.chunks[index];
            at - chunk.sector * SECTOR < chunk.bytes()
        });
        let Some(index) = within else {
            // Zeros, up to the next chunk or to the end.
            let end = tables.chunks.get(behind).map_or(tables.sectors, |chunk| chunk.sector).saturating_mul(SECTOR);
            let count = end.saturating_sub(at).min(buffer.len() as u64) as usize;
            buffer[..count].fill(0);
            return count;
        };
        let from = (at - tables.chunks[index].sector * SECTOR) as usize;
        let Some(bytes) = self.chunks.unpack(index, self.kept).and_then(|bytes| bytes.get(from..)) else { return 0 };
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        count
    }
}
