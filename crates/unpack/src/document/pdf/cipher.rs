//! Decryption of streams and strings (ISO 32000-2, 7.6.3): RC4, and AES in CBC mode behind its initialisation vector.
//!
//! Bounds: one block, and RC4's 256 bytes.

use aes::cipher::{Array, BlockCipherDecrypt, KeyInit};
use aes::{Aes128, Aes256};
use md5::{Digest, Md5};

use super::layer::Layer;
use super::security::{FileKey, Method};
use crate::codec::rc4::Rc4;
use crate::frame::codec::{Collected, Progress};

const BLOCK: usize = 16;

/// Decrypts one stream or string.
pub(super) enum Cipher {
    Rc4(Box<Rc4>),
    Aes(Box<Cbc>),
}

/// AES in CBC mode. A block is emitted when the next one has come: the last one ends with padding.
pub(super) struct Cbc {
    cipher: Aes,
    /// The encrypted block before, or the initialisation vector.
    previous: Option<[u8; BLOCK]>,
    plain: Option<[u8; BLOCK]>,
    block: Collected<BLOCK>,
}

enum Aes {
    Short(Box<Aes128>),
    Long(Box<Aes256>),
}

impl Cipher {
    /// Makes the cipher of the contents of the object `id` (algorithm 1 and 1.A); `None` without encryption.
    pub fn new(key: &FileKey, method: Method, id: (u64, u64)) -> Option<Cipher> {
        let aes = |cipher| {
            let cbc = Cbc { cipher, previous: None, plain: None, block: Collected::new() };
            Some(Cipher::Aes(Box::new(cbc)))
        };
        match method {
            Method::Identity => None,
            Method::Rc4 => Some(Cipher::Rc4(Box::new(Rc4::new(&object_key(key, id, b""))))),
            Method::Aes128 => {
                let key = object_key(key, id, b"sAlT");
                aes(Aes::Short(Box::new(Aes128::new_from_slice(key.get(..BLOCK)?).ok()?)))
            }
            Method::Aes256 => aes(Aes::Long(Box::new(Aes256::new_from_slice(&key.bytes).ok()?))),
        }
    }
}

fn object_key(key: &FileKey, (number, generation): (u64, u64), salt: &[u8]) -> Vec<u8> {
    let mut hash = Md5::new();
    hash.update(&key.bytes);
    hash.update(&number.to_le_bytes()[..3]);
    hash.update(&generation.to_le_bytes()[..2]);
    hash.update(salt);
    hash.finalize()[..(key.bytes.len() + 5).min(16)].to_vec()
}

impl Cipher {
    /// A whole string.
    pub fn string(mut self, encrypted: &[u8]) -> Vec<u8> {
        let mut plain = vec![0; encrypted.len()];
        let progress = self.decode(encrypted, true, &mut plain);
        plain.truncate(progress.wrote);
        plain
    }
}

impl Layer for Cipher {
    fn decode(&mut self, input: &[u8], last: bool, output: &mut [u8]) -> Progress {
        match self {
            Cipher::Rc4(rc4) => {
                let count = input.len().min(output.len());
                output[..count].copy_from_slice(&input[..count]);
                rc4.apply(&mut output[..count]);
                Progress { wrote: count, ..Progress::took(count) }
            }
            Cipher::Aes(cbc) => cbc.decode(input, last, output),
        }
    }
}

impl Cbc {
    fn decode(&mut self, input: &[u8], last: bool, output: &mut [u8]) -> Progress {
        let (mut taken, mut wrote) = (0, 0);
        while taken < input.len() && wrote + BLOCK <= output.len() {
            taken += self.block.fill(&input[taken..], BLOCK);
            let Some(&encrypted) = self.block.whole() else { break };
            self.block.clear();
            if let Some(previous) = self.previous.replace(encrypted) {
                wrote += self.plain.map_or(0, |plain| put(&plain, &mut output[wrote..]));
                self.plain = Some(self.cipher.decrypt(encrypted, previous));
            }
        }
        if last
            && taken == input.len()
            && let Some(plain) = self.plain.take()
        {
            let padding = usize::from(plain[BLOCK - 1]);
            let padding = if (1..=BLOCK).contains(&padding) { padding } else { 0 };
            wrote += put(&plain[..BLOCK - padding], &mut output[wrote..]);
        }
        Progress { wrote, ..Progress::took(taken) }
    }
}

fn put(bytes: &[u8], output: &mut [u8]) -> usize {
    output[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}

impl Aes {
    fn decrypt(&self, encrypted: [u8; BLOCK], previous: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Array::from(encrypted);
        match self {
            Aes::Short(cipher) => cipher.decrypt_block(&mut block),
            Aes::Long(cipher) => cipher.decrypt_block(&mut block),
        }
        let mut plain = previous;
        plain.iter_mut().zip(block).for_each(|(plain, byte)| *plain ^= byte);
        plain
    }
}
