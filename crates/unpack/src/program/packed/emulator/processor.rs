//! The processor that stubs are written for: integers of the 80386 in flat 32-bit mode.
//!
//! Left out: floating point and vectors, 16-bit addresses but for plain ones, privileged instructions, the auxiliary carry.
//! What is left out is a [`Fault`], at which a run ends or the stub's own handler takes over. Bounds: one instruction a call;
//! a repeated one does [`REPEATS`] rounds in it at most, and goes on in the next.

use super::memory::{CODE_BYTES, Memory};

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

/// How wide an operand is, in bits.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    Byte = 8,
    Word = 16,
    Long = 32,
}

impl Width {
    const fn bits(self) -> u32 {
        self as u32
    }

    const fn bytes(self) -> u32 {
        self as u32 / 8
    }

    const fn mask(self) -> u32 {
        u32::MAX >> (32 - self as u32)
    }

    const fn is_negative(self, value: u32) -> bool {
        value >> (self as u32 - 1) & 1 != 0
    }

    const fn extend(self, value: u32) -> u32 {
        let shift = 32 - self as u32;
        ((value << shift) as i32 >> shift) as u32
    }
}

/// Where an operand stands.
#[derive(Clone, Copy)]
enum Place {
    Register(usize),
    Memory(u32),
}

/// An instruction on its way.
struct Code {
    bytes: [u8; CODE_BYTES],
    at: usize,
    width: Width,
    /// Offset added to addresses.
    segment: u32,
    repeat: Repeat,
    has_short_address: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Repeat {
    No,
    WhileEqual,
    WhileUnequal,
}

impl Code {
    fn byte(&mut self) -> Did<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::Unknown)?;
        self.at += 1;
        Ok(byte)
    }

    fn signed_byte(&mut self) -> Did<u32> {
        Ok(Width::Byte.extend(self.byte()?.into()))
    }

    fn long(&mut self) -> Did<u32> {
        let bytes = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk).ok_or(Fault::Unknown)?;
        self.at += 4;
        Ok(u32::from_le_bytes(*bytes))
    }

    fn number(&mut self, width: Width) -> Did<u32> {
        match width {
            Width::Byte => self.byte().map(u32::from),
            Width::Word => Ok(u32::from(self.byte()?) | u32::from(self.byte()?) << 8),
            Width::Long => self.long(),
        }
    }
}

