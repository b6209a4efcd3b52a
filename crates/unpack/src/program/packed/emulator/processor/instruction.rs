//! The instructions, by their first byte.

use super::super::memory::Memory;
use super::code::{Code, Place, Repeat, Width};
use super::{Did, EAX, EBP, EBX, ECX, EDI, EDX, ESI, ESP, Fault, Processor, REPEATS};

impl Processor {
    pub(super) fn instruction(&mut self, first: u8, code: &mut Code, memory: &mut Memory, start: u32) -> Did<()> {
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
}
