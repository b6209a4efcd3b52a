//! Filters of machine code: absolute targets of calls become relative again.

/// Addresses are taken modulo 16 MiB.
const SPACE: u32 = 1 << 24;

/// `E8` calls, and `E9` jumps if `jumps`.
pub(super) fn x86(block: &mut [u8], at: u64, jumps: bool, wraps: bool) {
    let mut place = 0;
    while let Some((opcode, field)) = block.get_mut(place..).and_then(<[u8]>::split_first_mut) {
        place += 1;
        let Some(field) = field.first_chunk_mut::<4>() else {
            return;
        };
        if *opcode != 0xe8 && !(jumps && *opcode == 0xe9) {
            continue;
        }
        let offset = (at as u32).wrapping_add(place as u32);
        let offset = if wraps { offset % SPACE } else { offset };
        if let Some(relative) = x86_target(u32::from_le_bytes(*field), offset) {
            *field = relative.to_le_bytes();
        }
        place += 4;
    }
}

fn x86_target(absolute: u32, offset: u32) -> Option<u32> {
    let negative = absolute >= 1 << 31;
    if negative {
        return (absolute.wrapping_add(offset) < 1 << 31).then(|| absolute.wrapping_add(SPACE));
    }
    (absolute < SPACE).then(|| absolute.wrapping_sub(offset))
}

/// `BL` with condition "always".
pub(super) fn arm(block: &mut [u8], at: u64) {
    let (words, _) = block.as_chunks_mut::<4>();
    for (index, word) in words.iter_mut().enumerate() {
        if word[3] == 0xeb {
            let here = (at as u32).wrapping_add(4 * index as u32) / 4;
            let [a, b, c, _] = u32::from_le_bytes(*word).wrapping_sub(here).to_le_bytes();
            *word = [a, b, c, 0xeb];
        }
    }
}

/// Itanium: bundles of 16 bytes with three slots of 41 bits; those of type 5 in branch slots hold a target.
pub(super) fn itanium(block: &mut [u8], at: u64) {
    /// Slots that can hold a branch, for the templates from 16 on.
    const SLOTS: [u8; 16] = [4, 4, 6, 6, 0, 0, 7, 7, 4, 4, 0, 0, 4, 4, 0, 0];
    /// The last bundles stay as they are.
    const BEHIND: usize = 21;
    let bundles = block.len().saturating_sub(BEHIND).div_ceil(16);
    let (chunks, _) = block.as_chunks_mut::<16>();
    for (index, bundle) in chunks.iter_mut().take(bundles).enumerate() {
        let Some(slots) = usize::from(bundle[0] & 0x1f).checked_sub(16).map(|template| SLOTS[template]) else {
            continue;
        };
        let here = (at as u32 >> 4).wrapping_add(index as u32);
        let mut value = u128::from_le_bytes(*bundle);
        for slot in (0..3).filter(|slot| slots >> slot & 1 == 1) {
            let start = slot * 41 + 5;
            if value >> (start + 37) & 0xf == 5 {
                let target = (value >> (start + 13)) as u32;
                let relative = u128::from(target.wrapping_sub(here) & 0xf_ffff);
                value = value & !(0xf_ffff << (start + 13)) | relative << (start + 13);
            }
        }
        *bundle = value.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_becomes_relative_again() {
        let mut block = *b"\x90\xe8\x06\x10\0\0\x90\xe8\xff\xff\xff\xff\xe9\0\x20\0\0\x90";
        x86(&mut block, 0x1000, true, true);
        // The first call: 0x1006 less the place behind its opcode.
        assert_eq!(block[2..6], [4, 0, 0, 0]);
        assert_eq!(block[8..12], 0x00ff_ffffu32.to_le_bytes());
        assert_eq!(block[13..17], (0x2000 - 0x100du32).to_le_bytes());
    }

    #[test]
    fn a_branch_of_arm_becomes_relative_again() {
        let mut block = [9, 0, 0, 0xea, 0x12, 0, 0, 0xeb, 1];
        arm(&mut block, 0x40);
        assert_eq!(block, [9, 0, 0, 0xea, 1, 0, 0, 0xeb, 1]);
    }

    #[test]
    fn a_branch_in_the_third_slot_of_a_bundle_becomes_relative_again() {
        let target = (5u128 << (87 + 37)) | (0x123u128 << (87 + 13)) | 0x10;
        let mut block = [[0; 16]; 4];
        block[1] = target.to_le_bytes();
        let mut block = block.concat();
        itanium(&mut block, 0x100);
        let undone = u128::from_le_bytes(*block[16..].first_chunk().expect("it is longer"));
        assert_eq!(undone >> 100 & 0xf_ffff, 0x123 - 0x11);
    }
}
