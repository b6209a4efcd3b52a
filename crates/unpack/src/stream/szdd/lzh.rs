//! KWAJ's method 3: literals and matches by five Huffman codes, which stand in front of all.
//!
//! ```text
//! stream := kinds u4*6, codes of: lengths, lengths behind literals, runs of literals, distances, literals; symbols
//! ```
//!
//! Nothing tells where it ends but the end of the input. Source: the format's description in libmspack.

use stream::Class;

use super::DATA;
use crate::archive::lha::{Decoder, Method, Run};
use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;
use crate::frame::codec::{Fault, Progress, Told};

const RING_BYTES: usize = 4096;
/// The kinds and the codes of 384 symbols.
const HEADER_BITS: usize = 24 + 384 * 6;
const SYMBOL_BITS: usize = 48;

/// A decoder of a file of this method.
pub(super) struct Lzh {
    decoder: Decoder,
    /// How much content there is to be yet, if that is known: the last byte may hold bits that would make more.
    left: Option<u64>,
}

impl Lzh {
    pub fn new(expected: Option<u64>) -> Lzh {
        Lzh { decoder: Decoder::with(Box::new(Codes::new()), &[b' '; RING_BYTES]), left: expected }
    }

    /// As [`Decoder::decode`](crate::frame::codec::Decoder::decode).
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        if self.left == Some(0) {
            let taken = self.decoder.decode(input, &mut []).taken;
            if self.decoder.surplus().is_empty() {
                return Progress::tells(taken, Told::Over);
            }
            // There is more than the rest of a byte, and so there may be more content.
            self.left = None;
            if taken > 0 {
                return Progress::took(taken);
            }
        }
        let room = self.left.unwrap_or(u64::MAX).min(output.len() as u64) as usize;
        let mut progress = self.decoder.decode(input, &mut output[..room]);
        self.left = self.left.map(|left| left - progress.wrote as u64);
        if let Told::Fault(_) = progress.told {
            progress.told = Told::Fault(Fault::fatal(Class::Malformed, DATA));
        }
        if progress == Progress::took(0) && input.is_empty() {
            progress.told = Told::Over;
        }
        progress
    }

    /// Bytes that were taken and not used.
    pub fn surplus(&self) -> &[u8] {
        self.decoder.surplus()
    }
}

/// The method.
struct Codes {
    has_codes: bool,
    lengths: Huffman,
    lengths_behind_literals: Huffman,
    runs: Huffman,
    distances: Huffman,
    literals: Huffman,
    /// Literals of a run that are still to come.
    literals_left: usize,
    /// Whether a run of literals has just ended.
    is_behind_literals: bool,
}

impl Codes {
    fn new() -> Codes {
        Codes {
            has_codes: false,
            lengths: Huffman::new(),
            lengths_behind_literals: Huffman::new(),
            runs: Huffman::new(),
            distances: Huffman::new(),
            literals: Huffman::new(),
            literals_left: 0,
            is_behind_literals: false,
        }
    }

    fn read(&mut self, bits: &mut Bits) -> Option<()> {
        let kinds: [u32; 6] = std::array::from_fn(|_| bits.take(4));
        read_code::<16>(&mut self.lengths, kinds[0], bits)?;
        read_code::<16>(&mut self.lengths_behind_literals, kinds[1], bits)?;
        read_code::<32>(&mut self.runs, kinds[2], bits)?;
        read_code::<64>(&mut self.distances, kinds[3], bits)?;
        read_code::<256>(&mut self.literals, kinds[4], bits)?;
        self.has_codes = true;
        Some(())
    }

    /// Reads a literal, a run's length or a match.
    fn symbol(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<()> {
        const RUN_MAX: usize = 32;
        if self.literals_left > 0 {
            let literal = self.literals.read(bits)? as u8;
            self.literals_left -= 1;
            if !bits.overran() {
                history.dictionary.push(literal);
            }
            return Some(());
        }
        let code = if self.is_behind_literals { &self.lengths_behind_literals } else { &self.lengths };
        let length = code.read(bits)?;
        if length == 0 {
            self.literals_left = self.runs.read(bits)? + 1;
            self.is_behind_literals = self.literals_left < RUN_MAX;
            return Some(());
        }
        self.is_behind_literals = false;
        let place = self.distances.read(bits)? << 6 | bits.take(6) as usize;
        if bits.overran() {
            return Some(());
        }
        history.copy(if place == 0 { RING_BYTES } else { place }, length + 2, end).ok()
    }
}

impl Method for Codes {
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run> {
        while history.position() < end {
            if !bits.has(if self.has_codes { SYMBOL_BITS } else { HEADER_BITS }) || bits.is_at_end() {
                return Some(Run::Input);
            }
            match self.has_codes {
                true => self.symbol(bits, history, end)?,
                false => self.read(bits)?,
            }
        }
        Some(Run::Full)
    }
}

/// Reads a code; its lengths are stored plainly or by how they differ.
fn read_code<const SYMBOLS: usize>(code: &mut Huffman, kind: u32, bits: &mut Bits) -> Option<()> {
    let mut lengths = [SYMBOLS.ilog2() as u8; SYMBOLS];
    let mut before = None;
    for length in lengths.iter_mut().filter(|_| kind != 0) {
        let told = match (kind, before) {
            (1..=3, None) | (3, _) => bits.take(4),
            (1, Some(same)) if !bits.flag() => same,
            (1, Some(less)) if !bits.flag() => less + 1,
            (1, _) => bits.take(4),
            (2, Some(near)) => match bits.take(2) {
                3 => bits.take(4),
                more => (near + more).wrapping_sub(1),
            },
            _ => return None,
        };
        before = Some(told);
        *length = u8::try_from(told).ok()?;
    }
    code.set(&lengths).ok()
}
