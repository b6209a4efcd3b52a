//! The headers of LHA.
//!
//! ```text
//! level 0: length u8, sum u8, FIXED, name, crc u16, more
//! level 1: length u8, sum u8, FIXED, name, crc u16, system u8, extended…          (packed size counts extended)
//! level 2: length u16,        FIXED, crc u16, system u8, extended…
//! level 3: 4 u16,             FIXED, crc u16, system u8, length u32, extended…    (extended lengths u32)
//! FIXED:    method 5, packed u32, size u32, time u32, attribute u8, level u8
//! extended: length of the next, [type u8, data]; a length of zero ends them
//! ```

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::frame::archive::crc16;
use crate::frame::codec::{le16, le32, le64};

/// A header up to its level.
const FIXED: usize = 21;
/// Extended headers of level 1 are not counted by the first header; this is as much as is read of them.
const LENGTH_MAX: usize = 1 << 16;

/// A member's header.
pub(super) struct Header {
    /// Bytes of the whole header.
    pub length: usize,
    pub method: [u8; 5],
    pub packed: u64,
    pub size: u64,
    pub crc: u16,
    pub sum_is_right: bool,
    folder: Vec<u8>,
    file: Vec<u8>,
}

/// Bytes in the place of a header.
pub(super) enum Found {
    Need(usize),
    End,
    Nothing,
    Header(Box<Header>),
}

mod extended {
    pub const SUM: u8 = 0;
    pub const FILE: u8 = 1;
    pub const FOLDER: u8 = 2;
    pub const SIZES: u8 = 0x42;
}

impl Header {
    /// Reads the header at the front of `head`.
    pub fn read(head: &[u8]) -> Found {
        let Some(&first) = head.first() else {
            return Found::Need(1);
        };
        if head.len() < FIXED {
            // Only with level 2 the first byte may be zero without an end; no archiver writes such headers.
            return if first == 0 { Found::End } else { Found::Need(FIXED) };
        }
        let level = head[20];
        let is_method = head[2] == b'-' && head[6] == b'-';
        if !is_method || level > 3 {
            return Found::Nothing;
        }
        match level {
            0 | 1 => Header::read_old(head, level),
            _ => Header::read_new(head, level),
        }
    }

    fn fixed(head: &[u8]) -> Header {
        let mut method = [0; 5];
        method.copy_from_slice(&head[2..7]);
        Header {
            length: 0,
            method,
            packed: u64::from(le32(head, 7)),
            size: u64::from(le32(head, 11)),
            crc: 0,
            sum_is_right: true,
            folder: Vec::new(),
            file: Vec::new(),
        }
    }

