//! LZO1X: byte-wise LZ77, matches of four kinds, the last two bits of a match telling how many literals follow it.

use crate::frame::codec::le16;
use crate::frame::held::repeat;

/// Unpacks a block into `content`, which is empty, up to `bytes_max`; output before an error stays.
pub(crate) fn unpack(block: &[u8], content: &mut Vec<u8>, bytes_max: usize) -> Option<()> {
    const END: usize = 0x4000;
    let mut reader = Reader { left: block, content, bytes_max };
    // The literals in front of an instruction: none, 1 to 3, or 4 and more. They change the meaning of short ones.
    let mut before = reader.first()?;
    loop {
        let instruction = usize::from(reader.byte()?);
        let (distance, length, tail) = match instruction {
            0..16 if before == 0 => {
                let length = reader.length(instruction, 15)? + 3;
                reader.literals(length)?;
                before = 4;
                continue;
            }
            0..16 => {
                let high = usize::from(reader.byte()?) << 2;
                match before {
                    4 => ((instruction >> 2) + high + 2049, 3, instruction),
                    _ => ((instruction >> 2) + high + 1, 2, instruction),
                }
            }
            16..32 => {
                let length = reader.length(instruction & 7, 7)? + 2;
                let low = reader.word()?;
                let distance = END + ((instruction & 8) << 11) + (low >> 2);
                if distance == END {
                    return reader.left.is_empty().then_some(());
                }
                (distance, length, low)
            }
            32..64 => {
                let length = reader.length(instruction & 31, 31)? + 2;
                let low = reader.word()?;
                ((low >> 2) + 1, length, low)
            }
            _ => {
                let high = usize::from(reader.byte()?) << 3;
                (high + (instruction >> 2 & 7) + 1, (instruction >> 5) + 1, instruction)
            }
        };
        repeat(reader.content, distance, length, bytes_max).then_some(())?;
        before = tail & 3;
        reader.literals(before)?;
    }
}

struct Reader<'a> {
    left: &'a [u8],
    content: &'a mut Vec<u8>,
    bytes_max: usize,
}

impl Reader<'_> {
    /// The first instruction may be a run of literals that has no other way to be said.
    fn first(&mut self) -> Option<usize> {
        const LITERALS_FROM: u8 = 17;
        let Some(count) = self.left.first()?.checked_sub(LITERALS_FROM).filter(|count| *count > 0) else {
            return Some(0);
        };
        self.byte()?;
        self.literals(count.into())?;
        Some(usize::from(count).min(4))
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.left.split_first()?;
        self.left = rest;
        Some(byte)
    }

    fn word(&mut self) -> Option<usize> {
        let (word, rest) = self.left.split_at_checked(2)?;
        self.left = rest;
        Some(le16(word, 0).into())
    }

    /// A length of `short`, or, where that is 0, of `base` and the bytes that follow: zeros are 255 each.
    fn length(&mut self, short: usize, base: usize) -> Option<usize> {
        if short > 0 {
            return Some(short);
        }
        let zeros = self.left.iter().take_while(|&&byte| byte == 0).count();
        self.left = &self.left[zeros..];
        Some(zeros * 255 + base + usize::from(self.byte()?))
    }

    fn literals(&mut self, count: usize) -> Option<()> {
        let (literals, rest) = self.left.split_at_checked(count)?;
        if count > self.bytes_max.saturating_sub(self.content.len()) {
            return None;
        }
        match literals {
            // Most runs are empty, or as short as this.
            [] => {}
            &[one] => self.content.push(one),
            literals => self.content.extend_from_slice(literals),
        }
        self.left = rest;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_a_match() {
        let mut content = Vec::new();
        // Three literals, then six bytes from a distance of three, then the end.
        assert_eq!(unpack(b"\x14abc\xa8\0\x11\0\0", &mut content, 100), Some(()));
        assert_eq!(content, b"abcabcabc");
        content.clear();
        assert_eq!(unpack(b"\x14abc\xa8\x01\x11\0\0", &mut content, 100), None);
        assert_eq!(content, b"abc");
    }

    #[test]
    fn no_more_is_made_than_was_told() {
        let mut content = Vec::new();
        assert_eq!(unpack(b"\x14abc\xa8\0\x11\0\0", &mut content, 8), None);
    }
}
