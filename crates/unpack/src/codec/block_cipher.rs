//! AES with a key of any length, in the modes in which archives and documents use it.
//!
//! Bounds: one block.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;

/// AES with a key of 16, 24 or 32 bytes.
#[derive(Clone)]
pub(crate) enum Aes {
    Key128(Box<Aes128>),
    Key192(Box<Aes192>),
    Key256(Box<Aes256>),
}

impl Aes {
    /// `None` if the key has another length.
    pub fn new(key: &[u8]) -> Option<Aes> {
        Some(match key.len() {
            16 => Aes::Key128(Box::new(Aes128::new_from_slice(key).ok()?)),
            24 => Aes::Key192(Box::new(Aes192::new_from_slice(key).ok()?)),
            32 => Aes::Key256(Box::new(Aes256::new_from_slice(key).ok()?)),
            _ => return None,
        })
    }

    pub fn encrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Array::from(block);
        match self {
            Aes::Key128(aes) => aes.encrypt_block(&mut block),
            Aes::Key192(aes) => aes.encrypt_block(&mut block),
            Aes::Key256(aes) => aes.encrypt_block(&mut block),
        }
        block.into()
    }

    pub fn decrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Array::from(block);
        match self {
            Aes::Key128(aes) => aes.decrypt_block(&mut block),
            Aes::Key192(aes) => aes.decrypt_block(&mut block),
            Aes::Key256(aes) => aes.decrypt_block(&mut block),
        }
        block.into()
    }
}

/// Decryption in cipher block chaining mode.
#[derive(Clone)]
pub(crate) struct Cbc {
    aes: Aes,
    previous: [u8; BLOCK],
}

impl Cbc {
    pub const fn new(aes: Aes, start: [u8; BLOCK]) -> Cbc {
        Cbc { aes, previous: start }
    }

    /// Decrypts whole blocks; an incomplete last one stays unchanged.
    pub fn decrypt(&mut self, data: &mut [u8]) {
        let (blocks, _) = data.as_chunks_mut::<BLOCK>();
        for block in blocks {
            let encrypted = *block;
            let plain = self.aes.decrypt(encrypted);
            *block = std::array::from_fn(|index| plain[index] ^ self.previous[index]);
            self.previous = encrypted;
        }
    }
}

/// Counter mode, the counter little-endian and from one.
#[derive(Clone)]
pub(crate) struct Counter {
    aes: Aes,
    counter: u128,
    stream: [u8; BLOCK],
    used: usize,
}

impl Counter {
    pub const fn new(aes: Aes) -> Counter {
        Counter { aes, counter: 0, stream: [0; BLOCK], used: BLOCK }
    }

    /// Encrypts or decrypts.
    pub fn apply(&mut self, data: &mut [u8]) {
        for byte in data {
            if self.used == BLOCK {
                self.counter += 1;
                self.stream = self.aes.encrypt(self.counter.to_le_bytes());
                self.used = 0;
            }
            *byte ^= self.stream[self.used];
            self.used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix C.
    #[test]
    fn aes_agrees_with_its_standard() {
        let plain = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes();
        let key: Vec<u8> = (0..32).collect();
        for (length, first) in [(16, 0x69), (24, 0xdd), (32, 0x8e)] {
            let aes = Aes::new(&key[..length]).expect("a length of AES");
            assert_eq!(aes.encrypt(plain)[0], first);
            assert_eq!(aes.decrypt(aes.encrypt(plain)), plain);
        }
        assert!(Aes::new(&key[..17]).is_none());
    }

    #[test]
    fn the_modes_do_not_care_for_cuts() {
        let aes = Aes::new(&[7; 16]).expect("a length of AES");
        let (mut whole, mut cut) = ([3; 80], [3; 80]);
        Counter::new(aes.clone()).apply(&mut whole);
        let mut counter = Counter::new(aes.clone());
        cut.chunks_mut(7).for_each(|piece| counter.apply(piece));
        assert_eq!(whole, cut);
        Cbc::new(aes.clone(), [1; 16]).decrypt(&mut whole);
        let mut cbc = Cbc::new(aes, [1; 16]);
        cut.chunks_mut(16).for_each(|piece| cbc.decrypt(piece));
        assert_eq!(whole, cut);
    }
}
