//! Deflate64, zip's method 9: deflate (RFC 1951) with a window of 64 KiB, two more distances, and a longest length that
//! has 16 bits of its own.
//!
//! Written here because the byte where it ends has to be known, which libraries that read ahead do not tell. Source:
//! APPNOTE 6.3.10, section 5.5. Bounds: the window, a match of 64 KiB, the tables of a block (6 KiB).

use crate::bits::tokens::{Bits, Broken, Recent, Tokens};

/// The state of a deflated stream.
pub(crate) struct Deflate64 {
    state: State,
    is_last_block: bool,
    lengths: Codes,
    distances: Codes,
    recent: Recent<65536>,
}

enum State {
    Block,
    StoredLength,
    Stored { left: u16 },
    Counts,
    CodeLengths(Box<Header>),
    Lengths(Box<(Header, Codes)>),
    Symbol,
    Distance { length: usize },
    Over,
}

/// Header of a block with its own codes.
struct Header {
    literals: usize,
    distances: usize,
    code_lengths: usize,
    lengths: Vec<u8>,
}

impl Deflate64 {
    pub fn new() -> Deflate64 {
        Deflate64 {
            state: State::Block,
            is_last_block: false,
            lengths: Codes::default(),
            distances: Codes::default(),
            recent: Recent::new(),
        }
    }

    fn block(&mut self, bits: &mut Bits) -> Result<State, Broken> {
        if self.is_last_block {
            return Ok(State::Over);
        }
        self.is_last_block = bits.take(1) == 1;
        match bits.take(2) {
            0 => {
                bits.align();
                Ok(State::StoredLength)
            }
            1 => {
                let mut lengths = [8; 288];
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                self.lengths = Codes::new(&lengths)?;
                self.distances = Codes::new(&[5; 32])?;
                Ok(State::Symbol)
            }
            2 => Ok(State::Counts),
            _ => Err(Broken),
        }
    }

    fn code_lengths(&mut self, mut header: Box<Header>, bits: &mut Bits) -> Result<State, Broken> {
        const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        header.lengths.push(bits.take(3) as u8);
        if header.lengths.len() < header.code_lengths {
            return Ok(State::CodeLengths(header));
        }
        let mut lengths = [0; 19];
        for (&at, &length) in ORDER.iter().zip(&header.lengths) {
            lengths[at] = length;
        }
        header.lengths.clear();
        Ok(State::Lengths(Box::new((*header, Codes::new(&lengths)?))))
    }

    fn read_lengths(&mut self, mut reading: Box<(Header, Codes)>, bits: &mut Bits) -> Result<State, Broken> {
        let (header, codes) = &mut *reading;
        let all = header.literals + header.distances;
        let last = header.lengths.last().copied();
        let (length, count) = match codes.decode(bits)? {
            16 => (last.ok_or(Broken)?, 3 + bits.take(2)),
            17 => (0, 3 + bits.take(3)),
            18 => (0, 11 + bits.take(7)),
            length => (length as u8, 1),
        };
        header.lengths.extend(std::iter::repeat_n(length, count as usize));
        if header.lengths.len() < all {
            return Ok(State::Lengths(reading));
        }
        if header.lengths.len() > all {
            return Err(Broken);
        }
        let (literals, distances) = header.lengths.split_at(header.literals);
        self.lengths = Codes::new(literals)?;
        self.distances = Codes::new(distances)?;
        Ok(State::Symbol)
    }

