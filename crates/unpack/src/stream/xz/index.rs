//! The index of a stream, compared with the blocks that were seen: the .xz format 1.2, section 4.
//!
//! Nothing is kept of the blocks but their number and a running checksum of their sizes.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use zlib_rs::crc32::crc32;

use super::check::Crc64;
use super::header::{Number, TooLong};
use crate::frame::codec::{Collected, le32};

/// The sizes of a stream's blocks, as seen or as told.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    blocks: u64,
    sizes: Crc64,
}

impl Seen {
    pub const fn new() -> Seen {
        Seen { blocks: 0, sizes: Crc64::new() }
    }

    /// A block of these sizes: with its header and check but without padding, and of its content.
    pub fn block(&mut self, unpadded: u64, uncompressed: u64) {
        self.blocks = self.blocks.saturating_add(1);
        self.sizes.update(&unpadded.to_le_bytes());
        self.sizes.update(&uncompressed.to_le_bytes());
    }
}

/// An index on its way in, behind its first byte.
pub(super) struct Index {
    seen: Seen,
    told: Seen,
    /// Bytes read, the first included.
    bytes: u64,
    crc: u32,
    field: Field,
}

enum Field {
    Count(Number),
    /// The first size of a record; so many records are still to come, this one included.
    Unpadded {
        number: Number,
        left: u64,
    },
    Uncompressed {
        number: Number,
        left: u64,
        unpadded: u64,
    },
    Padding,
    Crc(Collected<4>),
}

/// Error of an invalid index.
#[derive(Debug, PartialEq)]
pub(super) struct Broken;

impl Index {
    pub fn new(seen: Seen) -> Index {
        Index { seen, told: Seen::new(), bytes: 1, crc: crc32(0, &[0]), field: Field::Count(Number::new()) }
    }

    /// Bytes of the whole index, once it has been read.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a prefix of `input`. At the end of the index, returns whether it agrees with the blocks.
    pub fn read(&mut self, input: &[u8]) -> (usize, Option<Result<bool, Broken>>) {
        for (at, &byte) in input.iter().enumerate() {
            match self.push(byte) {
                Ok(None) => {}
                Ok(Some(agrees)) => return (at.saturating_add(1), Some(Ok(agrees))),
                Err(broken) => return (at.saturating_add(1), Some(Err(broken))),
            }
        }
        (input.len(), None)
    }

    fn push(&mut self, byte: u8) -> Result<Option<bool>, Broken> {
        self.bytes = self.bytes.saturating_add(1);
        if let Field::Crc(bytes) = &mut self.field {
            bytes.fill(&[byte], 4);
            let told = bytes.whole().map(|whole| le32(whole, 0));
            return Ok(told.map(|told| told == self.crc && self.agrees()));
        }
        self.crc = crc32(self.crc, &[byte]);
        self.field = match std::mem::replace(&mut self.field, Field::Padding) {
            Field::Count(mut number) => match number.push(byte)? {
                Some(left) => Field::record(left),
                None => Field::Count(number),
            },
            Field::Unpadded { mut number, left } => match number.push(byte)? {
                Some(unpadded) => Field::Uncompressed { number: Number::new(), left, unpadded },
                None => Field::Unpadded { number, left },
            },
            Field::Uncompressed { mut number, left, unpadded } => match number.push(byte)? {
                Some(uncompressed) => {
                    self.told.block(unpadded, uncompressed);
                    Field::record(left.saturating_sub(1))
                }
                None => Field::Uncompressed { number, left, unpadded },
            },
            Field::Padding if byte != 0 => return Err(Broken),
            other => other,
        };
        if matches!(self.field, Field::Padding) && self.bytes.is_multiple_of(4) {
            self.field = Field::Crc(Collected::new());
        }
        Ok(None)
    }

    fn agrees(&self) -> bool {
        self.told.blocks == self.seen.blocks && self.told.sizes.value() == self.seen.sizes.value()
    }
}

impl Field {
    const fn record(left: u64) -> Field {
        match left {
            0 => Field::Padding,
            _ => Field::Unpadded { number: Number::new(), left },
        }
    }
}

impl From<TooLong> for Broken {
    fn from(_: TooLong) -> Broken {
        Broken
    }
}
