//! Integers and flags: sums, shifts, products, bits.

use super::super::memory::Memory;
use super::code::{Code, Place, Width};
use super::{Did, EAX, EDX, Fault, Processor};

const SHIFT_LEFT: usize = 4;
const COMPARE: usize = 7;

impl Processor {
    pub(super) fn set_result(&mut self, value: u32, width: Width) {
        self.zero = value & width.mask() == 0;
        self.sign = width.is_negative(value);
        self.low = value as u8;
    }

    pub(super) fn logic(&mut self, value: u32, width: Width) -> u32 {
        (self.carry, self.overflow) = (false, false);
        self.set_result(value, width);
        value
    }

    pub(super) fn add(&mut self, a: u32, b: u32, carry: bool, width: Width) -> u32 {
        let sum = u64::from(a) + u64::from(b) + u64::from(carry);
        let value = sum as u32 & width.mask();
        self.carry = sum >> width.bits() != 0;
        self.overflow = width.is_negative((a ^ value) & (b ^ value));
        self.set_result(value, width);
        value
    }

    pub(super) fn subtract(&mut self, a: u32, b: u32, carry: bool, width: Width) -> u32 {
        let value = a.wrapping_sub(b).wrapping_sub(carry.into()) & width.mask();
        self.carry = u64::from(a) < u64::from(b) + u64::from(carry);
        self.overflow = width.is_negative((a ^ b) & (a ^ value));
        self.set_result(value, width);
        value
    }

    /// One of the eight operations on two operands, by its number.
    pub(super) fn operate(&mut self, operation: usize, a: u32, b: u32, width: Width) -> u32 {
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

    pub(super) fn operate_on(
        &mut self,
        operation: usize,
        place: Place,
        b: u32,
        width: Width,
        memory: &mut Memory,
    ) -> Did<()> {
        let a = self.get(place, width, memory)?;
        let value = self.operate(operation, a, b, width);
        if operation == COMPARE { Ok(()) } else { self.put(place, value, width, memory) }
    }

    /// One more or one less, which leaves the carry alone.
    pub(super) fn step_by_one(&mut self, place: Place, is_up: bool, width: Width, memory: &mut Memory) -> Did<()> {
        let carry = self.carry;
        let value = self.get(place, width, memory)?;
        let value = if is_up { self.add(value, 1, false, width) } else { self.subtract(value, 1, false, width) };
        self.carry = carry;
        self.put(place, value, width, memory)
    }

    pub(super) fn shift(
        &mut self,
        kind: usize,
        place: Place,
        count: u32,
        width: Width,
        memory: &mut Memory,
    ) -> Did<()> {
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

    pub(super) fn shift_double(
        &mut self,
        is_left: bool,
        code: &mut Code,
        count: Option<u32>,
        memory: &mut Memory,
    ) -> Did<()> {
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

    pub(super) fn multiply_into(&mut self, register: usize, a: u32, b: u32, width: Width) {
        let product = i64::from(width.extend(a) as i32) * i64::from(width.extend(b) as i32);
        self.carry = product != i64::from(width.extend(product as u32) as i32);
        self.overflow = self.carry;
        self.set_register(register, product as u32, width);
    }

    pub(super) fn multiply(&mut self, value: u32, is_signed: bool, width: Width) {
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

    pub(super) fn divide(&mut self, value: u32, is_signed: bool, width: Width) -> Did<()> {
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

    /// Tests, sets, clears or turns over a bit.
    pub(super) fn bit(&mut self, kind: u8, place: Place, bit: u32, width: Width, memory: &mut Memory) -> Did<()> {
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
