//! The compression of RAR 2.9 to 4: LZ77 under Huffman codes, PPMd in between, and filters told as programs.
//!
//! Code lengths are stated as differences to those before, unless a block says that it begins anew.

use super::lz::{DATA, Model, Stop};
use super::lz50::read_code_lengths;
use super::ppm::{Ppm, Ppmd};
use super::program::{Programs, Refused, Telling};
use super::slots::{LENGTHS as LENGTH_SLOTS, SHORT_DISTANCES, Slot, distances};
use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;
use crate::frame::codec::Fault;
use stream::Class;

const MAIN: usize = 299;
const DISTANCES: usize = 60;
const LOW_DISTANCES: usize = 17;
const REPEATED_LENGTHS: usize = 28;
const CODES: usize = MAIN + DISTANCES + LOW_DISTANCES + REPEATED_LENGTHS;
const LENGTH_CODES: usize = 20;

const HEADER_BITS: usize = 8 * 1300;
const SYMBOL_BITS: usize = 160;

const END: usize = 256;
const PROGRAM: usize = 257;
const AGAIN: usize = 258;
const OLD_DISTANCES: usize = 259;
const SHORT: usize = 263;
const LENGTHS: usize = 271;

/// Distances from this slot on have their lowest four bits in a code of their own.
const LOW_FROM: usize = 10;
/// The low bits of a distance are those of the last one.
const LOW_AGAIN: usize = 16;
/// How often that then goes for distances without a word.
const LOW_AGAIN_COUNT: u32 = 15;

const FILTER: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.RarFilter");

/// The model.
pub(super) struct Lz29 {
    lengths: [u8; CODES],
    main: Huffman,
    distances: Huffman,
    low_distances: Huffman,
    repeated_lengths: Huffman,
    slots: [Slot; DISTANCES],
    /// Whether code lengths must come first.
    wants_codes: bool,
    /// Whether the block is one of PPMd.
    is_ppm: bool,
    ppm: Ppm,
    over: bool,
    old: [usize; 4],
    last_length: usize,
    last_low: usize,
    low_again: u32,
    programs: Programs,
    /// The telling of a program that is under way.
    telling: Option<Telling>,
}

impl Lz29 {
    /// A model whose PPMd may take `codec_bytes_max`.
    pub fn new(codec_bytes_max: usize) -> Lz29 {
        Lz29 {
            lengths: [0; CODES],
            main: Huffman::new(),
            distances: Huffman::new(),
            low_distances: Huffman::new(),
            repeated_lengths: Huffman::new(),
            slots: distances(),
            wants_codes: true,
            is_ppm: false,
            ppm: Ppm::new(codec_bytes_max),
            over: false,
            old: [0; 4],
            last_length: 0,
            last_low: 0,
            low_again: 0,
            programs: Programs::new(),
            telling: None,
        }
    }

    /// Reads the head of a block.
    fn codes(&mut self, bits: &mut Bits) -> Result<(), Stop> {
        bits.align();
        self.is_ppm = bits.peek(1) == 1;
        if self.is_ppm {
            self.wants_codes = false;
            return self.ppm.begin(bits).ok_or(Stop::Fault(DATA));
        }
        bits.skip(1);
        if !bits.flag() {
            self.lengths = [0; CODES];
        }
        (self.last_low, self.low_again) = (0, 0);
        self.read_codes(bits).ok_or(Stop::Fault(DATA))?;
        self.wants_codes = false;
        Ok(())
    }

    fn read_codes(&mut self, bits: &mut Bits) -> Option<()> {
        let mut lengths = [0; LENGTH_CODES];
        read_code_lengths(bits, &mut lengths);
        let mut code = Huffman::new();
        code.set(&lengths).ok()?;
        let mut at = 0;
        while at < CODES {
            let (count, length) = match code.read(bits)? {
                difference @ 0..16 => (1, (self.lengths[at] + difference as u8) & 15),
                16 => (3 + bits.take(3), self.lengths[at.checked_sub(1)?]),
                17 => (11 + bits.take(7), self.lengths[at.checked_sub(1)?]),
                18 => (3 + bits.take(3), 0),
                _ => (11 + bits.take(7), 0),
            };
            let until = CODES.min(at + count as usize);
            self.lengths[at..until].fill(length);
            at = until;
        }
        let (main, rest) = self.lengths.split_at(MAIN);
        let (distances, rest) = rest.split_at(DISTANCES);
        let (low_distances, repeated_lengths) = rest.split_at(LOW_DISTANCES);
        self.main.set(main).ok()?;
        self.distances.set(distances).ok()?;
        self.low_distances.set(low_distances).ok()?;
        self.repeated_lengths.set(repeated_lengths).ok()
    }

    #[inline(always)]
    fn fresh(&mut self, symbol: usize, bits: &mut Bits) -> Option<(usize, usize)> {
        let length = LENGTH_SLOTS.get(symbol - LENGTHS)?.read(bits) + 3;
        let number = self.distances.read(bits)?;
        let slot = *self.slots.get(number)?;
        let distance = match number {
            0..LOW_FROM => slot.read(bits),
            _ => slot.base + ((bits.take(slot.bits - 4) as usize) << 4) + self.low(bits)?,
        } + 1;
        let longer = [0x2000, 0x4_0000].iter().filter(|&&limit| distance >= limit).count();
        self.remember(distance);
        Some((distance, length + longer))
    }

