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

/// The grams of one length.
#[derive(Clone, Copy)]
pub struct Common {
    table: &'static Slotted,
    q: usize,
}

impl Common {
    /// Common grams of `q` bytes, if there are any.
    pub fn of(q: usize) -> Option<Common> {
        static SLOTTED: OnceLock<Slotted> = OnceLock::new();
        let is_there = COUNTS.iter().any(|(length, _)| *length == q);
        is_there.then(|| Common { table: SLOTTED.get_or_init(slotted), q })
    }

    /// The cost of a gram if it is one of them, in eighths of a bit.
    #[inline]
    pub fn cost(&self, gram: u64) -> Option<u32> {
        let key = key(gram, self.q);
        let (word, bits) = seen_at(key);
        if self.table.seen[word] & bits == bits { self.table.find(key) } else { None }
    }
}

/// The table by keys.
struct Slotted {
    slots: Vec<(u32, u8)>,
    /// Two bits of one word for each key that is there: most that are asked for are not, and this is in the cache.
    seen: Vec<u64>,
}

impl Slotted {
    fn find(&self, key: u32) -> Option<u32> {
        let (before, from) = self.slots.split_at(home(key));
        let mut all = from.iter().chain(before).take_while(|slot| slot.0 != 0);
        all.find(|slot| slot.0 == key).map(|slot| u32::from(slot.1))
    }
}

/// Words of [`Slotted::seen`].
const SEEN: usize = 1 << 14;

/// The word of a key, and its bits.
fn seen_at(key: u32) -> (usize, u64) {
    let other = key.wrapping_mul(0x9e37_79b1);
    (((other >> 12) as usize) % SEEN, 1 << (key >> 26) | 1 << (other >> 26))
}

fn slotted() -> Slotted {
    let mut slots = vec![(0, 0); SLOTS];
    let mut seen = vec![0; SEEN];
    for entry in TABLE.as_chunks::<5>().0 {
        let [a, b, c, d, cost] = *entry;
        let key = u32::from_le_bytes([a, b, c, d]);
        let mut at = home(key);
        while slots[at].0 != 0 && slots[at].0 != key {
            at = (at + 1) % SLOTS;
        }
        slots[at] = (key, cost);
        let (word, bits) = seen_at(key);
        seen[word] |= bits;
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
