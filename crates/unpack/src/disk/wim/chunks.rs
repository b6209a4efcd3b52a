//! The content of a resource: bytes as they stand, or chunks that are packed each by itself, with a table of where they stand.
//!
//! ```text
//! resource := table of all chunks but the first: their places, 4 or 8 bytes each; chunks
//! solid    := bytes u64, bytes of a chunk u32, method u32; table of the lengths of all chunks, 4 bytes each; chunks
//! ```
//! A chunk as long as what it makes is stored. One chunk is held, packed and unpacked.

use stream::{Limits, ReadAt};

use super::{CODEC, CONTENTS, HEADER, METHOD, TRUNCATED};
use crate::archive::cab::lzx::Lzx;
use crate::codec::lzms::Lzms;
use crate::codec::xpress;
use crate::disk::kept::read;
use crate::frame::codec::{Fault, le32, le64};

/// The header in front of the table of a solid resource.
pub(super) const SOLID_HEADER_BYTES: usize = 16;
/// Chunks that are unpacked in one go are no longer.
const CHUNK_BYTES_MAX: u32 = 2 << 20;
const CHUNK_BYTES_MIN: u32 = 4 << 10;
/// Bytes of stored content that are read at once.
const PIECE_BYTES: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Stored,
    Xpress,
    Lzx,
    Lzms,
}

/// A place in the file from which content is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resource {
    pub at: u64,
    pub packed_bytes: u64,
    pub bytes: u64,
    packing: Packing,
    chunk_bytes: u32,
    is_solid: bool,
}

impl Resource {
    pub fn new(at: u64, packed_bytes: u64, bytes: u64, packing: Packing, chunk_bytes: u32) -> Result<Resource, Fault> {
        let resource = Resource { at, packed_bytes, bytes, packing, chunk_bytes, is_solid: false };
        resource.check()
    }

    /// The solid one with this header.
    pub fn solid(at: u64, packed_bytes: u64, header: &[u8]) -> Result<Resource, Fault> {
        if header.len() < SOLID_HEADER_BYTES {
            return Err(TRUNCATED);
        }
        let packing = match le32(header, 12) {
            0 => Packing::Stored,
            1 => Packing::Xpress,
            2 => Packing::Lzx,
            3 => Packing::Lzms,
            _ => return Err(METHOD),
        };
        let (bytes, chunk_bytes) = (le64(header, 0), le32(header, 8));
        let resource = Resource { at, packed_bytes, bytes, packing, chunk_bytes, is_solid: true };
        resource.check()
    }

    fn check(self) -> Result<Resource, Fault> {
        let is_stored = self.packing == Packing::Stored;
        if !is_stored && (!self.chunk_bytes.is_power_of_two() || self.chunk_bytes < CHUNK_BYTES_MIN) {
            return Err(HEADER);
        }
        match self.packing {
            Packing::Xpress | Packing::Lzx if self.chunk_bytes > CHUNK_BYTES_MAX => Err(METHOD),
            _ => Ok(self),
        }
    }

    const fn chunks(&self) -> u64 {
        self.bytes.div_ceil(self.chunk_bytes as u64)
    }

    /// How many bytes this chunk makes.
    fn chunk_of(&self, index: u64) -> u64 {
        let before = index.saturating_mul(self.chunk_bytes.into());
        self.bytes.saturating_sub(before).min(self.chunk_bytes.into())
    }
}

/// The reader of a resource.
pub(super) struct Chunks {
    resource: Resource,
    /// The chunk that comes next by the table of lengths, and where it stands behind the first.
    next: (u64, u64),
    /// Unpacked content, and its offset in the content of the resource.
    ready: Vec<u8>,
    ready_at: u64,
    /// The offset at which the next chunk begins.
    ready_end: u64,
    unpacking: Option<(u64, Box<Lzms>)>,
    lzx: Option<Box<Lzx>>,
    work: usize,
}

