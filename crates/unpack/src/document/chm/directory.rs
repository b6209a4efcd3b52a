//! The directory: chunks of names, each with a section, a place and a length.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::{Limits, ReadAt};

use super::read;
use crate::frame::codec::{le32, le64};
use crate::frame::name;
use crate::frame::reader::Outbox;

/// A member.
pub(super) struct Entry {
    pub name: Box<str>,
    pub offset: u64,
    pub length: u64,
}

/// The directory, as far as it has been read.
pub(super) struct Directory {
    entries_max: usize,
    name_bytes_max: usize,
    chunks_at: u64,
    chunk_bytes: usize,
    chunks_left: u32,
    /// Where the stored section begins.
    pub content_at: u64,
    pub stored: Vec<Entry>,
    pub packed: Vec<Entry>,
    /// Where the compressed section, its properties and its table of resets stand, and how long they are.
    pub content: Option<(u64, u64)>,
    pub control: Option<(u64, u64)>,
    pub resets: Option<(u64, u64)>,
    pub is_cut: bool,
    pub is_broken: bool,
    pub is_full: bool,
}

const CHUNK_HEADER_BYTES: usize = 20;
const CHUNK_BYTES_MAX: usize = 1 << 16;
const STORAGE: &[u8] = b"::DataSpace/Storage/MSCompressed/";

impl Directory {
    /// Reads the headers; `None` if they make no sense.
    pub fn new(kept: &dyn ReadAt, limits: &Limits) -> Option<Directory> {
        const FILE_HEADER_BYTES: usize = 0x60;
        const DIRECTORY_HEADER_BYTES: usize = 0x54;
        let header = read(kept, 0, FILE_HEADER_BYTES);
        let directory_at = le64(&header, 0x48);
        let directory = read(kept, directory_at, DIRECTORY_HEADER_BYTES);
        if header.len() < FILE_HEADER_BYTES || !directory.starts_with(b"ITSP") {
            return None;
        }
        let chunk_bytes = le32(&directory, 0x10) as usize;
        (CHUNK_HEADER_BYTES..=CHUNK_BYTES_MAX).contains(&chunk_bytes).then(|| Directory {
            entries_max: limits.directory_entries_max as usize,
            name_bytes_max: limits.name_bytes_max as usize,
            chunks_at: directory_at.saturating_add(le32(&directory, 8).into()),
            chunk_bytes,
            chunks_left: le32(&directory, 0x2c),
            content_at: le64(&header, 0x58),
            stored: Vec::new(),
            packed: Vec::new(),
            content: None,
            control: None,
            resets: None,
            is_cut: false,
            is_broken: false,
            is_full: false,
        })
    }

    /// Reads the next chunk; whether there may be another one.
    pub fn read_chunk(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> bool {
        let Some(left) = self.chunks_left.checked_sub(1).filter(|_| !self.is_full) else {
            return false;
        };
        self.chunks_left = left;
        let chunk = read(kept, self.chunks_at, self.chunk_bytes);
        outbox.worked(self.chunk_bytes);
        self.chunks_at = self.chunks_at.saturating_add(self.chunk_bytes as u64);
        if chunk.len() < self.chunk_bytes {
            self.is_cut = true;
            return false;
        }
        if chunk.starts_with(b"PMGL") {
            let end = chunk.len().saturating_sub(le32(&chunk, 4) as usize);
            self.is_broken |= self.entries(chunk.get(CHUNK_HEADER_BYTES..end).unwrap_or_default()).is_none();
        }
        true
    }

    fn entries(&mut self, mut left: &[u8]) -> Option<()> {
        while !left.is_empty() {
            let length = usize::try_from(number(&mut left)?).ok()?;
            let (name, rest) = left.split_at_checked(length)?;
            left = rest;
            let (section, offset, length) = (number(&mut left)?, number(&mut left)?, number(&mut left)?);
            self.entry(name, section, offset, length);
        }
        Some(())
    }

    fn entry(&mut self, name: &[u8], section: u64, offset: u64, length: u64) {
        const PACKED: u64 = 1;
        if let (Some(of_storage), 0) = (name.strip_prefix(STORAGE), section) {
            let place = Some((self.content_at.saturating_add(offset), length));
            match of_storage {
                b"Content" => return self.content = place,
                b"ControlData" => self.control = place,
                _ if of_storage.ends_with(b"/ResetTable") => self.resets = place,
                _ => {}
            }
        }
        // Folders have no length.
        if length == 0 {
            return;
        }
        if self.stored.len().saturating_add(self.packed.len()) >= self.entries_max {
            self.is_full = true;
            return;
        }
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let name = name::utf8_or_latin1(&name[..name.len().min(self.name_bytes_max)]);
        let entries = if section == PACKED { &mut self.packed } else { &mut self.stored };
        entries.push(Entry { name, offset, length });
    }
}

/// A number of seven bits in each byte, the greatest first.
fn number(left: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    loop {
        let (&byte, rest) = left.split_first()?;
        *left = rest;
        if value >> 57 != 0 {
            return None;
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some(value);
        }
    }
}
