//! The tables of RAR 2 and 3: lengths and distances whose upper part is a slot and whose lower part is plain bits.

use crate::bits::pushed::Bits;

/// A range of numbers: the first of it, and the bits that tell one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub base: usize,
    pub bits: u32,
}

impl Slot {
    /// Reads a number of the range.
    #[inline(always)]
    pub fn read(self, bits: &mut Bits) -> usize {
        self.base + bits.take(self.bits) as usize
    }
}

/// Lengths less their minimum.
pub(super) const LENGTHS: [Slot; 28] = lengths();

/// Distances of matches of two bytes, less one.
pub(super) const SHORT_DISTANCES: [Slot; 8] = {
    const BITS: [u32; 8] = [2, 2, 3, 4, 5, 6, 6, 6];
    let mut slots = [Slot { base: 0, bits: 0 }; 8];
    let (mut at, mut base) = (0, 0);
    while at < 8 {
        slots[at] = Slot { base, bits: BITS[at] };
        base += 1 << BITS[at];
        at += 1;
    }
    slots
};

const fn lengths() -> [Slot; 28] {
    let mut slots = [Slot { base: 0, bits: 0 }; 28];
    let (mut at, mut base) = (0, 0);
    while at < 28 {
        let bits = if at < 8 { 0 } else { at / 4 - 1 };
        slots[at] = Slot { base, bits: bits as u32 };
        base += 1 << bits;
        at += 1;
    }
    slots
}

/// Distances less one: two slots for each number of bits, and at the end as many as are wanted of 16 and of 18 bits.
pub(super) const fn distances<const N: usize>() -> [Slot; N] {
    const SIXTEEN_FROM: usize = 34;
    const EIGHTEEN_FROM: usize = 48;
    let mut slots = [Slot { base: 0, bits: 0 }; N];
    let (mut at, mut base) = (0, 0);
    while at < N {
        let bits = match at {
            0..4 => 0,
            4..SIXTEEN_FROM => at / 2 - 1,
            SIXTEEN_FROM..EIGHTEEN_FROM => 16,
            _ => 18,
        };
        slots[at] = Slot { base, bits: bits as u32 };
        base += 1 << bits;
        at += 1;
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_reach_as_far_as_the_formats_do() {
        assert_eq!(LENGTHS[27], Slot { base: 224, bits: 5 });
        assert_eq!(SHORT_DISTANCES[7], Slot { base: 192, bits: 6 });
        let old = distances::<48>();
        assert_eq!(old[47], Slot { base: 0x10_0000 - 0x1_0000, bits: 16 });
        let new = distances::<60>();
        assert_eq!(new[59], Slot { base: 0x40_0000 - 0x4_0000, bits: 18 });
    }
}