/// The file that resources stand in.
pub(super) struct File<'a> {
    pub kept: &'a dyn ReadAt,
    pub limits: &'a Limits,
    pub bytes: u64,
    /// Bytes that may still be unpacked.
    pub left: u64,
}

/// The outcome of a turn.
pub(super) enum Turn {
    /// More turns are needed.
    More,
    /// The bytes are present, if the chunk was sound.
    Ready {
        is_sound: bool,
    },
    Fault(Fault),
}

impl Chunks {
    pub fn new(resource: Resource) -> Chunks {
        Chunks {
            resource,
            next: (0, 0),
            ready: Vec::new(),
            ready_at: 0,
            ready_end: 0,
            unpacking: None,
            lzx: None,
            work: 0,
        }
    }

    pub const fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Work done since this was asked last.
    pub fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// The unpacked bytes from `at` on, and the offset of the next chunk.
    pub fn ready(&self, at: u64) -> (&[u8], u64) {
        let from = usize::try_from(at.saturating_sub(self.ready_at)).unwrap_or(usize::MAX);
        (self.ready.get(from..).unwrap_or_default(), self.ready_end)
    }

    /// Does something towards the byte at `at` of the content.
    pub fn turn(&mut self, at: u64, file: &mut File) -> Turn {
        if at >= self.resource.bytes {
            return Turn::Fault(HEADER);
        }
        if (self.ready_at..self.ready_end).contains(&at) {
            return Turn::Ready { is_sound: true };
        }
        if self.resource.packing == Packing::Stored {
            return self.stored(at, file.kept);
        }
        if let Some((index, lzms)) = self.unpacking.take() {
            return self.go_on(index, lzms);
        }
        let index = at / u64::from(self.resource.chunk_bytes);
        match self.find(index, file) {
            Ok(Some((start, bytes))) => self.unpack(index, start, bytes, file),
            Ok(None) => Turn::More,
            Err(fault) => Turn::Fault(fault),
        }
    }

    fn stored(&mut self, at: u64, kept: &dyn ReadAt) -> Turn {
        let header = if self.resource.is_solid { SOLID_HEADER_BYTES as u64 } else { 0 };
        let wanted = (self.resource.bytes - at).min(PIECE_BYTES as u64) as usize;
        let bytes = read(kept, self.resource.at.saturating_add(header).saturating_add(at), wanted);
        self.work += bytes.len();
        if bytes.is_empty() {
            return Turn::Fault(TRUNCATED);
        }
        (self.ready_at, self.ready_end, self.ready) = (at, at + bytes.len() as u64, bytes);
        Turn::Ready { is_sound: true }
    }

    /// Where a chunk stands, and how long it is; nothing while the table is being read.
    fn find(&mut self, index: u64, file: &mut File) -> Result<Option<(u64, u64)>, Fault> {
        match self.resource.is_solid {
            true => self.find_by_length(index, file),
            false => self.find_by_place(index, file.kept).map(Some),
        }
    }

    fn find_by_place(&self, index: u64, kept: &dyn ReadAt) -> Result<(u64, u64), Fault> {
        let Resource { at, packed_bytes, bytes, .. } = self.resource;
        let width: u64 = if bytes > u32::MAX.into() { 8 } else { 4 };
        let table_bytes = (self.resource.chunks() - 1).checked_mul(width).ok_or(HEADER)?;
        let data_bytes = packed_bytes.checked_sub(table_bytes).ok_or(HEADER)?;
        let place = |index: u64| match index.checked_sub(1) {
            None => Ok(0),
            Some(_) if index == self.resource.chunks() => Ok(data_bytes),
            Some(entry) => {
                let entry = read(kept, at.saturating_add(entry * width), width as usize);
                if entry.len() as u64 == width { Ok(le64(&entry, 0)) } else { Err(TRUNCATED) }
            }
        };
        let (start, end) = (place(index)?, place(index + 1)?);
        let length = end.checked_sub(start).ok_or(HEADER)?;
        Ok((at.saturating_add(table_bytes).saturating_add(start), length))
    }

