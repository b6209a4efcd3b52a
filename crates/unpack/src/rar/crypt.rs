//! Encryption of RAR: keys made of passwords, encrypted headers, and members that are decrypted in front of their decoder.
//!
//! Version 5 (technical note of RAR 5.0): AES-256, the key by PBKDF2 with HMAC-SHA256; eight bytes tell whether a password
//! is right. Version 3, as public readers describe it: AES-128, key and vector by 2^18 rounds of SHA-1; nothing tells
//! whether a password is right but what comes out. The ciphers of older versions are not read.
//!
//! Bounds: a piece of [`PIECE_BYTES`]; bytes hashed for keys are asked for.

use hmac::{Hmac, KeyInit, Mac};
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::lz::Unpack;
use crate::block_cipher::{Aes, BLOCK, Cbc};
use crate::codec::{Progress, Told};
use crate::keys::Derivation;
use crate::password::utf16;

/// How a key is made of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scheme {
    /// With the power of the rounds, and what tells the right password.
    Five { power: u8, salt: [u8; 16], check: [u8; 8] },
    /// An archive may go without salt.
    Three { salt: Option<[u8; 8]> },
}

/// A key, and the vector where the derivation makes it too.
#[derive(Debug, Clone)]
pub(super) struct Key {
    key: Vec<u8>,
    start: Option<[u8; BLOCK]>,
}

/// The most rounds that RAR does.
pub(super) const POWER_MAX: u8 = 24;
const ROUNDS_THREE: u32 = 1 << 18;

impl Derivation for Scheme {
    type Key = Key;

    fn cost(&self, password_bytes: usize) -> u64 {
        match self {
            Scheme::Five { power, .. } => (1 << power) * 2 * 64,
            Scheme::Three { .. } => u64::from(ROUNDS_THREE) * (2 * password_bytes + 8 + 3) as u64,
        }
    }

    fn key(&self, password: &[u8]) -> Option<Key> {
        match self {
            Scheme::Five { power, salt, check } => {
                let (key, told) = five(password, salt, 1 << power)?;
                (*check == told).then(|| Key { key: key.to_vec(), start: None })
            }
            Scheme::Three { salt } => Some(three(&utf16(password), salt.as_ref().map_or(&[], |salt| salt))),
        }
    }
}

/// The key after so many rounds, and what tells the password after 32 more.
fn five(password: &[u8], salt: &[u8; 16], rounds: u32) -> Option<([u8; 32], [u8; 8])> {
    const MORE: u32 = 32;
    let keyed = Hmac::<Sha256>::new_from_slice(password).ok()?;
    let round = |data: &[u8]| -> [u8; 32] { keyed.clone().chain_update(data).finalize().into_bytes().into() };
    let mut last = round(&[salt.as_slice(), &[0, 0, 0, 1]].concat());
    let (mut sum, mut key) = (last, last);
    for number in 1..rounds + MORE {
        last = round(&last);
        sum.iter_mut().zip(last).for_each(|(sum, byte)| *sum ^= byte);
        if number + 1 == rounds {
            key = sum;
        }
    }
    let mut told = [0; 8];
    sum.iter().enumerate().for_each(|(index, byte)| told[index % 8] ^= byte);
    Some((key, told))
}

/// Every sixteenth of the rounds tells a byte of the vector; the digest's words are the key, turned round.
fn three(password: &[u8], salt: &[u8]) -> Key {
    let mut hash = Sha1::new();
    let mut start = [0; BLOCK];
    let mut piece = [password, salt, &[0; 3]].concat();
    let number_at = piece.len() - 3;
    for number in 0..ROUNDS_THREE {
        piece[number_at..].copy_from_slice(&number.to_le_bytes()[..3]);
        hash.update(&piece);
        if number % (ROUNDS_THREE / 16) == 0 {
            start[(number / (ROUNDS_THREE / 16)) as usize] = hash.clone().finalize()[19];
        }
    }
    let mut key = hash.finalize()[..16].to_vec();
    key.as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    Key { key, start: Some(start) }
}

impl Key {
    /// The cipher of what begins with this vector, if the key has none of its own.
    pub fn cipher(&self, start: [u8; BLOCK]) -> Option<Cbc> {
        Some(Cbc::new(Aes::new(&self.key)?, self.start.unwrap_or(start)))
    }
}

const PIECE_BYTES: usize = 512;

/// Decrypts in front of a decoder, or of nothing where the member is stored.
pub(super) struct Decrypting {
    cbc: Cbc,
    stored: bool,
    /// The encrypted bytes taken that the decoder has not used.
    taken: Vec<u8>,
    /// Those of them that are decrypted, and not given to the decoder.
    plain: [u8; PIECE_BYTES],
    start: usize,
    end: usize,
    /// The beginning of a block.
    block: Vec<u8>,
}

impl Decrypting {
    pub fn new(cbc: Cbc, stored: bool) -> Decrypting {
        Decrypting { cbc, stored, taken: Vec::new(), plain: [0; PIECE_BYTES], start: 0, end: 0, block: Vec::new() }
    }

    /// As [`Decoder::decode`](crate::codec::Decoder::decode).
    pub fn decode(&mut self, unpack: Option<&mut Unpack>, input: &[u8], output: &mut [u8]) -> Progress {
        let taken = if self.start == self.end { self.refill(input) } else { 0 };
        if self.start == self.end && taken > 0 {
            // Nothing at all would mean the end of the input.
            return Progress::took(taken);
        }
        let piece = &self.plain[self.start..self.end];
        let (progress, unread) = match unpack {
            _ if self.stored => (copy(piece, output), 0),
            Some(unpack) => {
                let progress = unpack.decode(piece, output);
                (progress, unpack.surplus().len())
            }
            None => (Progress::fault(0, super::lz::DATA), 0),
        };
        self.start += progress.taken;
        let unused = (unread + self.end - self.start + self.block.len()).min(self.taken.len());
        self.taken.drain(..self.taken.len() - unused);
        Progress { taken, ..progress }
    }

    /// Decrypts whole blocks of the input.
    fn refill(&mut self, input: &[u8]) -> usize {
        let count = input.len().min(PIECE_BYTES - self.block.len());
        self.taken.extend_from_slice(&input[..count]);
        self.block.extend_from_slice(&input[..count]);
        let whole = self.block.len() / BLOCK * BLOCK;
        self.plain[..whole].copy_from_slice(&self.block[..whole]);
        self.block.drain(..whole);
        self.cbc.decrypt(&mut self.plain[..whole]);
        (self.start, self.end) = (0, whole);
        count
    }

    /// Encrypted bytes that were taken and not used.
    pub fn surplus(&self) -> &[u8] {
        &self.taken
    }
}

fn copy(piece: &[u8], output: &mut [u8]) -> Progress {
    let count = piece.len().min(output.len());
    output[..count].copy_from_slice(&piece[..count]);
    Progress { taken: count, wrote: count, told: Told::Nothing }
}
