//! bzip2 as NSIS has it: blocks without checksums, each behind one byte, and one byte at the end.
//!
//! Block sorting, moving to the front and the codes are bzip2's. Bounds: [`BYTES`], of which a block of 900,000 places takes
//! the most.

use crate::bits::Bits;
use crate::codec::{Fault, Progress, Told};

use super::{DATA, TRUNCATED};

/// The most memory taken.
pub(super) const BYTES: usize = 3_700_000;

const BLOCK_MAX: usize = 900_000;
const CODE_BITS_MAX: u32 = 20;
const GROUP: usize = 50;
/// Bits that the longest step takes: a group of symbols, and some.
const STEP_BITS: usize = GROUP * CODE_BITS_MAX as usize + 32;

const BLOCK: u32 = 0x31;
const END: u32 = 0x17;

/// A decoder of one stream.
pub(super) struct Bzip2 {
    bits: Bits,
    state: State,
    codes: Vec<Code>,
    selectors: Vec<u8>,
    /// The bytes that occur, the latest first.
    recent: Vec<u8>,
    block: Block,
    work: usize,
}

enum State {
    Block,
    Selectors { left: u32, order: [u8; 6] },
    Lengths { lengths: Vec<u8>, length: u8 },
    Symbols { group: usize, run: u32, run_bits: u32 },
    Content,
    Over,
    Broken(Fault),
}

impl Bzip2 {
    pub fn new() -> Bzip2 {
        Bzip2 {
            bits: Bits::new(),
            state: State::Block,
            codes: Vec::new(),
            selectors: Vec::new(),
            recent: Vec::new(),
            block: Block::default(),
            work: 0,
        }
    }

    /// As [`Decoder::decode`](crate::codec::Decoder::decode).
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let taken = self.bits.fill(input);
        let mut wrote = 0;
        loop {
            match self.state {
                State::Over => return Progress { taken, wrote, told: Told::Over },
                State::Broken(fault) => return Progress { taken, wrote, told: Told::Fault(fault) },
                State::Content if wrote == output.len() => return Progress { taken, wrote, told: Told::Nothing },
                State::Content => {
                    wrote += self.block.tell(&mut output[wrote..]);
                    if self.block.is_told() {
                        self.state = State::Block;
                    }
                }
                _ if !self.bits.has(STEP_BITS) => return Progress { taken, wrote, told: Told::Nothing },
                _ => {
                    let state = std::mem::replace(&mut self.state, State::Over);
                    let next = self.step(state);
                    self.state = match next {
                        _ if self.bits.overran() => State::Broken(TRUNCATED),
                        Some(next) => next,
                        None => State::Broken(DATA),
                    };
                }
            }
        }
    }

    pub fn surplus(&self) -> &[u8] {
        self.bits.unread()
    }

    pub fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    fn step(&mut self, state: State) -> Option<State> {
        match state {
            State::Block => self.head(),
            State::Selectors { left: 0, .. } => Some(State::Lengths { lengths: Vec::new(), length: 0 }),
            State::Selectors { left, order } => self.selector(left, order),
            State::Lengths { lengths, length } => self.length(lengths, length),
            State::Symbols { group, run, run_bits } => self.group(group, run, run_bits),
            state => Some(state),
        }
    }

    fn head(&mut self) -> Option<State> {
        match self.bits.take(8) {
            BLOCK => {}
            END => return Some(State::Over),
            _ => return None,
        }
        self.block.start(self.bits.take(24) as usize);
        let rows = self.bits.take(16);
        self.recent.clear();
        for row in (0..16).filter(|row| rows >> (15 - row) & 1 == 1) {
            let bytes = self.bits.take(16);
            self.recent
                .extend((0..16).filter(|byte| bytes >> (15 - byte) & 1 == 1).map(|byte| (row * 16 + byte) as u8));
        }
        let (codes, selectors) = (self.bits.take(3), self.bits.take(15));
        self.codes.clear();
        self.codes.resize_with(codes as usize, Code::default);
        self.selectors.clear();
        let is_sane = !self.recent.is_empty() && (2..=6).contains(&codes) && selectors > 0;
        is_sane.then_some(State::Selectors { left: selectors, order: [0, 1, 2, 3, 4, 5] })
    }

    fn selector(&mut self, left: u32, mut order: [u8; 6]) -> Option<State> {
        let mut place = 0;
        while self.bits.flag() {
            place += 1;
            if place >= self.codes.len() {
                return None;
            }
        }
        order[..=place].rotate_right(1);
        self.selectors.push(order[0]);
        Some(State::Selectors { left: left - 1, order })
    }

    /// One bit or two of the lengths, which are told by their differences.
    fn length(&mut self, mut lengths: Vec<u8>, mut length: u8) -> Option<State> {
        let symbols = self.recent.len() + 2;
        if lengths.len().is_multiple_of(symbols) && length == 0 {
            length = self.bits.take(5) as u8;
        }
        if !(1..=CODE_BITS_MAX as u8).contains(&length) {
            return None;
        }
        if self.bits.flag() {
            length = if self.bits.flag() { length - 1 } else { length + 1 };
            return (length > 0).then_some(State::Lengths { lengths, length });
        }
        lengths.push(length);
        if lengths.len() < symbols * self.codes.len() {
            let length = if lengths.len().is_multiple_of(symbols) { 0 } else { length };
            return Some(State::Lengths { lengths, length });
        }
        for (code, lengths) in self.codes.iter_mut().zip(lengths.chunks_exact(symbols)) {
            *code = Code::new(lengths);
        }
        Some(State::Symbols { group: 0, run: 0, run_bits: 0 })
    }

    fn group(&mut self, group: usize, mut run: u32, mut run_bits: u32) -> Option<State> {
        let code = &self.codes[usize::from(*self.selectors.get(group)?)];
        let end = self.recent.len() + 1;
        for _ in 0..GROUP {
            let symbol = code.read(&mut self.bits)?;
            if symbol < 2 {
                // The length of a run, in digits that are 1 or 2.
                run = run.checked_add((symbol as u32 + 1).checked_shl(run_bits)?)?;
                run_bits += 1;
                if run as usize > BLOCK_MAX {
                    return None;
                }
                continue;
            }
            self.block.extend(*self.recent.first()?, run as usize)?;
            (run, run_bits) = (0, 0);
            if symbol == end {
                self.work += 4 * self.block.places.len();
                return self.block.sort().map(|()| State::Content);
            }
            self.recent.get_mut(..symbol)?.rotate_right(1);
            self.block.extend(self.recent[0], 1)?;
        }
        Some(State::Symbols { group: group + 1, run, run_bits })
    }
}

