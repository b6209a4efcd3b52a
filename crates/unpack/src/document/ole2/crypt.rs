//! Encrypted Office documents (MS-OFFCRYPTO): how they say that they are, and the keys that passwords make.
//!
//! Read: agile and standard encryption of packages (OOXML), RC4 of workbooks, with the two ways of making its key. Excel and
//! PowerPoint open a document without asking where its password is [`DEFAULT_PASSWORD`], which is why such documents are
//! sent. Left out: extensible encryption, keys of certificates, XOR obfuscation, RC4 in Word and PowerPoint documents.
//!
//! Each way has a verifier that tells whether a password is right.
//!
//! Bounds: keys of the lengths that AES has, [`SPINS_MAX`] rounds; keys are made in slices.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use text::base64::decode_loosely;

use crate::codec::block_cipher::{Aes, BLOCK, Cbc};
use crate::codec::rc4::Rc4;
use crate::frame::codec::{le16, le32};
use crate::frame::keys::{Derivation, Derived};
use crate::frame::password::utf16;

/// Password that Excel tries first.
pub(super) const DEFAULT_PASSWORD: &[u8] = b"VelvetSweatshop";

/// How a document is encrypted.
#[derive(Clone, PartialEq)]
pub(super) enum Scheme {
    Agile(Box<Agile>),
    Standard(Standard),
    /// RC4 with a key of 40 bits made with MD5.
    Rc4(Verifier<16>),
    /// RC4 with a key made with SHA-1.
    Rc4Api(Standard),
}

/// MS-OFFCRYPTO 2.3.4.10.
#[derive(Clone, PartialEq)]
pub(super) struct Agile {
    /// Hash of the package.
    data_hash: Hash,
    data_salt: Vec<u8>,
    /// Hash of the key.
    hash: Hash,
    key_bytes: usize,
    spins: u32,
    salt: Vec<u8>,
    verifier: Vec<u8>,
    verifier_hash: Vec<u8>,
    key: Vec<u8>,
}

/// MS-OFFCRYPTO 2.3.3.
#[derive(Clone, PartialEq)]
pub(super) struct Standard {
    key_bytes: usize,
    verifier: Verifier<32>,
}

/// Verifier of passwords; its hash takes `N` bytes.
#[derive(Clone, PartialEq)]
pub(super) struct Verifier<const N: usize> {
    salt: [u8; 16],
    encrypted: [u8; 16],
    hash: [u8; N],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// Key of a document.
#[derive(Clone)]
pub(super) enum Key {
    /// Segments of a package, each with a vector of its own.
    Agile {
        aes: Aes,
        hash: Hash,
        salt: Vec<u8>,
    },
    /// Blocks of a package.
    Standard(Aes),
    /// Blocks of a workbook, each with a key of its own.
    Rc4([u8; 5]),
    Rc4Api {
        hash: [u8; 20],
        key_bytes: usize,
    },
}

impl Scheme {
    /// Reads an `EncryptionInfo` stream.
    pub fn package(info: &[u8]) -> Option<Scheme> {
        match (le16(info, 0), le16(info, 2)) {
            (4, 4) => {
                Agile::read(std::str::from_utf8(info.get(8..)?).ok()?).map(|agile| Scheme::Agile(Box::new(agile)))
            }
            (2..=4, 2) => Standard::read(info.get(8..)?).map(Scheme::Standard),
            _ => None,
        }
    }