    #[inline(always)]
    fn low(&mut self, bits: &mut Bits) -> Option<usize> {
        if self.low_again > 0 {
            self.low_again -= 1;
            return Some(self.last_low);
        }
        match self.low_distances.read(bits)? {
            LOW_AGAIN => self.low_again = LOW_AGAIN_COUNT,
            low => self.last_low = low,
        }
        Some(self.last_low)
    }

    fn remember(&mut self, distance: usize) {
        self.old.rotate_right(1);
        self.old[0] = distance;
    }

    #[inline(always)]
    fn old(&mut self, index: usize, bits: &mut Bits) -> Option<(usize, usize)> {
        self.old[..=index].rotate_right(1);
        let slot = self.repeated_lengths.read(bits)?;
        Some((self.old[0], LENGTH_SLOTS.get(slot)?.read(bits) + 2))
    }

    fn short(&mut self, index: usize, bits: &mut Bits) -> Option<(usize, usize)> {
        let distance = SHORT_DISTANCES.get(index)?.read(bits) + 1;
        self.remember(distance);
        Some((distance, 2))
    }

    /// Reads symbols of a PPMd block.
    fn ppm(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Result<(), Stop> {
        match self.ppm.run(bits, history, end) {
            Ok(()) => {}
            Err(Ppmd::BlockEnd) => self.wants_codes = true,
            Err(Ppmd::Program(telling)) => self.telling = Some(telling),
            Err(Ppmd::Stop(stop)) => {
                self.over = matches!(stop, Stop::Over);
                return Err(stop);
            }
        }
        Ok(())
    }

    /// Goes on with the telling of a program.
    fn tell(&mut self, bits: &mut Bits, position: u64) -> Result<(), Stop> {
        let Some(telling) = &mut self.telling else {
            return Ok(());
        };
        if !telling.read(bits) {
            return Ok(());
        };
        let filter = self.programs.filter(telling, position);
        self.telling = None;
        Err(match filter {
            Ok(filter) => Stop::Filter(filter),
            Err(Refused::Unknown) => Stop::Fault(FILTER),
            Err(Refused::Broken) => Stop::Fault(DATA),
        })
    }

    /// The end of a block: another one follows, or the member ends.
    fn end(&mut self, bits: &mut Bits) {
        if bits.flag() {
            self.wants_codes = true;
        } else {
            self.wants_codes = bits.flag();
            self.over = true;
        }
    }
}

impl Model for Lz29 {
    fn start(&mut self, solid: bool) {
        self.over = false;
        self.telling = None;
        if !solid {
            self.wants_codes = true;
            self.lengths = [0; CODES];
            self.old = [0; 4];
            self.last_length = 0;
            self.programs = Programs::new();
            self.ppm.restart();
        }
    }

    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Stop {
        match self.symbols(bits, history, end) {
            Ok(()) => Stop::Full,
            Err(stop) => stop,
        }
    }

    /// The end of the last block says whether code lengths come first in the next member.
    fn conclude(&mut self, bits: &mut Bits, history: &mut History) -> bool {
        let end = history.position() + 1;
        self.over || !matches!(self.symbols(bits, history, end), Err(Stop::Input)) || bits.is_at_end()
    }
}

impl Lz29 {
    fn symbols(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Result<(), Stop> {
        while history.position() < end {
            if self.over {
                return Err(Stop::Over);
            }
            if self.is_ppm && !self.wants_codes && self.telling.is_none() {
                self.ppm(bits, history, end)?;
                continue;
            }
            let most = if self.wants_codes { HEADER_BITS } else { SYMBOL_BITS };
            if !bits.has(most) || bits.is_at_end() {
                return Err(Stop::Input);
            }
            if self.wants_codes {
                self.codes(bits)?;
                continue;
            }
            if self.telling.is_some() {
                self.tell(bits, history.position())?;
                continue;
            }
            let symbol = self.main.read(bits).ok_or(Stop::Fault(DATA))?;
            if symbol < END {
                history.dictionary.push(symbol as u8);
                continue;
            }
            let found = match symbol {
                END => {
                    self.end(bits);
                    continue;
                }
                PROGRAM => {
                    self.telling = Some(Telling::begin(bits));
                    continue;
                }
                AGAIN if self.last_length == 0 => continue,
                AGAIN => Some((self.old[0], self.last_length)),
                OLD_DISTANCES..SHORT => self.old(symbol - OLD_DISTANCES, bits),
                SHORT..LENGTHS => self.short(symbol - SHORT, bits),
                _ => self.fresh(symbol, bits),
            };
            let (distance, length) = found.ok_or(Stop::Fault(DATA))?;
            self.last_length = length;
            history.copy(distance, length, end)?;
        }
        Ok(())
    }
}
