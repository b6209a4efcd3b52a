//! A block of bzip2: its bytes in sorted order, the way through them, and the runs that were shortened before they were
//! sorted.
//!
//! The way: the n-th of a byte in sorted order follows the n-th of it in the block. Each step waits for the memory of the
//! one before, so that steps and bytes stand in one word.

/// A block; four bytes for each of its places, which the system gives when they are used.
pub(super) struct Block {
    /// The byte in the lowest bits, above it the place of the next.
    places: Vec<u32>,
    length: usize,
    /// How often each byte occurs.
    counts: [u32; 256],
    start: usize,
    at: u32,
    /// Bytes on the way that are left.
    left: usize,
    last: u8,
    /// How often the last byte came in a row.
    row: u8,
    /// How often it comes still.
    repeat: u8,
}

/// The block is longer than it may be.
#[derive(Debug)]
pub(super) struct Full;

impl Block {
    /// For blocks of up to `places`.
    pub fn new(places: usize) -> Block {
        Block {
            places: vec![0; places],
            length: 0,
            counts: [0; 256],
            start: 0,
            at: 0,
            left: 0,
            last: 0,
            row: 0,
            repeat: 0,
        }
    }

    /// Begins a block whose content begins at the place `start`.
    pub const fn begin(&mut self, start: usize) {
        self.start = start;
        (self.length, self.counts, self.left) = (0, [0; 256], 0);
        (self.last, self.row, self.repeat) = (0, 0, 0);
    }

    /// The most places.
    pub const fn places_max(&self) -> usize {
        self.places.len()
    }

    /// How many places are taken.
    pub const fn length(&self) -> usize {
        self.length
    }

    #[inline(always)]
    pub fn push(&mut self, byte: u8) -> Result<(), Full> {
        *self.places.get_mut(self.length).ok_or(Full)? = byte.into();
        self.counts[usize::from(byte)] += 1;
        self.length += 1;
        Ok(())
    }

    pub fn extend(&mut self, byte: u8, count: usize) -> Result<(), Full> {
        let behind = self.places.get_mut(self.length..).unwrap_or_default();
        behind.get_mut(..count).ok_or(Full)?.fill(byte.into());
        self.counts[usize::from(byte)] += count as u32;
        self.length += count;
        Ok(())
    }

    /// Finds the way; `None` if it begins nowhere.
    pub fn sort(&mut self) -> Option<()> {
        let places = &mut self.places[..self.length];
        let mut next = self.counts;
        let mut sum = 0;
        for count in &mut next {
            sum += std::mem::replace(count, sum);
        }
        for index in 0..places.len() {
            let next = &mut next[places[index] as usize & 0xff];
            places[*next as usize] |= (index as u32) << 8;
            *next += 1;
        }
        self.at = places.get(self.start)? >> 8;
        self.left = self.length;
        Some(())
    }

    pub const fn is_told(&self) -> bool {
        self.left == 0 && self.repeat == 0
    }

    /// Writes content: behind four equal bytes stands how often the byte comes still.
    pub fn tell(&mut self, output: &mut [u8]) -> usize {
        let places = &self.places[..self.length];
        let (mut at, mut left, mut last, mut row) = (self.at, self.left, self.last, self.row);
        let mut wrote = 0;
        while wrote < output.len() {
            if self.repeat > 0 {
                let count = usize::from(self.repeat).min(output.len() - wrote);
                output[wrote..wrote + count].fill(last);
                self.repeat -= count as u8;
                wrote += count;
                continue;
            }
            if left == 0 {
                break;
            }
            let place = places[at as usize];
            let byte = place as u8;
            at = place >> 8;
            left -= 1;
            if row == 4 {
                (self.repeat, row) = (byte, 0);
                continue;
            }
            row = if byte == last { row + 1 } else { 1 };
            last = byte;
            output[wrote] = byte;
            wrote += 1;
        }
        (self.at, self.left, self.last, self.row) = (at, left, last, row);
        wrote
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(sorted: &[u8], start: usize, window: usize) -> Vec<u8> {
        let mut block = Block::new(100);
        block.begin(start);
        sorted.iter().for_each(|&byte| block.push(byte).expect("there is room"));
        block.sort().expect("it begins somewhere");
        let (mut content, mut output) = (Vec::new(), vec![0; window]);
        while !block.is_told() {
            let wrote = block.tell(&mut output);
            content.extend_from_slice(&output[..wrote]);
        }
        content
    }

    #[test]
    fn the_way_is_found() {
        assert_eq!(tell(b"nnbaaa", 3, 100), b"banana");
    }

    #[test]
    fn runs_are_lengthened_whatever_the_window() {
        // Of equal bytes any order is the sorted one: five of them are four and a count of 97.
        for window in [1, 3, 50, 200] {
            assert_eq!(tell(b"aaaaa", 0, window), [b'a'; 4 + 97]);
        }
    }

    #[test]
    fn a_block_is_no_longer_than_it_may_be() {
        let mut block = Block::new(3);
        block.begin(2);
        assert!(block.extend(7, 4).is_err());
        assert!(block.extend(7, 2).is_ok() && block.sort().is_none());
        assert!(block.push(7).is_ok() && block.push(7).is_err());
    }
}
