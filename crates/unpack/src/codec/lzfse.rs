//! LZFSE, Apple's compression of disk images and files: blocks of literals and matches in codes of finite-state
//! entropy, read from their ends.
//!
//! ```text
//! stream  := block* "bvx$"
//! block   := "bvx-" bytes u32, content | "bvxn" bytes u32, packed u32, LZVN
//!          | "bvx2" bytes u32, fields u64*3, frequencies, literals, triples of a run, a length and a distance
//! ```
//!
//! Packed data and output are held whole, up to a bound that the caller gives. Not read: `bvx1`, which no encoder
//! writes. Source: the format as Apple's reference implementation describes it.

mod lzvn;

use crate::frame::codec::{le32, le64};
pub(crate) use lzvn::unpack as lzvn;

/// Unpacks a stream up to its end or to `content_bytes_max`. Returns the output, and whether it was sound.
pub(crate) fn unpack(packed: &[u8], content_bytes_max: usize) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    let mut rest = packed;
    loop {
        match block(rest, &mut content, content_bytes_max) {
            Some(Block::Of(bytes)) => rest = &rest[bytes..],
            Some(Block::End) => return (content, true),
            None => return (content, false),
        }
    }
}

enum Block {
    /// A block of so many bytes.
    Of(usize),
    End,
}

fn block(packed: &[u8], content: &mut Vec<u8>, most: usize) -> Option<Block> {
    const STORED_BYTES: usize = 8;
    const LZVN_BYTES: usize = 12;
    let bytes = le32(packed, 4) as usize;
    match packed.first_chunk()? {
        b"bvx$" => Some(Block::End),
        _ if bytes > most.saturating_sub(content.len()) => None,
        b"bvx-" => {
            let stored = packed.get(STORED_BYTES..)?.get(..bytes)?;
            content.extend_from_slice(stored);
            Some(Block::Of(STORED_BYTES + bytes))
        }
        b"bvxn" => {
            let length = le32(packed, 8) as usize;
            let data = packed.get(LZVN_BYTES..)?.get(..length)?;
            lzvn(data, content.len() + bytes, content).then_some(Block::Of(LZVN_BYTES + length))
        }
        b"bvx2" => Coded::read(packed)?.unpack(content.len() + bytes, content),
        _ => None,
    }
}

const RUNS: usize = 20;
const LENGTHS: usize = 20;
const DISTANCES: usize = 64;
const LITERALS: usize = 256;

/// A block in codes.
struct Coded<'a> {
    /// Bytes of the whole block.
    bytes: usize,
    literals: Vec<u8>,
    triples: usize,
    bits: Bits<'a>,
    run: Values,
    length: Values,
    distance: Values,
}

