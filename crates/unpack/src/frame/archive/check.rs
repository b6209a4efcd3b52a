//! The checksums of archive members.

use zlib_rs::crc32::crc32;

use crate::bits::crc::tables;

/// A running checksum, with its expected value.
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

/// Returns the CRC-16 of `bytes`, continued from `value`.
pub(crate) fn crc16(value: u16, bytes: &[u8]) -> u16 {
    let (chunks, rest) = bytes.as_chunks::<4>();
    let value = chunks.iter().fold(value, |value, chunk| {
        let [low, high] = value.to_le_bytes();
        let sum = TABLES[3][usize::from(chunk[0] ^ low)]
            ^ TABLES[2][usize::from(chunk[1] ^ high)]
            ^ TABLES[1][usize::from(chunk[2])]
            ^ TABLES[0][usize::from(chunk[3])];
        sum as u16
    });
    rest.iter().fold(value, |value, &byte| TABLES[0][usize::from(value as u8 ^ byte)] as u16 ^ value >> 8)
}

/// The reflected polynomial x^16 + x^15 + x^2 + 1.
static TABLES: [[u64; 256]; 4] = tables(0xa001);

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