    /// Reads a `FilePass` record (MS-XLS 2.4.117).
    pub fn workbook(file_pass: &[u8]) -> Option<Scheme> {
        const RC4: u16 = 1;
        if le16(file_pass, 0) != RC4 {
            return None;
        }
        match (le16(file_pass, 2), le16(file_pass, 4)) {
            (1, 1) => Some(Scheme::Rc4(Verifier::read(file_pass.get(6..)?, 16 + 16)?)),
            (2..=4, 2) => Standard::read(file_pass.get(10..)?).map(Scheme::Rc4Api),
            _ => None,
        }
    }
}

impl Agile {
    fn read(xml: &str) -> Option<Agile> {
        let data = element(xml, "keyData ")?;
        let key = element(xml, "encryptedKey ")?;
        let number = |element: &str, name| attribute(element, name)?.parse::<u32>().ok();
        let spins = number(key, "spinCount")?;
        if spins > SPINS_MAX {
            return None;
        }
        if attribute(data, "cipherChaining")? != "ChainingModeCBC" || attribute(key, "cipherAlgorithm")? != "AES" {
            return None;
        }
        Some(Agile {
            data_hash: Hash::named(attribute(data, "hashAlgorithm")?)?,
            data_salt: decode_loosely(attribute(data, "saltValue")?),
            hash: Hash::named(attribute(key, "hashAlgorithm")?)?,
            key_bytes: aes_key_bytes(number(key, "keyBits")?)?,
            spins,
            salt: decode_loosely(attribute(key, "saltValue")?),
            verifier: decode_loosely(attribute(key, "encryptedVerifierHashInput")?),
            verifier_hash: decode_loosely(attribute(key, "encryptedVerifierHashValue")?),
            key: decode_loosely(attribute(key, "encryptedKeyValue")?),
        })
    }

    /// Returns the key, if this is the hash of the right password.
    fn key(&self, digest: &[u8]) -> Option<Key> {
        const INPUT: [u8; 8] = [0xfe, 0xa7, 0xd2, 0x76, 0x3b, 0x4b, 0x9e, 0x79];
        const VALUE: [u8; 8] = [0xd7, 0xaa, 0x0f, 0x6d, 0x30, 0x61, 0x34, 0x4e];
        const KEY: [u8; 8] = [0x14, 0x6e, 0x0b, 0xe7, 0xab, 0xac, 0xd0, 0xd6];
        let decrypt = |purpose: [u8; 8], data: &[u8]| {
            let mut key = self.hash.of(&[digest, &purpose]);
            key.resize(self.key_bytes, 0x36);
            let mut data = data.to_vec();
            Cbc::new(Aes::new(&key)?, vector(&self.salt)).decrypt(&mut data);
            Some(data)
        };
        let right = self.hash.of(&[&decrypt(INPUT, &self.verifier)?]);
        let told = decrypt(VALUE, &self.verifier_hash)?;
        if told.get(..right.len())? != right {
            return None;
        }
        let key = decrypt(KEY, &self.key)?;
        let aes = Aes::new(key.get(..self.key_bytes)?)?;
        Some(Key::Agile { aes, hash: self.data_hash, salt: self.data_salt.clone() })
    }
}

impl Standard {
    /// The header and the verifier behind it.
    fn read(bytes: &[u8]) -> Option<Standard> {
        const RC4_BITS: u32 = 40;
        let header_bytes = le32(bytes, 0) as usize;
        let (header, verifier) = bytes.get(4..)?.split_at_checked(header_bytes)?;
        let bits = match le32(header, 16) {
            0 => RC4_BITS,
            bits => bits,
        };
        const SALT_LENGTH: usize = 4;
        let verifier = Verifier::read(verifier.get(SALT_LENGTH..)?, 16 + 16 + 4)?;
        Some(Standard { key_bytes: bits as usize / 8, verifier })
    }

    /// MS-OFFCRYPTO 2.3.4.7 and 2.3.4.9, with the hash of the password.
    fn aes(&self, digest: &[u8]) -> Option<Key> {
        let digest = Hash::Sha1.of(&[digest, &[0; 4]]);
        let half = |pad: u8| {
            let mut block = [pad; 64];
            block.iter_mut().zip(&digest).for_each(|(to, byte)| *to ^= byte);
            Hash::Sha1.of(&[&block])
        };
        let key = [half(0x36), half(0x5c)].concat();
        let aes = Aes::new(key.get(..self.key_bytes)?)?;
        let right = Hash::Sha1.of(&[&aes.decrypt(self.verifier.encrypted)]);
        let told = aes.decrypt(*self.verifier.hash.first_chunk()?);
        (right.starts_with(&told)).then_some(Key::Standard(aes))
    }

