//! The headers of RAR 5 to 7.
//!
//! ```text
//! block := CRC-32 u32, length v, type v, flags v, [extra length v], [data length v], fields, extra area, data
//! ```
//! `v` is a number in groups of seven bits, the lowest first. A wrong CRC is a finding; the header is read all the same.
//! Behind the header that tells of encrypted headers each has a vector in front of it, and is padded.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::{Entry, Object};
use zlib_rs::crc32::crc32;

use super::crypt::{Decrypting, Key, POWER_MAX, Scheme};
use super::{Compression, ENCRYPTED, HEADER, Lock, METHOD, SPLIT, Solid};
use crate::codec::block_cipher::BLOCK;
use crate::frame::archive::{Check, Content, Member, Record};
use crate::frame::codec::{Fault, le32};
use crate::frame::keys::Judgement;
use crate::frame::name;

/// The CRC and the first byte of the length; a length takes up to three bytes.
const HEAD: usize = 7;
const LENGTH_BYTES: usize = 3;

mod kind {
    pub const FILE: u64 = 2;
    pub const SERVICE: u64 = 3;
    pub const ENCRYPTION: u64 = 4;
    pub const END: u64 = 5;
}

/// Flags of every block.
const HAS_EXTRA: u64 = 1;
const HAS_DATA: u64 = 2;
const SPLIT_BEFORE: u64 = 8;
const SPLIT_AFTER: u64 = 16;
/// Flags of a file.
const DIRECTORY: u64 = 1;
const HAS_TIME: u64 = 2;
const HAS_CRC: u64 = 4;
const SIZE_UNKNOWN: u64 = 8;
/// The record of the extra area that tells encryption.
const EXTRA_ENCRYPTION: u64 = 1;

/// The place among the headers.
pub(super) struct Headers {
    name_bytes_max: usize,
    lock: Headlock,
    ended: bool,
}

/// Whether the headers that follow are encrypted.
enum Headlock {
    None,
    /// In a way that is not known, or none of the candidates opens them.
    Closed,
    /// Passwords are tried.
    Locked(Scheme),
    Open(Key),
}

/// Common fields of all blocks.
struct Block<'a> {
    /// Bytes of the whole header.
    length: usize,
    flags: u64,
    data: u64,
    fields: &'a [u8],
    extra: &'a [u8],
}

/// The fields of a file or service.
struct File<'a> {
    flags: u64,
    size: u64,
    crc: u32,
    compression: u64,
    name: &'a [u8],
}

impl Headers {
    pub const fn new(name_bytes_max: usize) -> Headers {
        Headers { name_bytes_max, lock: Headlock::None, ended: false }
    }

    pub fn record(&mut self, head: &[u8], solid: &mut Solid, faults: &mut Vec<Fault>) -> Record {
        if self.ended {
            return Record::Rest;
        }
        match &self.lock {
            Headlock::None => self.plain(head, None, solid, faults),
            Headlock::Closed => Record::Rest,
            Headlock::Locked(scheme) => {
                match solid.unlock(scheme, faults, |_| Judgement::Right) {
                    Lock::Busy => return Record::Again,
                    Lock::Open(key) => self.lock = Headlock::Open(key),
                    Lock::Closed => self.lock = Headlock::Closed,
                }
                self.record(head, solid, faults)
            }
            Headlock::Open(key) => {
                let Some((&start, encrypted)) = head.split_first_chunk() else { return Record::Need(2 * BLOCK) };
                let Some(mut cbc) = key.cipher(start) else { return Record::Rest };
                let mut plain = encrypted.as_chunks::<BLOCK>().0.as_flattened().to_vec();
                cbc.decrypt(&mut plain);
                match self.plain(&plain, Some(BLOCK), solid, faults) {
                    Record::Need(wanted) => Record::Need(wanted.next_multiple_of(BLOCK).saturating_add(BLOCK)),
                    record => record,
                }
            }
        }
    }

    /// Reads a header that is not encrypted any more; it may have had a vector in front of it.
    fn plain(&mut self, head: &[u8], vector: Option<usize>, solid: &mut Solid, faults: &mut Vec<Fault>) -> Record {
        if head.len() < HEAD {
            return Record::Need(HEAD);
        }
        let mut rest = &head[4..];
        let Some(length) = number(&mut rest).filter(|length| *length > 0 && *length < 1 << (7 * LENGTH_BYTES)) else {
            faults.push(HEADER);
            return Record::Rest;
        };
        let fields_at = head.len().saturating_sub(rest.len());
        let length = fields_at.saturating_add(length as usize);
        if head.len() < length {
            return Record::Need(length);
        }
        if crc32(0, &head[4..length]) != le32(head, 0) {
            faults.push(HEADER);
        }
        let fields = &head[fields_at..length];
        let length = vector.map_or(length, |vector| length.next_multiple_of(BLOCK).saturating_add(vector));
        match self.block(fields, length, solid, faults) {
            Some(record) => record,
            None => {
                faults.push(HEADER);
                Record::Rest
            }
        }
    }

