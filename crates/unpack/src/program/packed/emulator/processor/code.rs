//! The bytes of an instruction, and the places of its operands.

use super::super::memory::{CODE_BYTES, Memory};
use super::{Did, EBP, ESP, Fault, Processor};

/// How wide an operand is, in bits.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Width {
    Byte = 8,
    Word = 16,
    Long = 32,
}

impl Width {
    pub(super) const fn bits(self) -> u32 {
        self as u32
    }

    pub(super) const fn bytes(self) -> u32 {
        self as u32 / 8
    }

    pub(super) const fn mask(self) -> u32 {
        u32::MAX >> (32 - self as u32)
    }

    pub(super) const fn is_negative(self, value: u32) -> bool {
        value >> (self as u32 - 1) & 1 != 0
    }

    pub(super) const fn extend(self, value: u32) -> u32 {
        let shift = 32 - self as u32;
        ((value << shift) as i32 >> shift) as u32
    }
}

/// Where an operand stands.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Register(usize),
    Memory(u32),
}

/// An instruction on its way.
pub(super) struct Code {
    pub(super) bytes: [u8; CODE_BYTES],
    pub(super) at: usize,
    pub(super) width: Width,
    /// Offset added to addresses.
    pub(super) segment: u32,
    pub(super) repeat: Repeat,
    pub(super) has_short_address: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Repeat {
    No,
    WhileEqual,
    WhileUnequal,
}

impl Code {
    pub(super) fn byte(&mut self) -> Did<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::Unknown)?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn signed_byte(&mut self) -> Did<u32> {
        Ok(Width::Byte.extend(self.byte()?.into()))
    }

    pub(super) fn long(&mut self) -> Did<u32> {
        let bytes = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk).ok_or(Fault::Unknown)?;
        self.at += 4;
        Ok(u32::from_le_bytes(*bytes))
    }

    pub(super) fn number(&mut self, width: Width) -> Did<u32> {
        match width {
            Width::Byte => self.byte().map(u32::from),
            Width::Word => Ok(u32::from(self.byte()?) | u32::from(self.byte()?) << 8),
            Width::Long => self.long(),
        }
    }
}

impl Processor {
    pub(super) fn get(&self, place: Place, width: Width, memory: &Memory) -> Did<u32> {
        match place {
            Place::Register(index) => Ok(self.register(index, width)),
            Place::Memory(at) => self.load(at, width, memory),
        }
    }

    pub(super) fn put(&mut self, place: Place, value: u32, width: Width, memory: &mut Memory) -> Did<()> {
        match place {
            Place::Register(index) => {
                self.set_register(index, value, width);
                Ok(())
            }
            Place::Memory(at) => self.store(at, value, width, memory),
        }
    }

    /// The operands that the byte behind the code tells: a register's number, and a place.
    pub(super) fn operands(&self, code: &mut Code) -> Did<(usize, Place)> {
        let told = code.byte()?;
        let (kind, register, base) = (told >> 6, usize::from(told >> 3 & 7), usize::from(told & 7));
        if kind == 3 {
            return Ok((register, Place::Register(base)));
        }
        if code.has_short_address {
            if kind != 0 || base != 6 {
                return Err(Fault::Unknown);
            }
            let at = code.number(Width::Word)?;
            return Ok((register, Place::Memory(at.wrapping_add(code.segment))));
        }
        let mut at = match base {
            ESP => self.scaled(kind, code)?,
            EBP if kind == 0 => code.long()?,
            _ => self.general[base],
        };
        at = match kind {
            1 => at.wrapping_add(code.signed_byte()?),
            2 => at.wrapping_add(code.long()?),
            _ => at,
        };
        Ok((register, Place::Memory(at.wrapping_add(code.segment))))
    }

    pub(super) fn scaled(&self, kind: u8, code: &mut Code) -> Did<u32> {
        let told = code.byte()?;
        let (scale, index, base) = (told >> 6, usize::from(told >> 3 & 7), usize::from(told & 7));
        let start = if base == EBP && kind == 0 { code.long()? } else { self.general[base] };
        let offset = if index == ESP { 0 } else { self.general[index] << scale };
        Ok(start.wrapping_add(offset))
    }
}
