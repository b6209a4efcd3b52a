//! The variable part of a local or central header: name, extra fields, comment, read as they stream.
//!
//! Bounds: `name_bytes_max` of the name and of a Unicode name; of other extra fields 32 bytes of zip64, 7 of AES. A search keeps
//! the whole header up to the end of its name, 4 KiB at most.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use sha2::{Digest, Sha256};
use zlib_rs::crc32::crc32;

use super::record::Header;
use crate::frame::codec::{Collected, le16, le32};
use crate::frame::name;

/// A digest of a member's name, long enough that two names of an attacker's choice cannot share it.
pub(super) type NameDigest = [u8; 16];

/// The extra field of AES (WinZip's AE-1 and AE-2).
#[derive(Debug, Clone, Copy)]
pub(super) struct AesExtra {
    /// 1, or 2 where the header has no checksum.
    pub version: u16,
    /// 1 to 3: keys of 128, 192 and 256 bits.
    pub strength: u8,
    /// Method of the encrypted data.
    pub method: u16,
}

/// A header on its way in.
pub(super) struct Tail {
    pub header: Header,
    /// Where the header began in the stream.
    pub at: u64,
    name_bytes_max: usize,
    /// The fixed part and the name as they were read, where they may have to be given back.
    kept: Option<Vec<u8>>,
    /// Bytes of the fixed part that come once more.
    fixed_left: u16,
    name: Vec<u8>,
    digest: Sha256,
    name_crc: u32,
    ends_with_slash: bool,
    name_left: u16,
    extra_left: u16,
    comment_left: u16,
    extra: Extra,
}

impl Tail {
    /// The rest of a local header that begins at `at`.
    pub fn local(header: Header, at: u64, name_bytes_max: usize) -> Tail {
        Tail {
            header,
            at,
            name_bytes_max,
            kept: None,
            fixed_left: 0,
            name: Vec::new(),
            digest: Sha256::new(),
            name_crc: 0,
            ends_with_slash: false,
            name_left: header.name_length,
            extra_left: header.extra_length,
            comment_left: header.comment_length,
            extra: Extra::default(),
        }
    }

    /// Makes the rest of a central header; the bytes after its signature are read again, since everything here is
    /// searched.
    pub fn central(header: Header, at: u64, name_bytes_max: usize) -> Tail {
        const BEHIND_SIGNATURE: u16 = 42;
        Tail { fixed_left: BEHIND_SIGNATURE, ..Tail::local(header, at, name_bytes_max) }
    }

    /// Keeps the bytes up to the end of the name, after `fixed`, until the name has been judged.
    pub fn keep(self, fixed: &[u8]) -> Tail {
        Tail { kept: Some(fixed.to_vec()), ..self }
    }

    /// Returns the kept bytes if the next bytes of the name are none that an archiver would write.
    pub fn refuse(&mut self, input: &[u8]) -> Option<Vec<u8>> {
        let name = &input[..input.len().min(usize::from(self.name_left))];
        let is_odd = name.iter().any(|&byte| byte < 32 || byte == 127);
        self.kept.take_if(|_| is_odd)
    }

    pub const fn is_complete(&self) -> bool {
        self.fixed_left == 0 && self.name_left == 0 && self.extra_left == 0 && self.comment_left == 0
    }

    /// Takes the bytes of the header from the front of `input`.
    pub fn read(&mut self, input: &[u8]) -> usize {
        let (_, rest) = split(input, &mut self.fixed_left);
        let (name, rest) = split(rest, &mut self.name_left);
        self.read_name(name);
        let (extra, rest) = split(rest, &mut self.extra_left);
        self.extra.read(extra, self.name_bytes_max);
        let (_, rest) = split(rest, &mut self.comment_left);
        if self.is_complete() {
            self.header.widen(&self.extra.zip64);
        }
        input.len().saturating_sub(rest.len())
    }

    fn read_name(&mut self, bytes: &[u8]) {
        let Some(&last) = bytes.last() else {
            return;
        };
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
        self.ends_with_slash = last == b'/' || last == b'\\';
        self.digest.update(bytes);
        self.name_crc = crc32(self.name_crc, bytes);
        let keep = self.name_bytes_max.saturating_sub(self.name.len());
        self.name.extend_from_slice(&bytes[..keep.min(bytes.len())]);
    }