    fn block(&mut self, fields: &[u8], length: usize, solid: &mut Solid, faults: &mut Vec<Fault>) -> Option<Record> {
        let mut fields = fields;
        let (kind, flags) = (number(&mut fields)?, number(&mut fields)?);
        let extra = if flags & HAS_EXTRA != 0 { number(&mut fields)? } else { 0 };
        let data = if flags & HAS_DATA != 0 { number(&mut fields)? } else { 0 };
        let extra_at = fields.len().saturating_sub(usize::try_from(extra).unwrap_or(usize::MAX));
        let (fields, extra) = fields.split_at(extra_at);
        let block = Block { length, flags, data, fields, extra };
        match kind {
            kind::FILE => return self.file(&block, false, solid, faults),
            kind::SERVICE => return self.file(&block, true, solid, faults),
            kind::ENCRYPTION => match scheme(fields) {
                Some(scheme) => self.lock = Headlock::Locked(scheme),
                None => {
                    faults.push(ENCRYPTED);
                    self.lock = Headlock::Closed;
                }
            },
            kind::END => self.ended = true,
            _ => {}
        }
        Some(Record::pass(length, data))
    }

    fn file(&self, block: &Block, service: bool, solid: &mut Solid, faults: &mut Vec<Fault>) -> Option<Record> {
        let file = File::read(block.fields)?;
        let quiet = service && matches!(file.name, b"RR" | b"QO" | b"ACL");
        if quiet || file.flags & DIRECTORY != 0 && block.data == 0 {
            return Some(Record::pass(block.length, block.data));
        }
        let is_split = block.flags & (SPLIT_BEFORE | SPLIT_AFTER) != 0;
        solid.decrypting = None;
        let mut is_closed = false;
        let encryption = record(block.extra, EXTRA_ENCRYPTION);
        if let Some(encryption) = encryption {
            match Encryption::read(encryption).filter(|_| !is_split) {
                None => faults.push(ENCRYPTED),
                Some(encryption) => match solid.unlock(&encryption.scheme, faults, |_| Judgement::Right) {
                    Lock::Busy => return Some(Record::Again),
                    Lock::Closed => {}
                    Lock::Open(key) => {
                        let cbc = key.cipher(encryption.start)?;
                        solid.decrypting = Some(Box::new(Decrypting::new(cbc, file.method() == 0)));
                    }
                },
            }
            is_closed = solid.decrypting.is_none();
        }
        if is_split {
            faults.push(SPLIT);
        }
        let is_packed = !is_closed && block.flags & SPLIT_BEFORE == 0 && file.is_packed(solid, faults);
        let understood = !is_closed && !is_split && (is_packed || file.method() == 0);
        let size = (understood && file.flags & SIZE_UNKNOWN == 0).then_some(file.size);
        let content = match is_packed || solid.decrypting.is_some() {
            true => Content::Packed { packed: Some(block.data), size },
            false => Content::Raw(block.data),
        };
        let is_keyed =
            encryption.is_some_and(|encryption| encryption.get(1).is_some_and(|flags| flags & KEYED_CRC != 0));
        let has_check = understood && file.flags & HAS_CRC != 0 && !is_keyed;
        let name = name::utf8_lossy(&file.name[..file.name.len().min(self.name_bytes_max)]);
        let entry = Entry {
            packed: Some(block.data),
            size: (file.flags & SIZE_UNKNOWN == 0).then_some(file.size),
            encrypted: encryption.is_some(),
            crc32: (file.flags & HAS_CRC != 0).then_some(file.crc),
            ..Entry::default()
        };
        let object = Object { name: Some(name), size, entry: Some(Box::new(entry)), ..Object::default() };
        let check = if has_check { Check::crc32(file.crc) } else { Check::None };
        Some(Record::Member(block.length, Member { object, content, check }))
    }
}

