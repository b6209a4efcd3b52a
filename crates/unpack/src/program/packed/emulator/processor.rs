//! The processor that stubs are written for: integers of the 80386 in flat 32-bit mode.
//!
//! Left out: floating point and vectors, 16-bit addresses but for plain ones, privileged instructions, the auxiliary carry.
//! What is left out is a [`Fault`], at which a run ends or the stub's own handler takes over. Bounds: one instruction a call;
//! a repeated one does [`REPEATS`] rounds in it at most, and goes on in the next.

mod arithmetic;
mod code;
mod instruction;

use self::code::{Code, Repeat, Width};
use super::memory::Memory;

pub(super) const EAX: usize = 0;
pub(super) const ECX: usize = 1;
pub(super) const EDX: usize = 2;
pub(super) const EBX: usize = 3;
pub(super) const ESP: usize = 4;
pub(super) const EBP: usize = 5;
pub(super) const ESI: usize = 6;
pub(super) const EDI: usize = 7;
/// Rounds of a repeated instruction in one call.
const REPEATS: u32 = 1024;

/// Why an instruction was not done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    /// No memory is at this address.
    Memory(u32),
    Divide,
    /// A breakpoint, a privileged or another instruction that traps.
    Trap,
    /// One instruction was done, as the flags wanted.
    SingleStep,
    /// An instruction that is left out.
    Unknown,
}

type Did<T> = Result<T, Fault>;

/// The registers.
pub(super) struct Processor {
    pub general: [u32; 8],
    pub ip: u32,
    /// Where the thread's block stands.
    pub thread: u32,
    /// Rounds of repeated instructions, beyond one each.
    pub rounds: u32,
    carry: bool,
    zero: bool,
    sign: bool,
    overflow: bool,
    /// The byte whose parity counts.
    low: u8,
    backwards: bool,
    /// Whether the next instruction is followed by a fault.
    traps: bool,
}

impl Processor {
    pub fn new(ip: u32, thread: u32) -> Processor {
        Processor {
            general: [0; 8],
            ip,
            thread,
            rounds: 0,
            carry: false,
            zero: true,
            sign: false,
            overflow: false,
            low: 0,
            backwards: false,
            traps: false,
        }
    }

    pub fn flags(&self) -> u32 {
        const ALWAYS: u32 = 0x202;
        let bit = |is_set: bool, at: u32| u32::from(is_set) << at;
        ALWAYS
            | bit(self.carry, 0)
            | bit(self.parity(), 2)
            | bit(self.zero, 6)
            | bit(self.sign, 7)
            | bit(self.backwards, 10)
            | bit(self.overflow, 11)
    }

    pub fn set_flags(&mut self, flags: u32) {
        self.set_low_flags(flags);
        self.traps = flags & 0x100 != 0;
        self.backwards = flags & 0x400 != 0;
        self.overflow = flags & 0x800 != 0;
    }

    fn set_low_flags(&mut self, flags: u32) {
        self.carry = flags & 1 != 0;
        self.low = u8::from(flags & 4 == 0);
        self.zero = flags & 0x40 != 0;
        self.sign = flags & 0x80 != 0;
    }

    fn parity(&self) -> bool {
        self.low.count_ones().is_multiple_of(2)
    }

    pub fn push(&mut self, value: u32, memory: &mut Memory) -> Did<()> {
        let at = self.general[ESP].wrapping_sub(4);
        self.store(at, value, Width::Long, memory)?;
        self.general[ESP] = at;
        Ok(())
    }

    pub fn pop(&mut self, memory: &Memory) -> Did<u32> {
        let value = self.load(self.general[ESP], Width::Long, memory)?;
        self.general[ESP] = self.general[ESP].wrapping_add(4);
        Ok(value)
    }

    fn push_wide(&mut self, value: u32, width: Width, memory: &mut Memory) -> Did<()> {
        let at = self.general[ESP].wrapping_sub(width.bytes());
        self.store(at, value, width, memory)?;
        self.general[ESP] = at;
        Ok(())
    }

    fn pop_wide(&mut self, width: Width, memory: &Memory) -> Did<u32> {
        let value = self.load(self.general[ESP], width, memory)?;
        self.general[ESP] = self.general[ESP].wrapping_add(width.bytes());
        Ok(value)
    }

    #[inline(always)]
    fn load(&self, at: u32, width: Width, memory: &Memory) -> Did<u32> {
        let value = match width {
            Width::Byte => memory.read(at).map(|[byte]| u32::from(byte)),
            Width::Word => memory.read(at).map(|bytes| u32::from(u16::from_le_bytes(bytes))),
            Width::Long => memory.read(at).map(u32::from_le_bytes),
        };
        value.ok_or(Fault::Memory(at))
    }

    #[inline(always)]
    fn store(&mut self, at: u32, value: u32, width: Width, memory: &mut Memory) -> Did<()> {
        let is_there = match width {
            Width::Byte => memory.write(at, [value as u8]),
            Width::Word => memory.write(at, (value as u16).to_le_bytes()),
            Width::Long => memory.write(at, value.to_le_bytes()),
        };
        if is_there { Ok(()) } else { Err(Fault::Memory(at)) }
    }

    fn register(&self, index: usize, width: Width) -> u32 {
        match width {
            Width::Byte if index >= 4 => self.general[index - 4] >> 8 & 0xff,
            _ => self.general[index] & width.mask(),
        }
    }

    fn set_register(&mut self, index: usize, value: u32, width: Width) {
        match width {
            Width::Byte if index >= 4 => {
                let register = &mut self.general[index - 4];
                *register = *register & !0xff00 | (value & 0xff) << 8;
            }
            _ => {
                let register = &mut self.general[index];
                *register = *register & !width.mask() | value & width.mask();
            }
        }
    }

    fn condition(&self, number: u8) -> bool {
        let holds = match number >> 1 & 7 {
            0 => self.overflow,
            1 => self.carry,
            2 => self.zero,
            3 => self.carry || self.zero,
            4 => self.sign,
            5 => self.parity(),
            6 => self.sign != self.overflow,
            _ => self.zero || self.sign != self.overflow,
        };
        holds != (number & 1 != 0)
    }

    /// Executes one instruction, or a part of a repeated one. After a fault only its effects on memory remain.
    pub fn step(&mut self, memory: &mut Memory) -> Did<()> {
        let bytes = memory.code(self.ip).ok_or(Fault::Memory(self.ip))?;
        let mut code =
            Code { bytes, at: 0, width: Width::Long, segment: 0, repeat: Repeat::No, has_short_address: false };
        let start = self.ip;
        let first = self.prefixes(&mut code)?;
        if !std::mem::take(&mut self.traps) {
            return self.instruction(first, &mut code, memory, start);
        }
        self.instruction(first, &mut code, memory, start)?;
        Err(Fault::SingleStep)
    }

    fn prefixes(&self, code: &mut Code) -> Did<u8> {
        loop {
            match code.byte()? {
                0x66 => code.width = Width::Word,
                0x67 => code.has_short_address = true,
                0x64 => code.segment = self.thread,
                0x26 | 0x2e | 0x36 | 0x3e | 0x65 | 0xf0 => {}
                0xf2 => code.repeat = Repeat::WhileUnequal,
                0xf3 => code.repeat = Repeat::WhileEqual,
                first => return Ok(first),
            }
        }
    }

    fn next(&mut self, code: &Code) {
        self.ip = self.ip.wrapping_add(code.at as u32);
    }

    fn jump(&mut self, code: &Code, offset: u32) {
        self.next(code);
        self.ip = self.ip.wrapping_add(offset);
    }
}