impl<'a> Coded<'a> {
    fn read(packed: &'a [u8]) -> Option<Coded<'a>> {
        const HEADER_BYTES: usize = 32;
        let fields: [u64; 3] = std::array::from_fn(|at| le64(packed, 8 + 8 * at));
        let field = |at: usize, from: u32, bits: u32| (fields[at] >> from & ((1 << bits) - 1)) as usize;
        let header_bytes = field(2, 0, 32);
        let frequencies = frequencies(packed.get(HEADER_BYTES..header_bytes)?)?;
        let (runs, rest) = frequencies.split_at(RUNS);
        let (lengths, rest) = rest.split_at(LENGTHS);
        let (distances, literals) = rest.split_at(DISTANCES);

        let (literal_bytes, triple_bytes) = (field(0, 20, 20), field(1, 40, 20));
        let data = packed.get(header_bytes..)?;
        let (literal_data, data) = data.split_at_checked(literal_bytes)?;
        let bits = Bits::new(literal_data, field(0, 60, 3));
        let states = std::array::from_fn(|at| field(1, 10 * at as u32, 10));
        let literals = read_literals(field(0, 0, 20), states, &table(literals, 1024)?, bits)?;

        let exact_then = |last: [u32; 4]| ladder([(0, 16)].into_iter().chain(last.map(|bits| (bits, 1))));
        Some(Coded {
            bytes: header_bytes + literal_bytes + triple_bytes,
            literals,
            triples: field(0, 40, 20),
            bits: Bits::new(data.get(..triple_bytes)?, field(1, 60, 3)),
            run: Values::new(runs, 64, field(2, 32, 10), exact_then([2, 3, 5, 8]))?,
            length: Values::new(lengths, 64, field(2, 42, 10), exact_then([3, 5, 8, 11]))?,
            distance: Values::new(distances, 256, field(2, 52, 10), ladder((0..16).map(|bits| (bits, 4))))?,
        })
    }

    /// Appends the content, which ends at `end`.
    fn unpack(mut self, end: usize, content: &mut Vec<u8>) -> Option<Block> {
        let (mut literals, mut distance) = (&self.literals[..], 0);
        for _ in 0..self.triples {
            let (run, length) = (self.run.next(&mut self.bits)?, self.length.next(&mut self.bits)?);
            match self.distance.next(&mut self.bits)? {
                0 => {}
                other => distance = other,
            }
            if run + length > end.saturating_sub(content.len()) {
                return None;
            }
            let (now, later) = literals.split_at_checked(run)?;
            content.extend_from_slice(now);
            literals = later;
            repeat(content, distance, length)?;
        }
        (content.len() == end).then_some(Block::Of(self.bytes))
    }
}

/// Appends `length` bytes from `distance` back.
fn repeat(content: &mut Vec<u8>, distance: usize, length: usize) -> Option<()> {
    let from = content.len().checked_sub(distance).filter(|_| distance > 0 || length == 0)?;
    for at in from..from + length {
        content.push(content[at]);
    }
    Some(())
}

fn read_literals(count: usize, mut states: [usize; 4], table: &[Entry], mut bits: Bits) -> Option<Vec<u8>> {
    let mut literals = Vec::new();
    while literals.len() < count {
        for state in &mut states {
            let entry = table.get(*state)?;
            *state = entry.base + bits.pull(entry.bits)?;
            literals.push(entry.symbol as u8);
        }
    }
    Some(literals)
}

/// How often each symbol occurs, in a prefix code, the lowest bit first.
fn frequencies(bytes: &[u8]) -> Option<Vec<u16>> {
    const SYMBOLS: usize = RUNS + LENGTHS + DISTANCES + LITERALS;
    let mut at = 0;
    let mut frequency = || {
        let ahead = le32(bytes.get(at / 8..).unwrap_or_default(), 0) >> (at % 8);
        let (value, length) = match ahead & 15 {
            0b0111 => (8 + (ahead >> 4 & 0xf), 8),
            0b1111 => (24 + (ahead >> 4 & 0x3ff), 14),
            0b0011 | 0b1011 => (4 + (ahead >> 3 & 3), 5),
            low if low & 3 == 1 => (2 + (low >> 2 & 1), 3),
            low => (low >> 1 & 1, 2),
        };
        at += length;
        (at <= 8 * bytes.len()).then_some(value as u16)
    };
    (0..SYMBOLS).map(|_| frequency()).collect()
}

/// Meaning of a state and the states that may follow it: `base` and so many bits.
struct Entry {
    symbol: usize,
    base: usize,
    bits: u32,
}

/// The states of a code. Each symbol has as many as it is frequent, and from each of its states all are reached.
fn table(frequencies: &[u16], states: usize) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    for (symbol, &frequency) in frequencies.iter().enumerate().filter(|(_, frequency)| **frequency > 0) {
        let count = usize::from(frequency);
        if entries.len() + count > states {
            return None;
        }
        // As many bits as bring the frequency to the number of states, or to less than twice of it.
        let bits = states.ilog2() - count.ilog2();
        let with_more = ((2 * states) >> bits) - count;
        entries.extend((0..count).map(|at| match at.checked_sub(with_more) {
            None => Entry { symbol, base: ((count + at) << bits) - states, bits },
            Some(behind) => Entry { symbol, base: behind << (bits - 1), bits: bits - 1 },
        }));
    }
    Some(entries)
}

/// The least value of each symbol, and how many bits there are to add to it.
fn ladder(steps: impl Iterator<Item = (u32, usize)>) -> Vec<(usize, u32)> {
    let mut least = 0;
    let widths = steps.flat_map(|(bits, count)| std::iter::repeat_n(bits, count));
    let pairs = widths.map(|bits| {
        let pair = (least, bits);
        least += 1 << bits;
        pair
    });
    pairs.collect()
}

/// A code whose symbols stand for ranges of values.
struct Values {
    table: Vec<Entry>,
    state: usize,
    ladder: Vec<(usize, u32)>,
}

impl Values {
    fn new(frequencies: &[u16], states: usize, state: usize, ladder: Vec<(usize, u32)>) -> Option<Values> {
        Some(Values { table: table(frequencies, states)?, state, ladder })
    }

    fn next(&mut self, bits: &mut Bits) -> Option<usize> {
        let entry = self.table.get(self.state)?;
        let (least, width) = *self.ladder.get(entry.symbol)?;
        self.state = entry.base + bits.pull(entry.bits)?;
        Some(least + bits.pull(width)?)
    }
}

/// Bits from the highest of the last byte down.
struct Bits<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Bits<'a> {
    /// The last byte has one bit more than `last`, seven at most.
    fn new(bytes: &'a [u8], last: usize) -> Bits<'a> {
        Bits { bytes, left: (8 * bytes.len()).saturating_sub(7 - last) }
    }

    /// The next bits, 15 at most.
    fn pull(&mut self, count: u32) -> Option<usize> {
        self.left = self.left.checked_sub(count as usize)?;
        let ahead = le32(self.bytes.get(self.left / 8..).unwrap_or_default(), 0) >> (self.left % 8);
        Some((ahead & ((1 << count) - 1)) as usize)
    }
}
