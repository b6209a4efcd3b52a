//! Our own signatures (RFC 6376 section 5).
//!
//! Both canonical forms are relaxed. Each signed field is listed once more than it occurs, so that none can be added.
//! The host passes the key and the randomness; keys of RSA have 2,048 to 4,096 bits.

use std::fmt::Write as _;

use aws_lc_rs::rand::SecureRandom;
use aws_lc_rs::signature::{Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};

use crate::body::{BodyHashes, Hash, Wanted};
use crate::header::{Canonicalization, Field, Header};
use crate::key::Algorithm;

/// Fields that are worth to be signed (section 5.4.1). `From` is signed in any case.
pub const NAMES: &[&str] = &[
    "from",
    "to",
    "cc",
    "reply-to",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "list-id",
    "list-unsubscribe",
    "list-unsubscribe-post",
];

/// A private key.
#[derive(Debug)]
pub enum SigningKey {
    /// RFC 8301.
    Rsa(Box<RsaKeyPair>),
    /// RFC 8463.
    Ed25519(Box<Ed25519KeyPair>),
}

/// Why nothing was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignError {
    /// It is no private key, or one that is too short or too long.
    Key,
    /// The mail has no `From`, which has to be signed.
    From,
    /// The body is not complete, or not hashed as [`WANTED`] says.
    Body,
    /// The key would not sign.
    Failed,
}

impl core::fmt::Display for SignError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SignError::Key => "not a private key, RSA of 2,048 to 4,096 bits or Ed25519, in DER",
            SignError::From => "the mail has no From",
            SignError::Body => "the body is not complete",
            SignError::Failed => "the key does not sign",
        })
    }
}

impl core::error::Error for SignError {}

/// Hashes that are needed of the body.
pub const WANTED: Wanted = Wanted { form: Canonicalization::Relaxed, hash: Hash::Sha256, len: None };

/// Signer of mails.
#[derive(Debug, Clone, Copy)]
pub struct Signer<'a> {
    /// Key of the signature.
    pub key: &'a SigningKey,
    /// For which domain; the key stands at `selector._domainkey.domain`.
    pub domain: &'a str,
    /// Selector of the key.
    pub selector: &'a str,
    /// Fields that are signed, in lower case: [`NAMES`], as a rule.
    pub names: &'a [&'a str],
    /// Seconds until the signature expires; `None` for never.
    pub seconds: Option<u64>,
}

impl SigningKey {
    /// Reads DER: PKCS#8, or PKCS#1 for RSA (RFC 8017 appendix A.1.2).
    ///
    /// # Errors
    /// The bytes are not a supported key.
    pub fn from_der(der: &[u8]) -> Result<SigningKey, SignError> {
        if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Ok(SigningKey::Ed25519(Box::new(key)));
        }
        let rsa = RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der));
        rsa.map(|key| SigningKey::Rsa(Box::new(key))).map_err(|_| SignError::Key)
    }

    const fn algorithm(&self) -> Algorithm {
        match self {
            SigningKey::Rsa(_) => Algorithm::RsaSha256,
            SigningKey::Ed25519(_) => Algorithm::Ed25519Sha256,
        }
    }

    fn sign(&self, signed: &[u8], random: &dyn SecureRandom) -> Result<Vec<u8>, SignError> {
        match self {
            SigningKey::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, random, signed, &mut signature).map_err(|_| SignError::Failed)?;
                Ok(signature)
            }
            SigningKey::Ed25519(key) => {
                let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, signed);
                Ok(key.sign(hash.as_ref()).as_ref().to_vec())
            }
        }
    }
}

impl Signer<'_> {
    /// Returns the `DKIM-Signature` of a mail, folded, with its last line end, to be put in front of its header.
    ///
    /// # Errors
    /// The reason for which there is no signature.
    pub fn sign(
        &self,
        header: &Header,
        body: &BodyHashes,
        now: u64,
        random: &dyn SecureRandom,
    ) -> Result<String, SignError> {
        if header.named("from").is_empty() {
            return Err(SignError::From);
        }
        let (digest, _) = body.digest(WANTED).ok_or(SignError::Body)?;
        let names = self.names(header);
        let mut field = format!(
            "DKIM-Signature: v=1; a={}; c=relaxed/relaxed; d={};\r\n\ts={}; t={now};",
            self.key.algorithm().name(),
            self.domain,
            self.selector,
        );
        if let Some(seconds) = self.seconds {
            let _ = write!(field, " x={};", now.saturating_add(seconds));
        }
        let _ = write!(field, "\r\n\th={};\r\n\tbh={};\r\n\tb=", names.join(":\r\n\t "), text::base64::encode(digest));
        let signature = self.key.sign(&signed(header, &names, &field), random)?;
        let characters = text::base64::encode(&signature);
        for (index, character) in characters.chars().enumerate() {
            if index > 0 && index.is_multiple_of(LINE_CHARACTERS) {
                field.push_str("\r\n\t ");
            }
            field.push(character);
        }
        field.push_str("\r\n");
        Ok(field)
    }

    fn names(&self, header: &Header) -> Vec<Box<str>> {
        let from = (!self.names.contains(&"from")).then_some("from");
        let all = from.into_iter().chain(self.names.iter().copied());
        let names = all.flat_map(|name| core::iter::repeat_n(Box::from(name), header.named(name).len() + 1));
        names.take(super::NAMES_MAX).collect()
    }
}

/// How long lines of the signature are.
const LINE_CHARACTERS: usize = 72;

/// The fields selected, then the signature's own, whose value is still missing.
fn signed(header: &Header, names: &[Box<str>], own: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for index in header.select(names, usize::MAX) {
        if let Some(field) = header.field(index) {
            field.canonical(Canonicalization::Relaxed, None, &mut out);
            out.extend_from_slice(b"\r\n");
        }
    }
    if let Some(own) = Field::new(own.as_bytes()) {
        own.canonical(Canonicalization::Relaxed, None, &mut out);
    }
    out
}
