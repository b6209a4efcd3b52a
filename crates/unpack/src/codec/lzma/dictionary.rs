//! The bytes that matches refer to: a ring that grows with the data.
//!
//! Bounds: the size that the stream declares, the data itself (it doubles as it fills), and the cap. While it grows, the
//! old half exists beside the new whole. Beyond the cap distances still work as far as the ring reaches.

/// A ring of bytes.
pub(crate) struct Dictionary {
    bytes: Vec<u8>,
    /// Where the next byte goes.
    at: usize,
    /// Bytes written since the last reset.
    total: u64,
    /// The size it may grow to.
    size: usize,
    /// Whether the stream wants more than it may have.
    capped: bool,
}

/// Why a distance cannot be followed.
#[derive(Debug, PartialEq)]
pub(crate) enum Unreachable {
    /// Nothing has been written there.
    Never,
    /// It was written and had to be forgotten.
    Forgotten,
}

const FIRST_BYTES: usize = 32 << 10;

/// Bytes that are copied at once where fewer are meant.
pub(crate) const SHORT: usize = 16;

impl Dictionary {
    pub const fn new() -> Dictionary {
        Dictionary { bytes: Vec::new(), at: 0, total: 0, size: FIRST_BYTES, capped: false }
    }

    /// Sets the size that the stream declares, which takes no memory yet.
    pub fn declare(&mut self, size: u64, size_max: usize) {
        let size_max = size_max.max(4096);
        self.capped = size > size_max as u64;
        self.size = usize::try_from(size).map_or(size_max, |size| size.clamp(4096, size_max));
        if self.bytes.len() > self.size {
            self.bytes = Vec::new();
        }
        self.reset();
    }

    /// Forgets all bytes.
    pub fn reset(&mut self) {
        self.at = 0;
        self.total = 0;
    }

    /// Where the next byte goes, counted since the last reset.
    pub const fn position(&self) -> u64 {
        self.total
    }

    /// Makes room for up to `wanted` bytes in one run; returns for how many, at least one.
    pub fn room(&mut self, wanted: usize) -> usize {
        if self.at == self.bytes.len() {
            if self.bytes.len() < self.size {
                let doubled = (self.bytes.len() * 2).clamp(FIRST_BYTES.min(self.size), self.size);
                self.bytes.resize(doubled, 0);
            } else {
                self.at = 0;
            }
        }
        wanted.min(self.bytes.len() - self.at)
    }

    /// The last `count` bytes, written in one run.
    pub fn last(&self, count: usize) -> &[u8] {
        &self.bytes[self.at - count..self.at]
    }

    /// Appends up to [`SHORT`] bytes, the first of 16. There is room for 16 in one run, and nothing refers to the
    /// overwritten bytes after them.
    #[inline(always)]
    pub fn extend_short(&mut self, bytes: &[u8; SHORT], count: usize) {
        self.bytes[self.at..self.at + SHORT].copy_from_slice(bytes);
        self.at += count;
        self.total += count as u64;
    }

    /// As [`repeat`](Self::repeat), under the conditions of [`extend_short`](Self::extend_short) for twice as many bytes;
    /// whether that could be done.
    #[inline(always)]
    pub fn repeat_short(&mut self, distance: usize, count: usize) -> bool {
        let Some(from) = self.at.checked_sub(distance).filter(|_| distance >= SHORT) else { return false };
        let span = &mut self.bytes[from..self.at + 2 * SHORT];
        let (first, second) = (distance, distance + SHORT);
        span.copy_within(..SHORT, first);
        span.copy_within(SHORT..2 * SHORT, second);
        self.at += count;
        self.total += count as u64;
        true
    }

    /// Appends one byte. There is room.
    #[inline(always)]
    pub fn push(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
        self.total += 1;
    }

    /// Appends bytes. There is room.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self.total += bytes.len() as u64;
    }

    /// Returns the byte `distance` back (the last is at 1), or zero before the beginning.
    #[inline(always)]
    pub fn back(&self, distance: usize) -> u8 {
        let index = match self.at.checked_sub(distance) {
            Some(index) => index,
            None => (self.at + self.bytes.len()).wrapping_sub(distance),
        };
        if distance as u64 > self.total {
            return 0;
        }
        self.bytes.get(index).copied().unwrap_or(0)
    }

    /// Whether there is a byte `distance` back.
    #[inline(always)]
    pub fn check(&self, distance: usize) -> Result<(), Unreachable> {
        if distance as u64 > self.total {
            return Err(Unreachable::Never);
        }
        if distance > self.bytes.len() {
            return Err(if self.capped { Unreachable::Forgotten } else { Unreachable::Never });
        }
        Ok(())
    }

    /// Appends `count` bytes from `distance` back, which [`check`](Self::check) has found there. There is room.
    #[inline(always)]
    pub fn repeat(&mut self, distance: usize, count: usize) {
        let end = self.at + count;
        self.total += count as u64;
        match self.at.checked_sub(distance) {
            Some(from) if distance >= count => self.bytes.copy_within(from..from + count, self.at),
            Some(from) => {
                let run = &mut self.bytes[from..end];
                for i in distance..run.len() {
                    run[i] = run[i - distance];
                }
            }
            None => {
                let mut from = self.at + self.bytes.len() - distance;
                for at in self.at..end {
                    self.bytes[at] = self.bytes[from];
                    from = if from + 1 == self.bytes.len() { 0 } else { from + 1 };
                }
            }
        }
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_no_memory_before_it_is_used_and_no_more_than_it_may() {
        let mut dictionary = Dictionary::new();
        dictionary.declare(1 << 32, 100_000);
        assert_eq!(dictionary.bytes.len(), 0);
        for _ in 0..300_000 {
            assert_eq!(dictionary.room(1), 1);
            dictionary.push(7);
            assert!(dictionary.bytes.len() <= 100_000);
        }
        assert_eq!(dictionary.check(100_000), Ok(()));
        assert_eq!(dictionary.check(100_001), Err(Unreachable::Forgotten));
        assert_eq!(dictionary.check(300_001), Err(Unreachable::Never));
    }

    #[test]
    fn a_repeat_across_the_seam_of_the_ring_reads_what_was_written() {
        let mut dictionary = Dictionary::new();
        dictionary.declare(4096, 4096);
        let mut plain = Vec::new();
        for step in 0u32..4000 {
            let distance = (1 + step as usize * 37 % 4096).min(plain.len());
            let count = dictionary.room(1 + step as usize % 50);
            if distance == 0 || step % 3 == 0 {
                dictionary.push(step as u8);
                plain.push(step as u8);
                continue;
            }
            dictionary.repeat(distance, count);
            for _ in 0..count {
                plain.push(plain[plain.len() - distance]);
            }
            assert_eq!(dictionary.last(count), &plain[plain.len() - count..]);
            assert_eq!(dictionary.back(4096.min(plain.len())), plain[plain.len().saturating_sub(4096)]);
        }
    }
}
