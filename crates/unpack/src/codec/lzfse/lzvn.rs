//! LZVN: bytes that tell how many literals and which match follow.
//!
//! ```text
//! LLMMMDDD D*8        literals, match of M + 3          101LLMMM DDDDDDMM D*8   the same, further
//! LLMMM111 D*16       the same, far                     LLMMM110                the same, as far as the last
//! 1110LLLL            literals                          11100000 L*8            16 and more of them
//! 1111MMMM            match as far as the last          11110000 M*8            16 and more
//! 00000110            the end                           00001110, 00010110      nothing
//! ```

use super::repeat;
use crate::frame::codec::le16;

/// Appends output until `content` has `end` bytes, or up to the end. Returns whether it was sound.
pub(crate) fn unpack(packed: &[u8], end: usize, content: &mut Vec<u8>) -> bool {
    let (mut rest, mut distance) = (packed, 0);
    while content.len() < end {
        match token(&mut rest, &mut distance, end, content) {
            Some(true) => {}
            Some(false) => return true,
            None => return false,
        }
    }
    true
}

/// Reads a token; whether there may be another.
fn token(rest: &mut &[u8], distance: &mut usize, end: usize, content: &mut Vec<u8>) -> Option<bool> {
    let (&first, behind) = rest.split_first()?;
    let next = |at: usize| behind.get(at).map(|&byte| usize::from(byte));
    let low = usize::from(first);
    let (literals, length) = (low >> 6, (low >> 3 & 7) + 3);
    let (bytes, literals, length) = match first {
        0x06 => return Some(false),
        0x0e | 0x16 => (0, 0, 0),
        0x1e | 0x26 | 0x2e | 0x36 | 0x3e | 0x70..=0x7f | 0xd0..=0xdf => return None,
        0xa0..=0xbf => {
            *distance = next(1)? << 6 | next(0)? >> 2;
            (2, low >> 3 & 3, ((low & 7) << 2 | next(0)? & 3) + 3)
        }
        0xe0 => (1, next(0)? + 16, 0),
        0xe1..=0xef => (0, low & 15, 0),
        0xf0 => (1, 0, next(0)? + 16),
        0xf1..=0xff => (0, 0, low & 15),
        _ if low & 7 == 7 => {
            *distance = usize::from(le16(behind.get(..2)?, 0));
            (2, literals, length)
        }
        _ if low & 7 == 6 => (0, literals, length),
        _ => {
            *distance = (low & 7) << 8 | next(0)?;
            (1, literals, length)
        }
    };
    let (run, behind) = behind.get(bytes..)?.split_at_checked(literals)?;
    let room = end - content.len();
    content.extend_from_slice(&run[..run.len().min(room)]);
    repeat(content, *distance, length.min(end - content.len()))?;
    *rest = behind;
    Some(true)
}