    fn find_by_length(&mut self, index: u64, file: &mut File) -> Result<Option<(u64, u64)>, Fault> {
        const ENTRIES: u64 = 1024;
        const ENTRY: u64 = 4;
        if index < self.next.0 {
            self.next = (0, 0);
        }
        let table = self.resource.at.saturating_add(SOLID_HEADER_BYTES as u64);
        let count = (index + 1 - self.next.0).min(ENTRIES);
        file.left = file.left.checked_sub(count * ENTRY).ok_or(CONTENTS)?;
        let entries =
            read(file.kept, table.saturating_add(self.next.0.saturating_mul(ENTRY)), (count * ENTRY) as usize);
        self.work += entries.len();
        if (entries.len() as u64) < count * ENTRY {
            return Err(TRUNCATED);
        }
        for entry in entries.chunks_exact(ENTRY as usize) {
            let (at, start) = self.next;
            let length = u64::from(le32(entry, 0));
            self.next = (at + 1, start.saturating_add(length));
            if at == index {
                let data = table.saturating_add(self.resource.chunks().saturating_mul(ENTRY));
                return Ok(Some((data.saturating_add(start), length)));
            }
        }
        Ok(None)
    }

    fn unpack(&mut self, index: u64, at: u64, packed_bytes: u64, file: &mut File) -> Turn {
        /// A page of content costs as much as a packed byte, and a chunk as much as a page.
        const PAGE: u64 = 64;
        let bytes = self.resource.chunk_of(index);
        if bytes > u64::from(file.limits.codec_bytes_max) {
            return Turn::Fault(CODEC);
        }
        if at.saturating_add(packed_bytes) > file.bytes {
            return Turn::Fault(TRUNCATED);
        }
        if packed_bytes > bytes {
            self.set(index, Vec::new());
            return Turn::Ready { is_sound: false };
        }
        let Some(left) = file.left.checked_sub(packed_bytes + bytes / PAGE + PAGE) else {
            return Turn::Fault(CONTENTS);
        };
        file.left = left;
        let packed = read(file.kept, at, packed_bytes as usize);
        if (packed.len() as u64) < packed_bytes {
            return Turn::Fault(TRUNCATED);
        }
        self.work += packed.len();
        let mut content = Vec::new();
        let is_sound = match self.resource.packing {
            _ if packed_bytes == bytes => {
                content = packed;
                true
            }
            Packing::Xpress => xpress::unpack(&packed, &mut content, bytes as usize),
            Packing::Lzx => {
                let lzx = self.lzx.get_or_insert_with(|| Box::new(Lzx::new()));
                let window_bits = self.resource.chunk_bytes.trailing_zeros().clamp(15, 21);
                lzx.chunk(window_bits, &packed, bytes as usize, &mut content).is_some()
            }
            Packing::Lzms => match Lzms::new(packed, bytes as usize) {
                Some(lzms) => return self.go_on(index, Box::new(lzms)),
                None => false,
            },
            Packing::Stored => false,
        };
        self.set(index, content);
        Turn::Ready { is_sound }
    }

    /// Unpacks more of a chunk that takes long.
    fn go_on(&mut self, index: u64, mut lzms: Box<Lzms>) -> Turn {
        const WORK: usize = 32 << 10;
        self.work += WORK;
        let is_over = lzms.run();
        if is_over == Some(false) {
            self.unpacking = Some((index, lzms));
            return Turn::More;
        }
        self.set(index, lzms.content());
        Turn::Ready { is_sound: is_over.is_some() }
    }

    /// Makes the content of this chunk the one that is ready.
    fn set(&mut self, index: u64, content: Vec<u8>) {
        self.work += content.len();
        self.ready = content;
        self.ready_at = index.saturating_mul(self.resource.chunk_bytes.into());
        self.ready_end = self.ready_at.saturating_add(self.resource.chunk_of(index));
    }
}
