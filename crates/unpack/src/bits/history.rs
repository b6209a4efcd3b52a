//! The bytes told so far and the match that is under way, as the decoders of archives share them.

use crate::codec::lzma::{Dictionary, Unreachable};

/// A history; its dictionary grows with the data.
pub(crate) struct History {
    pub dictionary: Dictionary,
    distance: usize,
    /// Remaining bytes of the match.
    pending: usize,
}

impl History {
    pub const fn new() -> History {
        History { dictionary: Dictionary::new(), distance: 0, pending: 0 }
    }

    /// Restarts, with earlier output that a decoder may refer to.
    pub fn restart(&mut self, size: usize, before: &[u8]) {
        self.dictionary.declare(size as u64, size);
        self.pending = 0;
        let mut before = before;
        while !before.is_empty() {
            let count = self.dictionary.room(before.len());
            self.dictionary.extend(&before[..count]);
            before = &before[count..];
        }
    }

    /// Drops the rest of a match.
    pub const fn drop_pending(&mut self) {
        self.pending = 0;
    }

    /// Bytes told since the history began.
    #[inline(always)]
    pub const fn position(&self) -> u64 {
        self.dictionary.position()
    }

    /// A match; no more of it than up to `end` is copied now.
    #[inline(always)]
    pub fn copy(&mut self, distance: usize, length: usize, end: u64) -> Result<(), Unreachable> {
        self.dictionary.check(distance)?;
        (self.distance, self.pending) = (distance, length);
        self.copy_pending(end);
        Ok(())
    }

    /// Goes on with the match, up to `end`.
    #[inline(always)]
    pub fn copy_pending(&mut self, end: u64) {
        let count = self.pending.min((end - self.position()) as usize);
        if count > 0 {
            self.dictionary.repeat(self.distance, count);
            self.pending -= count;
        }
    }
}
