//! Bits out of bytes that are pushed, the highest bit of each byte first, and the little-endian kind of it that LZX uses.
//!
//! Bytes are copied in, and what has not been read can be given back, so that where a decoder stopped does not depend on
//! how its input was cut. A decoder asks [`Bits::has`] for the most that its next symbol may take before it reads it;
//! behind the last byte there are zeros. Bounds: [`CAPACITY`] bytes.

/// Bytes that wait to be read, at most.
pub(crate) const CAPACITY: usize = 4096;

/// Bytes looked at in one go, zero behind the end.
const LOOK: usize = 8;

/// A bit reader.
pub(crate) struct Bits {
    bytes: Box<[u8; CAPACITY + LOOK]>,
    /// Bytes filled.
    end: usize,
    /// Bits read of those in the buffer.
    at: usize,
    /// Bits read that are in the buffer no more.
    passed: u64,
    last: bool,
}

impl Bits {
    pub fn new() -> Bits {
        Bits { bytes: Box::new([0; CAPACITY + LOOK]), end: 0, at: 0, passed: 0, last: false }
    }

    /// Forgets everything: another stream begins.
    pub fn restart(&mut self) {
        (self.end, self.at, self.passed, self.last) = (0, 0, 0, false);
    }

    /// Copies as much of `input` as fits, and returns its length. Empty input means its end.
    pub fn fill(&mut self, input: &[u8]) -> usize {
        if input.is_empty() {
            self.last = true;
        }
        if CAPACITY - self.end < input.len() {
            self.compact();
        }
        let count = input.len().min(CAPACITY - self.end);
        self.bytes[self.end..self.end + count].copy_from_slice(&input[..count]);
        self.end += count;
        let behind = if self.last { CAPACITY + LOOK } else { self.end + LOOK };
        self.bytes[self.end..behind].fill(0);
        count
    }

    fn compact(&mut self) {
        let read = (self.at / 8).min(self.end);
        self.bytes.copy_within(read..self.end, 0);
        self.end -= read;
        self.at -= read * 8;
        self.passed += read as u64 * 8;
    }

    /// Returns whether `count` bits can be read: they have arrived, or the input has ended.
    #[inline(always)]
    pub const fn has(&self, count: usize) -> bool {
        self.at + count <= self.end * 8 || self.last
    }

    /// Whether more was read than there was.
    #[inline(always)]
    pub const fn overran(&self) -> bool {
        self.at > self.end * 8
    }

    /// Whether everything was read and nothing more will come.
    pub const fn is_at_end(&self) -> bool {
        self.last && self.at >= self.end * 8
    }

    /// Bits read since the start.
    pub const fn position(&self) -> u64 {
        self.passed + self.at as u64
    }

    /// The next `count` bits, 1 to 32.
    #[inline(always)]
    pub fn peek(&self, count: u32) -> u32 {
        let Some(ahead) = self.bytes.get(self.at / 8..).and_then(<[u8]>::first_chunk) else {
            return 0;
        };
        (u64::from_be_bytes(*ahead) << (self.at % 8) >> (64 - count)) as u32
    }

    /// Passes `count` bits.
    #[inline(always)]
    pub const fn skip(&mut self, count: u32) {
        self.at += count as usize;
    }

    /// Reads `count` bits, 0 to 32.
    #[inline(always)]
    pub fn take(&mut self, count: u32) -> u32 {
        if count == 0 {
            return 0;
        }
        let value = self.peek(count);
        self.skip(count);
        value
    }

    /// Reads one bit.
    #[inline(always)]
    pub fn flag(&mut self) -> bool {
        self.take(1) == 1
    }

    /// Skips the rest of the current byte.
    pub const fn align(&mut self) {
        self.at = self.at.next_multiple_of(8);
    }

    /// The whole bytes that have not been read.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.at.div_ceil(8).min(self.end)..self.end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_the_same_however_they_come_in() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let read = |piece: usize| {
            let (mut bits, mut at, mut seen) = (Bits::new(), 0, Vec::new());
            loop {
                at += bits.fill(&bytes[at..][..piece.min(bytes.len() - at)]);
                while bits.has(32) && !bits.is_at_end() {
                    let count = seen.len() as u32 % 33;
                    seen.push(bits.take(count));
                }
                if bits.is_at_end() {
                    return (seen, bits.position());
                }
            }
        };
        let whole = read(usize::MAX);
        assert_eq!(whole.0[1], u32::from(bytes[0] >> 7));
        for piece in [1, 3, 4095, 4097] {
            assert_eq!(read(piece), whole);
        }
    }

    #[test]
    fn behind_the_end_are_zeros_and_unread_bytes_can_be_given_back() {
        let mut bits = Bits::new();
        bits.fill(&[0xff; 100]);
        bits.restart();
        bits.fill(&[0xff, 0xa5, 7]);
        bits.fill(&[]);
        assert_eq!(bits.take(9), 0x1ff);
        assert_eq!(bits.unread(), [7]);
        assert_eq!(bits.take(32), 0x4a0e_0000);
        assert!(bits.overran() && bits.unread().is_empty());
        assert_eq!(bits.take(32), 0);
    }
}