    /// MS-OFFCRYPTO 2.3.5.2 and 2.3.5.6.
    fn rc4(&self, password: &[u8]) -> Option<Key> {
        let hash = Sha1::new().chain_update(self.verifier.salt).chain_update(password).finalize().into();
        let key = Key::Rc4Api { hash, key_bytes: self.key_bytes };
        let mut stream = key.block(0)?;
        let (mut verifier, mut told) = (self.verifier.encrypted, self.verifier.hash);
        stream.apply(&mut verifier);
        stream.apply(&mut told);
        (Hash::Sha1.of(&[&verifier]) == told[..20]).then_some(key)
    }
}

impl<const N: usize> Verifier<N> {
    /// Salt and verifier, and at `hash_at` the verifier's hash, which may be shorter.
    fn read(bytes: &[u8], hash_at: usize) -> Option<Verifier<N>> {
        let hash = bytes.get(hash_at..)?;
        let mut whole = [0; N];
        let length = hash.len().min(N);
        whole[..length].copy_from_slice(&hash[..length]);
        Some(Verifier { salt: *bytes.first_chunk()?, encrypted: *bytes.get(16..)?.first_chunk()?, hash: whole })
    }
}

impl Verifier<16> {
    /// MS-OFFCRYPTO 2.3.6.2 and 2.3.6.4.
    fn rc4(&self, password: &[u8]) -> Option<Key> {
        let start = Md5::digest(password);
        let once = [&start[..5], &self.salt].concat();
        let digest = Md5::digest(once.repeat(16));
        let key = Key::Rc4(*digest.first_chunk()?);
        let mut stream = key.block(0)?;
        let (mut verifier, mut told) = (self.encrypted, self.hash);
        stream.apply(&mut verifier);
        stream.apply(&mut told);
        (Md5::digest(verifier)[..] == told).then_some(key)
    }
}

/// The most rounds that the format has (MS-OFFCRYPTO 2.3.4.10).
const SPINS_MAX: u32 = 10_000_000;
/// Spins of standard encryption.
const SPINS_STANDARD: u32 = 50_000;

/// Bytes of the keys that AES has.
const fn aes_key_bytes(bits: u32) -> Option<usize> {
    match bits {
        128 => Some(16),
        192 => Some(24),
        256 => Some(32),
        _ => None,
    }
}

/// A key on its way: the password, in UTF-16, or the hash that is made of it.
pub(super) enum Way {
    Password(Vec<u8>),
    Spin(Spin),
}

impl Derivation for Scheme {
    type Key = Key;
    type Work = Way;

    fn cost(&self, password_bytes: usize) -> u64 {
        let once = (password_bytes as u64).saturating_add(1024);
        match self {
            Scheme::Agile(agile) => {
                u64::from(agile.spins).saturating_mul(agile.hash.round_bytes()).saturating_add(once)
            }
            Scheme::Standard(_) => {
                u64::from(SPINS_STANDARD).saturating_mul(Hash::Sha1.round_bytes()).saturating_add(once)
            }
            Scheme::Rc4(_) | Scheme::Rc4Api(_) => once,
        }
    }

    fn begin(&self, password: &[u8]) -> Way {
        let password = utf16(password);
        match self {
            Scheme::Agile(agile) => Way::Spin(Spin::new(agile.hash, &agile.salt, &password, agile.spins)),
            Scheme::Standard(standard) => {
                Way::Spin(Spin::new(Hash::Sha1, &standard.verifier.salt, &password, SPINS_STANDARD))
            }
            Scheme::Rc4(_) | Scheme::Rc4Api(_) => Way::Password(password),
        }
    }

