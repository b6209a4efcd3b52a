//! Bytes of the packed file: wherever they are, and one behind the other.

use stream::ReadAt;

use crate::frame::codec::{le16, le32};

/// The whole file: its head, and the kept bytes after it.
pub(super) struct Whole<'a> {
    pub head: &'a [u8],
    pub kept: &'a dyn ReadAt,
}

impl Whole<'_> {
    /// Fills the buffer from `at` on. Returns how many bytes exist.
    pub fn read(&self, at: u64, buffer: &mut [u8]) -> usize {
        let mut read = 0;
        if let Some(from) = usize::try_from(at).ok().and_then(|at| self.head.get(at..)) {
            read = from.len().min(buffer.len());
            buffer[..read].copy_from_slice(&from[..read]);
        }
        while read < buffer.len()
            && let count @ 1.. = self.kept.read_at(at.saturating_add(read as u64), &mut buffer[read..])
        {
            read += count;
        }
        read
    }

    /// Returns the bytes at `at`, with zeros beyond the end.
    pub fn bytes<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.read(at, &mut bytes);
        bytes
    }

    /// The bytes from `at` on, as many as there are of so many.
    pub fn run(&self, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let read = self.read(at, &mut bytes);
        bytes.truncate(read);
        bytes
    }
}

const PIECE_BYTES: usize = 4096;

/// A run of the file, byte by byte.
pub(super) struct Source<'a> {
    file: &'a Whole<'a>,
    /// Where the next piece stands.
    next: u64,
    piece: [u8; PIECE_BYTES],
    at: usize,
    end: usize,
}

impl<'a> Source<'a> {
    pub fn new(file: &'a Whole<'a>, at: u64) -> Source<'a> {
        Source { file, next: at, piece: [0; PIECE_BYTES], at: 0, end: 0 }
    }

    /// Where the next byte stands.
    pub fn at(&self) -> u64 {
        self.next - (self.end - self.at) as u64
    }

    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        if self.at == self.end {
            self.end = self.file.read(self.next, &mut self.piece);
            (self.at, self.next) = (0, self.next + self.end as u64);
        }
        let byte = *self.piece[..self.end].get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A number of so many bytes, little-endian.
    #[inline]
    pub fn number(&mut self, bytes: u32) -> Option<u32> {
        (0..bytes).try_fold(0, |value, index| Some(value | u32::from(self.byte()?) << (8 * index)))
    }
}

/// Numbers of a file, in its byte order.
pub(super) struct Numbers<'a> {
    pub bytes: &'a [u8],
    pub is_big: bool,
}

impl Numbers<'_> {
    pub fn u16(&self, at: usize) -> u16 {
        let value = le16(self.bytes, at);
        if self.is_big { value.swap_bytes() } else { value }
    }

    pub fn u32(&self, at: usize) -> u32 {
        let value = le32(self.bytes, at);
        if self.is_big { value.swap_bytes() } else { value }
    }

    pub fn u64(&self, at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(at)), u64::from(self.u32(at + 4)));
        if self.is_big { first << 32 | second } else { second << 32 | first }
    }
}
