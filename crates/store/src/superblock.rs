//! The two superblocks: the identity of a volume, and the checkpoint from which its state is read.
//!
//! Each has its own sector. They are written in turn, so one of them is always whole; both are rewritten when a volume
//! is opened for writing, since their count makes the epochs of this session unique.

use crate::error::Error;
use crate::record::{self, SECTOR_BYTES};

/// Where the two are.
pub(crate) const SLOTS: [u64; 2] = [0, 4096];
/// Where the first segment begins.
pub(crate) const SEGMENTS_AT: u64 = 8192;
/// The first bytes of a volume.
pub const MAGIC: [u8; 8] = *b"SluiceSt";
const VERSION: u32 = 1;
const ENCODED_BYTES: usize = 152;
/// No counter ever gets there: one that is beyond was never counted.
pub(crate) const COUNTER_MAX: u64 = 1 << 62;

/// How a volume is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Seed of ids and checksums: random, given when the volume is made.
    pub identity: u128,
    /// A segment, in bytes: a multiple of 4096.
    pub segment_bytes: u32,
    /// The largest piece of a message, in bytes; with its header a multiple of 8.
    pub piece_bytes: u32,
    /// How many segments there are.
    pub segments: u32,
}

impl Geometry {
    /// The geometry, if its sizes fit each other and the device.
    pub fn checked(self, device_bytes: u64) -> Result<Self, Error> {
        let piece = record::stored_bytes(u64::from(self.piece_bytes));
        if !self.segment_bytes.is_multiple_of(4096) || !(16 << 10..=1 << 30).contains(&self.segment_bytes) {
            return Err(Error::Geometry("a segment has 16 KiB to 1 GiB, in multiples of 4 KiB"));
        }
        if !self.piece_bytes.is_multiple_of(8)
            || !(512..=1 << 20).contains(&self.piece_bytes)
            || piece * 2 > u64::from(self.segment_bytes)
        {
            return Err(Error::Geometry(
                "a piece has 512 bytes to 1 MiB, in multiples of 8, and two fit into a segment",
            ));
        }
        if self.segments < SEGMENTS_MIN {
            return Err(Error::Geometry("the device is too small: there are at least 12 segments"));
        }
        match self.segment_at(self.segments) > device_bytes {
            true => Err(Error::Geometry("the device is smaller than the volume on it")),
            false => Ok(self),
        }
    }

    /// How many segments of such a size a device has.
    pub(crate) fn segments_of(device_bytes: u64, segment_bytes: u32) -> u32 {
        let count = device_bytes.saturating_sub(SEGMENTS_AT).checked_div(u64::from(segment_bytes)).unwrap_or(0);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub(crate) fn volume(&self) -> u64 {
        self.identity as u64
    }

    pub(crate) fn segment_at(&self, segment: u32) -> u64 {
        SEGMENTS_AT + u64::from(segment) * u64::from(self.segment_bytes)
    }

    pub(crate) fn segment_of(&self, position: u64) -> Option<u32> {
        let segment = position.checked_sub(SEGMENTS_AT)? / u64::from(self.segment_bytes);
        u32::try_from(segment).ok().filter(|&segment| segment < self.segments)
    }

    /// How far the records of a message that follow each other are apart.
    pub(crate) fn stride(&self) -> u64 {
        record::stored_bytes(u64::from(self.piece_bytes))
    }
}

const SEGMENTS_MIN: u32 = 12;

/// Where a checkpoint begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    pub number: u64,
    pub position: u64,
    /// Sequence number of the first record.
    pub sequence: u64,
    /// Epoch of the segment that the checkpoint begins in.
    pub epoch: u64,
    /// Number of records of the checkpoint.
    pub records: u64,
}

impl Root {
    pub const NONE: Root = Root { number: 0, position: 0, sequence: 0, epoch: 0, records: 0 };

    /// Whether a record is a part of it.
    pub fn holds(&self, sequence: u64) -> bool {
        sequence.checked_sub(self.sequence).is_some_and(|at| at < self.records)
    }

    fn numbers(&self) -> [u64; 5] {
        [self.number, self.position, self.sequence, self.epoch, self.records]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub geometry: Geometry,
    pub generation: u64,
    /// How often the volume was opened to be written.
    pub opened: u32,
    /// Where the log ended when the volume was closed: position and next sequence number; 0 and 0 while it is open.
    pub closed_at: u64,
    pub closed_sequence: u64,
    pub current: Root,
    /// The previous root; number 0 without one.
    pub previous: Root,
}

impl Superblock {
    pub fn encode(&self, slot: u64) -> [u8; SECTOR_BYTES] {
        let mut out = [0; SECTOR_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&self.geometry.segment_bytes.to_le_bytes());
        put(&self.geometry.piece_bytes.to_le_bytes());
        put(&self.geometry.segments.to_le_bytes());
        put(&self.geometry.identity.to_le_bytes());
        put(&self.generation.to_le_bytes());
        put(&u64::from(self.opened).to_le_bytes());
        put(&self.closed_at.to_le_bytes());
        put(&self.closed_sequence.to_le_bytes());
        for root in [self.current, self.previous] {
            for number in root.numbers() {
                put(&number.to_le_bytes());
            }
        }
        let checksum = record::seeded(0, slot, &out[..ENCODED_BYTES]);
        out[ENCODED_BYTES..ENCODED_BYTES + 4].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Decodes the superblock in this slot; `None` if it is missing or incomplete.
    pub fn decode(bytes: &[u8; SECTOR_BYTES], slot: u64) -> Option<Result<Self, Error>> {
        let checksum = record::number(bytes, ENCODED_BYTES);
        if bytes[..8] != MAGIC || u64::from(record::seeded(0, slot, &bytes[..ENCODED_BYTES])) != checksum {
            return None;
        }
        let number = |at| record::number(bytes, at) as u32;
        if number(8) != VERSION {
            return Some(Err(Error::Version(number(8))));
        }
        let long = |at| record::long(bytes, at);
        let root = |at| Root {
            number: long(at),
            position: long(at + 8),
            sequence: long(at + 16),
            epoch: long(at + 24),
            records: long(at + 32),
        };
        let superblock = Superblock {
            geometry: Geometry {
                segment_bytes: number(12),
                piece_bytes: number(16),
                segments: number(20),
                identity: u128::from(long(24)) | u128::from(long(32)) << 64,
            },
            generation: long(40),
            opened: long(48) as u32,
            closed_at: long(56),
            closed_sequence: long(64),
            current: root(72),
            previous: root(112),
        };
        let counters = [superblock.current, superblock.previous].into_iter().flat_map(|root| root.numbers());
        let is_possible =
            counters.chain([superblock.generation, superblock.closed_sequence]).all(|at| at < COUNTER_MAX);
        is_possible.then_some(Ok(superblock))
    }
}
