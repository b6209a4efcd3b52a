//! LZMS, what solid images of Windows are packed with: one chunk, told when it is unpacked whole.
//!
//! Decisions come from the front of the chunk, by a range coder over words; symbols and bits from its end, by codes that
//! follow the frequencies. Items are literals, matches and deltas: repeats of the differences between bytes some places
//! apart. At last the targets of calls of x86 are made relative again (`calls`).
//!
//! Bounds: the chunk, packed and unpacked, which its user bounds, growing with the data; codes of 799 symbols.
//! Source: the descriptions of the format in wimlib.

mod calls;
mod code;
mod decisions;

use code::{Backward, Code};
use decisions::{Decision, Decisions};

use crate::frame::held::repeat;

/// Offsets and pairs that may be repeated.
const RECENT: usize = 3;
const LENGTHS: usize = 54;

/// An unpacker of one chunk.
pub(crate) struct Lzms {
    decisions: Decisions,
    bits: Backward,
    is_match: Decision<16>,
    is_delta: Decision<32>,
    match_repeats: Decision<64>,
    match_rank: [Decision<64>; 2],
    delta_repeats: Decision<64>,
    delta_rank: [Decision<64>; 2],
    literals: Code,
    lengths: Code,
    offsets: Code,
    powers: Code,
    delta_offsets: Code,
    recent_matches: Recent,
    recent_deltas: Recent,
    before: Item,
    content: Vec<u8>,
    bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    Literal,
    Match,
    Delta,
}

/// Offsets or pairs used before, the latest first. The latest cannot be chosen while items of its kind follow each other.
struct Recent([u64; RECENT + 1]);

impl Recent {
    const fn new() -> Recent {
        Recent([1, 2, 3, 4])
    }

    fn add(&mut self, value: u64) {
        self.0.copy_within(0..RECENT, 1);
        self.0[0] = value;
    }

    /// Takes the one of this rank to the front.
    fn repeat(&mut self, rank: usize, is_waiting: bool) -> u64 {
        let at = rank + usize::from(is_waiting);
        let value = self.0[at];
        self.0.copy_within(0..at, 1);
        self.0[0] = value;
        value
    }
}

impl Lzms {
    /// Begins a chunk with so many bytes of output; `None` if it is invalid.
    pub fn new(packed: Vec<u8>, bytes: usize) -> Option<Lzms> {
        const PACKED_BYTES_MIN: usize = 4;
        if packed.len() < PACKED_BYTES_MIN || !packed.len().is_multiple_of(2) {
            return None;
        }
        let offsets = code::offsets(bytes);
        Some(Lzms {
            decisions: Decisions::new(&packed),
            bits: Backward::new(packed),
            is_match: Decision::new(),
            is_delta: Decision::new(),
            match_repeats: Decision::new(),
            match_rank: [Decision::new(), Decision::new()],
            delta_repeats: Decision::new(),
            delta_rank: [Decision::new(), Decision::new()],
            literals: Code::new(256, 1024),
            lengths: Code::new(LENGTHS, 512),
            offsets: Code::new(offsets, 1024),
            powers: Code::new(8, 512),
            delta_offsets: Code::new(offsets, 1024),
            recent_matches: Recent::new(),
            recent_deltas: Recent::new(),
            before: Item::Literal,
            content: Vec::new(),
            bytes,
        })
    }

    /// Unpacks some thousand bytes more. Returns whether the chunk is complete; `None` if it is invalid.
    pub fn run(&mut self) -> Option<bool> {
        const SLICE: usize = 32 << 10;
        let until = self.bytes.min(self.content.len() + SLICE);
        while self.content.len() < until {
            self.item()?;
        }
        Some(self.content.len() >= self.bytes)
    }

    /// The unpacked content, as it was before it was packed.
    pub fn content(mut self) -> Vec<u8> {
        calls::restore(&mut self.content);
        self.content
    }

    fn item(&mut self) -> Option<()> {
        let packed = self.bits.packed();
        if !self.is_match.next(&mut self.decisions, packed) {
            self.content.push(self.literals.read(&mut self.bits)? as u8);
            self.before = Item::Literal;
            return Some(());
        }
        if self.is_delta.next(&mut self.decisions, packed) { self.delta() } else { self.repeat() }
    }

    fn repeat(&mut self) -> Option<()> {
        let is_waiting = self.before == Item::Match;
        let packed = self.bits.packed();
        let offset = match self.match_repeats.next(&mut self.decisions, packed) {
            false => {
                let offset = code::OFFSETS.read(&mut self.offsets, &mut self.bits)?;
                self.recent_matches.add(offset.into());
                u64::from(offset)
            }
            true => {
                let rank = rank(&mut self.match_rank, &mut self.decisions, packed);
                self.recent_matches.repeat(rank, is_waiting)
            }
        };
        self.before = Item::Match;
        let length = code::LENGTHS.read(&mut self.lengths, &mut self.bits)?;
        repeat(&mut self.content, usize::try_from(offset).ok()?, length as usize, self.bytes).then_some(())
    }

    fn delta(&mut self) -> Option<()> {
        let is_waiting = self.before == Item::Delta;
        let packed = self.bits.packed();
        let pair = match self.delta_repeats.next(&mut self.decisions, packed) {
            false => {
                let power = self.powers.read(&mut self.bits)? as u64;
                let offset = code::OFFSETS.read(&mut self.delta_offsets, &mut self.bits)?;
                let pair = power << 32 | u64::from(offset);
                self.recent_deltas.add(pair);
                pair
            }
            true => {
                let rank = rank(&mut self.delta_rank, &mut self.decisions, packed);
                self.recent_deltas.repeat(rank, is_waiting)
            }
        };
        self.before = Item::Delta;
        let length = code::LENGTHS.read(&mut self.lengths, &mut self.bits)? as usize;
        let span = 1usize << (pair >> 32);
        let offset = (pair as u32 as usize).checked_mul(span)?;
        let start = self.content.len();
        if offset == 0 || offset.checked_add(span)? > start || length > self.bytes - start {
            return None;
        }
        for at in start..start + length {
            let change = self.content[at - span].wrapping_sub(self.content[at - offset - span]);
            self.content.push(self.content[at - offset].wrapping_add(change));
        }
        Some(())
    }
}

fn rank(ranks: &mut [Decision<64>; 2], decisions: &mut Decisions, packed: &[u8]) -> usize {
    let [first, second] = ranks;
    if !first.next(decisions, packed) {
        return 0;
    }
    1 + usize::from(second.next(decisions, packed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_waits_while_its_kind_goes_on() {
        let mut recent = Recent::new();
        recent.add(9);
        assert_eq!(recent.repeat(0, true), 1);
        assert_eq!(recent.0, [1, 9, 2, 3]);
        assert_eq!(recent.repeat(0, false), 1);
        assert_eq!(recent.repeat(2, false), 2);
        assert_eq!(recent.0, [2, 1, 9, 3]);
    }

    #[test]
    fn damage_never_panics_and_makes_no_more_than_it_may() {
        let mut state = 1u32;
        for bytes in (0..300).chain([100_000]) {
            let packed = (0..200).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            });
            let mut lzms = Lzms::new(packed.collect(), bytes).expect("it is long enough");
            while lzms.run() == Some(false) {}
            assert!(lzms.content().len() <= bytes);
        }
        assert!(Lzms::new(vec![0; 5], 10).is_none() && Lzms::new(vec![0; 2], 10).is_none());
    }
}
