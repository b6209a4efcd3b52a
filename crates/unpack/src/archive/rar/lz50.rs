//! The compression of RAR 5: LZ77 under Huffman codes, in blocks that tell their length.
//!
//! ```text
//! block := flags, checksum, length (1 to 3 bytes), [code lengths], symbols
//! symbol := literal | filter | the last match | an old distance, length | length, distance
//! ```
//! Version 1 of it (RAR 7) has longer distances.

use super::filter::{Filter, Kind};
use super::lz::{DATA, Model, Stop};
use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;

const MAIN: usize = 306;
const LOW_DISTANCES: usize = 16;
const REPEATED_LENGTHS: usize = 44;
const DISTANCES: usize = 64;
/// Distance codes of version 1.
const DISTANCES_LONG: usize = 80;
/// Number of code lengths; the last two hold zeros.
const LENGTH_CODES: usize = 20;

/// The most bits of a block header and its code lengths, and of a symbol.
const HEADER_BITS: usize = 8 * 1500;
const SYMBOL_BITS: usize = 160;

const FILTER: usize = 256;
const AGAIN: usize = 257;
const OLD_DISTANCES: usize = 258;
const LENGTHS: usize = 262;

/// The model.
pub(super) struct Lz50 {
    main: Huffman,
    distances: Huffman,
    low_distances: Huffman,
    repeated_lengths: Huffman,
    distance_codes: usize,
    has_codes: bool,
    old: [usize; 4],
    last_length: usize,
    block: Option<Block>,
    /// Whether the block that says it is the last has been read.
    over: bool,
}

#[derive(Clone, Copy)]
struct Block {
    /// Where it ends, in bits.
    end: u64,
    last: bool,
}

impl Lz50 {
    pub fn new(long_distances: bool) -> Lz50 {
        Lz50 {
            main: Huffman::new(),
            distances: Huffman::new(),
            low_distances: Huffman::new(),
            repeated_lengths: Huffman::new(),
            distance_codes: if long_distances { DISTANCES_LONG } else { DISTANCES },
            has_codes: false,
            old: [0; 4],
            last_length: 0,
            block: None,
            over: false,
        }
    }

    /// Reads the header of a block.
    fn header(&mut self, bits: &mut Bits) -> Result<(), Stop> {
        const CHECK: u32 = 0x5a;
        bits.align();
        let (flags, check) = (bits.take(8), bits.take(8));
        let length_bytes = (flags >> 3 & 3) + 1;
        if length_bytes > 3 {
            return Err(Stop::Fault(DATA));
        }
        let bytes: Vec<u32> = (0..length_bytes).map(|_| bits.take(8)).collect();
        let sum = bytes.iter().fold(CHECK ^ flags, |sum, byte| sum ^ byte);
        let length = bytes.iter().rev().fold(0, |length, byte| length << 8 | u64::from(*byte));
        if sum != check || bits.overran() {
            return Err(Stop::Fault(DATA));
        }
        let end = bits.position() + (length * 8 + u64::from(flags & 7) + 1).saturating_sub(8);
        self.block = Some(Block { end, last: flags & 0x40 != 0 });
        if flags & 0x80 != 0 {
            self.codes(bits).ok_or(Stop::Fault(DATA))?;
            self.has_codes = true;
        }
        if self.has_codes { Ok(()) } else { Err(Stop::Fault(DATA)) }
    }

    /// Reads the code lengths.
    fn codes(&mut self, bits: &mut Bits) -> Option<()> {
        let mut lengths = [0; LENGTH_CODES];
        read_code_lengths(bits, &mut lengths);
        let mut code = Huffman::new();
        code.set(&lengths).ok()?;
        let mut lengths = [0; MAIN + DISTANCES_LONG + LOW_DISTANCES + REPEATED_LENGTHS];
        let wanted = MAIN + self.distance_codes + LOW_DISTANCES + REPEATED_LENGTHS;
        let mut at = 0;
        while at < wanted {
            let (count, length) = match code.read(bits)? {
                length @ 0..16 => (1, length as u8),
                16 => (3 + bits.take(3), *lengths.get(at.checked_sub(1)?)?),
                17 => (11 + bits.take(7), *lengths.get(at.checked_sub(1)?)?),
                18 => (3 + bits.take(3), 0),
                _ => (11 + bits.take(7), 0),
            };
            let until = wanted.min(at + count as usize);
            lengths[at..until].fill(length);
            at = until;
        }
        let (main, rest) = lengths.split_at(MAIN);
        let (distances, rest) = rest.split_at(self.distance_codes);
        let (low_distances, rest) = rest.split_at(LOW_DISTANCES);
        self.main.set(main).ok()?;
        self.distances.set(distances).ok()?;
        self.low_distances.set(low_distances).ok()?;
        self.repeated_lengths.set(&rest[..REPEATED_LENGTHS]).ok()
    }

