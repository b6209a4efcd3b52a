//! AES-256 in 7z: how keys are made of passwords.
//!
//! ```text
//! properties := u8: bits 0-5 power of the rounds, 6 and 7 the lowest bits of the lengths; u8: lengths of salt and vector;
//!               salt, initialisation vector
//! key        := SHA-256 of (salt, password in UTF-16, round as u64) for all 2^power rounds behind each other
//! ```
//! Bounds: one candidate at a time, whose hashing is asked for and done in slices.

use sha2::{Digest, Sha256};

use crate::codec::block_cipher::{Aes, BLOCK, Cbc};
use crate::frame::codec::{Collected, Decoder, Fault, Progress};
use crate::frame::keys::{Derivation, Derived};
use crate::frame::password::utf16;

const KEY_BYTES: usize = 32;

/// The most rounds that 7-Zip does.
const POWER_MAX: u8 = 24;
/// The key is salt and password as they stand.
const POWER_PLAIN: u8 = 0x3f;

pub(super) type Key = [u8; KEY_BYTES];

/// Properties of a coder.
#[derive(Debug, Clone)]
pub(super) struct Properties {
    power: u8,
    salt: Vec<u8>,
    start: [u8; BLOCK],
}

impl Properties {
    pub fn read(properties: &[u8]) -> Option<Properties> {
        let (&first, rest) = properties.split_first()?;
        let power = first & 0x3f;
        let (lengths, rest) = rest.split_first().map_or((0, rest), |(&lengths, rest)| (lengths, rest));
        let salt_bytes = usize::from((first >> 7) + (lengths >> 4));
        let start_bytes = usize::from((first >> 6 & 1) + (lengths & 15));
        let (salt, rest) = rest.split_at_checked(salt_bytes)?;
        let mut start = [0; BLOCK];
        start[..start_bytes].copy_from_slice(rest.get(..start_bytes)?);
        (power <= POWER_MAX || power == POWER_PLAIN).then(|| Properties { power, salt: salt.to_vec(), start })
    }

    fn rounds(&self) -> u64 {
        if self.power == POWER_PLAIN { 0 } else { 1 << self.power }
    }

    /// The decoder, with this key.
    pub fn decoder(&self, key: &Key) -> Option<Box<dyn Decoder>> {
        let cbc = Cbc::new(Aes::new(key)?, self.start);
        Some(Box::new(AesCoder { cbc, block: Collected::new(), plain: Collected::new() }))
    }
}

impl Derivation for Properties {
    type Key = Key;
    type Work = Way;

    fn cost(&self, password_bytes: usize) -> u64 {
        self.rounds().saturating_mul((self.salt.len() + 2 * password_bytes + NUMBER_BYTES) as u64)
    }

    fn begin(&self, password: &[u8]) -> Way {
        let round = [self.salt.as_slice(), &utf16(password), &[0; NUMBER_BYTES]].concat();
        Way { hash: Sha256::new(), round, number: 0 }
    }

    fn go_on(&self, way: &mut Way, bytes: u64) -> Derived<Key> {
        if self.power == POWER_PLAIN {
            return Derived::Done(Some(std::array::from_fn(|index| way.round.get(index).copied().unwrap_or(0))));
        }
        let rounds = (bytes / way.round.len() as u64).max(1);
        let end = way.number.saturating_add(rounds).min(self.rounds());
        let number_at = way.round.len() - NUMBER_BYTES;
        for number in way.number..end {
            way.round[number_at..].copy_from_slice(&number.to_le_bytes());
            way.hash.update(&way.round);
        }
        way.number = end;
        if end < self.rounds() { Derived::More } else { Derived::Done(Some(way.hash.clone().finalize().into())) }
    }
}

const NUMBER_BYTES: usize = 8;

/// A key on its way.
pub(super) struct Way {
    hash: Sha256,
    /// Input of each round: salt, password, its number.
    round: Vec<u8>,
    number: u64,
}

/// The vector is of each folder alone.
impl PartialEq for Properties {
    fn eq(&self, other: &Properties) -> bool {
        (self.power, &self.salt) == (other.power, &other.salt)
    }
}

/// Decrypts block by block.
struct AesCoder {
    cbc: Cbc,
    block: Collected<BLOCK>,
    plain: Collected<BLOCK>,
}

impl Decoder for AesCoder {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let (mut taken, mut wrote) = (0, 0);
        loop {
            let count = self.plain.len().min(output.len() - wrote);
            output[wrote..wrote + count].copy_from_slice(&self.plain.bytes()[..count]);
            self.plain.drop_front(count);
            wrote += count;
            if wrote == output.len() || taken == input.len() {
                return Progress { wrote, ..Progress::took(taken) };
            }
            taken += self.block.fill(&input[taken..], BLOCK);
            if let Some(mut block) = self.block.whole().copied() {
                self.cbc.decrypt(&mut block);
                self.block.clear();
                self.plain.fill(&block, BLOCK);
            }
        }
    }

    fn missing(&self) -> Option<Fault> {
        Some(super::pull::DATA)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_tell_salt_and_vector() {
        let properties = Properties::read(&[0x53, 0x07, 1, 2, 3, 4, 5, 6, 7, 8]).expect("they make sense");
        assert_eq!((properties.power, properties.salt.len()), (19, 0));
        assert_eq!(properties.start, [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(properties.cost(6), (12 + 8) << 19);
        assert!(Properties::read(&[0x53, 0x07, 1]).is_none());
        assert!(Properties::read(&[0x3e]).is_none());
    }

    #[test]
    fn a_key_without_rounds_is_the_password() {
        let properties = Properties::read(&[0xbf, 0x00, 9]).expect("they make sense");
        assert_eq!(crate::frame::keys::derive(&properties, &[5, 6]).expect("a key")[..6], [9, 5, 0, 6, 0, 0]);
    }
}