/// A canonical code, the highest bit first.
#[derive(Default)]
struct Code {
    /// For each length: the first code that is too long for it, as [`CODE_BITS_MAX`] bits, its first code, and the place of
    /// that code's symbol.
    lengths: Vec<(u32, u32, usize)>,
    symbols: Vec<u16>,
}

impl Code {
    fn new(lengths: &[u8]) -> Code {
        let mut code = Code::default();
        let mut next = 0u32;
        for length in 1..=CODE_BITS_MAX as u8 {
            let (first, place) = (next, code.symbols.len());
            let symbols = lengths.iter().enumerate().filter(|&(_, &of)| of == length).map(|(symbol, _)| symbol as u16);
            code.symbols.extend(symbols);
            let count = (code.symbols.len() - place) as u32;
            next = first.saturating_add(count << (CODE_BITS_MAX - u32::from(length)));
            code.lengths.push((next, first, place));
        }
        code
    }

    fn read(&self, bits: &mut Bits) -> Option<usize> {
        let ahead = bits.peek(CODE_BITS_MAX);
        let length = self.lengths.iter().position(|&(behind, ..)| ahead < behind)?;
        let (_, first, place) = self.lengths[length];
        bits.skip(length as u32 + 1);
        let index = (ahead.checked_sub(first)? >> (CODE_BITS_MAX - 1 - length as u32)) as usize;
        self.symbols.get(place + index).map(|&symbol| usize::from(symbol))
    }
}

/// A block: its bytes in sorted order, and then the way through them.
#[derive(Default)]
struct Block {
    /// The byte in the lowest bits, above it the place of the next.
    places: Vec<u32>,
    start: usize,
    at: u32,
    /// Bytes on the way that are left.
    left: usize,
    last: Option<u8>,
    /// How often the last byte came in a row.
    row: u8,
    /// How often it comes still.
    repeat: u8,
}

impl Block {
    fn start(&mut self, start: usize) {
        let places = std::mem::take(&mut self.places);
        *self = Block { places, start, ..Block::default() };
        self.places.clear();
    }

    fn extend(&mut self, byte: u8, count: usize) -> Option<()> {
        let length = self.places.len().checked_add(count).filter(|length| *length <= BLOCK_MAX)?;
        self.places.resize(length, byte.into());
        Some(())
    }

    /// Finds the way: the n-th of a byte in sorted order follows the n-th of it here.
    fn sort(&mut self) -> Option<()> {
        let mut next = [0u32; 256];
        for &place in &self.places {
            next[place as usize & 0xff] += 1;
        }
        let mut sum = 0;
        for count in &mut next {
            sum += std::mem::replace(count, sum);
        }
        for index in 0..self.places.len() {
            let byte = self.places[index] as usize & 0xff;
            self.places[next[byte] as usize] |= (index as u32) << 8;
            next[byte] += 1;
        }
        self.left = self.places.len();
        self.at = self.places.get(self.start)? >> 8;
        Some(())
    }

    const fn is_told(&self) -> bool {
        self.left == 0 && self.repeat == 0
    }

    /// Writes content: behind four equal bytes stands how often the byte comes still.
    fn tell(&mut self, output: &mut [u8]) -> usize {
        let mut wrote = 0;
        while wrote < output.len() && !self.is_told() {
            if let (Some(last), 1..) = (self.last, self.repeat) {
                output[wrote] = last;
                self.repeat -= 1;
                wrote += 1;
                continue;
            }
            let place = self.places[self.at as usize];
            let byte = place as u8;
            self.at = place >> 8;
            self.left -= 1;
            if self.row == 4 {
                (self.repeat, self.row) = (byte, 0);
                continue;
            }
            self.row = if self.last == Some(byte) { self.row + 1 } else { 1 };
            self.last = Some(byte);
            output[wrote] = byte;
            wrote += 1;
        }
        wrote
    }
}
