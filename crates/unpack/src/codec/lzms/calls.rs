//! Makes the targets of calls, jumps and loads of x86 relative again, where programs are.
//!
//! Code is told from data by its targets: where one was met already less than 65,536 bytes before, there is code, and for
//! a thousand bytes behind that targets were made absolute. The first byte and the last 16 are never looked at.

use crate::frame::codec::{le16, le32};

const TAIL: usize = 16;
const BYTES_MIN: usize = TAIL + 2;
/// How far back the same target makes code of it.
const SAME_TARGET: i64 = 65_535;
/// How far behind such a place targets were changed.
const REACH: i64 = 1023;

/// Restores a chunk.
pub(super) fn restore(chunk: &mut [u8]) {
    if chunk.len() < BYTES_MIN {
        return;
    }
    let end = chunk.len() - TAIL;
    let mut usages = vec![-SAME_TARGET - 1; 1 << 16];
    let mut code_at = -REACH - 1;
    let mut at = 1;
    while at < end {
        let Some(instruction) = Instruction::of(&chunk[at..]) else {
            at += if chunk[at] == 0xe9 { 5 } else { 1 };
            continue;
        };
        let field = at + instruction.bytes;
        if at as i64 - code_at <= instruction.reach {
            let target = le32(chunk, field).wrapping_sub(at as u32);
            chunk[field..field + 4].copy_from_slice(&target.to_le_bytes());
        }
        let target = (at as u16).wrapping_add(le16(chunk, field));
        let last = field as i64 + 3;
        let usage = &mut usages[usize::from(target)];
        if last - *usage <= SAME_TARGET {
            code_at = last;
        }
        *usage = last;
        at = field + 4;
    }
}

/// An instruction with a target.
struct Instruction {
    /// The bytes in front of the target.
    bytes: usize,
    reach: i64,
}

impl Instruction {
    /// The one that stands here, if there is one.
    fn of(code: &[u8]) -> Option<Instruction> {
        let (bytes, reach) = match code {
            // Call; one that may be a coincidence has to be nearer to code.
            [0xe8, ..] => (1, REACH / 2),
            // Call by a pointer.
            [0xff, 0x15, ..] => (2, REACH),
            // Locked addition.
            [0xf0, 0x83, 0x05, ..] => (3, REACH),
            // Loads of an address, or from an address.
            [0x48 | 0x4c, 0x8d, mode, ..] if mode & 7 == 5 => (3, REACH),
            [0x48, 0x8b, 0x05 | 0x0d, ..] => (3, REACH),
            _ => return None,
        };
        Some(Instruction { bytes, reach })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_changed_where_one_was_met_before() {
        let mut chunk = vec![0x90; 100];
        // Three calls of the place 1000; the last one follows code.
        let call = |chunk: &mut Vec<u8>, at: usize, target: u32| {
            chunk[at] = 0xe8;
            chunk[at + 1..at + 5].copy_from_slice(&target.to_le_bytes());
        };
        call(&mut chunk, 10, 990);
        call(&mut chunk, 20, 980);
        let mut expected = chunk.clone();
        call(&mut chunk, 30, 1000);
        call(&mut expected, 30, 970);
        restore(&mut chunk);
        assert_eq!(chunk, expected);
    }

    #[test]
    fn the_ends_are_left_alone() {
        let mut chunk = vec![0xe8; 17];
        restore(&mut chunk);
        assert_eq!(chunk, [0xe8; 17]);
        let mut chunk = vec![0xff; 64];
        restore(&mut chunk);
        assert_eq!(chunk, [0xff; 64]);
    }
}
