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
use crate::codec::block_cipher::{Aes, BLOCK, Cbc};
use crate::frame::codec::{Progress, Told};
use crate::frame::keys::{Derivation, Derived};
use crate::frame::password::utf16;

/// How a key is made of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scheme {
    /// RAR 5: the power of the number of rounds, the salt, and a check value of the password.
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
    type Work = Way;

    fn cost(&self, password_bytes: usize) -> u64 {
        match self {
            Scheme::Five { power, .. } => (1u64 << power).saturating_mul(FIVE_ROUND_BYTES),
            Scheme::Three { .. } => u64::from(ROUNDS_THREE).saturating_mul(three_round_bytes(2 * password_bytes)),
        }
    }

    fn begin(&self, password: &[u8]) -> Way {
        match self {
            Scheme::Five { salt, .. } => {
                Way::Five(Hmac::new_from_slice(password).ok().map(|keyed| Five::new(keyed, salt)))
            }
            Scheme::Three { salt } => Way::Three(Three::new(&utf16(password), salt.as_ref().map_or(&[], |salt| salt))),
        }
    }

    fn go_on(&self, way: &mut Way, bytes: u64) -> Derived<Key> {
        match (self, way) {
            (Scheme::Five { power, check, .. }, Way::Five(Some(five))) => {
                five.go_on(1 << power, bytes / FIVE_ROUND_BYTES, check)
            }
            (Scheme::Three { .. }, Way::Three(three)) => three.go_on(bytes),
            _ => Derived::Done(None),
        }
    }
}

/// A key on its way; none where the hash does not take the password.
pub(super) enum Way {
    Five(Option<Five>),
    Three(Three),
}

/// Two blocks of the hash for each round.
const FIVE_ROUND_BYTES: u64 = 2 * 64;

/// PBKDF2, computed in slices of rounds.
pub(super) struct Five {
    keyed: Hmac<Sha256>,
    last: [u8; 32],
    sum: [u8; 32],
    key: [u8; 32],
    number: u32,
}

impl Five {
    fn new(keyed: Hmac<Sha256>, salt: &[u8; 16]) -> Five {
        let first = keyed.clone().chain_update(salt).chain_update([0, 0, 0, 1]).finalize().into_bytes().into();
        Five { keyed, last: first, sum: first, key: first, number: 1 }
    }

    /// The key after so many rounds; 32 more tell whether the password is right.
    fn go_on(&mut self, rounds: u32, at_once: u64, check: &[u8; 8]) -> Derived<Key> {
        const MORE: u32 = 32;
        let end = rounds.saturating_add(MORE);
        for _ in 0..at_once.max(1) {
            if self.number >= end {
                let mut told = [0; 8];
                self.sum.iter().enumerate().for_each(|(index, byte)| told[index % 8] ^= byte);
                return Derived::Done((*check == told).then(|| Key { key: self.key.to_vec(), start: None }));
            }
            self.last = self.keyed.clone().chain_update(self.last).finalize().into_bytes().into();
            self.sum.iter_mut().zip(self.last).for_each(|(sum, byte)| *sum ^= byte);
            self.number = self.number.saturating_add(1);
            if self.number == rounds {
                self.key = self.sum;
            }
        }
        Derived::More
    }
}

/// Rounds of SHA-1 over a password, computed in slices.
pub(super) struct Three {
    hash: Sha1,
    start: [u8; BLOCK],
    /// Password, salt and the number of the round.
    piece: Vec<u8>,
    number: u32,
}

const NUMBER_BYTES: usize = 3;

/// Bytes hashed for one round, with a password of so many bytes and a salt.
const fn three_round_bytes(password_bytes: usize) -> u64 {
    (password_bytes + 8 + NUMBER_BYTES) as u64
}

impl Three {
    fn new(password: &[u8], salt: &[u8]) -> Three {
        let piece = [password, salt, &[0; NUMBER_BYTES]].concat();
        Three { hash: Sha1::new(), start: [0; BLOCK], piece, number: 0 }
    }

    /// Every sixteenth of the rounds tells a byte of the vector; the digest's words are the key, turned round.
    fn go_on(&mut self, bytes: u64) -> Derived<Key> {
        let rounds = u32::try_from(bytes / self.piece.len() as u64).unwrap_or(u32::MAX).max(1);
        let end = self.number.saturating_add(rounds).min(ROUNDS_THREE);
        let number_at = self.piece.len() - NUMBER_BYTES;
        for number in self.number..end {
            self.piece[number_at..].copy_from_slice(&number.to_le_bytes()[..NUMBER_BYTES]);
            self.hash.update(&self.piece);
            if number % (ROUNDS_THREE / 16) == 0 {
                self.start[(number / (ROUNDS_THREE / 16)) as usize] = self.hash.clone().finalize()[19];
            }
        }
        self.number = end;
        if end < ROUNDS_THREE {
            return Derived::More;
        }
        let mut key = self.hash.clone().finalize()[..16].to_vec();
        key.as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
        Derived::Done(Some(Key { key, start: Some(self.start) }))
    }
}

impl Key {
    /// Returns the cipher of data with this vector, unless the key has its own.
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
    /// Bytes that are decrypted, and not given to the decoder.
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

    /// As [`Decoder::decode`](crate::frame::codec::Decoder::decode).
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
