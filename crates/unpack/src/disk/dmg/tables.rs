//! The tables of chunks: data in Base64 under the key `blkx` of a property list, numbers with the greatest byte first.
//!
//! ```text
//! table := "mish" …, first sector at 8, place of the data at 24, number of chunks at 200, chunks
//! chunk := packing u32, comment u32, sector u64, sectors u64, place u64, length u64
//! ```

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use text::base64::decode_loosely;

use super::{be32, be64};

/// Content of the tables.
#[derive(Default)]
pub(super) struct Tables {
    /// In the order of the disk.
    pub chunks: Vec<Chunk>,
    /// Where partitions begin, in sectors.
    pub starts: Vec<u64>,
    /// Sectors of the disk, those of zeros with them.
    pub sectors: u64,
}

/// A chunk that holds something.
pub(super) struct Chunk {
    pub sector: u64,
    pub sectors: u64,
    pub packing: Packing,
    pub at: u64,
    pub length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Stored,
    Zlib,
    Bzip2,
    Lzma,
    Adc,
    Lzfse,
    Unknown,
}

const HEADER_BYTES: usize = 204;
const CHUNK_BYTES: usize = 40;

/// Reads all tables, `max` chunks of them at most; places are those in the stream, where data begin at `data_at`.
pub(super) fn read(xml: &[u8], data_at: u64, max: usize) -> Tables {
    let xml = String::from_utf8_lossy(xml);
    let tables = xml.split_once("<key>blkx</key>").and_then(|(_, rest)| rest.split_once("</array>"));
    let mut read = Tables::default();
    for part in tables.map_or("", |(tables, _)| tables).split("<data>").skip(1) {
        let table = decode_loosely(part.split('<').next().unwrap_or(""));
        if !table.starts_with(b"mish") || table.len() < HEADER_BYTES {
            continue;
        }
        let (sector, from) = (be64(&table, 8), data_at.saturating_add(be64(&table, 24)));
        let count = be32(&table, 200) as usize;
        let rows = || table[HEADER_BYTES..].chunks_exact(CHUNK_BYTES).take(count);
        let ends = rows().map(|row| sector.saturating_add(be64(row, 8)).saturating_add(be64(row, 16)));
        read.sectors = ends.fold(read.sectors, u64::max);
        read.starts.push(sector);
        read.chunks
            .extend(rows().filter_map(|row| chunk(row, sector, from)).take(max.saturating_sub(read.chunks.len())));
    }
    read.chunks.sort_by_key(|chunk| chunk.sector);
    read
}

fn chunk(row: &[u8], sector: u64, from: u64) -> Option<Chunk> {
    let packing = match be32(row, 0) {
        // Zeros, free space, a comment, the end.
        0 | 2 | 0x7fff_fffe | 0xffff_ffff => return None,
        1 => Packing::Stored,
        0x8000_0004 => Packing::Adc,
        0x8000_0005 => Packing::Zlib,
        0x8000_0006 => Packing::Bzip2,
        0x8000_0007 => Packing::Lzfse,
        0x8000_0008 => Packing::Lzma,
        _ => Packing::Unknown,
    };
    let at = from.saturating_add(be64(row, 24));
    Some(Chunk {
        sector: sector.saturating_add(be64(row, 8)),
        sectors: be64(row, 16),
        packing,
        at,
        length: be64(row, 32),
    })
}