    /// The name as text: the Unicode extra field if it is about this name, else UTF-8, else code page 437.
    pub fn name(&self) -> Box<str> {
        match &self.extra.unicode {
            Some((crc, unicode)) if *crc == self.name_crc => name::utf8_lossy(unicode),
            _ => name::utf8_or_cp437(&self.name),
        }
    }

    /// The local name, if the Unicode extra field has another: Explorer and Python write the member under it.
    pub fn other_name(&self) -> Option<Box<str>> {
        let name = name::utf8_or_cp437(&self.name);
        (self.extra.unicode.is_some() && !name.is_empty() && name != self.name()).then_some(name)
    }

    /// How the member is encrypted, if it is by AES.
    pub const fn aes(&self) -> Option<AesExtra> {
        self.extra.aes
    }

    pub fn name_digest(&self) -> NameDigest {
        let digest = self.digest.clone().finalize();
        std::array::from_fn(|i| digest[i])
    }

    /// Whether the member is a folder: by its name, and without content.
    pub const fn is_directory(&self) -> bool {
        let empty = self.header.compressed == 0 && self.header.uncompressed == 0;
        self.ends_with_slash && empty && !self.header.has_descriptor()
    }
}

fn split<'a>(input: &'a [u8], left: &mut u16) -> (&'a [u8], &'a [u8]) {
    let (taken, rest) = input.split_at(input.len().min(usize::from(*left)));
    *left = left.saturating_sub(taken.len() as u16);
    (taken, rest)
}

/// Extra fields; zip64, AES and the Unicode name are kept.
#[derive(Default)]
struct Extra {
    zip64: Vec<u8>,
    aes: Option<AesExtra>,
    unicode: Option<(u32, Vec<u8>)>,
    field: Field,
}

enum Field {
    Header(Collected<4>),
    Body { id: u16, left: u16, kept: Vec<u8> },
}

impl Default for Field {
    fn default() -> Field {
        Field::Header(Collected::new())
    }
}

impl Extra {
    const ZIP64: u16 = 0x0001;
    const ZIP64_BYTES_MAX: usize = 32;
    const AES: u16 = 0x9901;
    const AES_BYTES: usize = 7;
    const UNICODE_PATH: u16 = 0x7075;
    /// Version and checksum in front of the Unicode name.
    const UNICODE_HEAD: usize = 5;

    fn read(&mut self, mut input: &[u8], name_bytes_max: usize) {
        while !input.is_empty() {
            let taken = match &mut self.field {
                Field::Header(bytes) => bytes.fill(input, 4),
                Field::Body { id, left, kept } => {
                    let taken = input.len().min(usize::from(*left));
                    *left = left.saturating_sub(taken as u16);
                    let keep = match *id {
                        Extra::ZIP64 => Extra::ZIP64_BYTES_MAX,
                        Extra::AES => Extra::AES_BYTES,
                        Extra::UNICODE_PATH => name_bytes_max.saturating_add(Extra::UNICODE_HEAD),
                        _ => 0,
                    };
                    let keep = keep.saturating_sub(kept.len()).min(taken);
                    kept.extend_from_slice(&input[..keep]);
                    taken
                }
            };
            input = &input[taken..];
            self.advance();
        }
    }

    /// Moves on when a field's header or body is complete.
    fn advance(&mut self) {
        if let Field::Header(bytes) = &self.field
            && let Some(header) = bytes.whole()
        {
            self.field = Field::Body { id: le16(header, 0), left: le16(header, 2), kept: Vec::new() };
        }
        if let Field::Body { id, left: 0, kept } = &mut self.field {
            let (id, kept) = (*id, std::mem::take(kept));
            self.field = Field::default();
            match id {
                Extra::ZIP64 => self.zip64 = kept,
                Extra::AES if kept.len() == Extra::AES_BYTES => {
                    self.aes = Some(AesExtra { version: le16(&kept, 0), strength: kept[4], method: le16(&kept, 5) });
                }
                Extra::UNICODE_PATH if kept.len() > Extra::UNICODE_HEAD => {
                    let name = kept[Extra::UNICODE_HEAD..].to_vec();
                    self.unicode = Some((le32(&kept, 1), name));
                }
                _ => {}
            }
        }
    }
}
