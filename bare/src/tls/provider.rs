//! The calculations that rustls leaves to its host: three suites, two groups, and the processor's randomness.

use alloc::sync::Arc;
use alloc::vec;

use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::ChaCha20Poly1305;
use rustls::crypto::cipher::Tls13AeadAlgorithm;
use rustls::crypto::hash::{Hash, HashAlgorithm};
use rustls::crypto::tls13::{Hkdf, HkdfUsingHmac};
use rustls::crypto::{
    CipherSuiteCommon, CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, WebPkiSupportedAlgorithms,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use rustls::{CipherSuite, Error, SupportedCipherSuite, Tls13CipherSuite};
use sha2::{Sha256, Sha384};

use super::cipher::Cipher;
use super::digest::Sha;
use super::key::{P256, X25519};
use crate::machine::random;

static SHA256: Sha<Sha256> = Sha::new(HashAlgorithm::SHA256);
static SHA384: Sha<Sha384> = Sha::new(HashAlgorithm::SHA384);
static HKDF_SHA256: HkdfUsingHmac<'static> = HkdfUsingHmac(&SHA256);
static HKDF_SHA384: HkdfUsingHmac<'static> = HkdfUsingHmac(&SHA384);

static AES_128_GCM: Tls13CipherSuite =
    suite(CipherSuite::TLS13_AES_128_GCM_SHA256, &SHA256, &HKDF_SHA256, &Cipher::<Aes128Gcm>::NEW, 1 << 24);
static AES_256_GCM: Tls13CipherSuite =
    suite(CipherSuite::TLS13_AES_256_GCM_SHA384, &SHA384, &HKDF_SHA384, &Cipher::<Aes256Gcm>::NEW, 1 << 24);
static CHACHA20_POLY1305: Tls13CipherSuite = suite(
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    &SHA256,
    &HKDF_SHA256,
    &Cipher::<ChaCha20Poly1305>::NEW,
    u64::MAX,
);

/// A suite; keys are changed after `records_max` records (RFC 8446, section 5.5).
const fn suite(
    suite: CipherSuite,
    hash_provider: &'static dyn Hash,
    hkdf_provider: &'static dyn Hkdf,
    aead_alg: &'static dyn Tls13AeadAlgorithm,
    records_max: u64,
) -> Tls13CipherSuite {
    let common = CipherSuiteCommon { suite, hash_provider, confidentiality_limit: records_max };
    Tls13CipherSuite { common, hkdf_provider, aead_alg, quic: None }
}

/// The provider of this machine.
pub fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: [&AES_128_GCM, &AES_256_GCM, &CHACHA20_POLY1305].map(SupportedCipherSuite::Tls13).into(),
        kx_groups: vec![&X25519, &P256],
        // Clients show no certificates.
        signature_verification_algorithms: WebPkiSupportedAlgorithms { all: &[], mapping: &[] },
        secure_random: &Processor,
        key_provider: &Processor,
    }
}

/// The processor's randomness.
#[derive(Debug)]
struct Processor;

impl SecureRandom for Processor {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        random::fill(bytes);
        Ok(())
    }
}

impl KeyProvider for Processor {
    // The identity brings its key: rustls is not asked to read one.
    fn load_private_key(&self, _: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Err(Error::General("keys are read elsewhere".into()))
    }
}
