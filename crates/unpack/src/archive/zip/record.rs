//! The fixed parts of zip's records: APPNOTE 6.3.10, section 4.3.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::frame::codec::{le16, le32, le64};

/// The records that a signature tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Local,
    Central,
    End,
    Zip64End,
    Zip64Locator,
    DirectorySignature,
    ArchiveExtra,
    /// The descriptor's signature, or `PK00`, at the very start of a split archive.
    Marker,
}

impl Kind {
    /// The record that begins with these four bytes.
    pub fn of(signature: &[u8]) -> Option<Kind> {
        Some(match signature {
            b"PK\x03\x04" => Kind::Local,
            b"PK\x01\x02" => Kind::Central,
            b"PK\x05\x06" => Kind::End,
            b"PK\x06\x06" => Kind::Zip64End,
            b"PK\x06\x07" => Kind::Zip64Locator,
            b"PK\x05\x05" => Kind::DirectorySignature,
            b"PK\x06\x08" => Kind::ArchiveExtra,
            b"PK\x07\x08" | b"PK00" => Kind::Marker,
            _ => return None,
        })
    }

    /// Whether `bytes` are the beginning of some record.
    pub fn is_possible(bytes: &[u8]) -> bool {
        match bytes {
            [] | [b'P'] | [b'P', b'K'] => true,
            [b'P', b'K', third] => matches!(third, 1 | 3 | 5 | 6 | 7 | b'0'),
            [first, second, third, fourth, ..] => Kind::of(&[*first, *second, *third, *fourth]).is_some(),
            _ => false,
        }
    }

    /// Bytes of the fixed part, the signature included.
    pub const fn fixed_bytes(self) -> usize {
        match self {
            Kind::Local => 30,
            Kind::Central => 46,
            Kind::End => 22,
            Kind::Zip64End => 56,
            Kind::Zip64Locator => 20,
            Kind::DirectorySignature => 6,
            Kind::ArchiveExtra => 8,
            Kind::Marker => 4,
        }
    }
}

/// Common fields of local and central headers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Header {
    pub flags: u16,
    pub method: u16,
    /// When the file was changed last, as MS-DOS has it.
    pub time: u16,
    pub crc: u32,
    pub compressed: u64,
    pub uncompressed: u64,
    pub name_length: u16,
    pub extra_length: u16,
    /// Length of the comment, of a central header only.
    pub comment_length: u16,
    /// Offset of the local header, of a central header only.
    pub offset: u64,
}

const UNKNOWN_32: u64 = 0xffff_ffff;

impl Header {
    pub const ENCRYPTED: u16 = 1;
    pub const DESCRIPTOR: u16 = 1 << 3;
    pub const STRONG: u16 = 1 << 6;
    pub const MASKED: u16 = 1 << 13;
    pub const METHOD_AES: u16 = 99;

    pub fn local(bytes: &[u8]) -> Header {
        Header {
            flags: le16(bytes, 6),
            method: le16(bytes, 8),
            time: le16(bytes, 10),
            crc: le32(bytes, 14),
            compressed: u64::from(le32(bytes, 18)),
            uncompressed: u64::from(le32(bytes, 22)),
            name_length: le16(bytes, 26),
            extra_length: le16(bytes, 28),
            comment_length: 0,
            offset: 0,
        }
    }

    pub fn central(bytes: &[u8]) -> Header {
        Header {
            flags: le16(bytes, 8),
            method: le16(bytes, 10),
            time: le16(bytes, 12),
            crc: le32(bytes, 16),
            compressed: u64::from(le32(bytes, 20)),
            uncompressed: u64::from(le32(bytes, 24)),
            name_length: le16(bytes, 28),
            extra_length: le16(bytes, 30),
            comment_length: le16(bytes, 32),
            offset: u64::from(le32(bytes, 42)),
        }
    }

    /// Takes the 64-bit numbers of the zip64 extra field for those that did not fit.
    pub fn widen(&mut self, zip64: &[u8]) {
        let mut at = 0usize;
        for number in [&mut self.uncompressed, &mut self.compressed, &mut self.offset] {
            let end = at.saturating_add(8);
            if *number == UNKNOWN_32 && zip64.len() >= end {
                *number = le64(zip64, at);
                at = end;
            }
        }
    }

    pub const fn has_descriptor(&self) -> bool {
        self.flags & Header::DESCRIPTOR != 0
    }

