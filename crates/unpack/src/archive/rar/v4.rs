//! The headers of RAR 1.5 to 4.
//!
//! ```text
//! block := checksum u16, type u8, flags u16, header length u16, [data length u32], fields, data
//! ```
//! A wrong checksum is a finding; the header is read all the same, as long as its length makes sense. Where headers are
//! encrypted each has a salt in front of it, and is padded.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::{Entry, FileType, Object};
use zlib_rs::crc32::crc32;

use super::crypt::{Decrypting, Key, Scheme};
use super::lz::Unpack;
use super::{Compression, ENCRYPTED, HEADER, Lock, METHOD, SPLIT, Solid};
use crate::codec::block_cipher::BLOCK as CIPHER_BLOCK;
use crate::frame::archive::{Check, Content, Member, Record};
use crate::frame::codec::{Fault, Progress, Told, le16, le32};
use crate::frame::keys::Judgement;
use crate::frame::name;
use crate::recognise::head::recognise;

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
const ARCHIVE_SOLID: u16 = 8;
const ARCHIVE_ENCRYPTED: u16 = 0x80;
/// Flags of a file.
const SPLIT_BEFORE: u16 = 1;
const SPLIT_AFTER: u16 = 2;
const FILE_ENCRYPTED: u16 = 4;
const SOLID: u16 = 0x10;
const SALTED: u16 = 0x400;
const DICTIONARY: u16 = 0xe0;
const LARGE: u16 = 0x100;
const UNICODE: u16 = 0x200;
/// Dictionary size of entries without content.
const DIRECTORY: u16 = 0xe0;

/// The place among the headers.
pub(super) struct Headers {
    name_bytes_max: usize,
    /// Whether everything that follows is encrypted.
    encrypted: bool,
    /// Whether members packed by version 1.5 continue with the state of earlier ones, and whether there was one.
    is_solid: bool,
    has_taught: bool,
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
    salt: Option<[u8; SALT_BYTES]>,
}

impl Headers {
    pub const fn new(name_bytes_max: usize) -> Headers {
        Headers { name_bytes_max, encrypted: false, is_solid: false, has_taught: false, ended: false }
    }

    pub fn record(&mut self, head: &[u8], solid: &mut Solid, faults: &mut Vec<Fault>) -> Record {
        if self.ended {
            return Record::Rest;
        }
        if self.encrypted { self.locked(head, solid, faults) } else { self.plain(head, None, solid, faults) }
    }

    /// Reads an encrypted header.
    fn locked(&mut self, head: &[u8], solid: &mut Solid, faults: &mut Vec<Fault>) -> Record {
        const FIRST: usize = SALT_BYTES + CIPHER_BLOCK;
        let Some((&salt, encrypted)) = head.split_first_chunk::<SALT_BYTES>() else { return Record::Need(FIRST) };
        let encrypted = encrypted.as_chunks::<CIPHER_BLOCK>().0.as_flattened();
        if encrypted.is_empty() {
            return Record::Need(FIRST);
        }
        let key = match solid.unlock(&Scheme::Three { salt: Some(salt) }, faults, |key| judge_header(key, encrypted)) {
            Lock::Busy => return Record::Again,
            Lock::Closed => return Record::Rest,
            Lock::Open(key) => key,
        };
        let mut plain = encrypted.to_vec();
        decrypt(&key, &mut plain);
        match self.plain(&plain, Some(head), solid, faults) {
            Record::Need(wanted) => Record::Need(wanted.next_multiple_of(CIPHER_BLOCK).saturating_add(SALT_BYTES)),
            record => record,
        }
    }

    /// Reads a header that is not encrypted any more; as it stood in `locked` if it was.
    fn plain(&mut self, head: &[u8], locked: Option<&[u8]>, solid: &mut Solid, faults: &mut Vec<Fault>) -> Record {
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
        let whole = locked.map_or(length, |_| length.next_multiple_of(CIPHER_BLOCK).saturating_add(SALT_BYTES));
        if crc32(0, &header[2..]) as u16 != le16(header, 0) && !checksum_covers_less(kind) {
            faults.push(HEADER);
        }
        let data = if flags & HAS_DATA != 0 { u64::from(le32(header, BLOCK)) } else { 0 };
        match kind {
            kind::FILE | kind::SERVICE => {
                let behind = locked.unwrap_or(head).get(whole..).unwrap_or_default();
                return self.file(header, whole, behind, solid, faults);
            }
            kind::ARCHIVE => {
                self.encrypted |= flags & ARCHIVE_ENCRYPTED != 0;
                self.is_solid |= flags & ARCHIVE_SOLID != 0;
            }
            kind::END => self.ended = true,
            _ => {}
        }
        Record::pass(whole, data)
    }

