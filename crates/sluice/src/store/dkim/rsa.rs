//! Keys of RSA of 2,048 bits, which fit into a record of the DNS and are taken by all.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;

/// A new private key in PKCS#8; none without randomness.
pub fn private_key() -> Option<Vec<u8>> {
    let pair = KeyPair::generate(KeySize::Rsa2048).ok()?;
    let der: Pkcs8V1Der<'_> = pair.as_der().ok()?;
    Some(der.as_ref().to_vec())
}

/// The public key of a private one, in PKCS#8 or PKCS#1, as `SubjectPublicKeyInfo`.
pub fn public_key(private: &[u8]) -> Option<Vec<u8>> {
    let pair = KeyPair::from_pkcs8(private).or_else(|_| KeyPair::from_der(private)).ok()?;
    let der: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
    Some(der.as_ref().to_vec())
}
