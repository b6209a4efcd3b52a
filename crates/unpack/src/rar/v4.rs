//! The headers of RAR 1.5 to 4.
//!
//! ```text
//! block := checksum u16, type u8, flags u16, header length u16, [data length u32], fields, data
//! ```
//! A wrong checksum is a finding; the header is read all the same, as long as its length makes sense.

use stream::{Entry, Object};
use zlib_rs::crc32::crc32;

use super::{Compression, ENCRYPTED, HEADER, METHOD, SPLIT, Solid};
use crate::archive::{Check, Content, Member, Record};
use crate::codec::{Fault, le16, le32};
use crate::name;

/// Checksum, type, flags, length.
const BLOCK: usize = 7;

mod kind {
    pub const ARCHIVE: u8 = 0x73;
    pub const FILE: u8 = 0x74;
    pub const SERVICE: u8 = 0x7a;
    pub const END: u8 = 0x7b;
}

/// Flags of every block.
const HAS_DATA: u16 = 0x8000;
/// Flags of the archive.
const ARCHIVE_ENCRYPTED: u16 = 0x80;
/// Flags of a file.
const SPLIT_BEFORE: u16 = 1;
const SPLIT_AFTER: u16 = 2;
const FILE_ENCRYPTED: u16 = 4;
const SOLID: u16 = 0x10;
const DICTIONARY: u16 = 0xe0;
const LARGE: u16 = 0x100;
const UNICODE: u16 = 0x200;
/// The dictionary size of what has no content.
const DIRECTORY: u16 = 0xe0;

/// The place among the headers.
pub(super) struct Headers {
    name_bytes_max: usize,
    /// Whether everything that follows is encrypted.
    encrypted: bool,
    ended: bool,
}

/// The fields of a file.
struct File<'a> {
    flags: u16,
    packed: u64,
    size: u64,
    crc: u32,
    version: u8,
    method: u8,
    name: &'a [u8],
}

impl Headers {
    pub const fn new(name_bytes_max: usize) -> Headers {
        Headers { name_bytes_max, encrypted: false, ended: false }
    }

    pub fn record(&mut self, head: &[u8], solid: &mut Solid, faults: &mut Vec<Fault>) -> Record {
        if self.encrypted || self.ended {
            return Record::Rest;
        }
        if head.len() < BLOCK {
            return Record::Need(BLOCK);
        }
        let (kind, flags, length) = (head[2], le16(head, 3), usize::from(le16(head, 5)));
        if length < BLOCK || !(0x72..=0x7b).contains(&kind) {
            faults.push(HEADER);
            return Record::Rest;
        }
        if head.len() < length {
            return Record::Need(length);
        }
        let header = &head[..length];
        if crc32(0, &header[2..]) as u16 != le16(header, 0) && !checksum_covers_less(kind) {
            faults.push(HEADER);
        }
        let data = if flags & HAS_DATA != 0 { u64::from(le32(header, BLOCK)) } else { 0 };
        match kind {
            kind::FILE | kind::SERVICE => self.file(header, kind, solid, faults),
            kind::ARCHIVE => {
                if flags & ARCHIVE_ENCRYPTED != 0 {
                    faults.push(ENCRYPTED);
                    self.encrypted = true;
                }
                Record::Pass(length as u64 + data)
            }
            kind::END => {
                self.ended = true;
                Record::Pass(length as u64 + data)
            }
            _ => Record::Pass(length as u64 + data),
        }
    }

    fn file(&self, header: &[u8], kind: u8, solid: &mut Solid, faults: &mut Vec<Fault>) -> Record {
        let Some(file) = File::read(header) else {
            faults.push(HEADER);
            return Record::Rest;
        };
        let name = file.name(self.name_bytes_max);
        if file.flags & DICTIONARY == DIRECTORY || kind == kind::SERVICE && matches!(&*name, "RR" | "AV") {
            return Record::Pass(header.len() as u64 + file.packed);
        }
        let is_packed = file.is_packed(solid, faults);
        let whole = file.flags & (SPLIT_BEFORE | SPLIT_AFTER | FILE_ENCRYPTED) == 0;
        let understood = whole && (is_packed || file.method == STORED);
        let size = understood.then_some(file.size);
        let content = match is_packed {
            true => Content::Packed { packed: Some(file.packed), size },
            false => Content::Raw(file.packed),
        };
        let entry = Entry {
            packed: Some(file.packed),
            size: Some(file.size),
            encrypted: file.flags & FILE_ENCRYPTED != 0,
            crc32: Some(file.crc),
        };
        let object = Object { name: Some(name), size, entry: Some(entry), ..Object::default() };
        let check = if understood { Check::crc32(file.crc) } else { Check::None };
        Record::Member(header.len(), Member { object, content, check })
    }
}

const STORED: u8 = 0x30;

