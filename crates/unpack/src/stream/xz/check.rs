//! The integrity checks of xz: none, CRC-32, CRC-64 (ECMA-182), SHA-256; of others only the length is known.

use sha2::{Digest, Sha256};
use zlib_rs::crc32::crc32;

use crate::bits::crc::tables;

/// A check being computed.
pub(super) enum Check {
    /// None, or an undefined one.
    Unknown,
    Crc32(u32),
    Crc64(Crc64),
    Sha256(Box<Sha256>),
}

impl Check {
    pub fn of(id: u8) -> Check {
        match id {
            1 => Check::Crc32(0),
            4 => Check::Crc64(Crc64::new()),
            10 => Check::Sha256(Box::new(Sha256::new())),
            _ => Check::Unknown,
        }
    }

    /// Bytes that a check of this id takes.
    pub const fn length(id: u8) -> usize {
        const LENGTHS: [usize; 16] = [0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64];
        LENGTHS[id as usize & 15]
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Check::Unknown => {}
            Check::Crc32(crc) => *crc = crc32(*crc, bytes),
            Check::Crc64(crc) => crc.update(bytes),
            Check::Sha256(digest) => digest.update(bytes),
        }
    }

    pub fn agrees_with(self, told: &[u8]) -> bool {
        match self {
            Check::Unknown => true,
            Check::Crc32(crc) => told == crc.to_le_bytes(),
            Check::Crc64(crc) => told == crc.value().to_le_bytes(),
            Check::Sha256(digest) => told == digest.finalize().as_slice(),
        }
    }
}

/// CRC-64 with the reflected polynomial of ECMA-182, eight bytes at once.
#[derive(Clone, Copy)]
pub(super) struct Crc64(u64);

/// The reflected polynomial of ECMA-182.
static TABLES: [[u64; 256]; 8] = tables(0xc96c_5795_d787_0f42);

impl Crc64 {
    pub const fn new() -> Crc64 {
        Crc64(u64::MAX)
    }

    pub const fn value(self) -> u64 {
        !self.0
    }

    pub fn update(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            let mixed = (self.0 ^ u64::from_le_bytes(*chunk)).to_le_bytes();
            let parts = mixed.iter().zip(TABLES.iter().rev());
            self.0 = parts.fold(0, |sum, (&byte, table)| sum ^ table[usize::from(byte)]);
        }
        for &byte in rest {
            self.0 = TABLES[0][usize::from(self.0 as u8 ^ byte)] ^ self.0 >> 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc64_of_the_usual_nine_digits() {
        for cut in 0..=9 {
            let mut crc = Crc64::new();
            crc.update(&b"123456789"[..cut]);
            crc.update(&b"123456789"[cut..]);
            assert_eq!(crc.value(), 0x995d_c9bb_df19_39fa);
        }
        let mut long = Crc64::new();
        long.update(&[7; 61]);
        let mut short = Crc64::new();
        [7; 61].chunks(3).for_each(|chunk| short.update(chunk));
        assert_eq!(long.value(), short.value());
    }
}