    fn symbol(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<State, Broken> {
        const END: usize = 256;
        const LONGEST: usize = 285;
        let symbol = self.lengths.decode(bits)?;
        let length = match symbol {
            0..END => {
                self.recent.push(symbol as u8, content);
                return Ok(State::Symbol);
            }
            END => return Ok(State::Block),
            LONGEST => 3 + bits.take(16) as usize,
            257..=264 => symbol - 254,
            265..LONGEST => {
                let extra = (symbol as u32 - 261) / 4;
                let base = (4 + (symbol - 265) % 4) << extra;
                3 + base + bits.take(extra) as usize
            }
            _ => return Err(Broken),
        };
        Ok(State::Distance { length })
    }

    fn distance(&mut self, length: usize, bits: &mut Bits, content: &mut Vec<u8>) -> Result<State, Broken> {
        let symbol = self.distances.decode(bits)?;
        let distance = match symbol {
            0..4 => symbol + 1,
            4..32 => {
                let extra = symbol as u32 / 2 - 1;
                1 + ((2 + symbol % 2) << extra) + bits.take(extra) as usize
            }
            _ => return Err(Broken),
        };
        if distance as u64 > self.recent.written() {
            return Err(Broken);
        }
        self.recent.repeat(distance, length, content);
        Ok(State::Symbol)
    }
}

impl Tokens for Deflate64 {
    const BITS_MAX: u32 = 32;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        self.state = match std::mem::replace(&mut self.state, State::Over) {
            State::Block => self.block(bits)?,
            State::StoredLength => {
                let (length, inverse) = (bits.take(16) as u16, bits.take(16) as u16);
                if length != !inverse {
                    return Err(Broken);
                }
                State::Stored { left: length }
            }
            State::Stored { left: 0 } => State::Block,
            State::Stored { left } => {
                self.recent.push(bits.take(8) as u8, content);
                State::Stored { left: left - 1 }
            }
            State::Counts => {
                let (literals, distances) = (257 + bits.take(5) as usize, 1 + bits.take(5) as usize);
                let code_lengths = 4 + bits.take(4) as usize;
                State::CodeLengths(Box::new(Header { literals, distances, code_lengths, lengths: Vec::new() }))
            }
            State::CodeLengths(header) => self.code_lengths(header, bits)?,
            State::Lengths(reading) => self.read_lengths(reading, bits)?,
            State::Symbol => self.symbol(bits, content)?,
            State::Distance { length } => self.distance(length, bits, content)?,
            State::Over => State::Over,
        };
        if matches!(self.state, State::Block) && self.is_last_block {
            self.state = State::Over;
        }
        Ok(())
    }

    fn may_end(&self, _: u32) -> bool {
        false
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }
}

/// Canonical Huffman codes of up to 15 bits, the first bit lowest.
#[derive(Default)]
struct Codes {
    /// By the next bits: symbol and length of a code that is no longer; length 0 elsewhere.
    short: Vec<(u16, u8)>,
    /// How many codes have each length.
    counts: [u16; 16],
    /// Symbols by code.
    symbols: Vec<u16>,
}

const SHORT_BITS: u32 = 10;

impl Codes {
    fn new(lengths: &[u8]) -> Result<Codes, Broken> {
        let mut counts = [0u16; 16];
        for &length in lengths {
            counts[usize::from(length & 15)] += 1;
        }
        counts[0] = 0;
        let space: u32 = (1..16).map(|length| u32::from(counts[length]) << (15 - length)).sum();
        if space > 1 << 15 {
            return Err(Broken);
        }
        let mut codes = Codes { short: vec![(0, 0); 1 << SHORT_BITS], counts, symbols: Vec::new() };
        let mut code = 0u32;
        for length in 1..16u32 {
            for (symbol, _) in lengths.iter().enumerate().filter(|&(_, &other)| u32::from(other) == length) {
                codes.symbols.push(symbol as u16);
                codes.put_short(code, length, symbol as u16);
                code += 1;
            }
            code <<= 1;
        }
        Ok(codes)
    }

    fn put_short(&mut self, code: u32, length: u32, symbol: u16) {
        if length > SHORT_BITS {
            return;
        }
        let first = (code.reverse_bits() >> (u32::BITS - length)) as usize;
        for entry in self.short.iter_mut().skip(first).step_by(1 << length) {
            *entry = (symbol, length as u8);
        }
    }

    fn decode(&self, bits: &mut Bits) -> Result<usize, Broken> {
        if let Some(&(symbol, length)) = self.short.get(bits.peek(SHORT_BITS) as usize)
            && length > 0
        {
            bits.take(u32::from(length));
            return Ok(usize::from(symbol));
        }
        let (mut code, mut first, mut index) = (0i32, 0i32, 0i32);
        let next = bits.peek(15);
        for length in 1..16u32 {
            code |= (next >> (length - 1) & 1) as i32;
            let count = i32::from(self.counts[length as usize]);
            if code - count < first {
                bits.take(length);
                let symbol = self.symbols.get((index + code - first) as usize);
                return symbol.map(|&symbol| usize::from(symbol)).ok_or(Broken);
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err(Broken)
    }
}
