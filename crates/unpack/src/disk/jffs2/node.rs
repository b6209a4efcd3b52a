//! The nodes of the log: their headers, entries of folders and pieces of files.
//!
//! ```text
//! node  := 0x1985 u16, type u16, bytes u32, checksum u32
//! entry := node, folder u32, version u32, inode u32, time u32, bytes of the name u8, kind u8, u16, 2 checksums, name
//! piece := node, inode u32, version u32, mode u32, 2 owners u16, bytes of the file u32, 3 times u32, start u32,
//!          packed bytes u32, bytes u32, way u8, way asked for u8, flags u16, checksum of the data, of the node; data
//! ```

use stream::ReadAt;
use zlib_rs::crc32::crc32;

use super::NODE_BYTES_MAX;
use crate::disk::kept::read;
use crate::frame::codec::{be16, be32, le16, le32};

const MAGIC: u16 = 0x1985;
const HEADER_BYTES: usize = 12;
const ENTRY: u16 = 0xe001;
const PIECE: u16 = 0xe002;
const ENTRY_BYTES: usize = 40;
const PIECE_BYTES: usize = 68;

/// Whether an image begins with a node of a type that there is, with a length that can be its own.
pub(crate) fn is_header(head: &[u8]) -> bool {
    const TYPES: [u16; 7] = [ENTRY, PIECE, 0x2003, 0x2004, 0x2006, 0xe008, 0xe009];
    const BYTES: std::ops::RangeInclusive<u32> = HEADER_BYTES as u32..=1 << 20;
    let Some(order) = Order::of(head) else { return false };
    TYPES.contains(&order.u16(head, 2)) && BYTES.contains(&order.u32(head, 4))
}

/// The order of bytes in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

/// How a piece is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Stored,
    Zero,
    Rtime,
    Zlib,
    Lzo,
    Unknown,
}

/// Bytes of a file from `start` on, which stand packed at `at`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub version: u32,
    pub start: u32,
    pub bytes: u32,
    pub packed_bytes: u32,
    pub way: Way,
    pub at: u64,
}

/// The content of a node.
pub(super) enum Found {
    Nothing,
    /// Its checksums are wrong, or it makes no sense.
    Broken,
    Entry {
        folder: u32,
        name: Vec<u8>,
        version: u32,
        inode: u32,
    },
    Piece {
        inode: u32,
        file_bytes: u32,
        piece: Piece,
    },
}

impl Order {
    /// The order in which the first node has its magic.
    pub fn of(head: &[u8]) -> Option<Order> {
        match (le16(head, 0), be16(head, 0)) {
            (MAGIC, _) => Some(Order::Little),
            (_, MAGIC) => Some(Order::Big),
            _ => None,
        }
    }

    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        if self == Order::Big { be16(bytes, at) } else { le16(bytes, at) }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        if self == Order::Big { be32(bytes, at) } else { le32(bytes, at) }
    }

    /// How many of these bytes come before the next node, or the next word that is not free.
    pub fn find(self, bytes: &[u8]) -> usize {
        let words = bytes.chunks(4).take_while(|word| self.u16(word, 0) != MAGIC);
        words.map(<[u8]>::len).sum()
    }

    /// Reads the node that begins with these bytes, at `at`. Returns its length and its content.
    pub fn node(self, bytes: &[u8], at: u64, kept: &dyn ReadAt) -> (u32, Found) {
        let (kind, length) = (self.u16(bytes, 2), self.u32(bytes, 4));
        let is_header = bytes.len() >= HEADER_BYTES && self.sum_agrees(bytes, 8, 8);
        if !is_header || length < HEADER_BYTES as u32 {
            // What only begins like a node is passed word by word.
            return (4, Found::Broken);
        }
        let found = match kind {
            ENTRY => self.entry(bytes, at, length, kept),
            PIECE => self.piece(bytes, at, length, kept),
            _ => Some(Found::Nothing),
        };
        (length, found.unwrap_or(Found::Broken))
    }

    /// Whether the checksum at `at` is that of the first `count` bytes.
    fn sum_agrees(self, bytes: &[u8], count: usize, at: usize) -> bool {
        bytes.get(..count).is_some_and(|summed| sum(summed) == self.u32(bytes, at))
    }

    fn entry(self, bytes: &[u8], at: u64, length: u32, kept: &dyn ReadAt) -> Option<Found> {
        let name_bytes = usize::from(*bytes.get(28)?);
        let name = read(kept, at + ENTRY_BYTES as u64, name_bytes);
        let is_sound = self.sum_agrees(bytes, 32, 32)
            && ENTRY_BYTES + name_bytes <= length as usize
            && name.len() == name_bytes
            && sum(&name) == self.u32(bytes, 36);
        let [folder, version, inode] = [12, 16, 20].map(|at| self.u32(bytes, at));
        is_sound.then_some(Found::Entry { folder, name, version, inode })
    }

    fn piece(self, bytes: &[u8], at: u64, length: u32, kept: &dyn ReadAt) -> Option<Found> {
        const KIND: u32 = 0xf000;
        const FILE: u32 = 0x8000;
        let [inode, version, mode, file_bytes, start] = [12, 16, 20, 28, 44].map(|at| self.u32(bytes, at));
        let [packed_bytes, content_bytes] = [48, 52].map(|at| self.u32(bytes, at));
        let way = match *bytes.get(56)? {
            0 => Way::Stored,
            1 => Way::Zero,
            2 => Way::Rtime,
            6 => Way::Zlib,
            7 => Way::Lzo,
            _ => Way::Unknown,
        };
        let fits = packed_bytes.max(content_bytes) <= NODE_BYTES_MAX && (PIECE_BYTES as u32) + packed_bytes <= length;
        if !self.sum_agrees(bytes, 60, 64) || way != Way::Zero && !fits {
            return None;
        }
        let packed_bytes = if way == Way::Zero { 0 } else { packed_bytes };
        let at = at + PIECE_BYTES as u64;
        let data = read(kept, at, packed_bytes as usize);
        if way != Way::Zero && (data.len() < packed_bytes as usize || sum(&data) != self.u32(bytes, 60)) {
            return None;
        }
        if mode & KIND != FILE {
            return Some(Found::Nothing);
        }
        let piece = Piece { version, start, bytes: content_bytes, packed_bytes, way, at };
        Some(Found::Piece { inode, file_bytes, piece })
    }
}

/// CRC-32 without the turns at its beginning and end.
fn sum(bytes: &[u8]) -> u32 {
    !crc32(u32::MAX, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_marker_is_that_of_the_kernel() {
        let marker = b"\x85\x19\x03\x20\x0c\0\0\0\xb1\xb0\x1e\xe4";
        assert_eq!(sum(&marker[..8]), le32(marker, 8));
        assert!(is_header(marker) && is_header(b"\x19\x85\xe0\x01\0\0\0\x2d\0\0\0\0"));
        assert!(!is_header(b"\x85\x19\x03\x20\0\0\0\0"));
        assert_eq!(Order::Little.find(b"\xff\xff\xff\xff\0\0\0\0\x85\x19"), 8);
    }
}
