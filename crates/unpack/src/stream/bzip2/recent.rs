//! The bytes of a block, the latest first (move to front): a symbol is the position of a byte.

/// Up to 256 bytes.
pub(super) struct Recent {
    bytes: [u8; 256],
    length: usize,
}

/// Bytes that fit a word: most symbols are positions among the first.
const NEAR: usize = 16;

impl Recent {
    pub const fn new() -> Recent {
        Recent { bytes: [0; 256], length: 0 }
    }

    pub const fn clear(&mut self) {
        self.length = 0;
    }

    pub const fn length(&self) -> usize {
        self.length
    }

    /// Appends a byte; there are no more than 256.
    pub fn push(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    /// The latest byte.
    #[inline(always)]
    pub const fn first(&self) -> u8 {
        self.bytes[0]
    }

    /// Moves the byte at `place` to the front; there is one.
    #[inline(always)]
    pub fn take(&mut self, place: usize) -> u8 {
        let byte = self.bytes[place];
        if place < NEAR {
            let (near, _) = self.bytes.split_first_chunk_mut::<NEAR>().expect("there are 256 bytes");
            let word = u128::from_le_bytes(*near);
            let moved = u128::MAX >> (8 * (NEAR - 1 - place));
            *near = (word & !moved | (word << 8 | u128::from(byte)) & moved).to_le_bytes();
        } else {
            self.bytes.copy_within(..place, 1);
            self.bytes[0] = byte;
        }
        byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_to_the_front() {
        for place in 0..256 {
            let mut recent = Recent::new();
            (0..=255).for_each(|byte| recent.push(byte));
            assert_eq!(usize::from(recent.take(place)), place);
            let mut wanted: Vec<u8> = (0..=255).collect();
            wanted[..=place].rotate_right(1);
            assert_eq!(recent.bytes, *wanted);
        }
    }
}
