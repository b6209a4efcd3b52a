//! Blocks that are held whole: collected as they arrive, unpacked at once, told piece by piece.
//!
//! Bounds: one block, packed and unpacked; its user says how long either may be. Memory grows with what arrives.

/// A block on its way through.
#[derive(Default)]
pub(crate) struct Held {
    packed: Vec<u8>,
    content: Vec<u8>,
    told: usize,
}

impl Held {
    /// Collects until `wanted` bytes are held. Returns how many were taken.
    pub fn fill(&mut self, input: &[u8], wanted: usize) -> usize {
        let taken = wanted.saturating_sub(self.packed.len()).min(input.len());
        self.packed.extend_from_slice(&input[..taken]);
        taken
    }

    /// Collected bytes.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// Unpacks the collected bytes into the empty content. Returns the result of `unpack`.
    pub fn unpack(&mut self, unpack: impl FnOnce(&[u8], &mut Vec<u8>) -> bool) -> bool {
        self.content.clear();
        self.told = 0;
        let sound = unpack(&self.packed, &mut self.content);
        self.packed.clear();
        sound
    }

    /// Unpacked bytes.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Writes more of the content; how much that was, 0 when all is emitted.
    pub fn tell(&mut self, output: &mut [u8]) -> usize {
        let left = &self.content[self.told..];
        let count = left.len().min(output.len());
        output[..count].copy_from_slice(&left[..count]);
        self.told += count;
        count
    }
}

/// Repeats `length` bytes that begin `distance` before the end of `content`. Returns whether they exist, and all fits.
pub(crate) fn repeat(content: &mut Vec<u8>, distance: usize, length: usize, bytes_max: usize) -> bool {
    let Some(start) = content.len().checked_sub(distance).filter(|_| distance > 0) else {
        return false;
    };
    if length > bytes_max.saturating_sub(content.len()) {
        return false;
    }
    // A match that overlaps itself repeats its bytes.
    let mut left = length;
    while left > 0 {
        let count = left.min(content.len() - start);
        content.extend_from_within(start..start + count);
        left -= count;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_may_overlap_itself() {
        let mut content = b"abc".to_vec();
        assert!(repeat(&mut content, 2, 5, 100));
        assert_eq!(content, b"abcbcbcb");
        assert!(!repeat(&mut content, 9, 1, 100));
        assert!(!repeat(&mut content, 0, 1, 100));
        assert!(!repeat(&mut content, 1, 3, 10));
    }
}
