//! The compression of VBA (MS-OVBA 2.4.1): chunks of 4 KiB, each with its own small window.
//!
//! Bounds: one chunk, packed and plain.

use crate::frame::codec::le16;

const CHUNK_BYTES: usize = 4096;
const HEADER: usize = 2;
const CONTAINER: u8 = 1;

/// A decompressor.
#[derive(Default)]
pub(super) struct Ovba {
    begun: bool,
    chunk: Vec<u8>,
    /// The data made no sense: nothing more is made.
    pub is_broken: bool,
}

impl Ovba {
    /// Reads on; emits each chunk once it is complete. Returns how many bytes were taken.
    pub fn read(&mut self, input: &[u8], mut told: impl FnMut(&[u8])) -> usize {
        let mut at = 0;
        if !self.begun
            && let Some(&signature) = input.first()
        {
            (self.begun, self.is_broken, at) = (true, signature != CONTAINER, 1);
        }
        while at < input.len() && !self.is_broken {
            let count = (self.wanted() - self.chunk.len()).min(input.len() - at);
            self.chunk.extend_from_slice(&input[at..at + count]);
            at += count;
            if self.chunk.len() > HEADER && self.chunk.len() == self.wanted() {
                let chunk = std::mem::take(&mut self.chunk);
                match unpack(&chunk) {
                    Some(plain) => told(&plain),
                    None => self.is_broken = true,
                }
            } else if self.chunk.len() == HEADER && le16(&self.chunk, 0) >> 12 & 7 != 3 {
                self.is_broken = true;
            }
        }
        input.len()
    }

    /// Rest of a chunk without an end.
    pub fn end(&mut self) -> Vec<u8> {
        let chunk = std::mem::take(&mut self.chunk);
        if chunk.len() <= HEADER || self.is_broken { Vec::new() } else { unpack(&chunk).unwrap_or_default() }
    }

    fn wanted(&self) -> usize {
        match self.chunk.get(..HEADER) {
            None => HEADER,
            Some(header) => usize::from(le16(header, 0) & 0xfff) + 3,
        }
    }
}

/// The plain text of one chunk with its header.
fn unpack(chunk: &[u8]) -> Option<Vec<u8>> {
    let (header, data) = chunk.split_at(HEADER);
    if le16(header, 0) & 0x8000 == 0 {
        return Some(data[..data.len().min(CHUNK_BYTES)].to_vec());
    }
    let mut plain = Vec::with_capacity(CHUNK_BYTES);
    let mut data = data.iter().copied();
    while let Some(flags) = data.next() {
        for bit in 0..8 {
            if plain.len() >= CHUNK_BYTES {
                return Some(plain);
            }
            let Some(first) = data.next() else { return Some(plain) };
            if flags >> bit & 1 == 0 {
                plain.push(first);
                continue;
            }
            let Some(second) = data.next() else { return Some(plain) };
            copy(u16::from_le_bytes([first, second]), &mut plain)?;
        }
    }
    Some(plain)
}

/// Copies the reference of a token; the more text there is, the more bits the distance has.
fn copy(token: u16, plain: &mut Vec<u8>) -> Option<()> {
    let distance_bits = usize::BITS - plain.len().saturating_sub(1).leading_zeros();
    let length_bits = 16 - distance_bits.max(4);
    let distance = usize::from(token >> length_bits) + 1;
    let length = usize::from(token & ((1 << length_bits) - 1)) + 3;
    let start = plain.len().checked_sub(distance)?;
    for at in start..start + length.min(CHUNK_BYTES - plain.len()) {
        plain.push(plain[at]);
    }
    Some(())
}

/// All of a container, up to `bytes_max` of it.
pub(super) fn whole(packed: &[u8], bytes_max: usize) -> Vec<u8> {
    let mut ovba = Ovba::default();
    let mut plain = Vec::new();
    for piece in packed.chunks(CHUNK_BYTES) {
        ovba.read(piece, |text| plain.extend_from_slice(text));
        if plain.len() >= bytes_max {
            break;
        }
    }
    plain.extend_from_slice(&ovba.end());
    plain.truncate(bytes_max);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        let packed = [
            0x01, 0x2f, 0xb0, 0x00, 0x23, 0x61, 0x61, 0x61, 0x62, 0x63, 0x64, 0x65, 0x82, 0x66, 0x00, 0x70, 0x61, 0x67,
            0x68, 0x69, 0x6a, 0x01, 0x38, 0x08, 0x61, 0x6b, 0x6c, 0x00, 0x30, 0x6d, 0x6e, 0x6f, 0x70, 0x06, 0x71, 0x02,
            0x70, 0x04, 0x10, 0x72, 0x73, 0x74, 0x75, 0x76, 0x10, 0x77, 0x78, 0x79, 0x7a, 0x00, 0x3c,
        ];
        assert_eq!(whole(&packed, 100), b"#aaabcdefaaaaghijaaaaaklaaamnopqaaaaaaaaaaaarstuvwxyzaaa");
        let repeated = [0x01, 0x03, 0xb0, 0x02, 0x61, 0x45, 0x00];
        assert_eq!(whole(&repeated, 100), [b'a'; 73]);
        assert_eq!(whole(&repeated, 10), [b'a'; 10]);
    }
}
