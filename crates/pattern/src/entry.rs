//! What a table entry leads to: the window of an anchor and the part that it belongs to.

use bytemuck::{Pod, Zeroable};

use crate::anchor::Anchor;

/// The longest window.
const WINDOW_BYTES_MAX: usize = 16;
/// The bit in which the cases of an ASCII letter differ, for each byte of a window.
const FOLD: u128 = u128::MAX / 0xff * 0x20;

/// An anchor. Half a cache line, and all that is looked at of a part when its q-gram stands in the stream by chance.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(32))]
pub(crate) struct Entry {
    window: u128,
    /// The first op of the part.
    pub(crate) op: u32,
    /// Where its distances begin in the pool of distances.
    distances: u32,
    distances_count: u16,
    window_bytes: u8,
    caseless: u8,
    padding: u32,
}

impl Entry {
    /// The entry of an anchor whose distances begin at `distances` in the pool.
    pub(crate) fn new(anchor: &Anchor, op: u32, distances: u32) -> Entry {
        let mut window = [0; WINDOW_BYTES_MAX];
        window[..anchor.window.len()].copy_from_slice(&anchor.window);
        let mut entry = Entry {
            window: u128::from_le_bytes(window),
            op,
            distances,
            distances_count: anchor.distances.len() as u16,
            window_bytes: anchor.window.len() as u8,
            caseless: anchor.caseless.into(),
            padding: 0,
        };
        entry.window = (entry.window | entry.fold()) & entry.mask();
        entry
    }

    /// Whether what it refers to is there: so many ops and distances.
    pub(crate) fn fits(&self, ops: usize, distances: usize) -> bool {
        (1..=WINDOW_BYTES_MAX).contains(&usize::from(self.window_bytes))
            && (self.op as usize) < ops
            && self.distances as usize + usize::from(self.distances_count) <= distances
    }

    /// Whether the window may stand at the start of `bytes`. The part itself is compared later, so that where less
    /// than [`WINDOW_BYTES_MAX`] has arrived the answer is yes.
    #[inline]
    pub(crate) fn may_stand(&self, bytes: &[u8]) -> bool {
        let Some(bytes) = bytes.first_chunk() else {
            return true;
        };
        (u128::from_le_bytes(*bytes) | self.fold()) & self.mask() == self.window
    }

    /// The distances from the start of the part to the start of the window.
    pub(crate) fn distances<'a>(&self, pool: &'a [u16]) -> &'a [u16] {
        let first = self.distances as usize;
        &pool[first..first + usize::from(self.distances_count)]
    }

    fn mask(&self) -> u128 {
        u128::MAX >> (128 - 8 * u32::from(self.window_bytes))
    }

    fn fold(&self) -> u128 {
        if self.caseless == 0 { 0 } else { FOLD }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::Shape;

    #[test]
    fn a_window_is_told_from_its_neighbours() {
        for (caseless, other_case) in [(false, false), (true, true)] {
            let anchor = Anchor { shape: Shape::Q4S4, window: b"SEVEN-B".to_vec(), caseless, distances: vec![0] };
            let entry = Entry::new(&anchor, 0, 0);
            assert!(entry.may_stand(b"SEVEN-B and so on"));
            assert_eq!(entry.may_stand(b"sEvEN-b and so on"), other_case);
            assert!(!entry.may_stand(b"SEVEN-C and so on"));
            assert!(entry.may_stand(b"too short"));
        }
    }
}
