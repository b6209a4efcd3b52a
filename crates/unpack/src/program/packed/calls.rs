//! Calls and jumps of x86, whose targets packers write as absolute numbers because these come again more often.
//!
//! A target is marked by its first byte; the other three are its distance from the beginning of the code, highest byte first.

/// Puts relative targets back behind calls and jumps (E8, E9), and behind conditional jumps (0F 80 to 0F 8F) if these are
/// marked too.
pub(super) fn undo(code: &mut [u8], mark: u8, conditional: bool) {
    const TARGET_BYTES: usize = 4;
    let mut at = 0;
    while let Some(&[first, second]) = code.get(at..).and_then(<[u8]>::first_chunk) {
        let target_at = match first {
            0xe8 | 0xe9 => at + 1,
            0x0f if conditional && second & 0xf0 == 0x80 => at + 2,
            _ => {
                at += 1;
                continue;
            }
        };
        let target = code.get_mut(target_at..).and_then(<[u8]>::first_chunk_mut::<TARGET_BYTES>);
        match target {
            Some(target) if target[0] == mark => {
                target[0] = 0;
                *target = u32::from_be_bytes(*target).wrapping_sub(target_at as u32).to_le_bytes();
                at = target_at + TARGET_BYTES;
            }
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_targets_become_relative_and_others_stay() {
        let mut code = *b"\xe8\x1a\0\x01\x07\x90\xe9\x1b\0\0\0\x0f\x84\x1a\0\0\x20\xe8\x1a\0";
        undo(&mut code, 0x1a, true);
        assert_eq!(&code, b"\xe8\x06\x01\0\0\x90\xe9\x1b\0\0\0\x0f\x84\x13\0\0\0\xe8\x1a\0");
        let mut code = *b"\x0f\x84\x1a\0\0\x20";
        undo(&mut code, 0x1a, false);
        assert_eq!(&code, b"\x0f\x84\x1a\0\0\x20");
    }
}
