//! States as bytes: flags, the matches that are known, and the steps.

use super::side::Side;

/// First byte of a state's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    const MATCH: u8 = 1;
    const SEARCHING: u8 = 2;

    /// Matches may begin behind it.
    pub fn searching(behind: Side) -> Flags {
        Flags(Flags::SEARCHING | (behind as u8) << 2)
    }

    /// Only what has begun is followed.
    pub fn alone(behind: Side) -> Flags {
        Flags((behind as u8) << 2)
    }

    /// A match, after which nothing else can change.
    pub fn matched() -> Flags {
        Flags(Flags::MATCH)
    }

    pub fn is_match(self) -> bool {
        self.0 & Flags::MATCH != 0
    }

    pub fn is_searching(self) -> bool {
        self.0 & Flags::SEARCHING != 0
    }

    /// Side that was passed, as far as it matters.
    pub fn side(self) -> Side {
        Side::ALL[usize::from(self.0 >> 2 & 3)]
    }
}

/// A state that is being written.
#[derive(Debug)]
pub(super) struct Key {
    bytes: Vec<u8>,
    last: u32,
}

impl Key {
    pub fn new(flags: Flags) -> Key {
        Key { bytes: vec![flags.0], last: 0 }
    }

    /// A match is known to have ended in front of the byte that led here, of these patterns.
    pub fn matched(&mut self, patterns: &[u32]) {
        self.bytes[0] |= Flags::MATCH;
        if !patterns.is_empty() {
            put(&mut self.bytes, patterns.len() as u32);
            patterns.iter().for_each(|&pattern| put(&mut self.bytes, pattern));
        }
    }

    /// Adds a step, as its distance from the last, near ones on both sides in one byte.
    pub fn push(&mut self, step: u32) {
        let distance = step.wrapping_sub(self.last) as i32;
        put(&mut self.bytes, (distance << 1 ^ distance >> 31) as u32);
        self.last = step;
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Whether nothing can match any more, and nothing has.
pub(super) fn is_dead(key: &[u8]) -> bool {
    key.len() == 1 && flags(key).0 & (Flags::MATCH | Flags::SEARCHING) == 0
}

pub(super) fn flags(key: &[u8]) -> Flags {
    Flags(key.first().copied().unwrap_or(0))
}

/// The flags and the steps of a state; `tells` says that states tell which patterns matched.
pub(super) fn read(key: &[u8], tells: bool) -> (Flags, impl Iterator<Item = u32>) {
    let flags = flags(key);
    let mut rest = key.get(1..).unwrap_or_default();
    if tells && flags.is_match() {
        for _ in 0..get(&mut rest).unwrap_or(0) {
            get(&mut rest);
        }
    }
    let mut last = 0u32;
    let steps = std::iter::from_fn(move || {
        let coded = get(&mut rest)?;
        last = last.wrapping_add((coded >> 1) ^ (coded & 1).wrapping_neg());
        Some(last)
    });
    (flags, steps)
}

/// The patterns that matched.
pub(super) fn patterns(key: &[u8]) -> impl Iterator<Item = u32> {
    let mut rest = key.get(1..).unwrap_or_default();
    let count = if flags(key).is_match() { get(&mut rest).unwrap_or(0) } else { 0 };
    (0..count).map_while(move |_| get(&mut rest))
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn put(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn get(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..32).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
