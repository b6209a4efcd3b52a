//! A filter over grams and what stands beside them: what of the grams that passed the first filter is looked up.
//!
//! An anchor's window has as many bytes as half the distance between offsets at least before its gram, or behind it. A gram with
//! these is rarer than the gram alone, and a filter of them is smaller than the table. Both sides of a gram are in one cache line.

use std::io;

use bytemuck::{Pod, Zeroable};

use crate::flat::{Flat, Reader, Unfit, Writer};
use crate::sweep::prefetch;

/// So many salts are tried.
const SALTS: u64 = 8;
/// Grams of one line, on average: 16 bits for each.
const GRAMS: usize = 32;

/// A cache line.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u32; 16]);

/// The four bytes before a gram, or behind it, and which of both; the close ones are half as many as offsets are apart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Before(u32),
    Behind(u32),
    CloseBefore(u32),
    CloseBehind(u32),
}

/// A set of grams with a side, that never denies a member.
#[derive(Debug, Clone)]
pub(crate) struct Wider {
    lines: Flat<Line>,
    /// Is added to what stands beside a gram.
    salt: u64,
}

impl Wider {
    /// The set of these, about so many, each with the hash of its gram, salted so that few of `rows` are in by chance: they are
    /// grams with the hash and the four bytes before and behind, those first of which content has most.
    pub(crate) fn new(about: usize, grams: impl Iterator<Item = (u64, Side)> + Clone, rows: &[(u64, u32)]) -> Wider {
        let harm = |wider: &Wider| {
            let has =
                |(hash, bytes): (u64, u32)| wider.has::<2>(hash, bytes, bytes) | wider.has::<4>(hash, bytes, bytes);
            let harms = rows.iter().enumerate().filter(|(_, row)| has(**row));
            harms.map(|(number, _)| if number == 0 { rows.len() } else { 1 }).sum::<usize>()
        };
        let all = (0..SALTS).map(|number| Wider::salted(about, grams.clone(), number << 36));
        let (mut best, mut least) = (None, usize::MAX);
        for wider in all {
            let harm = harm(&wider);
            if harm < least {
                (best, least) = (Some(wider), harm);
            }
            if least == 0 {
                break;
            }
        }
        best.expect("there are salts")
    }

    fn salted(about: usize, grams: impl Iterator<Item = (u64, Side)>, salt: u64) -> Wider {
        let mut lines = vec![Line([0; 16]); about / GRAMS + 1];
        let count = lines.len();
        for (hash, side) in grams {
            let (word, bits) = look(hash, side, salt);
            lines[line(count, hash)].0[word] |= bits;
        }
        Wider { lines: lines.into(), salt }
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&[self.salt])?;
        writer.array(&self.lines)
    }

    pub(crate) fn load(reader: &mut Reader) -> Result<Wider, Unfit> {
        let [salt] = reader.values::<u64, 1>()?;
        let lines: Flat<Line> = reader.array()?;
        let fits = !lines.is_empty() && u32::try_from(lines.len()).is_ok();
        if fits { Ok(Wider { lines, salt }) } else { Err(Unfit::Malformed) }
    }

    /// Whether the gram with that hash may be a member with the bytes before it or with those behind it.
    #[inline(always)]
    pub(crate) fn has<const S: usize>(&self, hash: u64, before: u32, behind: u32) -> bool {
        let line = &self.lines[line(self.lines.len(), hash)].0;
        let is_in = |side: Side| {
            let (word, bits) = look(hash, side, self.salt);
            line[word] & bits == bits
        };
        let is_in_far = is_in(Side::Before(before)) | is_in(Side::Behind(behind));
        // Of the longest windows there are always four bytes beside a gram.
        if S == 8 {
            return is_in_far;
        }
        let rest = 32 - 4 * S as u32;
        is_in_far | is_in(Side::CloseBefore(before >> rest)) | is_in(Side::CloseBehind(behind & u32::MAX >> rest))
    }

    /// Brings nearer what is asked for the gram with that hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.lines[line(self.lines.len(), hash)]);
    }

    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }
}

#[inline(always)]
fn line(lines: usize, hash: u64) -> usize {
    (((hash >> 32) * lines as u64) >> 32) as usize
}

/// Word of a line, and the bits in it.
#[inline(always)]
fn look(hash: u64, side: Side, salt: u64) -> (usize, u32) {
    let number = match side {
        Side::Before(bytes) => u64::from(bytes),
        Side::Behind(bytes) => u64::from(bytes) | 1 << 32,
        Side::CloseBefore(bytes) => u64::from(bytes) | 2 << 32,
        Side::CloseBehind(bytes) => u64::from(bytes) | 3 << 32,
    };
    let mixed = (u64::from(hash as u32) + number + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bit = |shift: u32| 1 << (mixed >> shift & 31);
    ((mixed >> 60) as usize, bit(55) | bit(50))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_not_in_by_chance() {
        let rows: Vec<(u64, u32)> = (0..256_u64).map(|byte| (byte.wrapping_mul(0x9e37_79b9_7f4a_7c15), 7)).collect();
        let mut unsalted = 0;
        for set in 0..40_u64 {
            let hashes = (1..=3000).map(|number: u64| (number + 3000 * set).wrapping_mul(0xc2b2_ae3d_27d4_eb4f));
            let members = hashes.map(|hash| (hash, Side::Behind(hash as u32)));
            let has_first = |wider: &Wider| wider.has::<2>(rows[0].0, rows[0].1, rows[0].1);
            unsalted += usize::from(has_first(&Wider::salted(3000, members.clone(), 0)));
            assert!(!has_first(&Wider::new(3000, members.clone(), &rows)));
        }
        assert!(unsalted > 0);
    }

    #[test]
    fn members_are_in_on_their_side_and_few_others_are() {
        let hashes = (1..=100_000u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number << 40);
        let side = |hash: u64| if hash & 1 == 0 { Side::Before(hash as u32) } else { Side::Behind(hash as u32) };
        let members: Vec<_> = hashes.map(|hash| (hash, side(hash))).collect();
        for members in [&members[..], &members[..1000], &members[..1]] {
            let wider = Wider::new(members.len(), members.iter().copied(), &[]);
            let all = |(hash, side): &(u64, Side)| match *side {
                Side::Before(bytes) => wider.has::<8>(*hash, bytes, !bytes),
                Side::Behind(bytes) | Side::CloseBefore(bytes) | Side::CloseBehind(bytes) => {
                    wider.has::<8>(*hash, !bytes, bytes)
                }
            };
            assert!(members.iter().all(all));
            let others = members.iter().filter(|(hash, _)| wider.has::<8>(*hash, !(*hash as u32), 7)).count();
            assert!(others * 6 < members.len(), "{others} of {}", members.len());
        }
    }
}
