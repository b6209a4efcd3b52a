//! Public keys as authenticators write them (COSE, RFC 9052 and 9053; RFC 8230 for RSA), and their signatures.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

use super::Refused;
use super::cbor::Item;

/// Bytes of the modulus of RSA.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=512;

/// Bytes of its exponent.
const EXPONENT_BYTES_MAX: usize = 8;

/// A public key of one of the algorithms that are asked for.
pub(super) enum Public<'a> {
    /// The coordinates of the point on P-256.
    Es256 {
        x: &'a [u8; 32],
        y: &'a [u8; 32],
    },
    Ed25519(&'a [u8; 32]),
    Rs256 {
        modulus: &'a [u8],
        exponent: &'a [u8],
    },
}

impl<'a> Public<'a> {
    /// The key at the beginning of a text, and the bytes behind it.
    pub fn read(text: &'a [u8]) -> Result<(Public<'a>, &'a [u8]), Refused> {
        let (map, rest) = Item::read(text).ok_or(Refused::Unreadable)?;
        let bytes = |key| map.bytes(&Item::Number(key)).ok_or(Refused::Algorithm);
        let word = |key| -> Result<&'a [u8; 32], Refused> { bytes(key)?.try_into().map_err(|_| Refused::Algorithm) };
        // Kind of key, algorithm, curve.
        let public = match (map.number(1), map.number(3), map.number(-1)) {
            (Some(2), Some(-7), Some(1)) => Public::Es256 { x: word(-2)?, y: word(-3)? },
            (Some(1), Some(-8), Some(6)) => Public::Ed25519(word(-2)?),
            (Some(3), Some(-257), None) => {
                let (modulus, exponent) = (without_zeros(bytes(-1)?), without_zeros(bytes(-2)?));
                if !MODULUS_BYTES.contains(&modulus.len()) || exponent.len() > EXPONENT_BYTES_MAX {
                    return Err(Refused::Algorithm);
                }
                Public::Rs256 { modulus, exponent }
            }
            _ => return Err(Refused::Algorithm),
        };
        Ok((public, rest))
    }

    /// Whether a signature of a message is by this key.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Public::Es256 { x, y } => {
                let point = [&[4][..], *x, *y].concat();
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(message, signature)
            }
            Public::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
            Public::Rs256 { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
        };
        verified.is_ok()
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
