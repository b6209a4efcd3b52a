//! Branch conversion for x86: CALL and JMP with 32-bit displacements.
//!
//! An opcode (E8 or E9) is converted if its displacement's top byte is 00 or FF and no other opcode in the three bytes
//! before could own these bytes. `mask` remembers where in the last three bytes opcodes stood that were not converted.

/// The converter's memory.
pub(super) struct X86 {
    /// Position of the first byte not done.
    position: u32,
    /// Bytes done since the last opcode seen, saturating.
    since_opcode: u32,
    mask: u32,
}

const INSTRUCTION: usize = 5;

fn is_sign(byte: u8) -> bool {
    byte == 0 || byte == 0xff
}

impl X86 {
    pub const fn new(position: u32) -> X86 {
        X86 { position, since_opcode: u32::MAX, mask: 0 }
    }

    /// Converts from the front of `bytes` and returns how many are done.
    pub fn run(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while let Some(window) = bytes.get(at..).and_then(<[u8]>::first_chunk::<INSTRUCTION>) {
            if window[0] & 0xfe != 0xe8 {
                // The last opcode that can begin an instruction here has four bytes behind it.
                let opcodes = &bytes[at..bytes.len() - (INSTRUCTION - 1)];
                let run = memchr::memchr2(0xe8, 0xe9, opcodes).unwrap_or(opcodes.len());
                at += run;
                self.pass(run);
                continue;
            }
            let place = self.position.wrapping_add(INSTRUCTION as u32);
            let converted = self.opcode(*window, place);
            if let Some(displacement) = converted {
                bytes[at + 1..at + INSTRUCTION].copy_from_slice(&displacement.to_le_bytes());
            }
            let step = if converted.is_some() { INSTRUCTION } else { 1 };
            self.since_opcode = 0;
            at += step;
            self.pass(step);
        }
        at
    }

    fn pass(&mut self, count: usize) {
        self.position = self.position.wrapping_add(count as u32);
        self.since_opcode = self.since_opcode.saturating_add(count as u32);
    }

    /// The displacement to write, if the instruction is to be converted.
    fn opcode(&mut self, window: [u8; INSTRUCTION], place: u32) -> Option<u32> {
        self.mask = match self.since_opcode {
            distance @ 1..=3 => self.mask << (distance - 1) & 7,
            _ => 0,
        };
        let clear = match self.mask {
            0 => true,
            // One earlier opcode, or two adjacent ones: theirs is the byte that would be their sign.
            1 | 2 | 4 => !is_sign(window[4 - self.shift()]),
            _ => false,
        };
        if !clear || !is_sign(window[4]) {
            self.mask = (self.mask << 1 | 1) & 7;
            return None;
        }
        let mut value = u32::from_le_bytes([window[1], window[2], window[3], window[4]]);
        loop {
            let target = value.wrapping_sub(place);
            let bits = 8 * self.shift() as u32;
            if self.mask == 0 || !is_sign((target >> (24 - bits)) as u8) {
                let sign = if target & 1 << 24 == 0 { 0 } else { 0xff00_0000 };
                return Some(target & 0x00ff_ffff | sign);
            }
            value = target ^ ((1u64 << (32 - bits)) - 1) as u32;
        }
    }

    /// How many bytes before the end of the displacement the earlier opcode's sign stands.
    const fn shift(&self) -> usize {
        match self.mask {
            0 => 0,
            1 => 1,
            2 | 3 => 2,
            _ => 3,
        }
    }
}