    fn read_old(head: &[u8], level: u8) -> Found {
        let base = usize::from(head[0]) + 2;
        if head.len() < base {
            return Found::Need(base);
        }
        let name_length = usize::from(head[..base].get(FIXED).copied().unwrap_or(0));
        let Some(name) = head[..base].get(FIXED + 1..FIXED + 1 + name_length) else {
            return Found::Nothing;
        };
        let mut header = Header::fixed(head);
        header.file = name.to_vec();
        header.length = base;
        header.crc = le16(&head[..base], FIXED + 1 + name_length);
        let sum = head[2..base].iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte));
        header.sum_is_right = sum == head[1];
        if level == 0 {
            return Found::Header(Box::new(header));
        }
        match header.read_extended(head, base.saturating_sub(2), 2) {
            Ok(end) => header.end_of_level_1(end, base),
            Err(found) => found,
        }
    }

    /// The packed size of level 1 counts the extended headers.
    fn end_of_level_1(mut self, end: usize, base: usize) -> Found {
        let Some(packed) = self.packed.checked_sub(end.saturating_sub(base) as u64) else {
            return Found::Nothing;
        };
        self.packed = packed;
        self.length = end;
        Found::Header(Box::new(self))
    }

    fn read_new(head: &[u8], level: u8) -> Found {
        let (first, width) = if level == 2 { (FIXED + 3, 2) } else { (FIXED + 7, 4) };
        let least = first.saturating_add(width);
        if head.len() < least {
            return Found::Need(least);
        }
        // OS-9/68k tells two bytes too few.
        let short = if head[23] == b'K' { 2 } else { 0 };
        let length =
            if level == 2 { usize::from(le16(head, 0)).saturating_add(short) } else { le32(head, FIXED + 3) as usize };
        if length < least || length > LENGTH_MAX {
            return Found::Nothing;
        }
        if head.len() < length {
            return Found::Need(length);
        }
        let mut header = Header::fixed(head);
        header.crc = le16(head, FIXED);
        header.length = length;
        match header.read_extended(&head[..length], first, width) {
            Ok(_) => Found::Header(Box::new(header)),
            Err(_) => Found::Nothing,
        }
    }

    /// Reads extended headers; `at` is the length of the first, a number of `width` bytes. Returns where they end.
    fn read_extended(&mut self, head: &[u8], mut at: usize, width: usize) -> Result<usize, Found> {
        let mut sum = None;
        loop {
            let Some(field) = head.get(at..at.saturating_add(width)) else {
                return Err(Found::Need(at.saturating_add(width)));
            };
            let length = le32(field, 0) as usize;
            at = at.saturating_add(width);
            if length == 0 {
                break;
            }
            let end = at.saturating_add(length);
            if length <= width || end > LENGTH_MAX {
                return Err(Found::Nothing);
            }
            // The length counts that of the next, which stands at its end.
            let Some(body) = head.get(at..end.saturating_sub(width)) else {
                return Err(Found::Need(end));
            };
            if body[0] == extended::SUM && body.len() >= 3 {
                sum = Some((at.saturating_add(1), le16(body, 1)));
            }
            self.extend(body);
            at = end.saturating_sub(width);
        }
        if let Some((sum_at, told)) = sum {
            let end = if self.length > at { self.length } else { at };
            let mut bytes = head[..end.min(head.len())].to_vec();
            bytes[sum_at..].iter_mut().take(2).for_each(|byte| *byte = 0);
            self.sum_is_right &= crc16(0, &bytes) == told;
        }
        Ok(at)
    }

    fn extend(&mut self, body: &[u8]) {
        let Some((&kind, data)) = body.split_first() else {
            return;
        };
        match kind {
            extended::FILE => self.file = data.to_vec(),
            extended::FOLDER => {
                self.folder = data.iter().map(|&byte| if byte == 0xff { b'/' } else { byte }).collect();
            }
            extended::SIZES if data.len() >= 16 => {
                self.packed = le64(data, 0);
                self.size = le64(data, 8);
            }
            _ => {}
        }
    }

    /// The path, at most so many bytes of it.
    pub fn name(&self, bytes_max: usize) -> Vec<u8> {
        // Behind a zero some archivers store other things.
        let file = self.file.split(|&byte| byte == 0).next().unwrap_or_default();
        let mut name = [&self.folder, file].concat();
        name.truncate(bytes_max);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_ends_in_an_extended_one_asks_for_more() {
        let mut head = b"\x19\0-lh0-\x03\0\0\0\0\0\0\0\0\0\0\0\x20\x01\x00\0\0U\x05\0".to_vec();
        assert!(matches!(Header::read(&head[..10]), Found::Need(21)));
        assert!(matches!(Header::read(&head), Found::Need(32)));
        head.extend_from_slice(b"\x01ab\0\0");
        // Extended headers exceed their declared length.
        assert!(matches!(Header::read(&head), Found::Nothing));
        head[7] = 5;
        let Found::Header(header) = Header::read(&head) else {
            panic!("it is whole");
        };
        assert_eq!((header.length, header.packed, header.name(1).as_slice()), (32, 0, &b"a"[..]));
    }
}