impl<'a> File<'a> {
    fn read(mut fields: &'a [u8]) -> Option<File<'a>> {
        let fields = &mut fields;
        let (flags, size, _attributes) = (number(fields)?, number(fields)?, number(fields)?);
        if flags & HAS_TIME != 0 {
            *fields = fields.get(4..)?;
        }
        let crc = le32(fields, 0);
        if flags & HAS_CRC != 0 {
            *fields = fields.get(4..)?;
        }
        let (compression, _system, name_length) = (number(fields)?, number(fields)?, number(fields)?);
        let name = fields.get(..usize::try_from(name_length).ok()?)?;
        Some(File { flags, size, crc, compression, name })
    }

    /// 0 is stored.
    const fn method(&self) -> u64 {
        self.compression >> 7 & 7
    }

    /// Whether there is content to decode, for which `solid` is then ready.
    fn is_packed(&self, solid: &mut Solid, faults: &mut Vec<Fault>) -> bool {
        if self.method() == 0 {
            return false;
        }
        let compression = match self.compression & 0x3f {
            0 => Compression::V50,
            1 => Compression::V70,
            _ => {
                faults.push(METHOD);
                return false;
            }
        };
        let ready = solid.start(compression, self.dictionary_bytes(compression), self.compression & 0x40 != 0);
        if !ready {
            faults.push(super::lz::DATA);
        }
        ready
    }

    /// 128 KiB times a power of two; from version 1 on up to 31/32 more.
    const fn dictionary_bytes(&self, compression: Compression) -> u64 {
        match compression {
            Compression::V70 => {
                let base = 0x2_0000u64 << (self.compression >> 10 & 31);
                base.saturating_add((base / 32).saturating_mul(self.compression >> 15 & 31))
            }
            _ => 0x2_0000 << (self.compression >> 10 & 15),
        }
    }
}

/// Fields of an encryption record.
struct Encryption {
    scheme: Scheme,
    start: [u8; BLOCK],
}

/// The flag of a record of encryption that tells a check of the password.
const HAS_CHECK: u64 = 1;
/// The flag that says that the checksum depends on the key: it is not compared then.
const KEYED_CRC: u8 = 2;

impl Encryption {
    /// Version, flags, power of the rounds, salt, vector, check of the password.
    fn read(mut record: &[u8]) -> Option<Encryption> {
        let (power, salt, rest) = key_fields(&mut record)?;
        let (&start, rest) = rest.split_first_chunk()?;
        Some(Encryption { scheme: Scheme::Five { power, salt, check: *rest.first_chunk()? }, start })
    }
}

/// Version, flags, power of the rounds, salt, check of the password.
fn scheme(mut fields: &[u8]) -> Option<Scheme> {
    let (power, salt, rest) = key_fields(&mut fields)?;
    Some(Scheme::Five { power, salt, check: *rest.first_chunk()? })
}

/// Splits off the power of the rounds and the salt.
fn key_fields<'a>(fields: &mut &'a [u8]) -> Option<(u8, [u8; 16], &'a [u8])> {
    let (version, flags) = (number(fields)?, number(fields)?);
    let (&power, rest) = fields.split_first()?;
    let (&salt, rest) = rest.split_first_chunk()?;
    (version == 0 && flags & HAS_CHECK != 0 && power <= POWER_MAX).then_some((power, salt, rest))
}

/// The record of the extra area with this type.
fn record(mut extra: &[u8], wanted: u64) -> Option<&[u8]> {
    while let Some(length) = number(&mut extra) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (mut record, rest) = extra.split_at(extra.len().min(length));
        if number(&mut record) == Some(wanted) {
            return Some(record);
        }
        extra = rest;
    }
    None
}

/// Reads a number off the front.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    const BYTES_MAX: usize = 10;
    let length = bytes.iter().take(BYTES_MAX).position(|byte| byte & 0x80 == 0)?.saturating_add(1);
    let (groups, rest) = bytes.split_at(length);
    *bytes = rest;
    Some(groups.iter().rev().fold(0, |value, group| value << 7 | u64::from(group & 0x7f)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_groups_of_seven_bits() {
        let mut bytes = &[0x81, 0x01, 5, 0x80][..];
        assert_eq!(number(&mut bytes), Some(129));
        assert_eq!(number(&mut bytes), Some(5));
        assert_eq!(number(&mut bytes), None);
        assert_eq!(number(&mut &[0xff; 11][..]), None);
    }

    #[test]
    fn the_extra_area_is_a_list() {
        assert_eq!(record(&[2, 9, 9, 3, 1, 0, 7], 1), Some(&[0, 7][..]));
        assert_eq!(record(&[2, 9, 1, 0x80], 1), None);
    }
}
