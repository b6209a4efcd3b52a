//! The two ciphers of zip: the traditional one (APPNOTE 6.3.10, section 6.1), and AES in counter mode with HMAC-SHA1 behind it
//! (WinZip's AE-1 and AE-2).
//!
//! ```text
//! traditional: 12 bytes, the last of which tells whether the key is right; data
//! AES:         salt of half the key's length, 2 bytes that tell it; data; 10 bytes of the HMAC of the data
//! ```
//! Strong encryption of PKWARE, with certificates or headers of its own, is not read.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use super::record::Header;
use super::tail::AesExtra;
use crate::bits::crc::tables;
use crate::codec::block_cipher::{Aes, Counter};

/// How a member is encrypted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scheme {
    /// The last byte of its head is one of these.
    Traditional {
        checks: [u8; 2],
    },
    Aes {
        key_bytes: usize,
    },
}

const VERIFIER: usize = 2;
const TRADITIONAL_HEAD: usize = 12;
const MAC: usize = 10;
const ITERATIONS: u32 = 1000;

impl Scheme {
    /// How a member with this header is encrypted, if that is known.
    pub fn of(header: &Header, aes: Option<AesExtra>) -> Option<Scheme> {
        if header.flags & (Header::STRONG | Header::MASKED) != 0 {
            return None;
        }
        if header.method != Header::METHOD_AES {
            return Some(Scheme::Traditional { checks: [(header.crc >> 24) as u8, (header.time >> 8) as u8] });
        }
        let strength = aes?.strength;
        (1..=3).contains(&strength).then(|| Scheme::Aes { key_bytes: 8 + 8 * usize::from(strength) })
    }

    /// The same where the checksum of the content is this.
    pub const fn with_checksum(self, crc: u32) -> Scheme {
        match self {
            Scheme::Traditional { checks: [_, time] } => Scheme::Traditional { checks: [(crc >> 24) as u8, time] },
            Scheme::Aes { .. } => self,
        }
    }

    /// Bytes in front of the data.
    pub const fn head_bytes(self) -> usize {
        match self {
            Scheme::Traditional { .. } => TRADITIONAL_HEAD,
            Scheme::Aes { key_bytes } => key_bytes / 2 + VERIFIER,
        }
    }

    /// Bytes behind them.
    pub const fn tail_bytes(self) -> usize {
        match self {
            Scheme::Traditional { .. } => 0,
            Scheme::Aes { .. } => MAC,
        }
    }

    /// Bytes hashed for one try: two blocks of SHA-1 for each iteration and each 20 bytes of key.
    pub const fn cost(self) -> u64 {
        match self {
            Scheme::Traditional { .. } => TRADITIONAL_HEAD as u64,
            Scheme::Aes { key_bytes } => (2 * key_bytes + VERIFIER).div_ceil(20) as u64 * ITERATIONS as u64 * 128,
        }
    }

    /// The cipher at the beginning of the data, if `password` seems to be right.
    pub fn open(self, password: &[u8], head: &[u8]) -> Option<Cipher> {
        match self {
            Scheme::Traditional { checks } => {
                let mut keys = Keys::new(password);
                let last = head.get(..TRADITIONAL_HEAD)?.iter().map(|&byte| keys.decrypt(byte)).last()?;
                checks.contains(&last).then_some(Cipher::Traditional(keys))
            }
            Scheme::Aes { key_bytes } => {
                let (salt, verifier) = head.get(..self.head_bytes())?.split_at(key_bytes / 2);
                let mut keys = [0; 2 * 32 + VERIFIER];
                let keys = &mut keys[..2 * key_bytes + VERIFIER];
                pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, ITERATIONS, keys);
                let (keys, right) = keys.split_at(2 * key_bytes);
                let (key, authentication) = keys.split_at(key_bytes);
                let mac = Hmac::new_from_slice(authentication).ok()?;
                let counter = Counter::new(Aes::new(key)?);
                (right == verifier).then(|| Cipher::Aes(Box::new((counter, mac))))
            }
        }
    }
}

/// A cipher at some place of the data.
#[derive(Clone)]
pub(super) enum Cipher {
    Traditional(Keys),
    Aes(Box<(Counter, Hmac<Sha1>)>),
}

impl Cipher {
    /// Decrypts the next bytes of the data.
    pub fn decrypt(&mut self, data: &mut [u8]) {
        match self {
            Cipher::Traditional(keys) => data.iter_mut().for_each(|byte| *byte = keys.decrypt(*byte)),
            Cipher::Aes(aes) => {
                aes.1.update(data);
                aes.0.apply(data);
            }
        }
    }

    /// Returns whether the decrypted data agrees with `tail`.
    pub fn vouches(&self, tail: &[u8]) -> bool {
        match self {
            Cipher::Traditional(_) => true,
            Cipher::Aes(aes) => aes.1.clone().verify_truncated_left(tail).is_ok(),
        }
    }
}

/// The three keys of the traditional cipher.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys([u32; 3]);

/// The table of CRC-32.
static TABLE: [[u64; 256]; 1] = tables(0xedb8_8320);

impl Keys {
    fn new(password: &[u8]) -> Keys {
        let mut keys = Keys([0x1234_5678, 0x2345_6789, 0x3456_7890]);
        password.iter().for_each(|&byte| keys.update(byte));
        keys
    }

    fn update(&mut self, plain: u8) {
        let crc = |value: u32, byte: u8| TABLE[0][usize::from(value as u8 ^ byte)] as u32 ^ value >> 8;
        let Keys([first, second, third]) = self;
        *first = crc(*first, plain);
        *second = second.wrapping_add(*first & 0xff).wrapping_mul(134_775_813).wrapping_add(1);
        *third = crc(*third, (*second >> 24) as u8);
    }

    fn decrypt(&mut self, byte: u8) -> u8 {
        let mixed = self.0[2] & 0xffff | 2;
        let plain = byte ^ (mixed.wrapping_mul(mixed ^ 1) >> 8) as u8;
        self.update(plain);
        plain
    }
}
