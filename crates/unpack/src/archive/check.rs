//! The checksums of archive members.

use zlib_rs::crc32::crc32;

/// A checksum being computed, and what it should come to.
pub(crate) enum Check {
    /// None that is known.
    None,
    /// CRC-32 as in zip.
    Crc32 { value: u32, told: u32 },
    /// CRC-16 with the reflected polynomial of CRC-16-IBM, as LHA has it.
    Crc16 { value: u16, told: u16 },
    /// The sum of all bytes.
    Sum { value: u32, told: u32 },
}

impl Check {
    pub const fn crc32(told: u32) -> Check {
        Check::Crc32 { value: 0, told }
    }

    pub const fn crc16(told: u16) -> Check {
        Check::Crc16 { value: 0, told }
    }

    pub const fn sum(told: u32) -> Check {
        Check::Sum { value: 0, told }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Check::None => {}
            Check::Crc32 { value, .. } => *value = crc32(*value, bytes),
            Check::Crc16 { value, .. } => *value = crc16(*value, bytes),
            Check::Sum { value, .. } => {
                *value = bytes.iter().fold(*value, |sum, &byte| sum.wrapping_add(u32::from(byte)));
            }
        }
    }

    pub const fn agrees(&self) -> bool {
        match self {
            Check::None => true,
            Check::Crc32 { value, told } | Check::Sum { value, told } => *value == *told,
            Check::Crc16 { value, told } => *value == *told,
        }
    }
}

/// CRC-16 of `bytes` behind what came to `value`.
pub(crate) fn crc16(value: u16, bytes: &[u8]) -> u16 {
    let (chunks, rest) = bytes.as_chunks::<4>();
    let value = chunks.iter().fold(value, |value, chunk| {
        let [low, high] = value.to_le_bytes();
        TABLES[3][usize::from(chunk[0] ^ low)]
            ^ TABLES[2][usize::from(chunk[1] ^ high)]
            ^ TABLES[1][usize::from(chunk[2])]
            ^ TABLES[0][usize::from(chunk[3])]
    });
    rest.iter().fold(value, |value, &byte| TABLES[0][usize::from(value as u8 ^ byte)] ^ value >> 8)
}

/// `TABLES[k][b]`: the remainder of byte `b` followed by `k` zero bytes.
static TABLES: [[u16; 256]; 4] = tables();

const fn tables() -> [[u16; 256]; 4] {
    const POLYNOMIAL: u16 = 0xa001;
    let mut tables = [[0; 256]; 4];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u16;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 4 {
        let mut byte = 0;
        while byte < 256 {
            let value: u16 = tables[zeros - 1][byte];
            tables[zeros][byte] = tables[0][value as usize & 255] ^ value >> 8;
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_of_the_usual_nine_digits() {
        for cut in 0..=9 {
            assert_eq!(crc16(crc16(0, &b"123456789"[..cut]), &b"123456789"[cut..]), 0xbb3d);
        }
    }
}