    fn go_on(&self, way: &mut Way, bytes: u64) -> Derived<Key> {
        if let Way::Spin(spin) = way
            && !spin.go_on(bytes)
        {
            return Derived::More;
        }
        Derived::Done(match (self, way) {
            (Scheme::Agile(agile), Way::Spin(spin)) => agile.key(&spin.digest),
            (Scheme::Standard(standard), Way::Spin(spin)) => standard.aes(&spin.digest),
            (Scheme::Rc4(verifier), Way::Password(password)) => verifier.rc4(password),
            (Scheme::Rc4Api(standard), Way::Password(password)) => standard.rc4(password),
            _ => None,
        })
    }
}

/// The hash of salt and password, which is hashed many times more behind the number of the round.
pub(super) struct Spin {
    hash: Hash,
    digest: Vec<u8>,
    number: u32,
    spins: u32,
}

impl Spin {
    fn new(hash: Hash, salt: &[u8], password: &[u8], spins: u32) -> Spin {
        Spin { hash, digest: hash.of(&[salt, password]), number: 0, spins }
    }

    /// Does rounds of so many bytes; whether all are done.
    fn go_on(&mut self, bytes: u64) -> bool {
        let rounds = bytes.checked_div(self.hash.round_bytes()).unwrap_or(0).max(1);
        let end = self.number.saturating_add(u32::try_from(rounds).unwrap_or(u32::MAX)).min(self.spins);
        let numbers = self.number..end;
        match self.hash {
            Hash::Sha1 => spin::<Sha1>(numbers, &mut self.digest),
            Hash::Sha256 => spin::<Sha256>(numbers, &mut self.digest),
            Hash::Sha384 => spin::<Sha384>(numbers, &mut self.digest),
            Hash::Sha512 => spin::<Sha512>(numbers, &mut self.digest),
        }
        self.number = end;
        end == self.spins
    }
}

/// Rounds with these numbers.
fn spin<D: Digest>(numbers: std::ops::Range<u32>, digest: &mut [u8]) {
    for number in numbers {
        digest.copy_from_slice(&D::new().chain_update(number.to_le_bytes()).chain_update(&*digest).finalize());
    }
}

impl Key {
    /// Whether it is that of a package.
    pub const fn is_of_package(&self) -> bool {
        matches!(self, Key::Agile { .. } | Key::Standard(_))
    }

    /// Decrypts a segment of a package: whole blocks.
    pub fn decrypt_segment(&self, number: u32, data: &mut [u8]) {
        match self {
            Key::Agile { aes, hash, salt } => {
                let start = vector(&hash.of(&[salt, &number.to_le_bytes()]));
                Cbc::new(aes.clone(), start).decrypt(data);
            }
            Key::Standard(aes) => {
                data.as_chunks_mut::<BLOCK>().0.iter_mut().for_each(|block| *block = aes.decrypt(*block));
            }
            Key::Rc4(_) | Key::Rc4Api { .. } => {}
        }
    }

    /// The key stream of a block of a workbook.
    pub fn block(&self, number: u32) -> Option<Rc4> {
        let number = number.to_le_bytes();
        match self {
            Key::Rc4(key) => Some(Rc4::new(&Md5::new().chain_update(key).chain_update(number).finalize())),
            Key::Rc4Api { hash, key_bytes } => {
                const BYTES_40_BITS: usize = 5;
                let digest = Hash::Sha1.of(&[hash, &number]);
                let mut key = digest.get(..*key_bytes)?.to_vec();
                if key.len() == BYTES_40_BITS {
                    key.resize(16, 0);
                }
                (!key.is_empty()).then(|| Rc4::new(&key))
            }
            Key::Agile { .. } | Key::Standard(_) => None,
        }
    }
}

impl Hash {
    fn named(name: &str) -> Option<Hash> {
        Some(match name {
            "SHA1" | "SHA-1" => Hash::Sha1,
            "SHA256" | "SHA-256" => Hash::Sha256,
            "SHA384" | "SHA-384" => Hash::Sha384,
            "SHA512" | "SHA-512" => Hash::Sha512,
            _ => return None,
        })
    }

