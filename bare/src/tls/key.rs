//! Key exchange by X25519 and P-256, and signatures by ECDSA on P-256 and Ed25519.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use p256::elliptic_curve::sec1::ToSec1Point;
use p256::{PublicKey, SecretKey};
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer, alg_id};
use rustls::sign::{Signer, SigningKey, public_key_to_spki};
use rustls::{Error, NamedGroup, PeerMisbehaved, SignatureAlgorithm, SignatureScheme};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

use super::der::{INTEGER, OCTETS, SEQUENCE, number, value, wrapped};
use crate::machine::random;

/// The group of X25519 (RFC 7748).
#[derive(Debug)]
pub struct X25519;

struct X25519Exchange {
    secret: [u8; 32],
    public: [u8; 32],
}

impl SupportedKxGroup for X25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let secret = random::bytes();
        Ok(Box::new(X25519Exchange { secret, public: x25519(secret, X25519_BASEPOINT_BYTES) }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl ActiveKeyExchange for X25519Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer = peer.try_into().map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
        let shared = x25519(self.secret, peer);
        // A point of small order (RFC 8446, section 7.4.2).
        if shared == [0; 32] {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(SharedSecret::from(&shared[..]))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// The group P-256.
#[derive(Debug)]
pub struct P256;

struct P256Exchange {
    secret: SecretKey,
    public: Box<[u8]>,
}

impl SupportedKxGroup for P256 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let secret = secret();
        let public = point(&secret.public_key());
        Ok(Box::new(P256Exchange { secret, public }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::secp256r1
    }
}

impl ActiveKeyExchange for P256Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        // Uncompressed points alone (RFC 8446, section 4.2.8.2).
        let peer = Some(peer).filter(|peer| peer.first() == Some(&4));
        let peer =
            peer.and_then(|peer| PublicKey::from_sec1_bytes(peer).ok()).ok_or(PeerMisbehaved::InvalidKeyShare)?;
        Ok(SharedSecret::from(&self.secret.diffie_hellman(&peer).raw_secret_bytes()[..]))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::secp256r1
    }
}

/// A random key on P-256.
pub fn secret() -> SecretKey {
    loop {
        // A number that is too large comes once in 2^32 times.
        if let Ok(secret) = SecretKey::from_slice(&random::bytes::<32>()) {
            return secret;
        }
    }
}

/// The bytes of a point, uncompressed.
pub fn point(public: &PublicKey) -> Box<[u8]> {
    public.to_sec1_point(false).as_bytes().into()
}

/// Reads a server's key: on P-256 (SEC 1, or in PKCS #8), or of Ed25519 (in PKCS #8). SEC 1 need not say which curve it is on: the
/// certificate does.
pub fn read(key: &PrivateKeyDer<'_>) -> Option<Arc<dyn SigningKey>> {
    let (outer, _) = value(SEQUENCE, key.secret_der())?;
    let (_version, rest) = value(INTEGER, outer)?;
    let Some((algorithm, rest)) = value(SEQUENCE, rest) else { return ecdsa(outer) };
    let (inner, _) = value(OCTETS, rest)?;
    if algorithm == alg_id::ECDSA_P256.as_ref() {
        return ecdsa(value(SEQUENCE, inner)?.0);
    }
    let (secret, _) = value(OCTETS, inner).filter(|_| algorithm == alg_id::ED25519.as_ref())?;
    Some(Arc::new(Ed25519(ed25519_dalek::SigningKey::from_bytes(secret.try_into().ok()?))))
}

/// A key as SEC 1 has it (RFC 5915): its version, its number.
fn ecdsa(key: &[u8]) -> Option<Arc<dyn SigningKey>> {
    let (_version, rest) = value(INTEGER, key)?;
    let (secret, _) = value(OCTETS, rest)?;
    Some(Arc::new(Ecdsa::new(&SecretKey::from_slice(secret).ok()?)))
}

/// A key on P-256.
#[derive(Debug, Clone)]
pub struct Ecdsa(p256::ecdsa::SigningKey);

impl Ecdsa {
    pub fn new(key: &SecretKey) -> Ecdsa {
        Ecdsa(key.into())
    }

    /// The signature as ASN.1 has it (RFC 3279, section 2.2.3).
    pub fn signed(&self, message: &[u8]) -> Vec<u8> {
        let signature: p256::ecdsa::Signature = p256::ecdsa::signature::Signer::sign(&self.0, message);
        let (r, s) = signature.split_bytes();
        wrapped(SEQUENCE, &[&number(&r), &number(&s)])
    }

    /// The key of its certificate.
    pub fn public(&self) -> SubjectPublicKeyInfoDer<'static> {
        public_key_to_spki(&alg_id::ECDSA_P256, point(&self.0.verifying_key().into()))
    }
}

impl SigningKey for Ecdsa {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&Signer::scheme(self)).then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(self.public())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for Ecdsa {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.signed(message))
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP256_SHA256
    }
}

/// A key of Ed25519.
#[derive(Debug, Clone)]
struct Ed25519(ed25519_dalek::SigningKey);

impl SigningKey for Ed25519 {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&Signer::scheme(self)).then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(public_key_to_spki(&alg_id::ED25519, self.0.verifying_key().as_bytes()))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

impl Signer for Ed25519 {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(ed25519_dalek::Signer::sign(&self.0, message).to_bytes().to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ED25519
    }
}
