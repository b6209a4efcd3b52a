//! Implode, zip's method 6: matches and literals with Shannon-Fano codes.
//!
//! Source: APPNOTE 6.3.10, section 5.3. Bounds: three code tables and the last 8 KiB.

use crate::bits::tokens::{Bits, Broken, Recent, Tokens};

/// The state of an imploded stream.
pub(crate) struct Implode {
    /// Bits of a distance that have no code.
    distance_bits: u32,
    length_min: usize,
    literals: Option<Codes>,
    lengths: Codes,
    distances: Codes,
    header: Header,
    recent: Recent<8192>,
}

/// The code lengths come first, table by table.
enum Header {
    Count(Table),
    Lengths { table: Table, left: u8, all: Vec<u8> },
    Complete,
}

#[derive(Clone, Copy)]
enum Table {
    Literals,
    Lengths,
    Distances,
}

impl Table {
    const fn symbols(self) -> usize {
        match self {
            Table::Literals => 256,
            Table::Lengths | Table::Distances => 64,
        }
    }
}

impl Implode {
    /// The state for a member with these general purpose flags.
    pub fn new(flags: u16) -> Implode {
        const WIDE: u16 = 2;
        const CODED_LITERALS: u16 = 4;
        let coded = flags & CODED_LITERALS != 0;
        Implode {
            distance_bits: if flags & WIDE != 0 { 7 } else { 6 },
            length_min: if coded { 3 } else { 2 },
            literals: None,
            lengths: Codes::default(),
            distances: Codes::default(),
            header: Header::Count(if coded { Table::Literals } else { Table::Lengths }),
            recent: Recent::new(),
        }
    }

    fn read_header(&mut self, bits: &mut Bits) -> Result<(), Broken> {
        let byte = bits.take(8) as u8;
        self.header = match std::mem::replace(&mut self.header, Header::Complete) {
            Header::Count(table) => Header::Lengths { table, left: byte, all: Vec::new() },
            Header::Lengths { table, left, mut all } => {
                let (count, length) = (usize::from(byte >> 4) + 1, (byte & 15) + 1);
                all.extend(std::iter::repeat_n(length, count));
                match left.checked_sub(1) {
                    Some(left) if all.len() <= table.symbols() => Header::Lengths { table, left, all },
                    Some(_) => return Err(Broken),
                    None => self.codes(table, &all)?,
                }
            }
            Header::Complete => Header::Complete,
        };
        Ok(())
    }

    fn codes(&mut self, table: Table, lengths: &[u8]) -> Result<Header, Broken> {
        if lengths.len() != table.symbols() {
            return Err(Broken);
        }
        let codes = Codes::new(lengths);
        Ok(match table {
            Table::Literals => {
                self.literals = Some(codes);
                Header::Count(Table::Lengths)
            }
            Table::Lengths => {
                self.lengths = codes;
                Header::Count(Table::Distances)
            }
            Table::Distances => {
                self.distances = codes;
                Header::Complete
            }
        })
    }
}

impl Tokens for Implode {
    const BITS_MAX: u32 = 1 + 7 + 16 + 16 + 8;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        const LONGEST: usize = 63;
        if !matches!(self.header, Header::Complete) {
            return self.read_header(bits);
        }
        if bits.take(1) == 1 {
            let byte = match &self.literals {
                Some(codes) => codes.decode(bits)? as u8,
                None => bits.take(8) as u8,
            };
            self.recent.push(byte, content);
            return Ok(());
        }
        let low = bits.take(self.distance_bits) as usize;
        let distance = (self.distances.decode(bits)? << self.distance_bits | low) + 1;
        let mut length = self.lengths.decode(bits)?;
        if length == LONGEST {
            length += bits.take(8) as usize;
        }
        self.recent.repeat(distance, length + self.length_min, content);
        Ok(())
    }

    fn may_end(&self, bits_left: u32) -> bool {
        bits_left < 8
    }
}

/// Shannon-Fano codes of 1 to 16 bits. Codes of one length are neighbours; the longest have the lowest.
#[derive(Default)]
struct Codes {
    /// From the longest codes to the shortest: their length, the first code behind them (as if it had 16 bits), and
    /// where in `symbols` they begin.
    groups: Vec<(u32, u32, usize)>,
    /// Symbols by code.
    symbols: Vec<u8>,
}

impl Codes {
    fn new(lengths: &[u8]) -> Codes {
        let mut codes = Codes::default();
        let mut code = 0;
        for length in (1..=16).rev() {
            let with: Vec<u8> = (0..lengths.len()).rev().filter(|&i| lengths[i] == length).map(|i| i as u8).collect();
            if with.is_empty() {
                continue;
            }
            code += (with.len() as u32) << (16 - length);
            codes.groups.push((u32::from(length), code, codes.symbols.len() + with.len()));
            codes.symbols.extend(with);
        }
        codes
    }

    fn decode(&self, bits: &mut Bits) -> Result<usize, Broken> {
        let code = u32::from((bits.peek(16) as u16).reverse_bits());
        let group = self.groups.iter().find(|(_, behind, _)| code < *behind);
        let &(length, behind, end) = group.ok_or(Broken)?;
        bits.take(length);
        let from_end = ((behind - 1 - code) >> (16 - length)) as usize;
        let symbol = end.checked_sub(1 + from_end).and_then(|at| self.symbols.get(at));
        symbol.map(|&symbol| usize::from(symbol)).ok_or(Broken)
    }
}