    /// The hash of all these behind each other.
    fn of(self, parts: &[&[u8]]) -> Vec<u8> {
        fn digest<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
            parts.iter().fold(D::new(), |hash, part| hash.chain_update(part)).finalize().to_vec()
        }
        match self {
            Hash::Sha1 => digest::<Sha1>(parts),
            Hash::Sha256 => digest::<Sha256>(parts),
            Hash::Sha384 => digest::<Sha384>(parts),
            Hash::Sha512 => digest::<Sha512>(parts),
        }
    }

    /// Bytes hashed in a round of the spin: a block.
    const fn round_bytes(self) -> u64 {
        match self {
            Hash::Sha1 | Hash::Sha256 => 64,
            Hash::Sha384 | Hash::Sha512 => 128,
        }
    }
}

/// The first bytes as an initialisation vector; 0x36 stands for missing ones.
fn vector(bytes: &[u8]) -> [u8; BLOCK] {
    std::array::from_fn(|index| bytes.get(index).copied().unwrap_or(0x36))
}

/// The attributes of the first element with this name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    // From the space at the end of the name on.
    let at = xml.find(name)?.checked_add(name.len())?.checked_sub(1)?;
    xml.get(at..)?.split('>').next()
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = element;
    loop {
        let (before, behind) = rest.split_once(name)?;
        if before.ends_with([' ', '\t', '\r', '\n'])
            && let Some(value) = behind.strip_prefix("=\"")
        {
            return value.split('"').next();
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_by_their_whole_name() {
        let xml = "<a:encryptedKey hashSize=\"64\" xspinCount=\"1\" spinCount=\"7\"/>";
        let element = element(xml, "encryptedKey ").expect("it is there");
        assert_eq!(attribute(element, "spinCount"), Some("7"));
        assert_eq!(attribute(element, "spin"), None);
        assert_eq!(decode_loosely("SGVsbG8="), b"Hello");
    }

    #[test]
    fn what_is_too_short_is_no_encryption() {
        for length in 0..80 {
            assert!(Scheme::package(&[4; 80][..length]).is_none());
            let mut standard = vec![0; length];
            standard.iter_mut().zip([3, 0, 2, 0]).for_each(|(to, byte)| *to = byte);
            let _ = Scheme::package(&standard);
            let _ = Scheme::workbook(&standard);
        }
    }
    fn agile(bits: &str, spins: &str) -> Option<Agile> {
        Agile::read(&format!(
            "<keyData cipherChaining=\"ChainingModeCBC\" hashAlgorithm=\"SHA512\" saltValue=\"\"/>\
             <p:encryptedKey spinCount=\"{spins}\" keyBits=\"{bits}\" cipherAlgorithm=\"AES\" hashAlgorithm=\"SHA512\" \
             saltValue=\"\" encryptedVerifierHashInput=\"\" encryptedVerifierHashValue=\"\" encryptedKeyValue=\"\"/>"
        ))
    }

    #[test]
    fn keys_have_the_lengths_of_aes_and_rounds_have_a_bound() {
        assert!(agile("256", "100000").is_some() && agile("128", "10000000").is_some());
        for (bits, spins) in [("4294967288", "000000"), ("0", "1"), ("512", "1"), ("256", "10000001")] {
            assert!(agile(bits, spins).is_none(), "{bits} bits, {spins} rounds");
        }
    }

    #[test]
    fn rounds_are_done_in_slices() {
        let agile = agile("256", "20000").expect("it makes sense");
        let whole = (0..20_000u32)
            .fold(agile.hash.of(&[b"", b"word"]), |digest, number| agile.hash.of(&[&number.to_le_bytes(), &digest]));
        let mut spin = Spin::new(agile.hash, b"", b"word", agile.spins);
        let mut slices = 1;
        while !spin.go_on(crate::frame::keys::SLICE_BYTES) {
            slices += 1;
        }
        assert_eq!((spin.digest, slices), (whole, 5));
    }
}
