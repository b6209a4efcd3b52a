//! Filters of RAR 3: programs for a virtual machine, told among the symbols.
//!
//! The archiver only ever writes six programs that matter. They are known by length and checksum, and [`Filter`] does
//! their work; other programs are not run. Bounds: [`PROGRAMS_MAX`] programs remembered, one telling of
//! [`CAPACITY`] bytes.

use zlib_rs::crc32::crc32;

use super::filter::{Filter, Kind};
use crate::bits::pushed::{Bits, CAPACITY};

const PROGRAMS_MAX: usize = 1024;

/// A declaration of a new or known program, with the block that it filters.
#[derive(Clone)]
pub(super) struct Telling {
    flags: u8,
    bytes: Vec<u8>,
    wanted: usize,
}

/// The programs told so far.
pub(super) struct Programs {
    known: Vec<Known>,
    /// The program told last.
    last: usize,
}

struct Known {
    program: Program,
    /// The length of the last block it was for.
    block_bytes: u32,
}

#[derive(Clone, Copy)]
enum Program {
    E8,
    E8E9,
    Itanium,
    Delta,
    Rgb,
    Audio,
}

/// Why a telling leads to no filter.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// An unknown program.
    Unknown,
    /// It makes no sense.
    Broken,
}

/// The parts of a telling that its first byte announces.
mod flag {
    pub const PROGRAM: u8 = 0x80;
    pub const FAR: u8 = 0x40;
    pub const LENGTH: u8 = 0x20;
    pub const REGISTERS: u8 = 0x10;
}

impl Telling {
    /// The head of a telling, flags and length, if these are all bytes of it.
    pub fn of(head: &[u8]) -> Option<Telling> {
        let (&flags, rest) = head.split_first()?;
        let wanted = match (flags & 7, rest) {
            (6, &[length]) => usize::from(length) + 7,
            (7, &[high, low]) => usize::from(high) << 8 | usize::from(low),
            (length @ 0..6, []) => usize::from(length) + 1,
            _ => return None,
        };
        Some(Telling { flags, bytes: Vec::new(), wanted })
    }

    /// Reads the head; it takes at most three bytes.
    pub fn begin(bits: &mut Bits) -> Telling {
        let mut head = Vec::new();
        loop {
            head.push(bits.take(8) as u8);
            if let Some(telling) = Telling::of(&head) {
                return telling;
            }
        }
    }

    /// Reads bytes. Returns whether it is complete.
    pub fn read(&mut self, bits: &mut Bits) -> bool {
        while !self.is_complete() && bits.has(8) && !bits.is_at_end() {
            self.push(bits.take(8) as u8);
        }
        self.is_complete()
    }

    /// The next byte of it.
    pub fn push(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Returns whether it is complete.
    pub const fn is_complete(&self) -> bool {
        self.bytes.len() >= self.wanted
    }
}

impl Programs {
    pub const fn new() -> Programs {
        Programs { known: Vec::new(), last: 0 }
    }

    /// Returns the filter that is declared when the history is at `position`.
    pub fn filter(&mut self, telling: &Telling, position: u64) -> Result<Filter, Refused> {
        if telling.bytes.len() > CAPACITY {
            return Err(Refused::Unknown);
        }
        let mut bits = Bits::new();
        bits.fill(&telling.bytes);
        bits.fill(&[]);
        let index = self.index(telling.flags, &mut bits);
        let far = if telling.flags & flag::FAR != 0 { 258 } else { 0 };
        let start = position + u64::from(number(&mut bits)) + far;
        let length = (telling.flags & flag::LENGTH != 0).then(|| number(&mut bits));
        let length = length.or(self.known.get(index).map(|known| known.block_bytes)).unwrap_or(0);
        let mut registers = [0; 7];
        if telling.flags & flag::REGISTERS != 0 {
            let mask = bits.take(7);
            let told = registers.iter_mut().enumerate().filter(|(index, _)| mask >> index & 1 == 1);
            told.for_each(|(_, register)| *register = number(&mut bits));
        }
        if index == self.known.len() && index < PROGRAMS_MAX {
            let program = program(&mut bits)?;
            self.known.push(Known { program, block_bytes: length });
        }
        let known = self.known.get_mut(index).ok_or(Refused::Broken)?;
        known.block_bytes = length;
        let kind = known.program.kind(&registers, length).ok_or(Refused::Broken)?;
        if bits.overran() { Err(Refused::Broken) } else { Ok(Filter { kind, start, length }) }
    }

    /// Number of the meant program: one told before, or the next.
    fn index(&mut self, flags: u8, bits: &mut Bits) -> usize {
        if flags & flag::PROGRAM != 0 {
            self.last = match number(bits) {
                0 => {
                    self.known.clear();
                    0
                }
                index => (index - 1) as usize,
            };
        }
        self.last
    }
}

/// Reads the bytes of a program.
fn program(bits: &mut Bits) -> Result<Program, Refused> {
    let length = number(bits) as usize;
    if length == 0 || length > CAPACITY {
        return Err(if length == 0 { Refused::Broken } else { Refused::Unknown });
    }
    let code: Vec<u8> = (0..length).map(|_| bits.take(8) as u8).collect();
    if bits.overran() {
        return Err(Refused::Broken);
    }
    Program::of(&code).ok_or(Refused::Unknown)
}

impl Program {
    /// The program whose bytes these are.
    fn of(code: &[u8]) -> Option<Program> {
        Some(match (code.len(), crc32(0, code)) {
            (53, 0xad57_6887) => Program::E8,
            (57, 0x3cd7_e57e) => Program::E8E9,
            (120, 0x3769_893f) => Program::Itanium,
            (29, 0x0e06_077d) => Program::Delta,
            (149, 0x1c2c_5dc8) => Program::Rgb,
            (216, 0xbc85_e701) => Program::Audio,
            _ => return None,
        })
    }

    /// Filter that the program is with these registers.
    fn kind(self, registers: &[u32; 7], length: u32) -> Option<Kind> {
        const CHANNELS_MAX: u32 = 1024;
        let channels = (1..=CHANNELS_MAX).contains(&registers[0]).then_some(registers[0] as usize);
        Some(match self {
            Program::E8 => Kind::X86 { jumps: false, wraps: false },
            Program::E8E9 => Kind::X86 { jumps: true, wraps: false },
            Program::Itanium => Kind::Itanium,
            Program::Delta => Kind::Delta { channels: channels? },
            Program::Audio => Kind::Audio { channels: channels? },
            Program::Rgb if registers[0] >= 3 && registers[0] <= length && registers[1] <= 2 => {
                Kind::Rgb { stride: registers[0] as usize, red_at: registers[1] as usize }
            }
            Program::Rgb => return None,
        })
    }
}

/// A number of 4, 8, 16 or 32 bits, or a small negative one.
fn number(bits: &mut Bits) -> u32 {
    match bits.take(2) {
        0 => bits.take(4),
        1 => match bits.take(4) {
            0 => 0xffff_ff00 | bits.take(8),
            high => high << 4 | bits.take(4),
        },
        2 => bits.take(16),
        _ => bits.take(32),
    }
}
