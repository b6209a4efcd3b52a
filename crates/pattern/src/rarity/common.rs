//! Grams that are commoner than the pairs of bytes in them let expect: instruction sequences, padding, tables.
//!
//! `data/common.bin` has the commonest of them, five bytes each: a [`key`], the lowest byte first, and the cost in eighths of
//! a bit in the kind of content where it is commonest; those of each length together, in the order of [`COUNTS`]. It was
//! made by `examples/common.rs`.

use std::sync::OnceLock;

/// How long grams are, and how many of that length there are.
pub const COUNTS: [(usize, usize); 3] = [(8, 65_536), (6, 32_768), (4, 16_384)];

static TABLE: &[u8; 5 * (COUNTS[0].1 + COUNTS[1].1 + COUNTS[2].1)] = include_bytes!("../../data/common.bin");

/// Slots of the table that is made of it; three quarters are free.
const SLOTS: usize = 1 << 18;

/// The cost of a gram if it is one of them, in eighths of a bit.
pub fn cost(gram: &[u8]) -> Option<u32> {
    static SLOTTED: OnceLock<Slotted> = OnceLock::new();
    let Slotted { slots, seen } = SLOTTED.get_or_init(slotted);
    let key = key(number(gram), gram.len());
    if !seen_at(key).into_iter().all(|(word, bit)| seen[word] & bit != 0) {
        return None;
    }
    let (before, from) = slots.split_at(home(key));
    let mut all = from.iter().chain(before).take_while(|slot| slot.0 != 0);
    all.find(|slot| slot.0 == key).map(|slot| u32::from(slot.1))
}

/// The table by keys.
struct Slotted {
    slots: Vec<(u32, u8)>,
    /// Two bits for each key that is there: most that are asked for are not, and this is in the cache.
    seen: Vec<u64>,
}

/// Bits of [`Slotted::seen`].
const SEEN: usize = 1 << 20;

/// The words of the bits of a key, and these.
fn seen_at(key: u32) -> [(usize, u64); 2] {
    let other = key.wrapping_mul(0x9e37_79b1);
    [key, other].map(|key| {
        let at = (key >> (u32::BITS - SEEN.ilog2())) as usize;
        (at / 64, 1 << (at % 64))
    })
}

fn slotted() -> Slotted {
    let mut slots = vec![(0, 0); SLOTS];
    let mut seen = vec![0; SEEN / 64];
    for entry in TABLE.as_chunks::<5>().0 {
        let [a, b, c, d, cost] = *entry;
        let key = u32::from_le_bytes([a, b, c, d]);
        let mut at = home(key);
        while slots[at].0 != 0 && slots[at].0 != key {
            at = (at + 1) % SLOTS;
        }
        slots[at] = (key, cost);
        seen_at(key).into_iter().for_each(|(word, bit)| seen[word] |= bit);
    }
    Slotted { slots, seen }
}

fn home(key: u32) -> usize {
    key as usize % SLOTS
}

/// Up to eight bytes as a number, the lowest first.
pub fn number(gram: &[u8]) -> u64 {
    match gram.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => gram.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

/// Stands for a gram of `q` bytes; of others it is another, but for one in thousands of millions. Never 0.
pub fn key(gram: u64, q: usize) -> u32 {
    let mixed = (gram ^ (q as u64) << 60).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32 | 1
}
