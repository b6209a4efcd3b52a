//! Branch conversion for machines whose instructions are aligned: each converter looks at one instruction (or pair) at
//! a time and needs no memory but its position.

/// Converts bytes, the first of which is at the position. Returns how many are done.
pub(super) type Convert = fn(u32, &mut [u8]) -> usize;

/// The converter with this filter identifier.
pub(super) fn converter(id: u64) -> Option<Convert> {
    Some(match id {
        5 => power_pc,
        6 => itanium,
        7 => arm,
        8 => arm_thumb,
        9 => sparc,
        10 => arm64,
        11 => risc_v,
        _ => return None,
    })
}

/// Runs `convert` over every whole instruction of `N` bytes.
fn aligned<const N: usize>(position: u32, bytes: &mut [u8], convert: impl Fn(u32, &mut [u8; N])) -> usize {
    let (instructions, rest) = bytes.as_chunks_mut::<N>();
    let mut place = position;
    for instruction in instructions {
        convert(place, instruction);
        place = place.wrapping_add(N as u32);
    }
    let rest = rest.len();
    bytes.len() - rest
}

/// BL with absolute addressing left off.
fn power_pc(position: u32, bytes: &mut [u8]) -> usize {
    aligned(position, bytes, |place, bytes: &mut [u8; 4]| {
        let word = u32::from_be_bytes(*bytes);
        if word >> 26 == 0x12 && word & 3 == 1 {
            let target = (word & 0x03ff_fffc).wrapping_sub(place);
            *bytes = (0x4800_0001 | target & 0x03ff_fffc).to_be_bytes();
        }
    })
}

/// BL, condition "always".
fn arm(position: u32, bytes: &mut [u8]) -> usize {
    aligned(position, bytes, |place, bytes: &mut [u8; 4]| {
        let word = u32::from_le_bytes(*bytes);
        if word >> 24 == 0xeb {
            let target = (word << 2).wrapping_sub(place.wrapping_add(8)) >> 2;
            *bytes = (0xeb00_0000 | target & 0x00ff_ffff).to_le_bytes();
        }
    })
}

/// CALL.
fn sparc(position: u32, bytes: &mut [u8]) -> usize {
    aligned(position, bytes, |place, bytes: &mut [u8; 4]| {
        let word = u32::from_be_bytes(*bytes);
        if word >> 22 == 0x100 || word >> 22 == 0x1ff {
            let target = (word << 2).wrapping_sub(place) >> 2;
            let sign = if target & 1 << 22 == 0 { 0 } else { 0x3fc0_0000 };
            *bytes = (0x4000_0000 | sign | target & 0x003f_ffff).to_be_bytes();
        }
    })
}

/// BL, and ADRP within half a gigabyte.
fn arm64(position: u32, bytes: &mut [u8]) -> usize {
    aligned(position, bytes, |place, bytes: &mut [u8; 4]| {
        let word = u32::from_le_bytes(*bytes);
        if word >> 26 == 0x25 {
            let target = word.wrapping_sub(place >> 2);
            *bytes = (0x9400_0000 | target & 0x03ff_ffff).to_le_bytes();
        } else if word & 0x9f00_0000 == 0x9000_0000 {
            let page = word >> 29 & 3 | word >> 3 & 0x001f_fffc;
            if page.wrapping_add(0x0002_0000) & 0x001c_0000 != 0 {
                return;
            }
            let target = page.wrapping_sub(place >> 12);
            let sign = if target & 0x0002_0000 == 0 { 0 } else { 0x00e0_0000 };
            let low = (target & 3) << 29;
            let high = (target & 0x0003_fffc) << 3;
            *bytes = (word & 0x9000_001f | low | high | sign).to_le_bytes();
        }
    })
}

/// BL in its two halves, at any even position.
fn arm_thumb(position: u32, bytes: &mut [u8]) -> usize {
    let mut at = 0;
    while let Some(pair) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<4>) {
        let first = u32::from(u16::from_le_bytes([pair[0], pair[1]]));
        let second = u32::from(u16::from_le_bytes([pair[2], pair[3]]));
        if first & 0xf800 != 0xf000 || second & 0xf800 != 0xf800 {
            at += 2;
            continue;
        }
        let place = position.wrapping_add(at as u32).wrapping_add(4);
        let told = (first & 0x7ff) << 11 | second & 0x7ff;
        let target = (told << 1).wrapping_sub(place) >> 1;
        let halves = [0xf000 | target >> 11 & 0x7ff, 0xf800 | target & 0x7ff];
        pair[..2].copy_from_slice(&(halves[0] as u16).to_le_bytes());
        pair[2..].copy_from_slice(&(halves[1] as u16).to_le_bytes());
        at += 4;
    }
    at
}

