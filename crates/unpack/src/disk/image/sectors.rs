//! Where the sectors of a disk stand in the file that is an image of it.

use stream::{Limits, ReadAt};

use super::mapped::{self, Block, Mapped};
use crate::frame::codec::{Fault, be32, be64, le16, le32, le64};

/// Magic at the beginning of dynamic VHDs and at the end of fixed ones.
pub(super) const VHD: &[u8] = b"conectix";
/// Beginning of VHDX files.
pub(super) const VHDX: &[u8] = b"vhdxfile";

const SECTOR: u64 = 512;

/// The form of an image.
pub(super) enum Image {
    /// One byte behind the other.
    Flat,
    /// Blocks listed by sectors, each behind a bitmap.
    Vhd {
        table: u64,
        blocks: u64,
        block_bytes: u64,
        bitmap_bytes: u64,
    },
    /// Blocks listed by megabytes, with other entries between.
    Vhdx {
        table: u64,
        block_bytes: u64,
        ratio: u64,
    },
    Mapped(Box<Mapped>),
}

impl Image {
    /// The form that a file of so many bytes shows.
    pub fn of(kept: &dyn ReadAt, file_bytes: u64, limits: &Limits) -> Result<Image, Fault> {
        let mut head = [0; 72];
        kept.read_at(0, &mut head);
        let found = match head[..8] {
            _ if mapped::is_image(&head) => {
                return Mapped::of(kept, file_bytes, limits).map(|mapped| Image::Mapped(Box::new(mapped)));
            }
            ref head if head == VHD => vhd(kept),
            ref head if head == VHDX => vhdx(kept),
            _ => None,
        };
        Ok(found.unwrap_or(Image::Flat))
    }

    /// Fills a prefix of the buffer from a place of the disk; 0 where no bytes are kept.
    pub fn read_at(&self, kept: &dyn ReadAt, at: u64, buffer: &mut [u8]) -> usize {
        let (block, block_bytes) = match self {
            Image::Flat => return kept.read_at(at, buffer),
            Image::Mapped(mapped) => return mapped.read_at(kept, at, buffer),
            Image::Vhd { block_bytes, .. } | Image::Vhdx { block_bytes, .. } => (at / block_bytes, block_bytes),
        };
        let within = at % block_bytes;
        let count = usize::try_from(block_bytes - within).map_or(buffer.len(), |left| left.min(buffer.len()));
        match self.block(kept, block) {
            Block::Missing => 0,
            Block::Empty => {
                buffer[..count].fill(0);
                count
            }
            Block::At(start) => kept.read_at(start.saturating_add(within), &mut buffer[..count]),
        }
    }

    fn block(&self, kept: &dyn ReadAt, block: u64) -> Block {
        let mut entry = [0; 8];
        match *self {
            Image::Vhd { table, blocks, bitmap_bytes, .. } => {
                if block >= blocks || kept.read_at(table.saturating_add(block.saturating_mul(4)), &mut entry[..4]) < 4 {
                    return Block::Missing;
                }
                match be32(&entry, 0) {
                    u32::MAX => Block::Empty,
                    sector => Block::At(u64::from(sector) * SECTOR + bitmap_bytes),
                }
            }
            Image::Vhdx { table, ratio, .. } => {
                const PRESENT: u64 = 6;
                let index = block.saturating_add(block / ratio);
                if kept.read_at(table.saturating_add(index.saturating_mul(8)), &mut entry) < 8 {
                    return Block::Missing;
                }
                let entry = le64(&entry, 0);
                if entry & 7 >= PRESENT { Block::At(entry >> 20 << 20) } else { Block::Empty }
            }
            Image::Flat | Image::Mapped(_) => Block::Missing,
        }
    }
}

fn bytes_at(kept: &dyn ReadAt, at: u64, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    (kept.read_at(at, &mut bytes) == count).then_some(bytes)
}

fn vhd(kept: &dyn ReadAt) -> Option<Image> {
    const BLOCK_BYTES_MAX: u32 = 1 << 28;
    let footer = bytes_at(kept, 0, SECTOR as usize)?;
    let header = bytes_at(kept, be64(&footer, 16), 1024)?;
    let block_bytes = be32(&header, 32);
    if !header.starts_with(b"cxsparse") || !(512..=BLOCK_BYTES_MAX).contains(&block_bytes) {
        return None;
    }
    let bitmap_bytes = u64::from(block_bytes).div_ceil(SECTOR * 8).next_multiple_of(SECTOR);
    Some(Image::Vhd {
        table: be64(&header, 16),
        blocks: be32(&header, 28).into(),
        block_bytes: block_bytes.into(),
        bitmap_bytes,
    })
}

/// Names of regions and of metadata, as they stand in the file.
const TABLE: [u8; 16] = *b"\x66\x77\xc2\x2d\x23\xf6\x00\x42\x9d\x64\x11\x5e\x9b\xfd\x4a\x08";
const METADATA: [u8; 16] = *b"\x06\xa2\x7c\x8b\x90\x47\x9a\x4b\xb8\xfe\x57\x5f\x05\x0f\x88\x6e";
const PARAMETERS: [u8; 16] = *b"\x37\x67\xa1\xca\x36\xfa\x43\x4d\xb3\xb6\x33\xf0\xaa\x44\xe7\x6b";
const SECTOR_SIZE: [u8; 16] = *b"\x1d\xbf\x41\x81\x6f\xa9\x09\x47\xba\x47\xf2\x33\xa8\xfa\xab\x5f";

fn vhdx(kept: &dyn ReadAt) -> Option<Image> {
    const REGIONS: [u64; 2] = [192 << 10, 256 << 10];
    const ENTRIES_MAX: usize = 64;
    const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 1 << 20..=256 << 20;
    let mut regions = REGIONS.into_iter().filter_map(|at| bytes_at(kept, at, 16 + 32 * ENTRIES_MAX));
    let regions = regions.find(|regions| regions.starts_with(b"regi"))?;
    let place = |name| {
        let entry = regions[16..].chunks_exact(32).find(|entry| entry[..16] == name)?;
        Some(le64(entry, 16))
    };
    let (table, at) = (place(TABLE)?, place(METADATA)?);
    let metadata = bytes_at(kept, at, 32 + 32 * ENTRIES_MAX)?;
    let count = usize::from(le16(&metadata, 10)).min(ENTRIES_MAX);
    let item = |name| {
        let entry = metadata[32..].chunks_exact(32).take(count).find(|entry| entry[..16] == name)?;
        bytes_at(kept, at.saturating_add(le32(entry, 16).into()), 4)
    };
    let block_bytes = le32(&item(PARAMETERS)?, 0);
    let sector = item(SECTOR_SIZE).map_or(512, |bytes| le32(&bytes, 0));
    if !BLOCK_BYTES.contains(&block_bytes) || !matches!(sector, 512 | 4096) {
        return None;
    }
    let ratio = ((u64::from(sector) << 23) / u64::from(block_bytes)).max(1);
    Some(Image::Vhdx { table, block_bytes: block_bytes.into(), ratio })
}
