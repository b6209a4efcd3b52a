//! The server's certificate and key: of the settings, or made at the first start and kept in the store.
//!
//! The one that is made is signed by itself. Clients know it by its fingerprint, which the console shows, and not by its age: it is valid
//! until 2049.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write as _;

use keep::Keep;
use p256::SecretKey;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use store::Quota;

use super::der::{SEQUENCE, number, wrapped};
use super::key::{self, Ecdsa};
use crate::machine::{random, say};
use crate::office::Store;

/// The account of the store that has the key; no settings can name it.
const ACCOUNT: &[u8] = b":machine";

/// Bytes of a key on P-256.
const KEY_BYTES: usize = 32;

/// The certificate and its key.
pub fn of(store: &mut Store) -> Result<CertifiedKey, &'static str> {
    let hostname = store.machine.hostname.clone();
    let identity = match store.machine.pem.is_empty() {
        true => own(store, &hostname)?,
        false => given(&store.machine.pem)?,
    };
    let first = identity.cert.first().map(AsRef::<[u8]>::as_ref).unwrap_or_default();
    say!("certificate {}", fingerprint(first));
    Ok(identity)
}

/// The fingerprint of a certificate, as OpenSSL shows it.
fn fingerprint(certificate: &[u8]) -> String {
    let mut text = String::from("SHA-256");
    for (at, byte) in Sha256::digest(certificate).iter().enumerate() {
        let _ = write!(text, "{}{byte:02X}", if at == 0 { ' ' } else { ':' });
    }
    text
}

fn given(pem: &str) -> Result<CertifiedKey, &'static str> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let certificates =
        certificates.ok().filter(|all| !all.is_empty()).ok_or("the settings have a key without a certificate")?;
    let key =
        PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| "the settings have a certificate without a key")?;
    let key = key::read(&key).ok_or("the key of the settings is not on P-256 or of Ed25519")?;
    let public = key.public_key().unwrap_or(SubjectPublicKeyInfoDer::from(&[][..]));
    let has_key =
        |certificate: &CertificateDer<'_>| certificate.windows(public.len().max(1)).any(|part| part == &*public);
    if !certificates.first().is_some_and(has_key) {
        return Err("the key of the settings is of another certificate");
    }
    Ok(CertifiedKey::new(certificates, key.clone()))
}

/// The store's, made if there is none for this name.
fn own(store: &mut Store, hostname: &str) -> Result<CertifiedKey, &'static str> {
    let known = store.volume().state().account_named(ACCOUNT);
    let kept = known.and_then(|(_, account)| account.annotations.get(hostname.as_bytes()).map(|value| value.to_vec()));
    let value = match kept {
        Some(value) => value,
        None => {
            let value = made(hostname);
            remember(store, hostname, value.clone()).map_err(|_| "the store does not take the key")?;
            value
        }
    };
    let (key, certificate) = value.split_at_checked(KEY_BYTES).ok_or("the store's key is damaged")?;
    let key = SecretKey::from_slice(key).map_err(|_| "the store's key is damaged")?;
    Ok(CertifiedKey::new([CertificateDer::from(certificate.to_vec())].into(), Arc::new(Ecdsa::new(&key))))
}

fn remember(store: &mut Store, hostname: &str, value: Vec<u8>) -> Result<(), store::Error> {
    let name = hostname.as_bytes().to_vec();
    store.transact(move |transaction| {
        let known = transaction.state().account_named(ACCOUNT).map(|(number, _)| number);
        let account = match known {
            Some(account) => account,
            None => transaction.add_account(ACCOUNT, Quota::default())?,
        };
        transaction.annotate(account, None, &name, Some(&value))
    })
}

/// A key, and behind it its certificate.
fn made(hostname: &str) -> Vec<u8> {
    let key = key::secret();
    let mut value = key.to_bytes().to_vec();
    value.extend_from_slice(&certificate(hostname, &Ecdsa::new(&key)));
    value
}

/// ecdsa-with-SHA256 (RFC 5758, section 3.2).
const ECDSA_WITH_SHA256: [u8; 10] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
/// The attribute commonName, and the extension subjectAltName.
const COMMON_NAME: [u8; 5] = [6, 3, 0x55, 4, 3];
const ALTERNATIVE_NAME: [u8; 5] = [6, 3, 0x55, 0x1d, 0x11];
/// The most bytes of a common name (RFC 5280, appendix A.1); the alternative name is the one that counts.
const COMMON_NAME_BYTES_MAX: usize = 64;

/// A certificate for a name (RFC 5280), signed by its own key.
fn certificate(hostname: &str, key: &Ecdsa) -> Vec<u8> {
    let algorithm = wrapped(SEQUENCE, &[&ECDSA_WITH_SHA256]);
    let common = hostname.get(..COMMON_NAME_BYTES_MAX).unwrap_or(hostname);
    let attribute = wrapped(SEQUENCE, &[&COMMON_NAME, &wrapped(0x0c, &[common.as_bytes()])]);
    let name = wrapped(SEQUENCE, &[&wrapped(0x31, &[&attribute])]);
    let validity = wrapped(SEQUENCE, &[&wrapped(0x17, &[b"200101000000Z"]), &wrapped(0x17, &[b"491231235959Z"])]);
    let names = wrapped(4, &[&wrapped(SEQUENCE, &[&wrapped(0x82, &[hostname.as_bytes()])])]);
    let extensions = wrapped(0xa3, &[&wrapped(SEQUENCE, &[&wrapped(SEQUENCE, &[&ALTERNATIVE_NAME, &names])])]);
    // A positive number without a leading zero.
    let mut serial: [u8; 16] = random::bytes();
    serial[0] = serial[0] & 0x3f | 0x40;
    let (version, serial) = (wrapped(0xa0, &[&[2, 1, 2]]), number(&serial));
    let public = key.public();
    let body = wrapped(SEQUENCE, &[&version, &serial, &algorithm, &name, &validity, &name, &public, &extensions]);
    let signature = wrapped(3, &[&[0], &key.signed(&body)]);
    wrapped(SEQUENCE, &[&body, &algorithm, &signature])
}
