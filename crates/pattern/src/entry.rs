//! Target of a slot: the part that an anchor belongs to, and the distance of the anchor from its start.
//!
//! There is one for each part, and its number is the part's. A part of nothing but a few fixed bytes has no program: its
//! entry says which bytes.

use bytemuck::{Pod, Zeroable};

use crate::code::STRIDE;
use crate::run::REACH_MAX;

/// Start of the comparison of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// So many bytes of the pool of literals, up to [`STRIDE`], from there on, and nothing else.
    Literal { at: u32, length: u8 },
    /// A program that begins with that op.
    Op(u32),
}

/// In place of the length of a literal: a program.
const PROGRAM: u8 = 0;
/// A program, and several distances: its first op in two halves, the number of distances, and they, lie in the pool.
const SEVERAL: u8 = u8::MAX;

const _: () = assert!(STRIDE < SEVERAL as usize && REACH_MAX <= u8::MAX as usize);

/// An anchor's part, in six bytes.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Entry {
    /// Where the literal is, or the first op, or the place in the pool; the low half first.
    what: [u16; 2],
    length: u8,
    /// From the start of the part to the start of the window.
    distance: u8,
}

impl Entry {
    /// That of a part which no slot leads to.
    pub(crate) const NONE: Entry = Entry { what: [0; 2], length: PROGRAM, distance: 0 };

    /// The entry of an anchor at these distances. A literal has one; several are put into the pool.
    pub(crate) fn new(distances: &[u16], start: Start, pool: &mut Vec<u16>) -> Entry {
        match (start, distances) {
            (Start::Literal { at, length }, &[only]) => Entry { what: halves(at), length, distance: only as u8 },
            (Start::Op(op), &[only]) => Entry { what: halves(op), length: PROGRAM, distance: only as u8 },
            (Start::Literal { at: op, .. } | Start::Op(op), several) => {
                let place = pool.len() as u32;
                pool.extend(halves(op));
                pool.push(several.len() as u16);
                pool.extend_from_slice(several);
                Entry { what: halves(place), length: SEVERAL, distance: 0 }
            }
        }
    }

    /// Whether what it refers to is there.
    pub(crate) fn fits(&self, ops: usize, literals: usize, pool: &[u16]) -> bool {
        let what = whole(self.what) as usize;
        match self.length {
            PROGRAM => what < ops || self.what == Entry::NONE.what,
            SEVERAL => pool.get(what..).is_some_and(|entry| match entry {
                [low, high, count, rest @ ..] => {
                    (whole([*low, *high]) as usize) < ops && rest.len() >= usize::from(*count)
                }
                _ => false,
            }),
            length => usize::from(length) <= STRIDE && what + usize::from(length) <= literals,
        }
    }

    /// Start of the comparison of the part.
    #[inline]
    pub(crate) fn start(&self, pool: &[u16]) -> Start {
        let what = whole(self.what);
        match self.length {
            PROGRAM => Start::Op(what),
            SEVERAL => Start::Op(whole([pool[what as usize], pool[what as usize + 1]])),
            length => Start::Literal { at: what, length },
        }
    }

    /// The distances.
    #[inline]
    pub(crate) fn distances(&self, pool: &[u16]) -> impl Iterator<Item = u16> {
        let only = (self.length != SEVERAL).then_some(self.distance.into());
        let several = if only.is_some() { &[] } else { &pool[whole(self.what) as usize + 2..] };
        let several = several.split_first().map_or(&[][..], |(&count, rest)| &rest[..usize::from(count)]);
        only.into_iter().chain(several.iter().copied())
    }
}

/// A number as its low and its high half.
pub(crate) fn halves(number: u32) -> [u16; 2] {
    [number as u16, (number >> 16) as u16]
}

/// The number of two halves.
#[inline(always)]
pub(crate) fn whole([low, high]: [u16; 2]) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_distance_or_several_come_back() {
        let mut pool = Vec::new();
        for distances in [vec![0], vec![240], vec![3, 5], vec![1, 2, 3]] {
            let entry = Entry::new(&distances, Start::Op(0x1_0004), &mut pool);
            assert!(entry.fits(0x1_0005, 0, &pool) && !entry.fits(0x1_0004, 0, &pool));
            assert_eq!(entry.distances(&pool).collect::<Vec<_>>(), distances);
            assert_eq!(entry.start(&pool), Start::Op(0x1_0004));
        }
        let beyond = Entry { what: [5, 0], length: SEVERAL, distance: 0 };
        assert!(beyond.fits(0x1_0005, 0, &pool));
        assert!(!beyond.fits(0x1_0005, 0, &pool[..10]) && !beyond.fits(0x1_0005, 0, &[]));
    }

    #[test]
    fn a_literal_is_in_the_pool_of_literals() {
        let entry = Entry::new(&[2], Start::Literal { at: 0x1_0000, length: 9 }, &mut Vec::new());
        assert_eq!(entry.start(&[]), Start::Literal { at: 0x1_0000, length: 9 });
        assert!(entry.fits(0, 0x1_0009, &[]) && !entry.fits(0, 0x1_0008, &[]));
    }
}