    /// Reads the header of a file, which takes `whole` bytes of the archive; `behind` it stand its first packed bytes.
    fn file(
        &mut self,
        header: &[u8],
        whole: usize,
        behind: &[u8],
        solid: &mut Solid,
        faults: &mut Vec<Fault>,
    ) -> Record {
        let kind = header[2];
        let Some(mut file) = File::read(header) else {
            faults.push(HEADER);
            return Record::Rest;
        };
        let name = file.name(self.name_bytes_max);
        if file.flags & DICTIONARY == DIRECTORY || kind == kind::SERVICE && matches!(&*name, "RR" | "AV") {
            return Record::pass(whole, file.packed);
        }
        if file.compression() == Some(Compression::V15) {
            // The archive says it, not the file.
            let is_solid = self.is_solid && self.has_taught;
            file.flags = file.flags & !SOLID | if is_solid { SOLID } else { 0 };
        }
        solid.decrypting = None;
        if file.flags & FILE_ENCRYPTED != 0 {
            let sample = file.packed.min(SAMPLE_BYTES as u64) as usize;
            if file.scheme().is_some() && behind.len() < sample {
                return Record::Need(whole.saturating_add(sample));
            }
            match file.unlock(&behind[..sample.min(behind.len())], solid, faults) {
                Lock::Busy => return Record::Again,
                Lock::Closed => {}
                Lock::Open(key) => {
                    solid.is_key_unproved = true;
                    let cbc = key.cipher([0; CIPHER_BLOCK]);
                    solid.decrypting = cbc.map(|cbc| Box::new(Decrypting::new(cbc, file.method == STORED)));
                }
            }
        }
        let is_closed = file.flags & FILE_ENCRYPTED != 0 && solid.decrypting.is_none();
        let is_packed = !is_closed && file.is_packed(solid, faults);
        self.has_taught |= is_packed && file.compression() == Some(Compression::V15);
        let is_whole = !is_closed && file.flags & (SPLIT_BEFORE | SPLIT_AFTER) == 0;
        let understood = is_whole && (is_packed || file.method == STORED);
        let size = understood.then_some(file.size);
        let content = match is_packed || solid.decrypting.is_some() {
            true => Content::Packed { packed: Some(file.packed), size },
            false => Content::Raw(file.packed),
        };
        let entry = Entry {
            packed: Some(file.packed),
            size: Some(file.size),
            encrypted: file.flags & FILE_ENCRYPTED != 0,
            crc32: Some(file.crc),
            ..Entry::default()
        };
        let object = Object { name: Some(name), size, entry: Some(Box::new(entry)), ..Object::default() };
        let check = if understood { Check::crc32(file.crc) } else { Check::None };
        Record::Member(whole, Member { object, content, check })
    }
}

const SALT_BYTES: usize = 8;
/// Packed bytes that a candidate is judged by, and content.
const SAMPLE_BYTES: usize = 1024;
const CONTENT_BYTES: usize = 4096;

fn decrypt(key: &Key, data: &mut [u8]) {
    if let Some(mut cbc) = key.cipher([0; CIPHER_BLOCK]) {
        cbc.decrypt(data);
    }
}

