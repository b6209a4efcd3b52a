//! The input that a driver keeps for a stage's `finish`: ranges, in bounded memory.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use crate::ReadAt;

/// Bytes of one allocation: memory grows with the kept bytes, which are never copied.
const CHUNK_BYTES: usize = 64 << 10;

/// Ranges that a stage has requested by [`Event::Keep`](crate::Event::Keep), in memory.
///
/// The driver passes the bytes and the remaining allowance; a range that exceeds it stays short.
#[derive(Debug, Default)]
pub struct Spool {
    /// Asked for and still to come, in ascending order.
    wanted: VecDeque<Range<u64>>,
    /// Ascending, each of at most [`CHUNK_BYTES`].
    chunks: Vec<Chunk>,
    bytes: u64,
    full: bool,
}

#[derive(Debug)]
struct Chunk {
    start: u64,
    bytes: Vec<u8>,
}

impl Spool {
    /// How many ranges may wait to come.
    pub const RANGES_MAX: usize = 64;

    /// Requests a range after `at`. Returns whether it is granted. Refused are ranges that begin before `at` or before
    /// the end of an earlier one, and more than [`Spool::RANGES_MAX`] at a time.
    pub fn ask(&mut self, range: Range<u64>, at: u64) -> bool {
        let from = self.wanted.back().map_or(at, |last| last.end.max(at));
        if range.start < from || self.wanted.len() == Spool::RANGES_MAX {
            return false;
        }
        if range.start < range.end {
            self.wanted.push_back(range);
        }
        true
    }

    /// Keeps the requested parts of `bytes`, which begin at `offset`, at most `allowed` bytes. Returns whether a byte
    /// was refused for the first time; from then on nothing is kept.
    pub fn pass(&mut self, offset: u64, bytes: &[u8], allowed: u64) -> bool {
        let end = offset.saturating_add(bytes.len() as u64);
        let mut allowed = allowed;
        while let Some(range) = self.wanted.front().cloned() {
            let (from, to) = (range.start.max(offset), range.end.min(end));
            if from < to && !self.full {
                let wanted = to.saturating_sub(from);
                let granted = wanted.min(allowed);
                self.keep(from, &bytes[from.saturating_sub(offset) as usize..][..granted as usize]);
                allowed = allowed.saturating_sub(granted);
                if granted < wanted {
                    self.full = true;
                    return true;
                }
            }
            if range.end > end {
                break;
            }
            self.wanted.pop_front();
        }
        false
    }

    /// Bytes kept.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    fn keep(&mut self, mut offset: u64, mut bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        while !bytes.is_empty() {
            let fits = self.chunks.last().filter(|chunk| chunk.end() == offset).map_or(0, Chunk::room);
            if fits == 0 {
                self.chunks.push(Chunk { start: offset, bytes: Vec::with_capacity(CHUNK_BYTES) });
                continue;
            }
            let count = bytes.len().min(fits);
            self.chunks.last_mut().expect("one with room is there").bytes.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
            offset = offset.saturating_add(count as u64);
        }
    }
}

impl ReadAt for Spool {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut copied = 0;
        let first = self.chunks.partition_point(|chunk| chunk.end() <= offset);
        for chunk in &self.chunks[first..] {
            let at = offset.saturating_add(copied as u64);
            let Some(kept) = at.checked_sub(chunk.start).and_then(|skip| chunk.bytes.get(skip as usize..)) else {
                break;
            };
            let count = kept.len().min(buffer.len().saturating_sub(copied));
            buffer[copied..][..count].copy_from_slice(&kept[..count]);
            copied = copied.saturating_add(count);
        }
        copied
    }
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    fn room(&self) -> usize {
        CHUNK_BYTES.saturating_sub(self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn read(spool: &Spool, offset: u64, len: usize) -> Vec<u8> {
        let mut buffer = vec![0; len];
        let count = spool.read_at(offset, &mut buffer);
        buffer.truncate(count);
        buffer
    }

    #[test]
    fn what_was_asked_for_is_read_back_and_nothing_else() {
        let mut spool = Spool::default();
        assert!(spool.ask(3..6, 0));
        assert!(spool.ask(8..u64::MAX, 2));
        assert!(!spool.ask(7..9, 2), "before the end of what is wanted");
        assert!(!spool.pass(0, b"0123", 100));
        assert!(!spool.pass(4, b"456789", 100));
        assert_eq!(read(&spool, 3, 9), b"345");
        assert_eq!(read(&spool, 4, 1), b"4");
        assert_eq!(read(&spool, 6, 1), b"");
        assert_eq!(read(&spool, 8, 9), b"89");
        assert_eq!(spool.len(), 5);
    }

    #[test]
    fn a_refusal_is_told_once_and_leaves_the_front() {
        let mut spool = Spool::default();
        spool.ask(0..10, 0);
        assert!(!spool.pass(0, b"01", 4));
        assert!(spool.pass(2, b"2345", 2));
        assert!(!spool.pass(6, b"6789", 100));
        assert_eq!(read(&spool, 0, 10), b"0123");
    }

    #[test]
    fn what_is_kept_crosses_chunks() {
        let mut spool = Spool::default();
        let bytes: Vec<u8> = (0..3 * CHUNK_BYTES + 5).map(|at| (at % 251) as u8).collect();
        spool.ask(0..u64::MAX, 0);
        for (at, piece) in bytes.chunks(1000).enumerate() {
            assert!(!spool.pass(at as u64 * 1000, piece, u64::MAX));
        }
        assert_eq!(read(&spool, 0, bytes.len() + 1), bytes);
        assert_eq!(read(&spool, CHUNK_BYTES as u64 - 1, 2), bytes[CHUNK_BYTES - 1..CHUNK_BYTES + 1]);
    }
}
