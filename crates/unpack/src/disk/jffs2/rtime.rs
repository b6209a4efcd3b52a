//! Rtime: each byte stands for itself and for as many bytes again as followed it the last time.

/// Unpacks so many bytes, and whether they were all there.
pub(super) fn unpack(packed: &[u8], bytes: usize) -> (Vec<u8>, bool) {
    let (mut content, mut followed) = (Vec::with_capacity(bytes), [0usize; 256]);
    for pair in packed.chunks_exact(2) {
        let (byte, count) = (pair[0], usize::from(pair[1]));
        if content.len() >= bytes {
            break;
        }
        content.push(byte);
        let from = std::mem::replace(&mut followed[usize::from(byte)], content.len());
        for at in from..from + count.min(bytes - content.len()) {
            content.push(content[at]);
        }
    }
    let is_whole = content.len() == bytes;
    (content, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_a_byte_is_repeated() {
        assert_eq!(unpack(b"a\0b\0a\x03", 6), (b"ababab".to_vec(), true));
        assert_eq!(unpack(b"a\0a\xff", 5), (b"aaaaa".to_vec(), true));
        assert_eq!(unpack(b"a\0", 5), (b"a".to_vec(), false));
    }
}
