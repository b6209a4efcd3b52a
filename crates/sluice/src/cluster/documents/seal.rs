//! Texts of documents as the database has them: AES-256-GCM with a key from the secret of the cluster, for one name and one version.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hmac;
use cluster::Digest;

use crate::cluster::handing::Secret;

/// Seals texts and opens them.
pub struct Sealing {
    key: RandomizedNonceKey,
    digest: hmac::Key,
}

impl Sealing {
    /// The sealing of a cluster.
    pub fn new(secret: &Secret) -> Sealing {
        let key = RandomizedNonceKey::new(&AES_256_GCM, &secret.derived("documents: seal"));
        let digest = hmac::Key::new(hmac::HMAC_SHA256, &secret.derived("documents: digest"));
        Sealing { key: key.expect("the key has 32 bytes"), digest }
    }

    /// A nonce, the sealed text and its tag.
    pub fn seal(&self, name: &str, version: u64, text: &[u8]) -> Vec<u8> {
        let mut sealed = text.to_vec();
        let nonce = self.key.seal_in_place_append_tag(about(name, version), &mut sealed);
        [&nonce.expect("texts are bounded").as_ref()[..], &sealed].concat()
    }

    /// The text; none if it was sealed with another secret, or for another name or version, or was changed.
    pub fn open(&self, name: &str, version: u64, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let mut text = sealed.to_vec();
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let length = self.key.open_in_place(nonce, about(name, version), &mut text).ok()?.len();
        text.truncate(length);
        Some(text)
    }

    /// The digest of a text, which tells nothing to those without the secret.
    pub fn digest(&self, text: &[u8]) -> Digest {
        let digest = hmac::sign(&self.digest, text);
        digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

fn about(name: &str, version: u64) -> Aad<Vec<u8>> {
    Aad::from([name.as_bytes(), b"\0", &version.to_be_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_opened_only_as_it_was_sealed() {
        let sealing = |text| Sealing::new(&Secret::of(text));
        let ours = sealing("0123456789abcdef");
        let sealed = ours.seal("accounts", 7, b"tim:secret:");
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_ne!(sealed, ours.seal("accounts", 7, b"tim:secret:"));
        assert_eq!(ours.open("accounts", 7, &sealed).as_deref(), Some(&b"tim:secret:"[..]));
        assert_eq!(ours.open("accounts", 8, &sealed), None);
        assert_eq!(ours.open("dkim", 7, &sealed), None);
        assert_eq!(sealing("fedcba9876543210").open("accounts", 7, &sealed), None);
        for at in 0..sealed.len() {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert_eq!(ours.open("accounts", 7, &other), None, "byte {at}");
            assert_eq!(ours.open("accounts", 7, &sealed[..at]), None, "{at} bytes");
        }
    }
}
