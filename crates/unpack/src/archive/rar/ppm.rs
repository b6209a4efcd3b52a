//! Blocks of PPMd among those of [`Lz29`](super::lz29::Lz29): bytes, and behind an escape byte what the block's own
//! symbols would say.
//!
//! ```text
//! head := order and flags, [memory in MiB less one], [escape byte], range coder
//! escape 0: the block ends · 2: the member ends · 3: a program · 4: a match · 5: the last byte again · else: the byte
//! ```
//! The model outlives its block; a head without memory goes on with it.

use super::lz::{DATA, DICTIONARY, Stop};
use super::program::Telling;
use crate::bits::history::History;
use crate::bits::pushed::Bits;
use crate::codec::ppmd::{Carryless, CarrylessRegisters, Coder, ModelH, Symbol};

const ESCAPE: u8 = 2;

/// The model and the place in a block.
pub(super) struct Ppm {
    model: Option<Box<ModelH>>,
    registers: CarrylessRegisters,
    escape: u8,
    awaits: Awaits,
    codec_bytes_max: usize,
}

/// Meaning of the next byte.
enum Awaits {
    /// Content, or an escape.
    Plain,
    /// Meaning of the escape.
    Meaning,
    /// Three bytes of distance and one of length.
    Match(Vec<u8>),
    /// The length of a run of the last byte.
    Run,
    /// Flags, then as many bytes of length as they say.
    ProgramHead(Vec<u8>),
    /// The bytes of a program.
    Program(Telling),
}

/// Why symbols end.
pub(super) enum Ppmd {
    /// The block is over, another follows.
    BlockEnd,
    /// A program was declared.
    Program(Telling),
    Stop(Stop),
}

impl Ppm {
    pub fn new(codec_bytes_max: usize) -> Ppm {
        Ppm {
            model: None,
            registers: CarrylessRegisters::default(),
            escape: ESCAPE,
            awaits: Awaits::Plain,
            codec_bytes_max,
        }
    }

    /// A member begins that goes on with nothing.
    pub fn restart(&mut self) {
        self.model = None;
        self.escape = ESCAPE;
    }

    /// Reads the head of a block, from its flag on; `None` if it makes no sense.
    pub fn begin(&mut self, bits: &mut Bits) -> Option<()> {
        const NEW: u32 = 0x20;
        const TELLS_ESCAPE: u32 = 0x40;
        let flags = bits.take(8);
        let memory = if flags & NEW != 0 { Some((bits.take(8) + 1) << 20) } else { None };
        if flags & TELLS_ESCAPE != 0 {
            self.escape = bits.take(8) as u8;
        }
        if let Some(memory) = memory {
            let order = (flags & 0x1f) + 1;
            let order = if order > 16 { 16 + (order - 16) * 3 } else { order };
            self.model = None;
            self.model = Some(Box::new(ModelH::new(order, memory, self.codec_bytes_max)?));
        }
        let init: Vec<u8> = (0..Carryless::INIT_BYTES).map(|_| bits.take(8) as u8).collect();
        self.registers = Carryless::start(&init)?;
        self.awaits = Awaits::Plain;
        self.model.as_ref().map(|_| ())
    }

    /// Reads symbols until the history is at `end`.
    pub fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Result<(), Ppmd> {
        let Some(model) = &mut self.model else {
            return Err(Ppmd::Stop(Stop::Fault(DATA)));
        };
        let ahead = 8 * (model.order_max() as usize + 2) * Carryless::CHOICE_BYTES_MAX;
        while history.position() < end {
            // The coder reads ahead: behind the last byte there are symbols yet.
            if !bits.has(ahead) || bits.overran() {
                return Err(Ppmd::Stop(Stop::Input));
            }
            let mut coder = Carryless::over(bits.unread(), self.registers);
            let symbol = model.symbol(&mut coder);
            self.registers = coder.registers();
            let consumed = coder.consumed();
            bits.skip(8 * consumed as u32);
            let byte = match symbol {
                Symbol::Byte(byte) => byte,
                Symbol::OverLimit => return Err(Ppmd::Stop(Stop::Fault(DICTIONARY))),
                Symbol::End | Symbol::Broken => return Err(Ppmd::Stop(Stop::Fault(DATA))),
            };
            if matches!(self.awaits, Awaits::Plain) && byte != self.escape {
                history.dictionary.push(byte);
                continue;
            }
            self.awaits = std::mem::replace(&mut self.awaits, Awaits::Plain).hear(byte, self.escape, history, end)?;
        }
        Ok(())
    }
}

impl Awaits {
    /// State after `byte`.
    fn hear(self, byte: u8, escape: u8, history: &mut History, end: u64) -> Result<Awaits, Ppmd> {
        match self {
            Awaits::Plain => Ok(Awaits::Meaning),
            Awaits::Meaning => match byte {
                0 => Err(Ppmd::BlockEnd),
                2 => Err(Ppmd::Stop(Stop::Over)),
                3 => Ok(Awaits::ProgramHead(Vec::new())),
                4 => Ok(Awaits::Match(Vec::new())),
                5 => Ok(Awaits::Run),
                _ => {
                    history.dictionary.push(escape);
                    Ok(Awaits::Plain)
                }
            },
            Awaits::Match(mut bytes) => {
                bytes.push(byte);
                let [a, b, c, length] = bytes[..] else {
                    return Ok(Awaits::Match(bytes));
                };
                let distance = u32::from_be_bytes([0, a, b, c]) as usize + 2;
                history
                    .copy(distance, usize::from(length) + 32, end)
                    .map_err(|unreachable| Ppmd::Stop(unreachable.into()))?;
                Ok(Awaits::Plain)
            }
            Awaits::Run => {
                history.copy(1, usize::from(byte) + 4, end).map_err(|unreachable| Ppmd::Stop(unreachable.into()))?;
                Ok(Awaits::Plain)
            }
            Awaits::ProgramHead(mut bytes) => {
                bytes.push(byte);
                match Telling::of(&bytes) {
                    Some(telling) => Awaits::Program(telling).if_incomplete(),
                    None => Ok(Awaits::ProgramHead(bytes)),
                }
            }
            Awaits::Program(mut telling) => {
                telling.push(byte);
                Awaits::Program(telling).if_incomplete()
            }
        }
    }

    fn if_incomplete(self) -> Result<Awaits, Ppmd> {
        match self {
            Awaits::Program(telling) if telling.is_complete() => Err(Ppmd::Program(telling)),
            awaits => Ok(awaits),
        }
    }
}