/// Whether the first block of an encrypted header makes sense.
fn judge_header(key: &Key, encrypted: &[u8]) -> Judgement {
    const LENGTH_MAX: u16 = 2048;
    let mut block = encrypted[..CIPHER_BLOCK].to_vec();
    decrypt(key, &mut block);
    let is_header = matches!(block[2], kind::FILE | kind::SERVICE | kind::END);
    let makes_sense = is_header && (BLOCK as u16..=LENGTH_MAX).contains(&le16(&block, 5));
    if makes_sense { Judgement::Right } else { Judgement::Wrong }
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
        let name_end = fixed.saturating_add(le16(header, 26).into());
        Some(File {
            flags,
            packed: u64::from(le32(header, 7)) | high(FIXED),
            size: u64::from(le32(header, 11)) | high(FIXED + 4),
            crc: le32(header, 16),
            version: header[24],
            method: header[25],
            name: header.get(fixed..name_end)?,
            salt: match flags & SALTED {
                0 => None,
                _ => Some(*header.get(name_end..)?.first_chunk()?),
            },
        })
    }

    /// The name: in the charset of the archiver's machine, or that and behind a zero how to make Unicode of it, or UTF-8.
    fn name(&self, name_bytes_max: usize) -> Box<str> {
        let cut = |bytes: &'a [u8]| &bytes[..bytes.len().min(name_bytes_max)];
        let zero = self.name.iter().position(|&byte| byte == 0);
        match zero.filter(|_| self.flags & UNICODE != 0) {
            None => name::utf8_or_cp437(cut(self.name)),
            Some(zero) => {
                let units = unicode(&self.name[..zero], self.name[zero..].get(1..).unwrap_or_default());
                let units = &units[..units.len().min(name_bytes_max / 3)];
                String::from_utf16_lossy(units).into()
            }
        }
    }

    const fn compression(&self) -> Option<Compression> {
        match self.version {
            15 => Some(Compression::V15),
            20 | 26 => Some(Compression::V20),
            29 | 36 => Some(Compression::V29),
            _ => None,
        }
    }

    const fn dictionary_bytes(&self) -> u64 {
        0x1_0000 << (self.flags >> 5 & 7)
    }

    /// How it is encrypted, if that is known and all of it is here.
    fn scheme(&self) -> Option<Scheme> {
        const FIRST_VERSION: u8 = 29;
        let is_known = self.version >= FIRST_VERSION && self.flags & (SPLIT_BEFORE | SPLIT_AFTER) == 0;
        is_known.then_some(Scheme::Three { salt: self.salt })
    }

    fn unlock(&self, sample: &[u8], solid: &mut Solid, faults: &mut Vec<Fault>) -> Lock {
        let Some(scheme) = self.scheme() else {
            faults.push(ENCRYPTED);
            return Lock::Closed;
        };
        let codec_bytes_max = solid.codec_bytes_max;
        solid.work = solid.work.saturating_add(sample.len()).saturating_add(CONTENT_BYTES);
        solid.unlock(&scheme, faults, |key| self.judge(key, sample, codec_bytes_max))
    }

    /// Judges a key by the content that it decrypts. A solid member cannot be read alone.
    fn judge(&self, key: &Key, sample: &[u8], codec_bytes_max: usize) -> Judgement {
        let mut plain = sample.as_chunks::<CIPHER_BLOCK>().0.as_flattened().to_vec();
        decrypt(key, &mut plain);
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        if self.method != STORED {
            let Some(compression) = self.compression() else { return Judgement::Possible };
            if self.flags & SOLID != 0 {
                return Judgement::Right;
            }
            let mut unpack = Unpack::new(compression.model(codec_bytes_max));
            unpack.start(self.dictionary_bytes(), codec_bytes_max);
            match unpacked(&mut unpack, &plain, self.packed == sample.len() as u64, size) {
                Some(content) => plain = content,
                None => return Judgement::Wrong,
            }
        }
        match plain.get(..size) {
            Some(content) if crc32(0, content) == self.crc => Judgement::Right,
            Some(_) => Judgement::Wrong,
            None if matches!(recognise(&plain), FileType::Binary | FileType::Empty) => Judgement::Possible,
            None => Judgement::Right,
        }
    }

    /// Whether there is content to decode, for which `solid` is then ready.
    fn is_packed(&self, solid: &mut Solid, faults: &mut Vec<Fault>) -> bool {
        if self.flags & (SPLIT_BEFORE | SPLIT_AFTER) != 0 {
            faults.push(SPLIT);
        }
        if self.method == STORED || self.flags & SPLIT_BEFORE != 0 {
            return false;
        }
        let Some(compression) = self.compression() else {
            faults.push(METHOD);
            return false;
        };
        let dictionary = self.dictionary_bytes();
        let ready = solid.start(compression, dictionary, self.flags & SOLID != 0);
        if !ready {
            faults.push(super::lz::DATA);
        }
        ready
    }
}

/// The first of `size` bytes of content that come out of `packed`, which may be all that there is; `None` where they make
/// no sense.
fn unpacked(unpack: &mut Unpack, packed: &[u8], is_all: bool, size: usize) -> Option<Vec<u8>> {
    let (mut content, mut length, mut at) = (vec![0; size.min(CONTENT_BYTES)], 0, 0);
    while length < content.len() && (at < packed.len() || is_all) {
        let progress = unpack.decode(&packed[at..], &mut content[length..]);
        (at, length) = (at.saturating_add(progress.taken), length.saturating_add(progress.wrote));
        match progress.told {
            Told::Fault(_) if length < content.len() => return None,
            Told::Fault(_) | Told::Over => break,
            _ if progress == Progress::took(0) => break,
            _ => {}
        }
    }
    content.truncate(length);
    Some(content)
}

/// Blocks whose checksum is of their fixed fields only.
const fn checksum_covers_less(kind: u8) -> bool {
    matches!(kind, 0x75..=0x79)
}

/// Decodes a name with the help of the machine's name: pairs of bits choose for each character whether it is one byte,
/// one byte with a common upper byte, two bytes, or taken from the machine's name.
fn unicode(machine: &[u8], coded: &[u8]) -> Vec<u16> {
    let Some((&upper, coded)) = coded.split_first() else {
        return machine.iter().map(|&byte| u16::from(byte)).collect();
    };
    let upper = u16::from(upper) << 8;
    let (mut coded, mut units) = (coded.iter().map(|&byte| u16::from(byte)), Vec::new());
    let (mut choices, mut left) = (0, 0u32);
    loop {
        if left == 0 {
            let Some(next) = coded.next() else {
                return units;
            };
            (choices, left) = (next, 4);
        }
        // Two bits for each, the highest first.
        left = left.saturating_sub(1);
        let choice = choices >> 6 & 3;
        choices <<= 2;
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
