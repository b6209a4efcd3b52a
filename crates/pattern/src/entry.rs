//! What a slot leads to: the part that an anchor belongs to, and how far behind its start the anchor stands.

use bytemuck::{Pod, Zeroable};

use crate::anchor::Anchor;

/// Says that an entry has its only distance in it, instead of a place in the pool.
const ONLY: u32 = 1 << 31;

/// An anchor.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Entry {
    /// The first op of the part.
    pub(crate) op: u32,
    /// The distance from the start of the part to the start of the window, or where in the pool there are several: their
    /// number, then they.
    distances: u32,
}

impl Entry {
    /// The entry of an anchor, whose distances are put into the pool if there are several.
    pub(crate) fn new(anchor: &Anchor, op: u32, pool: &mut Vec<u16>) -> Entry {
        if let [only] = anchor.distances[..] {
            return Entry { op, distances: ONLY | u32::from(only) };
        }
        let distances = pool.len() as u32;
        pool.push(anchor.distances.len() as u16);
        pool.extend_from_slice(&anchor.distances);
        Entry { op, distances }
    }

    /// Whether what it refers to is there: its op, and its distances in the pool.
    pub(crate) fn fits(&self, ops: usize, pool: &[u16]) -> bool {
        let place = self.distances as usize;
        let several = |count: &u16| place + 1 + usize::from(*count) <= pool.len();
        (self.op as usize) < ops && (self.distances & ONLY != 0 || pool.get(place).is_some_and(several))
    }

    /// The distances.
    #[inline]
    pub(crate) fn distances(&self, pool: &[u16]) -> impl Iterator<Item = u16> {
        let only = (self.distances & ONLY != 0).then_some(self.distances as u16);
        let several = if only.is_some() { &[] } else { &pool[self.distances as usize..] };
        let several = several.split_first().map_or(&[][..], |(&count, rest)| &rest[..usize::from(count)]);
        only.into_iter().chain(several.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::Shape;

    #[test]
    fn one_distance_or_several_come_back() {
        let mut pool = Vec::new();
        for distances in [vec![0], vec![240], vec![3, 5], vec![1, 2, 3]] {
            let anchor = Anchor { shape: Shape::Q4S4, window: vec![0; 7], caseless: false, distances };
            let entry = Entry::new(&anchor, 4, &mut pool);
            assert!(entry.fits(5, &pool) && !entry.fits(4, &pool));
            assert_eq!(entry.distances(&pool).collect::<Vec<_>>(), anchor.distances);
        }
        let beyond = Entry { op: 0, distances: 3 };
        assert!(beyond.fits(1, &pool) && !beyond.fits(1, &pool[..6]) && !beyond.fits(1, &[]));
    }
}