const SHIFT_LEFT: usize = 4;
const COMPARE: usize = 7;

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

    fn get(&self, place: Place, width: Width, memory: &Memory) -> Did<u32> {
        match place {
            Place::Register(index) => Ok(self.register(index, width)),
            Place::Memory(at) => self.load(at, width, memory),
        }
    }

    fn put(&mut self, place: Place, value: u32, width: Width, memory: &mut Memory) -> Did<()> {
        match place {
            Place::Register(index) => {
                self.set_register(index, value, width);
                Ok(())
            }
            Place::Memory(at) => self.store(at, value, width, memory),
        }
    }

    /// The operands that the byte behind the code tells: a register's number, and a place.
    fn operands(&self, code: &mut Code) -> Did<(usize, Place)> {
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

    fn scaled(&self, kind: u8, code: &mut Code) -> Did<u32> {
        let told = code.byte()?;
        let (scale, index, base) = (told >> 6, usize::from(told >> 3 & 7), usize::from(told & 7));
        let start = if base == EBP && kind == 0 { code.long()? } else { self.general[base] };
        let offset = if index == ESP { 0 } else { self.general[index] << scale };
        Ok(start.wrapping_add(offset))
    }

    fn set_result(&mut self, value: u32, width: Width) {
        self.zero = value & width.mask() == 0;
        self.sign = width.is_negative(value);
        self.low = value as u8;
    }

    fn logic(&mut self, value: u32, width: Width) -> u32 {
        (self.carry, self.overflow) = (false, false);
        self.set_result(value, width);
        value
    }

    fn add(&mut self, a: u32, b: u32, carry: bool, width: Width) -> u32 {
        let sum = u64::from(a) + u64::from(b) + u64::from(carry);
        let value = sum as u32 & width.mask();
        self.carry = sum >> width.bits() != 0;
        self.overflow = width.is_negative((a ^ value) & (b ^ value));
        self.set_result(value, width);
        value
    }

    fn subtract(&mut self, a: u32, b: u32, carry: bool, width: Width) -> u32 {
        let value = a.wrapping_sub(b).wrapping_sub(carry.into()) & width.mask();
        self.carry = u64::from(a) < u64::from(b) + u64::from(carry);
        self.overflow = width.is_negative((a ^ b) & (a ^ value));
        self.set_result(value, width);
        value
    }

    /// One of the eight operations on two operands, by its number.
    fn operate(&mut self, operation: usize, a: u32, b: u32, width: Width) -> u32 {
        match operation {
            0 => self.add(a, b, false, width),
            1 => self.logic(a | b, width),
            2 => self.add(a, b, self.carry, width),
            3 => self.subtract(a, b, self.carry, width),
            4 => self.logic(a & b, width),
            6 => self.logic(a ^ b, width),
            _ => self.subtract(a, b, false, width),
        }
    }

    fn operate_on(&mut self, operation: usize, place: Place, b: u32, width: Width, memory: &mut Memory) -> Did<()> {
        let a = self.get(place, width, memory)?;
        let value = self.operate(operation, a, b, width);
        if operation == COMPARE { Ok(()) } else { self.put(place, value, width, memory) }
    }

    /// One more or one less, which leaves the carry alone.
    fn step_by_one(&mut self, place: Place, is_up: bool, width: Width, memory: &mut Memory) -> Did<()> {
        let carry = self.carry;
        let value = self.get(place, width, memory)?;
        let value = if is_up { self.add(value, 1, false, width) } else { self.subtract(value, 1, false, width) };
        self.carry = carry;
        self.put(place, value, width, memory)
    }

    fn shift(&mut self, kind: usize, place: Place, count: u32, width: Width, memory: &mut Memory) -> Did<()> {
        let (bits, mut value) = (width.bits(), self.get(place, width, memory)?);
        let before = value;
        let count = count & 31;
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            let (top, bottom) = (width.is_negative(value), value & 1 != 0);
            let carry_in = match kind {
                0 => top,
                1 => bottom,
                2 | 3 => self.carry,
                7 => top,
                _ => false,
            };
            let is_left = matches!(kind, 0 | 2 | SHIFT_LEFT | 6);
            self.carry = if is_left { top } else { bottom };
            value = match is_left {
                true => (value << 1 | u32::from(carry_in)) & width.mask(),
                false => value >> 1 | u32::from(carry_in) << (bits - 1),
            };
        }
        self.overflow = width.is_negative(before ^ value);
        if kind >= SHIFT_LEFT {
            self.set_result(value, width);
        }
        self.put(place, value, width, memory)
    }

    fn shift_double(&mut self, is_left: bool, code: &mut Code, count: Option<u32>, memory: &mut Memory) -> Did<()> {
        let width = code.width;
        let (register, place) = self.operands(code)?;
        let count = match count {
            Some(count) => count,
            None => code.byte()?.into(),
        } & 31;
        if width != Width::Long {
            return Err(Fault::Unknown);
        }
        if count == 0 {
            return Ok(());
        }
        let (a, b) = (self.get(place, width, memory)?, self.general[register]);
        let value = if is_left { a << count | b >> (32 - count) } else { a >> count | b << (32 - count) };
        self.carry = if is_left { a >> (32 - count) & 1 != 0 } else { a >> (count - 1) & 1 != 0 };
        self.overflow = width.is_negative(a ^ value);
        self.set_result(value, width);
        self.put(place, value, width, memory)
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

    fn instruction(&mut self, first: u8, code: &mut Code, memory: &mut Memory, start: u32) -> Did<()> {
        let width = if first & 1 == 0 { Width::Byte } else { code.width };
        let low = usize::from(first & 7);
        match first {
            0x00..=0x3f if first & 7 < 6 => self.two_operands(first, width, code, memory)?,
            0x0f => return self.extended(code, memory),
            0x40..=0x47 => self.step_by_one(Place::Register(low), true, code.width, memory)?,
            0x48..=0x4f => self.step_by_one(Place::Register(low), false, code.width, memory)?,
            0x50..=0x57 => self.push_wide(self.general[low], code.width, memory)?,
            0x58..=0x5f => {
                let value = self.pop_wide(code.width, memory)?;
                self.set_register(low, value, code.width);
            }
            0x60 => {
                let stack = self.general[ESP];
                for register in 0..8 {
                    let value = if register == ESP { stack } else { self.general[register] };
                    self.push_wide(value, code.width, memory)?;
                }
            }
            0x61 => {
                for register in (0..8).rev() {
                    let value = self.pop_wide(code.width, memory)?;
                    if register != ESP {
                        self.set_register(register, value, code.width);
                    }
                }
            }
            0x68 => {
                let value = code.number(code.width)?;
                self.push_wide(value, code.width, memory)?;
            }
            0x6a => {
                let value = code.signed_byte()?;
                self.push_wide(value, code.width, memory)?;
            }
            0x69 | 0x6b => {
                let (register, place) = self.operands(code)?;
                let a = self.get(place, code.width, memory)?;
                let b = if first == 0x6b { code.signed_byte()? } else { code.number(code.width)? };
                self.multiply_into(register, a, b, code.width);
            }
            0x70..=0x7f => {
                let offset = code.signed_byte()?;
                self.jump(code, if self.condition(first & 15) { offset } else { 0 });
                return Ok(());
            }
            0x80..=0x83 => {
                let (operation, place) = self.operands(code)?;
                let value = if first == 0x83 { code.signed_byte()? & width.mask() } else { code.number(width)? };
                self.operate_on(operation, place, value, width, memory)?;
            }
            0x84 | 0x85 => {
                let (register, place) = self.operands(code)?;
                let value = self.get(place, width, memory)? & self.register(register, width);
                self.logic(value, width);
            }
            0x86 | 0x87 => {
                let (register, place) = self.operands(code)?;
                let (a, b) = (self.get(place, width, memory)?, self.register(register, width));
                self.put(place, b, width, memory)?;
                self.set_register(register, a, width);
            }
            0x88 | 0x89 => {
                let (register, place) = self.operands(code)?;
                self.put(place, self.register(register, width), width, memory)?;
            }
            0x8a | 0x8b => {
                let (register, place) = self.operands(code)?;
                let value = self.get(place, width, memory)?;
                self.set_register(register, value, width);
            }
            0x8d => {
                code.segment = 0;
                let (register, Place::Memory(at)) = self.operands(code)? else { return Err(Fault::Unknown) };
                self.set_register(register, at, code.width);
            }
            0x8f => {
                let value = self.pop_wide(code.width, memory)?;
                let (_, place) = self.operands(code)?;
                self.put(place, value, code.width, memory)?;
            }
            0x90..=0x97 => {
                let (a, b) = (self.register(EAX, code.width), self.register(low, code.width));
                self.set_register(EAX, b, code.width);
                self.set_register(low, a, code.width);
            }
            0x98 => {
                let half = if code.width == Width::Long { Width::Word } else { Width::Byte };
                let value = half.extend(self.general[EAX]);
                self.set_register(EAX, value, code.width);
            }
            0x99 => {
                let is_negative = code.width.is_negative(self.general[EAX]);
                self.set_register(EDX, if is_negative { u32::MAX } else { 0 }, code.width);
            }
            0x9b => {}
            0x9c => self.push_wide(self.flags(), code.width, memory)?,
            0x9d => {
                let flags = self.pop_wide(code.width, memory)?;
                self.set_flags(flags);
            }
            0x9e => self.set_low_flags(self.general[EAX] >> 8),
            0x9f => self.set_register(4, self.flags(), Width::Byte),
            0xa0..=0xa3 => {
                let at = if code.has_short_address { code.number(Width::Word)? } else { code.long()? };
                let place = Place::Memory(at.wrapping_add(code.segment));
                if first < 0xa2 {
                    let value = self.get(place, width, memory)?;
                    self.set_register(EAX, value, width);
                } else {
                    self.put(place, self.register(EAX, width), width, memory)?;
                }
            }
            0xa8 | 0xa9 => {
                let value = code.number(width)? & self.register(EAX, width);
                self.logic(value, width);
            }
            0xa4..=0xa7 | 0xaa..=0xaf => return self.string(first, width, code, memory),
            0xb0..=0xb7 => {
                let value = code.byte()?;
                self.set_register(low, value.into(), Width::Byte);
            }
            0xb8..=0xbf => {
                let value = code.number(code.width)?;
                self.set_register(low, value, code.width);
            }
            0xc0 | 0xc1 | 0xd0..=0xd3 => {
                let (kind, place) = self.operands(code)?;
                let count = match first {
                    0xc0 | 0xc1 => code.byte()?.into(),
                    0xd0 | 0xd1 => 1,
                    _ => self.general[ECX],
                };
                self.shift(kind, place, count, width, memory)?;
            }
            0xc2 | 0xc3 => {
                let drop = if first == 0xc2 { code.number(Width::Word)? } else { 0 };
                self.ip = self.pop(memory)?;
                self.general[ESP] = self.general[ESP].wrapping_add(drop);
                return Ok(());
            }
            0xc6 | 0xc7 => {
                let (_, place) = self.operands(code)?;
                let value = code.number(width)?;
                self.put(place, value, width, memory)?;
            }
            0xc8 => {
                let bytes = code.number(Width::Word)?;
                if code.byte()? != 0 {
                    return Err(Fault::Unknown);
                }
                self.push(self.general[EBP], memory)?;
                self.general[EBP] = self.general[ESP];
                self.general[ESP] = self.general[ESP].wrapping_sub(bytes);
            }
            0xc9 => {
                let value = self.load(self.general[EBP], Width::Long, memory)?;
                self.general[ESP] = self.general[EBP].wrapping_add(4);
                self.general[EBP] = value;
            }
            0xcc | 0xcd | 0xce | 0xf1 | 0xf4 | 0xe4..=0xe7 | 0xec..=0xef | 0xfa | 0xfb => return Err(Fault::Trap),
            0xd6 => self.set_register(EAX, if self.carry { 0xff } else { 0 }, Width::Byte),
            0xd7 => {
                let at = self.general[EBX].wrapping_add(self.general[EAX] & 0xff).wrapping_add(code.segment);
                let value = self.load(at, Width::Byte, memory)?;
                self.set_register(EAX, value, Width::Byte);
            }
            0xe0..=0xe3 => {
                let offset = code.signed_byte()?;
                let counter = if code.has_short_address { Width::Word } else { Width::Long };
                if first != 0xe3 {
                    self.set_register(ECX, self.general[ECX].wrapping_sub(1), counter);
                }
                let count = self.register(ECX, counter);
                let jumps = match first {
                    0xe0 => count != 0 && !self.zero,
                    0xe1 => count != 0 && self.zero,
                    0xe2 => count != 0,
                    _ => count == 0,
                };
                self.jump(code, if jumps { offset } else { 0 });
                return Ok(());
            }
            0xe8 => {
                let offset = code.long()?;
                self.push(start.wrapping_add(code.at as u32), memory)?;
                self.jump(code, offset);
                return Ok(());
            }
            0xe9 | 0xeb => {
                let offset = if first == 0xeb { code.signed_byte()? } else { code.long()? };
                self.jump(code, offset);
                return Ok(());
            }
            0xf5 => self.carry = !self.carry,
            0xf6 | 0xf7 => self.one_operand(width, code, memory)?,
            0xf8 => self.carry = false,
            0xf9 => self.carry = true,
            0xfc => self.backwards = false,
            0xfd => self.backwards = true,
            0xfe | 0xff => return self.last_group(width, code, memory),
            _ => return Err(Fault::Unknown),
        }
        self.next(code);
        Ok(())
    }

    fn two_operands(&mut self, first: u8, width: Width, code: &mut Code, memory: &mut Memory) -> Did<()> {
        let operation = usize::from(first >> 3);
        match first & 7 {
            0 | 1 => {
                let (register, place) = self.operands(code)?;
                self.operate_on(operation, place, self.register(register, width), width, memory)
            }
            2 | 3 => {
                let (register, place) = self.operands(code)?;
                let value = self.get(place, width, memory)?;
                self.operate_on(operation, Place::Register(register), value, width, memory)
            }
            _ => {
                let value = code.number(width)?;
                self.operate_on(operation, Place::Register(EAX), value, width, memory)
            }
        }
    }

    fn multiply_into(&mut self, register: usize, a: u32, b: u32, width: Width) {
        let product = i64::from(width.extend(a) as i32) * i64::from(width.extend(b) as i32);
        self.carry = product != i64::from(width.extend(product as u32) as i32);
        self.overflow = self.carry;
        self.set_register(register, product as u32, width);
    }

    /// Test, not, negate, multiply and divide.
    fn one_operand(&mut self, width: Width, code: &mut Code, memory: &mut Memory) -> Did<()> {
        let (kind, place) = self.operands(code)?;
        let value = self.get(place, width, memory)?;
        match kind {
            0 | 1 => {
                let with = code.number(width)?;
                self.logic(value & with, width);
            }
            2 => self.put(place, !value, width, memory)?,
            3 => {
                let value = self.subtract(0, value, false, width);
                self.put(place, value, width, memory)?;
            }
            4 | 5 => self.multiply(value, kind == 5, width),
            _ => self.divide(value, kind == 7, width)?,
        }
        Ok(())
    }

    fn multiply(&mut self, value: u32, is_signed: bool, width: Width) {
        let (a, bits) = (self.register(EAX, width), width.bits());
        let product = match is_signed {
            true => (i64::from(width.extend(a) as i32) * i64::from(width.extend(value) as i32)) as u64,
            false => u64::from(a) * u64::from(value),
        };
        let high = (product >> bits) as u32 & width.mask();
        let sign = if is_signed && width.is_negative(product as u32) { width.mask() } else { 0 };
        self.carry = high != sign;
        self.overflow = self.carry;
        if width == Width::Byte {
            self.set_register(EAX, product as u32, Width::Word);
        } else {
            self.set_register(EAX, product as u32, width);
            self.set_register(EDX, high, width);
        }
    }

    fn divide(&mut self, value: u32, is_signed: bool, width: Width) -> Did<()> {
        let bits = width.bits();
        let from = match width {
            Width::Byte => u64::from(self.register(EAX, Width::Word)),
            _ => u64::from(self.register(EDX, width)) << bits | u64::from(self.register(EAX, width)),
        };
        let (quotient, rest) = if is_signed {
            let shift = 64 - 2 * bits;
            let (from, by) = ((from << shift) as i64 >> shift, i64::from(width.extend(value) as i32));
            let quotient = from.checked_div(by).ok_or(Fault::Divide)?;
            let fits = quotient == i64::from(width.extend(quotient as u32) as i32);
            (if fits { quotient as u64 } else { return Err(Fault::Divide) }, from.wrapping_rem(by) as u64)
        } else {
            let quotient = from.checked_div(value.into()).ok_or(Fault::Divide)?;
            let fits = quotient >> bits == 0;
            (if fits { quotient } else { return Err(Fault::Divide) }, from % u64::from(value))
        };
        let rest_in = if width == Width::Byte { 4 } else { EDX };
        self.set_register(EAX, quotient as u32, width);
        self.set_register(rest_in, rest as u32, width);
        Ok(())
    }

    fn last_group(&mut self, width: Width, code: &mut Code, memory: &mut Memory) -> Did<()> {
        let (kind, place) = self.operands(code)?;
        match kind {
            0 | 1 => self.step_by_one(place, kind == 0, width, memory)?,
            2 | 4 if width == Width::Long => {
                let target = self.get(place, width, memory)?;
                if kind == 2 {
                    self.push(self.ip.wrapping_add(code.at as u32), memory)?;
                }
                self.ip = target;
                return Ok(());
            }
            6 => {
                let value = self.get(place, width, memory)?;
                self.push_wide(value, width, memory)?;
            }
            _ => return Err(Fault::Unknown),
        }
        self.next(code);
        Ok(())
    }

    /// An instruction on runs of bytes, repeated or not.
    fn string(&mut self, first: u8, width: Width, code: &Code, memory: &mut Memory) -> Did<()> {
        let step = if self.backwards { width.bytes().wrapping_neg() } else { width.bytes() };
        let compares = matches!(first, 0xa6 | 0xa7 | 0xae | 0xaf);
        for round in 0..REPEATS {
            if code.repeat != Repeat::No && self.general[ECX] == 0 {
                self.next(code);
                return Ok(());
            }
            let (from, to) = (self.general[ESI].wrapping_add(code.segment), self.general[EDI]);
            match first {
                0xa4 | 0xa5 => {
                    let value = self.load(from, width, memory)?;
                    self.store(to, value, width, memory)?;
                }
                0xa6 | 0xa7 => {
                    let (a, b) = (self.load(from, width, memory)?, self.load(to, width, memory)?);
                    self.subtract(a, b, false, width);
                }
                0xaa | 0xab => self.store(to, self.general[EAX], width, memory)?,
                0xac | 0xad => {
                    let value = self.load(from, width, memory)?;
                    self.set_register(EAX, value, width);
                }
                _ => {
                    let b = self.load(to, width, memory)?;
                    self.subtract(self.register(EAX, width), b, false, width);
                }
            }
            if matches!(first, 0xa4..=0xa7 | 0xac | 0xad) {
                self.general[ESI] = self.general[ESI].wrapping_add(step);
            }
            if !matches!(first, 0xac | 0xad) {
                self.general[EDI] = to.wrapping_add(step);
            }
            if code.repeat == Repeat::No {
                self.next(code);
                return Ok(());
            }
            self.rounds = self.rounds.saturating_add(u32::from(round > 0));
            self.general[ECX] = self.general[ECX].wrapping_sub(1);
            if compares && self.zero != (code.repeat == Repeat::WhileEqual) {
                self.next(code);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Instructions of two bytes.
    fn extended(&mut self, code: &mut Code, memory: &mut Memory) -> Did<()> {
        let second = code.byte()?;
        let width = code.width;
        match second {
            0x1f | 0x18 => {
                self.operands(code)?;
            }
            0x31 => {
                self.general[EAX] = self.general[EAX].wrapping_add(0x1_0000);
                self.general[EDX] = 0;
            }
            0x40..=0x4f => {
                let (register, place) = self.operands(code)?;
                let value = self.get(place, width, memory)?;
                if self.condition(second & 15) {
                    self.set_register(register, value, width);
                }
            }
            0x80..=0x8f => {
                let offset = code.long()?;
                self.jump(code, if self.condition(second & 15) { offset } else { 0 });
                return Ok(());
            }
            0x90..=0x9f => {
                let (_, place) = self.operands(code)?;
                self.put(place, self.condition(second & 15).into(), Width::Byte, memory)?;
            }
            0xa2 => {
                for register in [EAX, EBX, ECX, EDX] {
                    self.general[register] = 0;
                }
            }
            0xa3 | 0xab | 0xb3 | 0xbb => {
                let (register, place) = self.operands(code)?;
                self.bit(second >> 3 & 3, place, self.register(register, width), width, memory)?;
            }
            0xba => {
                let (kind, place) = self.operands(code)?;
                let bit = u32::from(code.byte()?) & (width.bits() - 1);
                self.bit(kind as u8 & 3, place, bit, width, memory)?;
            }
            0xa4 | 0xac => self.shift_double(second == 0xa4, code, None, memory)?,
            0xa5 | 0xad => self.shift_double(second == 0xa5, code, Some(self.general[ECX]), memory)?,
            0xaf => {
                let (register, place) = self.operands(code)?;
                let a = self.get(place, width, memory)?;
                self.multiply_into(register, a, self.register(register, width), width);
            }
            0xb0 | 0xb1 => {
                let width = if second == 0xb0 { Width::Byte } else { width };
                let (register, place) = self.operands(code)?;
                let value = self.get(place, width, memory)?;
                self.subtract(self.register(EAX, width), value, false, width);
                match self.zero {
                    true => self.put(place, self.register(register, width), width, memory)?,
                    false => self.set_register(EAX, value, width),
                }
            }
            0xb6 | 0xb7 | 0xbe | 0xbf => {
                let from = if second & 1 == 0 { Width::Byte } else { Width::Word };
                let (register, place) = self.operands(code)?;
                let value = self.get(place, from, memory)?;
                self.set_register(register, if second >= 0xbe { from.extend(value) } else { value }, width);
            }
            0xbc | 0xbd => {
                let (register, place) = self.operands(code)?;
                let value = self.get(place, width, memory)?;
                self.zero = value == 0;
                if value != 0 {
                    let bit = if second == 0xbc { value.trailing_zeros() } else { 31 - value.leading_zeros() };
                    self.set_register(register, bit, width);
                }
            }
            0xc0 | 0xc1 => {
                let width = if second == 0xc0 { Width::Byte } else { width };
                let (register, place) = self.operands(code)?;
                let (a, b) = (self.get(place, width, memory)?, self.register(register, width));
                let value = self.add(a, b, false, width);
                self.set_register(register, a, width);
                self.put(place, value, width, memory)?;
            }
            0xc8..=0xcf => {
                let register = &mut self.general[usize::from(second & 7)];
                *register = register.swap_bytes();
            }
            _ => return Err(Fault::Unknown),
        }
        self.next(code);
        Ok(())
    }

    /// Tests, sets, clears or turns over a bit.
    fn bit(&mut self, kind: u8, place: Place, bit: u32, width: Width, memory: &mut Memory) -> Did<()> {
        let within = bit & (width.bits() - 1);
        let place = match place {
            Place::Memory(at) => {
                let units = (width.extend(bit) as i32) >> width.bits().trailing_zeros();
                Place::Memory(at.wrapping_add((units as u32).wrapping_mul(width.bytes())))
            }
            register => register,
        };
        let value = self.get(place, width, memory)?;
        self.carry = value >> within & 1 != 0;
        match kind {
            0 => Ok(()),
            1 => self.put(place, value | 1 << within, width, memory),
            2 => self.put(place, value & !(1 << within), width, memory),
            _ => self.put(place, value ^ 1 << within, width, memory),
        }
    }
}
