//! The bytes that most of a mail with attachments is made of: the alphabet of Base64 (RFC 4648, section 4) and line ends.
//!
//! A gram with any other byte stands nowhere in a stretch of these, and is not looked for there. Of signatures for programs
//! hardly one is left.

use crate::shape::{FOLD, folded};

/// Whether each byte is one of them.
static MEMBERS: [bool; 256] = members(0);

/// The same with letters in any case, by what a byte is [folded](crate::shape::folded) to.
static FOLDED: [bool; 256] = members(0x40);

const fn members(fold: u8) -> [bool; 256] {
    let mut members = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\r' | b'\n') {
            members[folded(byte as u64, fold as u64) as usize] = true;
        }
        byte += 1;
    }
    members
}

/// Whether the byte is one of them.
pub(crate) fn has(byte: u8) -> bool {
    MEMBERS[usize::from(byte)]
}

/// Whether the byte is one of them when both are folded.
pub(crate) fn has_folded(byte: u8) -> bool {
    FOLDED[folded(byte.into(), FOLD) as usize & 0xff]
}

/// Whether all bytes are, as far as this machine can tell in less time than it would take to look for all grams.
pub(crate) fn is_all(bytes: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::vector::alphabet::starts(bytes, &CLASSES).is_some_and(|rest| rest.iter().all(|&byte| has(byte)));
    #[cfg(not(target_arch = "x86_64"))]
    return bytes.is_empty();
}

/// The classes of the halves of bytes, a bit each: by the low half, by the high half. The halves of members have one in common.
#[cfg(any(target_arch = "x86_64", test))]
static CLASSES: [[u8; 16]; 2] = {
    // High halves whose members have the same low halves are of one class.
    let high = [1, 0, 2, 4, 8, 16, 8, 16, 0, 0, 0, 0, 0, 0, 0, 0];
    let members = members(0);
    let mut low = [0; 16];
    let mut byte = 0;
    while byte < 256 {
        if members[byte] {
            low[byte % 16] |= high[byte / 16];
        }
        byte += 1;
    }
    [low, high]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_tell_members_from_all_other_bytes() {
        let [low, high] = CLASSES;
        for byte in 0..=255_u8 {
            let (below, above) = (usize::from(byte % 16), usize::from(byte / 16));
            assert_eq!(low[below] & high[above] != 0, has(byte), "{byte:02x}");
        }
    }

    #[test]
    fn one_foreign_byte_anywhere_is_seen() {
        let line = b"YWxsIG9mIHRoaXM+/w==\r\n".repeat(9);
        assert!(is_all(&[]));
        #[cfg(target_arch = "x86_64")]
        let can_tell = is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let can_tell = false;
        assert_eq!(is_all(&line), can_tell);
        for at in 0..line.len() {
            for foreign in [0, b' ', b'-', b'.', 0x80, b'A' | 0x80] {
                let mut line = line.clone();
                line[at] = foreign;
                assert!(!is_all(&line), "{foreign:02x} at {at}");
            }
        }
    }
}
