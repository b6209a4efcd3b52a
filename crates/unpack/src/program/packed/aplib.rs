//! The compression of aPLib, which many small packers use: literals and matches told by single bits, in bytes among those
//! that they tell of.
//!
//! Source: the stub of MEW.

use super::Unpacked;
use super::nrv::Run;
use super::source::{Source, Whole};
use crate::frame::held::repeat;

/// The place in a compressed stream.
pub(super) struct Aplib {
    at: u64,
    byte: u8,
    bits: u32,
    /// The distance of the last match.
    distance: u32,
    state: State,
}

#[derive(PartialEq)]
enum State {
    First,
    /// After a literal; then a match cannot repeat the last distance by the shortest code.
    Literal,
    Match,
}

impl Aplib {
    pub fn new(at: u64) -> Aplib {
        Aplib { at, byte: 0, bits: 0, distance: 0, state: State::First }
    }

    /// Where the stream goes on.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Unpacks until there are `until` bytes, or a few more; those from `start` on belong to the stream.
    pub fn run(&mut self, file: &Whole, unpacked: &mut Unpacked, start: usize, until: usize) -> Run {
        let mut source = Source::new(file, self.at);
        let run = loop {
            if unpacked.bytes.len() >= until {
                break Run::More;
            }
            match self.symbol(&mut source, unpacked, start) {
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
            self.byte = source.byte()?;
            self.bits = 8;
        }
        self.bits -= 1;
        Some(u32::from(self.byte >> self.bits & 1))
    }

    /// A number in digits, with a bit behind each that says whether another follows.
    fn number(&mut self, source: &mut Source) -> Option<u32> {
        const NUMBER_MAX: u32 = 1 << 28;
        let mut value = 1;
        loop {
            value = value << 1 | self.bit(source)?;
            if value > NUMBER_MAX {
                return None;
            }
            if self.bit(source)? == 0 {
                return Some(value);
            }
        }
    }

    fn literal(&mut self, byte: u8, unpacked: &mut Unpacked) -> Option<Run> {
        self.state = State::Literal;
        Some(if unpacked.push(byte) { Run::More } else { Run::TooLarge })
    }

    fn symbol(&mut self, source: &mut Source, unpacked: &mut Unpacked, start: usize) -> Option<Run> {
        if self.state == State::First || self.bit(source)? == 0 {
            let byte = source.byte()?;
            return self.literal(byte, unpacked);
        }
        let (distance, length) = if self.bit(source)? == 0 {
            self.long_match(source)?
        } else if self.bit(source)? == 0 {
            let byte = u32::from(source.byte()?);
            if byte >> 1 == 0 {
                return Some(Run::End);
            }
            self.distance = byte >> 1;
            self.state = State::Match;
            (self.distance, 2 + (byte & 1))
        } else {
            let mut distance = 0;
            for _ in 0..4 {
                distance = distance << 1 | self.bit(source)?;
            }
            if distance == 0 {
                return self.literal(0, unpacked);
            }
            self.state = State::Literal;
            (distance, 1)
        };
        if distance == 0 || distance as usize > unpacked.bytes.len() - start {
            return Some(Run::Broken);
        }
        let has_room = repeat(&mut unpacked.bytes, distance as usize, length as usize, unpacked.bytes_max);
        Some(if has_room { Run::More } else { Run::TooLarge })
    }

    fn long_match(&mut self, source: &mut Source) -> Option<(u32, u32)> {
        const HIGH_MAX: u32 = 1 << 23;
        let after_literal = u32::from(self.state == State::Literal);
        self.state = State::Match;
        let high = self.number(source)? - 1 - after_literal;
        if high == 0 {
            return Some((self.distance, self.number(source)?));
        }
        if high > HIGH_MAX {
            return None;
        }
        self.distance = (high - 1) << 8 | u32::from(source.byte()?);
        let longer = match self.distance {
            ..0x80 | 0x7d00.. => 2,
            0x500.. => 1,
            _ => 0,
        };
        Some((self.distance, self.number(source)? + longer))
    }
}
