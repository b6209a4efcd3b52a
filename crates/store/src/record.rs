//! The frame of a record: a header with two checksums, the payload, and padding.
//!
//! Checksums are seeded with the volume and the place, so that nothing that was written elsewhere, or to another volume, is
//! taken for a record of this one; the epoch of the segment is in the header, and every allocation of a segment has its own.

use crc32fast::Hasher;

/// A header, in bytes.
pub const HEADER_BYTES: usize = 56;
/// Unit that devices write as a whole. A commit ends at a multiple of it, so that later writes share no sector with
/// acknowledged data.
pub const SECTOR_BYTES: usize = 512;

const MAGIC: [u8; 4] = *b"SlRe";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A piece of a message: `subject` is its number, `index` which piece.
    Piece = 1,
    /// Digest that the host has derived of a message: `subject` is its number.
    Digest = 2,
    /// Operations that hold together: `subject` is the number of the commit.
    Transaction = 3,
    /// A part of a checkpoint: `subject` is its number, `index` which part.
    Checkpoint = 4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    /// The last part of a checkpoint.
    pub last: bool,
    /// Bytes behind the payload that mean nothing.
    pub pad: u16,
    pub length: u32,
    pub payload_checksum: u32,
    /// Sequence number of this record in the log: ascending by one, never given twice.
    pub sequence: u64,
    /// All records before this one were on stable storage when this one was written.
    pub durable: u64,
    pub epoch: u64,
    pub subject: u64,
    pub index: u32,
}

impl Header {
    pub fn encode(&self, volume: u64, position: u64) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..4].copy_from_slice(&MAGIC);
        out[4] = self.kind as u8;
        out[5] = u8::from(self.last);
        out[6..8].copy_from_slice(&self.pad.to_le_bytes());
        out[8..12].copy_from_slice(&self.length.to_le_bytes());
        out[12..16].copy_from_slice(&self.payload_checksum.to_le_bytes());
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        out[24..32].copy_from_slice(&self.durable.to_le_bytes());
        out[32..40].copy_from_slice(&self.epoch.to_le_bytes());
        out[40..48].copy_from_slice(&self.subject.to_le_bytes());
        out[48..52].copy_from_slice(&self.index.to_le_bytes());
        let checksum = seeded(volume, position, &out[..52]);
        out[52..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The header at the head of `bytes`, if there is a whole one that was written to this place of this volume.
    pub fn decode(bytes: &[u8], volume: u64, position: u64) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        if bytes[..4] != MAGIC || seeded(volume, position, &bytes[..52]) != number(bytes, 52) as u32 {
            return None;
        }
        let kind = match bytes[4] {
            1 => Kind::Piece,
            2 => Kind::Digest,
            3 => Kind::Transaction,
            4 => Kind::Checkpoint,
            _ => return None,
        };
        Some(Header {
            kind,
            last: bytes[5] & 1 != 0,
            pad: u16::from_le_bytes([bytes[6], bytes[7]]),
            length: number(bytes, 8) as u32,
            payload_checksum: number(bytes, 12) as u32,
            sequence: long(bytes, 16),
            durable: long(bytes, 24),
            epoch: long(bytes, 32),
            subject: long(bytes, 40),
            index: number(bytes, 48) as u32,
        })
    }

    /// Header, payload and padding, in bytes.
    pub fn stored_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.length) + u64::from(self.pad)
    }
}

/// Bytes that a record with such a payload takes, where no commit ends after it.
pub(crate) fn stored_bytes(payload_bytes: u64) -> u64 {
    (HEADER_BYTES as u64).saturating_add(payload_bytes).saturating_add(7) & !7
}

pub(crate) fn payload_checksum(volume: u64, epoch: u64, payload: &[u8]) -> u32 {
    seeded(volume, epoch, payload)
}

pub(crate) fn seeded(volume: u64, place: u64, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&volume.to_le_bytes());
    hasher.update(&place.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// The four bytes at `at`; 0 beyond the end.
pub(crate) fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
}

/// The eight bytes at `at`; 0 beyond the end.
pub(crate) fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_header_is_guarded_and_so_is_its_place() {
        let header = Header {
            kind: Kind::Transaction,
            last: true,
            pad: 300,
            length: 70_000,
            payload_checksum: 0x1234_5678,
            sequence: 99,
            durable: 98,
            epoch: 1 << 33,
            subject: 7,
            index: 3,
        };
        let bytes = header.encode(5, 4096);
        assert_eq!(Header::decode(&bytes, 5, 4096), Some(header));
        assert_eq!(Header::decode(&bytes, 5, 4104), None);
        assert_eq!(Header::decode(&bytes, 6, 4096), None);
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&flipped, 5, 4096), None, "bit {bit}");
        }
    }
}
