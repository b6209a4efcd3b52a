//! Files that the file system compressed: an attribute, in which the content stands, or tells that it is in the resource
//! fork, in blocks of 64 KiB, by zlib, LZVN or LZFSE.
//!
//! ```text
//! attribute := "fpmc", kind u32, size u64, [content]               numbers with the least byte first
//! fork      := data at u32, … (greatest first); there: length u32, count u32, (place u32, length u32)*, blocks
//!            | place of each block u32, of the end u32, blocks        LZVN and LZFSE
//! block     := zlib stream | byte whose low half is 15, content     places count from that of `count`
//!            | LZVN | 6, content | LZFSE | 255, content
//! ```

use super::{CONTENT_BYTES, DATA, Disk, METHOD, Range, read_ranges};
use crate::codec::lzfse::{self, lzvn};
use crate::frame::codec::{Decoder, Fault, Told, be32, le32, le64};
use crate::frame::reader::Outbox;
use crate::stream::zlib::Zlib;

pub(super) const ATTRIBUTE: &str = "com.apple.decmpfs";

const HEADER_BYTES: usize = 16;
const BLOCK_BYTES: usize = 64 << 10;
/// A packed block is not longer than this.
const PACKED_BYTES_MAX: usize = BLOCK_BYTES + 1024;
const BLOCKS_MAX: u32 = 1 << 16;

/// The content of such a file.
pub(super) struct Packed {
    size: u64,
    unpack: fn(&[u8]) -> Option<Vec<u8>>,
    /// The resource fork, and where its blocks are in it, the next one last.
    ranges: Vec<Range>,
    blocks: Vec<(u64, u32)>,
    /// Unpacked content, and how much of it has been emitted.
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
        let kind = le32(attribute, 4);
        let unpack = match kind {
            7 | 8 => unpack_lzvn,
            11 | 12 => unpack_lzfse,
            _ => unpack_zlib,
        };
        let size = le64(attribute, 8);
        let mut packed = Packed { size, unpack, ranges, blocks: Vec::new(), content: Vec::new(), told: 0 };
        match kind {
            1 => packed.content = inline.to_vec(),
            3 | 7 | 11 => packed.content = unpack(inline).ok_or(DATA)?,
            4 => packed.blocks = blocks(&packed.ranges, disk)?,
            8 | 12 => packed.blocks = plain_blocks(&packed.ranges, disk)?,
            _ => return Err(METHOD),
        }
        Ok(packed)
    }

    /// Bytes of content, as the attribute tells.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Emits more; whether there was any.
    pub fn next(&mut self, disk: &mut dyn Disk, outbox: &mut Outbox) -> Result<bool, Fault> {
        if self.told == self.content.len() {
            let Some((at, length)) = self.blocks.pop() else { return Ok(false) };
            let length = (length as usize).min(PACKED_BYTES_MAX);
            outbox.worked(length);
            self.content = (self.unpack)(&read_ranges(disk, &self.ranges, at, length)).ok_or(DATA)?;
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

/// The places of blocks that stand one behind the other: of each of them in front of the first, and the end of the last.
fn plain_blocks(ranges: &[Range], disk: &mut dyn Disk) -> Result<Vec<(u64, u32)>, Fault> {
    const PLACE_BYTES: u32 = 4;
    let first = le32(&read_ranges(disk, ranges, 0, PLACE_BYTES as usize), 0);
    let count = Some(first / PLACE_BYTES).filter(|count| (2..=BLOCKS_MAX).contains(count)).ok_or(DATA)?;
    let table = read_ranges(disk, ranges, 0, (count * PLACE_BYTES) as usize);
    let places: Vec<u32> = table.chunks_exact(PLACE_BYTES as usize).map(|place| le32(place, 0)).collect();
    if places.len() < count as usize {
        return Err(DATA);
    }
    let pairs = places.windows(2).rev();
    pairs.map(|pair| Some((pair[0].into(), pair[1].checked_sub(pair[0])?))).collect::<Option<_>>().ok_or(DATA)
}

fn unpack_lzvn(packed: &[u8]) -> Option<Vec<u8>> {
    const STORED: u8 = 6;
    if packed.first()? == &STORED {
        return Some(packed[1..].to_vec());
    }
    let mut content = Vec::new();
    lzvn(packed, BLOCK_BYTES, &mut content).then_some(content)
}

fn unpack_lzfse(packed: &[u8]) -> Option<Vec<u8>> {
    const STORED: u8 = 0xff;
    if packed.first()? == &STORED {
        return Some(packed[1..].to_vec());
    }
    let (content, is_sound) = lzfse::unpack(packed, BLOCK_BYTES);
    is_sound.then_some(content)
}

/// A block in the clear; `None` where it makes no sense.
fn unpack_zlib(packed: &[u8]) -> Option<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Memory(Vec<u8>);

    impl Disk for Memory {
        fn read(&mut self, at: u64, buffer: &mut [u8]) -> usize {
            let rest = self.0.get(at as usize..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            count
        }
    }

    fn attribute(kind: u32, inline: &[u8]) -> Vec<u8> {
        [b"fpmc", &kind.to_le_bytes()[..], &6u64.to_le_bytes(), inline].concat()
    }

    fn content(kind: u32, inline: &[u8], fork: &[u8]) -> Option<Vec<u8>> {
        let ranges = vec![(0, fork.len() as u64)];
        let mut disk = Memory(fork.to_vec());
        let mut packed = Packed::new(&attribute(kind, inline), ranges, &mut disk).ok()?;
        let mut content = packed.content.clone();
        while let Some((at, length)) = packed.blocks.pop() {
            content.extend((packed.unpack)(&read_ranges(&mut disk, &packed.ranges, at, length as usize))?);
        }
        Some(content)
    }

    /// "ab", and the same again as far as the last; the end.
    const LZVN: &[u8] = b"\x88\x02ab\xf2\x06\0\0\0\0\0\0\0";
    const LZFSE: &[u8] = b"bvx-\x03\0\0\0abcbvx$";

    #[test]
    fn lzvn_and_lzfse_are_read_from_the_attribute_and_from_the_fork() {
        let plain = b"abababab";
        assert_eq!(content(7, LZVN, b"").as_deref(), Some(&plain[..]));
        assert_eq!(content(7, b"\x06plain", b"").as_deref(), Some(&b"plain"[..]));
        assert_eq!(content(11, LZFSE, b"").as_deref(), Some(&b"abc"[..]));
        assert_eq!(content(11, b"\xffplain", b"").as_deref(), Some(&b"plain"[..]));
        let fork = |first: &[u8]| {
            let places = [12, 12 + first.len(), 15 + first.len()].map(|place| (place as u32).to_le_bytes());
            [&places.concat(), first, b"\x06zz"].concat()
        };
        assert_eq!(content(8, b"", &fork(LZVN)).as_deref(), Some(&b"ababababzz"[..]));
        assert_eq!(content(12, b"", &fork(LZFSE)), None, "the second block is none of LZFSE");
        assert_eq!(content(8, b"", &12u32.to_le_bytes()), None);
    }

    #[test]
    fn matches_before_the_start_and_undefined_bytes_are_refused() {
        for broken in [&b"\x88\x03ab\x06"[..], b"\x70", b"\xe5abc", b"\xf3", b""] {
            assert_eq!(content(7, broken, b""), None, "{broken:?}");
        }
    }
}