impl<'a> File<'a> {
    fn read(header: &'a [u8]) -> Option<File<'a>> {
        const FIXED: usize = 32;
        let flags = le16(header, 3);
        let fixed = if flags & LARGE != 0 { FIXED + 8 } else { FIXED };
        if header.len() < fixed {
            return None;
        }
        let high = |at: usize| if flags & LARGE != 0 { u64::from(le32(header, at)) << 32 } else { 0 };
        let name_length = usize::from(le16(header, 26));
        Some(File {
            flags,
            packed: u64::from(le32(header, 7)) | high(FIXED),
            size: u64::from(le32(header, 11)) | high(FIXED + 4),
            crc: le32(header, 16),
            version: header[24],
            method: header[25],
            name: header.get(fixed..fixed + name_length)?,
        })
    }

    /// The name: in the charset of the archiver's machine, or that and behind a zero how to make Unicode of it, or UTF-8.
    fn name(&self, name_bytes_max: usize) -> Box<str> {
        let cut = |bytes: &'a [u8]| &bytes[..bytes.len().min(name_bytes_max)];
        let zero = self.name.iter().position(|&byte| byte == 0);
        match zero.filter(|_| self.flags & UNICODE != 0) {
            None => name::utf8_or_cp437(cut(self.name)),
            Some(zero) => {
                let units = unicode(&self.name[..zero], &self.name[zero + 1..]);
                let units = &units[..units.len().min(name_bytes_max / 3)];
                String::from_utf16_lossy(units).into()
            }
        }
    }

    /// Whether there is content to decode, for which `solid` is then ready.
    fn is_packed(&self, solid: &mut Solid, faults: &mut Vec<Fault>) -> bool {
        if self.flags & FILE_ENCRYPTED != 0 {
            faults.push(ENCRYPTED);
            return false;
        }
        if self.flags & (SPLIT_BEFORE | SPLIT_AFTER) != 0 {
            faults.push(SPLIT);
        }
        if self.method == STORED || self.flags & SPLIT_BEFORE != 0 {
            return false;
        }
        let compression = match self.version {
            20 | 26 => Compression::V20,
            29 | 36 => Compression::V29,
            _ => {
                faults.push(METHOD);
                return false;
            }
        };
        let dictionary = 0x1_0000 << (self.flags >> 5 & 7);
        // Up to version 2 the archive says that it is solid; a file that is first in it is so all the same.
        let ready = solid.start(compression, dictionary, self.flags & SOLID != 0);
        if !ready {
            faults.push(super::lz::DATA);
        }
        ready
    }
}

/// Blocks whose checksum is of their fixed fields only.
const fn checksum_covers_less(kind: u8) -> bool {
    matches!(kind, 0x75..=0x79)
}

/// The name that `coded` makes of the machine's name: pairs of bits choose for each character whether it is told as one
/// byte, as one byte with a common upper byte, as two, or taken from the machine's name.
fn unicode(machine: &[u8], coded: &[u8]) -> Vec<u16> {
    let Some((&upper, coded)) = coded.split_first() else {
        return machine.iter().map(|&byte| u16::from(byte)).collect();
    };
    let upper = u16::from(upper) << 8;
    let (mut coded, mut units) = (coded.iter().map(|&byte| u16::from(byte)), Vec::new());
    let (mut choices, mut left) = (0, 0);
    loop {
        if left == 0 {
            let Some(next) = coded.next() else {
                return units;
            };
            (choices, left) = (next, 4);
        }
        left -= 1;
        let choice = choices >> (2 * left) & 3;
        let Some(first) = coded.next() else {
            return units;
        };
        match choice {
            0 => units.push(first),
            1 => units.push(first | upper),
            2 => match coded.next() {
                Some(second) => units.push(first | second << 8),
                None => return units,
            },
            _ => {
                let (correction, high) = match first & 0x80 {
                    0 => (0, 0),
                    _ => (coded.next().unwrap_or(0) as u8, upper),
                };
                let count = usize::from(first & 0x7f) + 2;
                let from = machine.iter().skip(units.len()).take(count);
                let made: Vec<u16> = from.map(|&byte| u16::from(byte.wrapping_add(correction)) | high).collect();
                if made.is_empty() {
                    return units;
                }
                units.extend(made);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_bytes_words_and_runs() {
        // One byte; one with the upper byte; two bytes; a run of three of the machine's.
        let coded = [0x04, 0b00_01_10_11, b'a', 0x30, 0x11, 0x22, 1];
        let units = unicode(b"???xyz", &coded);
        assert_eq!(units, [0x61, 0x430, 0x2211, 0x78, 0x79, 0x7a]);
        let corrected = unicode(b"ab", &[0x05, 0b11_00_00_00, 0x80, 1]);
        assert_eq!(corrected, [0x562, 0x563]);
    }
}
