//! A set of texts, for lists with millions of them: the texts end to end, and a table of where each begins.
//!
//! A text costs its bytes, two for its length, and five to eleven of the table.

use std::fmt;

/// A hash of a text that is read byte by byte, so that all beginnings of a text are hashed in one pass (FNV-1a).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hash(u64);

impl Hash {
    pub const fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    #[inline]
    pub fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn of(text: &[u8]) -> Hash {
        let mut hash = Hash::new();
        text.iter().for_each(|&byte| hash.add(byte));
        hash
    }

    /// A key of 32 bits.
    pub fn key(self) -> u32 {
        u32::try_from(self.place(u32::BITS)).unwrap_or(u32::MAX)
    }

    /// A place in a table of `2^bits`.
    fn place(self, bits: u32) -> usize {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - bits)) as usize
    }
}

/// Texts that were collected, to be looked up.
#[derive(Default)]
pub(crate) struct Keys {
    texts: Vec<u8>,
    /// Where a text begins, and one more; 0 is free.
    table: Vec<u32>,
    bits: u32,
    count: usize,
    longest: usize,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("count", &self.count).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl Keys {
    /// Room for texts of so many bytes together.
    pub fn with_capacity(bytes: usize) -> Keys {
        Keys { texts: Vec::with_capacity(bytes), ..Keys::default() }
    }

    /// Adds a text. It is not found before [`Keys::seal`].
    pub fn push(&mut self, text: &[u8]) {
        let Ok(length) = u16::try_from(text.len()) else { return };
        if self.texts.len() + text.len() + 2 >= u32::MAX as usize {
            return;
        }
        self.texts.extend(length.to_le_bytes());
        self.texts.extend(text);
        self.count += 1;
        self.longest = self.longest.max(text.len());
    }

    /// Builds the table.
    pub fn seal(&mut self) {
        self.texts.shrink_to_fit();
        let wanted = (self.count + self.count / 2 + 1).next_power_of_two().max(2);
        self.bits = wanted.trailing_zeros();
        self.table = vec![0; wanted];
        let mut at = 0;
        while let Some(text) = self.text(at) {
            let (length, hash) = (text.len(), Hash::of(text));
            match self.slot(hash, text) {
                Ok(_) => self.count -= 1,
                Err(free) => self.table[free] = u32::try_from(at + 1).unwrap_or(0),
            }
            at += length + 2;
        }
    }

    /// The text that begins at a place.
    fn text(&self, at: usize) -> Option<&[u8]> {
        let length = self.texts.get(at..at + 2)?;
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        self.texts.get(at + 2..at + 2 + length)
    }

    /// The place in the table of a text, or the free one where it would be.
    fn slot(&self, hash: Hash, text: &[u8]) -> Result<usize, usize> {
        let mask = self.table.len() - 1;
        let mut slot = hash.place(self.bits);
        loop {
            match self.table[slot] {
                0 => return Err(slot),
                known if self.text(known as usize - 1) == Some(text) => return Ok(slot),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Whether a text with this hash is there.
    pub fn has_hashed(&self, hash: Hash, text: &[u8]) -> bool {
        !self.table.is_empty() && text.len() <= self.longest && self.slot(hash, text).is_ok()
    }

    /// Whether a text is there.
    pub fn has(&self, text: &[u8]) -> bool {
        text.len() <= self.longest && self.has_hashed(Hash::of(text), text)
    }

    /// How many different texts there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The bytes of the longest.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The bytes that they take.
    pub fn bytes(&self) -> usize {
        self.texts.capacity() + self.table.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_and_others_are_not() {
        let mut keys = Keys::with_capacity(100);
        assert!(!keys.has(b"a"));
        for number in 0..5000 {
            keys.push(format!("host{}.test", number % 4000).as_bytes());
        }
        keys.seal();
        assert_eq!(keys.len(), 4000);
        assert!((0..4000).all(|number| keys.has(format!("host{number}.test").as_bytes())));
        assert!(!keys.has(b"host4000.test") && !keys.has(b"") && !keys.has(&[b'x'; 70_000]));
        assert!(keys.bytes() < 4000 * 40);
    }
}
