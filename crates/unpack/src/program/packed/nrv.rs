//! NRV2B, NRV2D and NRV2E, the compressions of UPX: literals and matches told by single bits, which stand in words among the
//! bytes that they tell of.
//!
//! Numbers are told in digits with a bit behind each that says whether another follows. Source: the stubs of UPX.

use super::Unpacked;
use super::source::{Source, Whole};
use crate::frame::held::repeat;

/// The order in which a match tells its distance and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    B,
    D,
    E,
}

/// The place in a compressed stream.
pub(super) struct Nrv {
    kind: Kind,
    /// Bytes of a word of bits.
    word_bytes: u32,
    at: u64,
    word: u32,
    bits: u32,
    /// The distance of the last match.
    distance: u32,
}

/// Result of a run.
#[derive(Debug, PartialEq)]
pub(super) enum Run {
    More,
    End,
    Broken,
    TooLarge,
}

impl Nrv {
    pub fn new(kind: Kind, word_bytes: u32, at: u64) -> Nrv {
        Nrv { kind, word_bytes, at, word: 0, bits: 0, distance: 1 }
    }

    /// Unpacks until there are `until` bytes, or some more.
    pub fn run(&mut self, file: &Whole, unpacked: &mut Unpacked, until: usize) -> Run {
        let mut source = Source::new(file, self.at);
        let run = loop {
            if unpacked.bytes.len() >= until {
                break Run::More;
            }
            match self.symbol(&mut source, unpacked) {
                Some(Run::More) => {}
                Some(run) => break run,
                None => break Run::Broken,
            }
        };
        self.at = source.at();
        run
    }

    fn bit(&mut self, source: &mut Source) -> Option<u32> {
        if self.bits == 0 {
            self.word = source.number(self.word_bytes)?;
            self.bits = 8 * self.word_bytes;
        }
        self.bits -= 1;
        Some(self.word >> self.bits & 1)
    }

    /// A literal or a match.
    fn symbol(&mut self, source: &mut Source, unpacked: &mut Unpacked) -> Option<Run> {
        /// Matches further back than this are longer by one.
        const fn far(kind: Kind) -> u32 {
            match kind {
                Kind::B => 0xd00,
                Kind::D | Kind::E => 0x500,
            }
        }
        if self.bit(source)? == 1 {
            let byte = source.byte()?;
            return Some(if unpacked.push(byte) { Run::More } else { Run::TooLarge });
        }
        let Some(first) = self.distance(source)? else { return Some(Run::End) };
        let length = match self.kind {
            Kind::B => self.length_with_first(source, None)?,
            Kind::D => self.length_with_first(source, Some(first))?,
            Kind::E => self.length_in_three(source, first)?,
        };
        let length = length + u32::from(self.distance > far(self.kind)) + 1;
        let (distance, length) = (self.distance as usize, length as usize);
        if distance > unpacked.bytes.len() {
            return Some(Run::Broken);
        }
        let has_room = repeat(&mut unpacked.bytes, distance, length, unpacked.bytes_max);
        Some(if has_room { Run::More } else { Run::TooLarge })
    }

    /// Reads the distance, unless it is the last one again; returns the first bit of the length, and nothing at the end of the
    /// stream.
    fn distance(&mut self, source: &mut Source) -> Option<Option<u32>> {
        const DISTANCE_MAX: u32 = 1 << 24;
        let mut value = 1;
        loop {
            value = value << 1 | self.bit(source)?;
            if value > DISTANCE_MAX + 2 {
                return None;
            }
            if self.bit(source)? == 1 {
                break;
            }
            if self.kind != Kind::B {
                value = (value - 1) << 1 | self.bit(source)?;
            }
        }
        if value == 2 {
            let first = if self.kind == Kind::B { 0 } else { self.bit(source)? };
            return Some(Some(first));
        }
        let value = (value - 3) << 8 | u32::from(source.byte()?);
        if value == u32::MAX {
            return Some(None);
        }
        let (value, first) = if self.kind == Kind::B { (value, 0) } else { (value >> 1, !value & 1) };
        self.distance = value + 1;
        Some(Some(first))
    }

    /// Reads two bits, of which the first may be known, or a number if they are zero.
    fn length_with_first(&mut self, source: &mut Source, first: Option<u32>) -> Option<u32> {
        let first = match first {
            Some(first) => first,
            None => self.bit(source)?,
        };
        match first << 1 | self.bit(source)? {
            0 => Some(self.number(source)? + 2),
            length => Some(length),
        }
    }

    fn length_in_three(&mut self, source: &mut Source, first: u32) -> Option<u32> {
        if first == 1 {
            return Some(1 + self.bit(source)?);
        }
        match self.bit(source)? {
            1 => Some(3 + self.bit(source)?),
            _ => Some(self.number(source)? + 3),
        }
    }

    fn number(&mut self, source: &mut Source) -> Option<u32> {
        const NUMBER_MAX: u32 = 1 << 28;
        let mut value = 1;
        loop {
            value = value << 1 | self.bit(source)?;
            if value > NUMBER_MAX {
                return None;
            }
            if self.bit(source)? == 1 {
                return Some(value);
            }
        }
    }
}

impl Unpacked {
    /// Appends a byte; whether there is room.
    pub fn push(&mut self, byte: u8) -> bool {
        let has_room = self.bytes.len() < self.bytes_max;
        if has_room {
            self.bytes.push(byte);
        }
        has_room
    }
}