    /// Whether the content is. Other bits say in which way, and mean nothing alone: readers open such a member as a plain one.
    pub const fn is_encrypted(&self) -> bool {
        self.flags & Header::ENCRYPTED != 0 || self.method == Header::METHOD_AES
    }
}

/// Whether a local header that turns up where none is expected is one: versions, flags, method and name make sense.
pub(super) fn local_is_plausible(bytes: &[u8]) -> bool {
    const VERSION_MAX: u16 = 90;
    const FLAGS_UNUSED: u16 = 0xc000;
    const NAME_LENGTH_MAX: u16 = 4096;
    let header = Header::local(bytes);
    let method = matches!(header.method, 0..=20 | 93..=99);
    let sizes = header.method != 0
        || header.is_encrypted()
        || header.has_descriptor()
        || header.compressed == header.uncompressed;
    let version = le16(bytes, 4) & 0xff <= VERSION_MAX;
    version
        && method
        && sizes
        && header.flags & FLAGS_UNUSED == 0
        && (1..=NAME_LENGTH_MAX).contains(&header.name_length)
}

/// Whether an unexpected central header is plausible.
pub(super) fn central_is_plausible(bytes: &[u8]) -> bool {
    let header = Header::central(bytes);
    matches!(header.method, 0..=20 | 93..=99) && (1..=4096).contains(&header.name_length)
}

/// The record at the very end, with the values of its zip64 form.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub disk: u32,
    pub entries: u64,
    pub directory_bytes: u64,
    pub directory_offset: u64,
    /// Length of the comment, of the 32-bit record only.
    pub comment_length: u16,
}

impl End {
    pub fn parse(bytes: &[u8]) -> End {
        End {
            disk: u32::from(le16(bytes, 4)),
            entries: u64::from(le16(bytes, 10)),
            directory_bytes: u64::from(le32(bytes, 12)),
            directory_offset: u64::from(le32(bytes, 16)),
            comment_length: le16(bytes, 20),
        }
    }

    pub fn parse_zip64(bytes: &[u8]) -> End {
        End {
            disk: le32(bytes, 16),
            entries: le64(bytes, 32),
            directory_bytes: le64(bytes, 40),
            directory_offset: le64(bytes, 48),
            comment_length: 0,
        }
    }

    /// How long the zip64 record is, if that makes sense: no writer adds much to the fixed part.
    pub fn zip64_bytes(bytes: &[u8]) -> Option<u64> {
        const BEFORE_SIZE: u64 = 12;
        const BYTES_MAX: u64 = 0xffff;
        let told = le64(bytes, 4).checked_add(BEFORE_SIZE)?;
        (Kind::Zip64End.fixed_bytes() as u64..=BYTES_MAX).contains(&told).then_some(told)
    }

    /// Combines the values of both records, and tells whether they contradict each other.
    pub fn with_zip64(self, wide: End) -> (End, bool) {
        let agree = |narrow: u64, wide: u64, unknown: u64| narrow == unknown || narrow == wide;
        let consistent = agree(self.entries, wide.entries, 0xffff)
            && agree(self.directory_bytes, wide.directory_bytes, UNKNOWN_32)
            && agree(self.directory_offset, wide.directory_offset, UNKNOWN_32);
        let disk = if self.disk == 0xffff { wide.disk } else { self.disk };
        (End { disk, ..wide }, consistent)
    }

    /// Whether an end record that turns up where none is expected is one, `at` bytes into the stream.
    pub fn is_plausible(&self, at: u64) -> bool {
        let zip64 = self.directory_offset == UNKNOWN_32 || self.directory_bytes == UNKNOWN_32;
        zip64 || self.directory_offset.saturating_add(self.directory_bytes) <= at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_takes_from_zip64_only_what_did_not_fit() {
        let mut header = Header { uncompressed: 5, compressed: UNKNOWN_32, offset: UNKNOWN_32, ..Header::default() };
        header.widen(&[7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!((header.uncompressed, header.compressed), (5, 7));
        assert_eq!(header.offset, 0x1_0000_0009);
    }

    #[test]
    fn every_prefix_of_a_signature_is_possible() {
        for signature in [b"PK\x03\x04", b"PK\x01\x02", b"PK00", b"PK\x06\x08"] {
            for end in 0..=4 {
                assert!(Kind::is_possible(&signature[..end]));
            }
        }
        assert!(!Kind::is_possible(b"PX"));
        assert!(!Kind::is_possible(b"PK\x03\x05"));
    }
}
