//! Files that the file system compressed: an attribute, in which the content stands, or tells that it is in the resource
//! fork, in blocks of 64 KiB.
//!
//! ```text
//! attribute := "fpmc", kind u32, size u64, [content]               numbers with the least byte first
//! fork      := data at u32, … (greatest first); there: length u32, count u32, (place u32, length u32)*, blocks
//! block     := zlib stream | byte whose low half is 15, content     places count from that of `count`
//! ```

use super::{CONTENT_BYTES, DATA, Disk, METHOD, Range, read_ranges};
use crate::codec::{Decoder, Fault, Told, be32, le32, le64};
use crate::reader::Outbox;
use crate::zlib::Zlib;

pub(super) const ATTRIBUTE: &str = "com.apple.decmpfs";

const HEADER_BYTES: usize = 16;
const BLOCK_BYTES: usize = 64 << 10;
/// A packed block is not longer than this.
const PACKED_BYTES_MAX: usize = BLOCK_BYTES + 1024;
const BLOCKS_MAX: u32 = 1 << 16;

/// The content of such a file.
pub(super) struct Packed {
    size: u64,
    /// The resource fork, and where its blocks are in it, the next one last.
    ranges: Vec<Range>,
    blocks: Vec<(u64, u32)>,
    /// What is unpacked, and how much of it has been told.
    content: Vec<u8>,
    told: usize,
}

impl Packed {
    /// Reads the attribute, and the table of blocks.
    pub fn new(attribute: &[u8], ranges: Vec<Range>, disk: &mut dyn Disk) -> Result<Packed, Fault> {
        if !attribute.starts_with(b"fpmc") || attribute.len() < HEADER_BYTES {
            return Err(DATA);
        }
        let inline = &attribute[HEADER_BYTES..];
        let mut packed = Packed { size: le64(attribute, 8), ranges, blocks: Vec::new(), content: Vec::new(), told: 0 };
        match le32(attribute, 4) {
            1 => packed.content = inline.to_vec(),
            3 => packed.content = unpack(inline).ok_or(DATA)?,
            4 => packed.blocks = blocks(&packed.ranges, disk)?,
            _ => return Err(METHOD),
        }
        Ok(packed)
    }

    /// Bytes of content, as the attribute tells.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Tells more; whether there was any.
    pub fn next(&mut self, disk: &mut dyn Disk, outbox: &mut Outbox) -> Result<bool, Fault> {
        if self.told == self.content.len() {
            let Some((at, length)) = self.blocks.pop() else { return Ok(false) };
            let length = (length as usize).min(PACKED_BYTES_MAX);
            outbox.worked(length);
            self.content = unpack(&read_ranges(disk, &self.ranges, at, length)).ok_or(DATA)?;
            self.told = 0;
        }
        let end = self.content.len().min(self.told + CONTENT_BYTES);
        outbox.content(&self.content[self.told..end]);
        self.told = end;
        Ok(true)
    }
}

fn blocks(ranges: &[Range], disk: &mut dyn Disk) -> Result<Vec<(u64, u32)>, Fault> {
    const ROW_BYTES: usize = 8;
    let table_at = u64::from(be32(&read_ranges(disk, ranges, 0, 4), 0)) + 4;
    let count = read_ranges(disk, ranges, table_at, 4);
    let count = Some(le32(&count, 0)).filter(|count| (1..=BLOCKS_MAX).contains(count)).ok_or(DATA)?;
    let table = read_ranges(disk, ranges, table_at + 4, ROW_BYTES * count as usize);
    let rows = table.chunks_exact(ROW_BYTES).rev();
    Ok(rows.map(|row| (table_at + u64::from(le32(row, 0)), le32(row, 4))).collect())
}

/// A block in the clear; `None` where it makes no sense.
fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    const STORED: u8 = 15;
    if packed.first()? & 15 == STORED {
        return Some(packed[1..].to_vec());
    }
    let (mut zlib, mut content, mut wrote, mut at) = (Zlib::new(), vec![0; BLOCK_BYTES], 0, 0);
    while wrote < content.len() {
        let progress = zlib.decode(&packed[at..], &mut content[wrote..]);
        (at, wrote) = (at + progress.taken, wrote + progress.wrote);
        match progress.told {
            Told::Over => break,
            Told::Fault(fault) if fault.fatal => return None,
            _ if progress.taken == 0 && progress.wrote == 0 => break,
            _ => {}
        }
    }
    content.truncate(wrote);
    Some(content)
}