/// Branches of type B in the slots of a bundle where its template has them.
fn itanium(position: u32, bytes: &mut [u8]) -> usize {
    const SLOTS: [u8; 32] =
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 6, 6, 0, 0, 7, 7, 4, 4, 0, 0, 4, 4, 0, 0];
    const SLOT_BITS: u128 = 41;
    const SLOT: u128 = (1 << SLOT_BITS) - 1;
    aligned(position, bytes, |place, bytes: &mut [u8; 16]| {
        let mut bundle = u128::from_le_bytes(*bytes);
        let branches = SLOTS[usize::from(bytes[0] & 0x1f)];
        for slot in (0..3).filter(|slot| branches >> slot & 1 == 1) {
            let shift = 5 + SLOT_BITS * slot;
            let instruction = (bundle >> shift & SLOT) as u64;
            let converted = itanium_slot(place, instruction);
            bundle = bundle & !(SLOT << shift) | u128::from(converted) << shift;
        }
        *bytes = bundle.to_le_bytes();
    })
}

fn itanium_slot(place: u32, instruction: u64) -> u64 {
    if instruction >> 37 & 0xf != 5 || instruction >> 9 & 7 != 0 {
        return instruction;
    }
    let told = (instruction >> 13 & 0xf_ffff | (instruction >> 36 & 1) << 20) as u32;
    let target = u64::from((told << 4).wrapping_sub(place) >> 4);
    let cleared = instruction & !(0x8f_ffff << 13);
    cleared | (target & 0xf_ffff) << 13 | (target & 0x10_0000) << 16
}

/// JAL to the usual return registers, and AUIPC with the instruction that completes its address.
fn risc_v(position: u32, bytes: &mut [u8]) -> usize {
    const AHEAD: usize = 8;
    let mut at = 0;
    while let Some(window) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<AHEAD>) {
        let place = position.wrapping_add(at as u32);
        at += match window[0] {
            0xef => risc_v_jal(place, window),
            byte if byte & 0x7f == 0x17 => risc_v_auipc(place, window),
            _ => 2,
        };
    }
    at
}

/// The address was stored with its highest bits first; returns the bytes done.
fn risc_v_jal(place: u32, window: &mut [u8; 8]) -> usize {
    let [_, b1, b2, b3, ..] = window.map(u32::from);
    if b1 & 0x0d != 0 {
        return 2;
    }
    let told = (b1 & 0xf0) << 13 | b2 << 9 | b3 << 1;
    let target = told.wrapping_sub(place);
    window[1] = (b1 & 0x0f | target >> 8 & 0xf0) as u8;
    window[2] = (target >> 16 & 0x0f | target >> 7 & 0x10 | target << 4 & 0xe0) as u8;
    window[3] = (target >> 4 & 0x7f | target >> 13 & 0x80) as u8;
    4
}

/// Register x2 marks pairs whose address was stored absolute; a pair that looked like that was stored transformed.
fn risc_v_auipc(place: u32, window: &mut [u8; 8]) -> usize {
    let first = u32::from_le_bytes([window[0], window[1], window[2], window[3]]);
    let behind = [window[4], window[5], window[6], window[7]];
    let (upper, lower);
    if first & 0xe80 != 0 {
        let second = u32::from_le_bytes(behind);
        if (first << 8 ^ second.wrapping_sub(3)) & 0xf_8003 != 0 {
            return 6;
        }
        upper = 0x17 | 2 << 7 | second << 12;
        lower = (first & 0xffff_f000).wrapping_add(second >> 20);
    } else {
        let register = first >> 27;
        if first.wrapping_sub(0x3117) << 18 >= register & 0x1d {
            return 4;
        }
        let target = u32::from_be_bytes(behind).wrapping_sub(place);
        lower = first >> 12 | target << 20;
        upper = 0x17 | register << 7 | target.wrapping_add(0x800) & 0xffff_f000;
    }
    window[..4].copy_from_slice(&upper.to_le_bytes());
    window[4..].copy_from_slice(&lower.to_le_bytes());
    8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn risc_v_calls_get_their_relative_targets_back() {
        // jal ra, +0x20 at 0x100, stored as the address 0x120.
        let mut call = [0xef, 0x00, 0x00, 0x90, 0, 0, 0, 0];
        assert_eq!(risc_v(0x100, &mut call), 4);
        assert_eq!(call[..4], 0x0200_00efu32.to_le_bytes());
        // auipc a0, 1; addi a0, a0, 16 at 0x2000, stored as the address 0x3010.
        let mut pair = [0; 8];
        pair[..4].copy_from_slice(&0x5051_3117u32.to_le_bytes());
        pair[4..].copy_from_slice(&0x3010u32.to_be_bytes());
        assert_eq!(risc_v(0x2000, &mut pair), 8);
        assert_eq!(pair[..4], 0x0000_1517u32.to_le_bytes());
        assert_eq!(pair[4..], 0x0105_0513u32.to_le_bytes());
    }

    #[test]
    fn a_converter_leaves_what_it_cannot_see_whole() {
        for id in 5..=11 {
            let convert = converter(id).expect("all of these are known");
            for length in 0..20 {
                let mut bytes = vec![0xeb; length];
                let done = convert(0, &mut bytes);
                assert!(done <= length && length - done < 16);
            }
        }
    }
}
