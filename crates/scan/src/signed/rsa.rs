//! RSASSA-PKCS1-v1_5 (RFC 8017, section 8.2.2), and the digests that it signs.
//!
//! Keys have 1,024 to 4,096 bits, as clamscan has it. Public data is verified with public keys, so nothing here takes
//! care of constant time.

use md5::{Digest, Md5};
use num_bigint::BigUint;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

/// The shortest and the longest modulus, in bytes.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 128..=512;
/// The longest public exponent, in bytes.
const EXPONENT_BYTES_MAX: usize = 8;

/// A digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// `rsaEncryption`.
pub(crate) const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";

/// Each with its own identifier, and that of its signature by RSA.
const IDENTIFIERS: [(Algorithm, &[u8], &[u8]); 5] = [
    (Algorithm::Md5, b"\x2a\x86\x48\x86\xf7\x0d\x02\x05", b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04"),
    (Algorithm::Sha1, b"\x2b\x0e\x03\x02\x1a", b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05"),
    (Algorithm::Sha256, b"\x60\x86\x48\x01\x65\x03\x04\x02\x01", b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"),
    (Algorithm::Sha384, b"\x60\x86\x48\x01\x65\x03\x04\x02\x02", b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c"),
    (Algorithm::Sha512, b"\x60\x86\x48\x01\x65\x03\x04\x02\x03", b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d"),
];

impl Algorithm {
    /// By its identifier.
    pub(crate) fn of(identifier: &[u8]) -> Option<Algorithm> {
        IDENTIFIERS.iter().find(|(_, own, _)| *own == identifier).map(|(algorithm, ..)| *algorithm)
    }

    /// By the identifier of its signature.
    pub(crate) fn of_signature(identifier: &[u8]) -> Option<Algorithm> {
        IDENTIFIERS.iter().find(|(.., signed)| *signed == identifier).map(|(algorithm, ..)| *algorithm)
    }

    fn identifier(self) -> &'static [u8] {
        IDENTIFIERS[self as usize].1
    }

    /// The digest of these bytes, one behind the other.
    pub(crate) fn digest(self, pieces: &[&[u8]]) -> Vec<u8> {
        match self {
            Algorithm::Md5 => all::<Md5>(pieces),
            Algorithm::Sha1 => all::<Sha1>(pieces),
            Algorithm::Sha256 => all::<Sha256>(pieces),
            Algorithm::Sha384 => all::<Sha384>(pieces),
            Algorithm::Sha512 => all::<Sha512>(pieces),
        }
    }
}

fn all<D: Digest>(pieces: &[&[u8]]) -> Vec<u8> {
    let mut digest = D::new();
    pieces.iter().for_each(|piece| digest.update(piece));
    digest.finalize().to_vec()
}

/// A public key, its numbers without zeros before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    pub(crate) modulus: &'a [u8],
    pub(crate) exponent: &'a [u8],
}

impl<'a> Key<'a> {
    /// Makes a key of numbers as they are written; `None` if they are out of range.
    pub(crate) fn new(modulus: &'a [u8], exponent: &'a [u8]) -> Option<Key<'a>> {
        let key = Key { modulus: trimmed(modulus), exponent: trimmed(exponent) };
        let is_odd = key.modulus.last().is_some_and(|last| last % 2 == 1);
        let in_range = MODULUS_BYTES.contains(&key.modulus.len()) && key.exponent.len() <= EXPONENT_BYTES_MAX;
        (is_odd && in_range && !key.exponent.is_empty()).then_some(key)
    }

    /// Whether `signature` is one of this digest.
    pub(crate) fn signs(&self, algorithm: Algorithm, digest: &[u8], signature: &[u8]) -> bool {
        let modulus = BigUint::from_bytes_be(self.modulus);
        let number = BigUint::from_bytes_be(trimmed(signature));
        if number >= modulus {
            return false;
        }
        let opened = number.modpow(&BigUint::from_bytes_be(self.exponent), &modulus).to_bytes_be();
        encoded(algorithm, digest, self.modulus.len()).is_some_and(|expected| expected[1..] == opened)
    }
}

/// A number without the zeros before it.
pub(crate) fn trimmed(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    &number[zeros..]
}

/// EMSA-PKCS1-v1_5 (section 9.2): `00 01 FF.. 00` and the digest with its algorithm.
fn encoded(algorithm: Algorithm, digest: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let identifier = algorithm.identifier();
    let (id, hash) = (identifier.len() as u8, digest.len() as u8);
    let mut info = vec![0x30, id + hash + 8, 0x30, id + 4, 0x06, id];
    info.extend(identifier);
    info.extend([0x05, 0, 0x04, hash]);
    info.extend(digest);
    let padding = bytes.checked_sub(info.len() + 3).filter(|&padding| padding >= 8)?;
    let mut out = vec![0, 1];
    out.resize(2 + padding, 0xff);
    out.push(0);
    out.extend(info);
    Some(out)
}