    /// A match of new length and distance.
    #[inline(always)]
    fn fresh(&mut self, symbol: usize, bits: &mut Bits) -> Option<(usize, usize)> {
        let length = length(symbol - LENGTHS, bits);
        let slot = self.distances.read(bits)?;
        let distance = self.distance(slot, bits)?;
        let longer = [0x100, 0x2000, 0x4_0000].iter().filter(|&&limit| distance > limit).count();
        self.old.rotate_right(1);
        self.old[0] = distance;
        Some((distance, length + longer))
    }

    #[inline(always)]
    fn distance(&mut self, slot: usize, bits: &mut Bits) -> Option<usize> {
        const LOW_BITS: u32 = 4;
        if slot < 4 {
            return Some(slot + 1);
        }
        let count = (slot / 2 - 1) as u32;
        let base = ((2 | slot & 1) as u64) << count;
        let more = if count < LOW_BITS {
            u64::from(bits.take(count))
        } else {
            let high = take_long(bits, count - LOW_BITS) << LOW_BITS;
            high | self.low_distances.read(bits)? as u64
        };
        usize::try_from(base + more + 1).ok()
    }

    /// A match at one of the last four distances.
    #[inline(always)]
    fn old(&mut self, index: usize, bits: &mut Bits) -> Option<(usize, usize)> {
        self.old[..=index].rotate_right(1);
        let slot = self.repeated_lengths.read(bits)?;
        Some((self.old[0], length(slot, bits)))
    }
}

impl Model for Lz50 {
    fn start(&mut self, solid: bool) {
        self.block = None;
        self.over = false;
        if !solid {
            self.has_codes = false;
            self.old = [0; 4];
            self.last_length = 0;
        }
    }

    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Stop {
        while history.position() < end {
            let Some(block) = self.block else {
                if self.over {
                    return Stop::Over;
                }
                if !bits.has(HEADER_BITS) || bits.is_at_end() {
                    return Stop::Input;
                }
                if let Err(stop) = self.header(bits) {
                    return stop;
                }
                continue;
            };
            if bits.position() >= block.end {
                self.block = None;
                self.over = block.last;
                continue;
            }
            if let Err(stop) = self.symbols(block.end, bits, history, end) {
                return stop;
            }
        }
        Stop::Full
    }
}

impl Lz50 {
    /// Reads symbols of a block until it ends or the history is at `end`.
    fn symbols(&mut self, block_end: u64, bits: &mut Bits, history: &mut History, end: u64) -> Result<(), Stop> {
        while history.position() < end && bits.position() < block_end {
            if !bits.has(SYMBOL_BITS) || bits.is_at_end() {
                return Err(Stop::Input);
            }
            let symbol = self.main.read(bits).ok_or(Stop::Fault(DATA))?;
            if symbol < FILTER {
                history.dictionary.push(symbol as u8);
                continue;
            }
            let found = match symbol {
                FILTER => return Err(filter(bits, history.position())),
                AGAIN if self.last_length == 0 => continue,
                AGAIN => Some((self.old[0], self.last_length)),
                OLD_DISTANCES..LENGTHS => self.old(symbol - OLD_DISTANCES, bits),
                _ => self.fresh(symbol, bits),
            };
            let (distance, length) = found.ok_or(Stop::Fault(DATA))?;
            self.last_length = length;
            history.copy(distance, length, end)?;
        }
        Ok(())
    }
}

/// The lengths of the code for code lengths: four bits each; a 15 with a number behind it is so many zeros and two more.
pub(super) fn read_code_lengths(bits: &mut Bits, lengths: &mut [u8]) {
    let mut at = 0;
    while at < lengths.len() {
        let length = bits.take(4);
        let zeros = if length == 15 { bits.take(4) } else { 0 };
        if zeros > 0 {
            at += zeros as usize + 2;
        } else {
            lengths[at] = length as u8;
            at += 1;
        }
    }
}

/// The length, at least 2, that a slot tells.
#[inline(always)]
fn length(slot: usize, bits: &mut Bits) -> usize {
    if slot < 8 {
        return slot + 2;
    }
    let count = slot / 4 - 1;
    ((4 | slot & 3) << count) + bits.take(count as u32) as usize + 2
}

#[inline(always)]
fn take_long(bits: &mut Bits, count: u32) -> u64 {
    if count <= 32 {
        return u64::from(bits.take(count));
    }
    let high = u64::from(bits.take(count - 32));
    high << 32 | u64::from(bits.take(32))
}

/// A filter whose block begins somewhere from `position` on.
fn filter(bits: &mut Bits, position: u64) -> Stop {
    let start = position + u64::from(number(bits));
    let length = number(bits);
    let kind = match bits.take(3) {
        0 => Kind::Delta { channels: bits.take(5) as usize + 1 },
        1 => Kind::X86 { jumps: false, wraps: true },
        2 => Kind::X86 { jumps: true, wraps: true },
        3 => Kind::Arm,
        _ => return Stop::Fault(DATA),
    };
    Stop::Filter(Filter { kind, start, length })
}

/// A number of one to four bytes, the lowest first.
fn number(bits: &mut Bits) -> u32 {
    let bytes = bits.take(2) + 1;
    (0..bytes).fold(0, |number, byte| number | bits.take(8) << (8 * byte))
}
