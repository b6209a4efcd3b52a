//! ADC, Apple's compression of old disk images: literals and matches, selected by bytes.
//!
//! ```text
//! 1LLLLLLL literals of L + 1        00LLLLDD D*8 match of L + 3        01LLLLLL D*16 match of L + 4, D + 1 back
//! ```
//!
//! Packed data and output are held whole, up to a bound that the caller gives.

/// Unpacks up to the end or to `content_bytes_max`. Returns the output, and whether it was sound.
pub(crate) fn unpack(packed: &[u8], content_bytes_max: usize) -> (Vec<u8>, bool) {
    let (mut content, mut rest) = (Vec::new(), packed);
    while content.len() < content_bytes_max
        && let Some((&first, behind)) = rest.split_first()
    {
        let Some(behind) = token(first, behind, content_bytes_max, &mut content) else { return (content, false) };
        rest = behind;
    }
    (content, true)
}

/// Reads a token. Returns the bytes after it.
fn token<'a>(first: u8, behind: &'a [u8], most: usize, content: &mut Vec<u8>) -> Option<&'a [u8]> {
    let low = usize::from(first);
    let room = most - content.len();
    let (length, distance, bytes) = match first {
        0x80.. => {
            let (literals, behind) = behind.split_at_checked((low & 0x7f) + 1)?;
            content.extend_from_slice(&literals[..literals.len().min(room)]);
            return Some(behind);
        }
        0x40.. => ((low & 0x3f) + 4, usize::from(u16::from_be_bytes(*behind.first_chunk()?)), 2),
        _ => ((low >> 2) + 3, (low & 3) << 8 | usize::from(*behind.first()?), 1),
    };
    let from = content.len().checked_sub(distance + 1)?;
    for at in from..from + length.min(room) {
        content.push(content[at]);
    }
    Some(&behind[bytes..])
}
