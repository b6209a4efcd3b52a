//! Keys of signatures in the DNS (RFC 6376 section 3.6.1, RFC 8463), and whether a signature is one of them.
//!
//! Bounds: RSA keys of 1,024 to 8,192 bits (RFC 8301 wants none below, and few compute with more).

use aws_lc_rs::signature::{
    ED25519, RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RsaPublicKeyComponents, UnparsedPublicKey,
};

use crate::body::Hash;
use crate::tags::Tags;

/// Signature algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Forbidden (RFC 8301).
    RsaSha1,
    /// The one that all have.
    RsaSha256,
    /// RFC 8463.
    Ed25519Sha256,
}

impl Algorithm {
    /// Reads `a=`.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        let all = [Algorithm::RsaSha1, Algorithm::RsaSha256, Algorithm::Ed25519Sha256];
        all.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
    }

    /// As `a=` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::RsaSha1 => "rsa-sha1",
            Algorithm::RsaSha256 => "rsa-sha256",
            Algorithm::Ed25519Sha256 => "ed25519-sha256",
        }
    }

    /// Hash function of the body.
    pub const fn hash(self) -> Hash {
        match self {
            Algorithm::RsaSha1 => Hash::Sha1,
            Algorithm::RsaSha256 | Algorithm::Ed25519Sha256 => Hash::Sha256,
        }
    }

    /// As keys name their kind.
    const fn key_kind(self) -> &'static str {
        match self {
            Algorithm::RsaSha1 | Algorithm::RsaSha256 => "rsa",
            Algorithm::Ed25519Sha256 => "ed25519",
        }
    }
}

/// A key that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    public: Public,
    /// `t=y`: the domain is testing.
    pub testing: bool,
    /// `t=s`: the signer's identity has the very domain of the signature.
    pub strict: bool,
    hashes: Option<Vec<Box<str>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Public {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    Ed25519([u8; 32]),
}

/// Why a text is no key for a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyError {
    /// It cannot be understood.
    Syntax,
    /// It has been revoked: it is empty.
    Revoked,
    /// It is not for mail.
    Service,
    /// Unknown kind.
    Kind,
}

impl KeyError {
    /// For people.
    pub const fn reason(self) -> &'static str {
        match self {
            KeyError::Syntax => "key is malformed",
            KeyError::Revoked => "key has been revoked",
            KeyError::Service => "key is not for mail",
            KeyError::Kind => "key is of an unknown kind",
        }
    }
}

/// Why a key does not verify a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is for another algorithm.
    Algorithm,
    /// Too short, or too long to compute with.
    Size,
    /// The signature is not one of it over these bytes.
    Signature,
}

impl Key {
    /// Reads a text record.
    ///
    /// # Errors
    /// The reason for which it is not a key.
    pub fn parse(text: &[u8]) -> Result<Key, KeyError> {
        let tags = Tags::parse(text).ok_or(KeyError::Syntax)?;
        if tags.text("v").is_some_and(|version| version != "DKIM1" || tags.first() != Some("v")) {
            return Err(KeyError::Syntax);
        }
        if tags.list("s").is_some_and(|mut services| !services.any(|service| matches!(service, "*" | "email"))) {
            return Err(KeyError::Service);
        }
        let public = match tags.get("p").ok_or(KeyError::Syntax)? {
            [] => return Err(KeyError::Revoked),
            _ => tags.base64("p").flatten().ok_or(KeyError::Syntax)?,
        };
        let public = match tags.text("k").unwrap_or("rsa") {
            "rsa" => rsa(&public).ok_or(KeyError::Syntax)?,
            "ed25519" => Public::Ed25519(public.try_into().map_err(|_| KeyError::Syntax)?),
            _ => return Err(KeyError::Kind),
        };
        let has = |wanted: &str| tags.list("t").is_some_and(|mut flags| flags.any(|flag| flag == wanted));
        let hashes = tags.list("h").map(|hashes| hashes.map(|hash| hash.to_ascii_lowercase().into()).collect());
        Ok(Key { public, testing: has("y"), strict: has("s"), hashes })
    }

    /// Its length: of the modulus, or that of the curve.
    pub fn bits(&self) -> u32 {
        match &self.public {
            Public::Rsa { modulus, .. } => {
                let zeros = modulus.first().map_or(0, |first| first.leading_zeros());
                u32::try_from(modulus.len()).unwrap_or(u32::MAX).saturating_mul(8).saturating_sub(zeros)
            }
            Public::Ed25519(_) => 256,
        }
    }

    /// Verifies a signature by this key over `signed`.
    ///
    /// # Errors
    /// The reason for which it does not verify.
    pub fn verify(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> Result<(), Refusal> {
        let hash = match algorithm.hash() {
            Hash::Sha1 => "sha1",
            Hash::Sha256 => "sha256",
        };
        if self.hashes.as_ref().is_some_and(|hashes| hashes.iter().all(|known| **known != *hash)) {
            return Err(Refusal::Algorithm);
        }
        let outcome =
            match (&self.public, algorithm) {
                (Public::Rsa { .. }, _) if !(1_024..=8_192).contains(&self.bits()) => return Err(Refusal::Size),
                (Public::Rsa { modulus: n, exponent: e }, Algorithm::RsaSha256) => RsaPublicKeyComponents { n, e }
                    .verify(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, signed, signature),
                (Public::Rsa { modulus: n, exponent: e }, Algorithm::RsaSha1) => RsaPublicKeyComponents { n, e }
                    .verify(&RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, signed, signature),
                // Ed25519 signs the hash, which it hashes again (RFC 8463 section 3).
                (Public::Ed25519(key), Algorithm::Ed25519Sha256) => UnparsedPublicKey::new(&ED25519, key)
                    .verify(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, signed).as_ref(), signature),
                _ => return Err(Refusal::Algorithm),
            };
        outcome.map_err(|_| Refusal::Signature)
    }

    /// Whether the key is of the kind that an algorithm takes.
    pub fn is_for(&self, algorithm: Algorithm) -> bool {
        let kind = match self.public {
            Public::Rsa { .. } => "rsa",
            Public::Ed25519(_) => "ed25519",
        };
        kind == algorithm.key_kind()
    }
}

/// Tags of DER.
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// The algorithm identifier of RSA keys: its object identifier.
const RSA_OID: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";

/// A SubjectPublicKeyInfo (RFC 5280 section 4.1), as all publish it, or a bare RSAPublicKey (RFC 8017 appendix A.1.1), as
/// RFC 6376 says.
fn rsa(der: &[u8]) -> Option<Public> {
    let (whole, _) = element(der, SEQUENCE)?;
    if let Some((identifier, rest)) = element(whole, SEQUENCE) {
        let (bits, _) = element(rest, BIT_STRING).filter(|_| identifier.starts_with(RSA_OID))?;
        let (inner, _) = element(bits.strip_prefix(&[0])?, SEQUENCE)?;
        return components(inner);
    }
    components(whole)
}

fn components(der: &[u8]) -> Option<Public> {
    let (modulus, rest) = element(der, INTEGER)?;
    let (exponent, _) = element(rest, INTEGER)?;
    let [modulus, exponent] = [modulus, exponent].map(|number| {
        let zeros = number.iter().take_while(|&&byte| byte == 0).count();
        number[zeros..].to_vec()
    });
    (!modulus.is_empty() && !exponent.is_empty()).then_some(Public::Rsa { modulus, exponent })
}

/// Splits off the element at the start; returns its content and the rest. Lengths of up to three bytes.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.split_first()?;
    let (&len, rest) = rest.split_first()?;
    let (len, rest) = match len {
        0..=0x7f => (usize::from(len), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(len & 3))?;
            (digits.iter().fold(0, |sum, &digit| sum << 8 | usize::from(digit)), rest)
        }
        _ => return None,
    };
    (first == tag).then(|| rest.split_at_checked(len)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    #[test]
    fn a_key_is_read_or_refused() {
        let key = Key::parse(format!("{ED25519}; t=y:s; n=note").as_bytes()).unwrap();
        assert!(key.testing && key.strict && key.is_for(Algorithm::Ed25519Sha256) && !key.is_for(Algorithm::RsaSha256));
        assert_eq!(key.bits(), 256);
        for (text, wanted) in [
            ("v=DKIM1; p=", KeyError::Revoked),
            ("v=DKIM2; p=YQ==", KeyError::Syntax),
            ("p=YQ==; v=DKIM1", KeyError::Syntax),
            ("k=ed25519; p=YQ==", KeyError::Syntax),
            ("p=YQ==", KeyError::Syntax),
            ("p=*", KeyError::Syntax),
            ("k=x; p=YQ==", KeyError::Kind),
            // Values of tags have a case (RFC 6376, section 3.2).
            ("k=Ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", KeyError::Kind),
            ("k=RSA; p=YQ==", KeyError::Kind),
            ("s=tlsrpt; p=YQ==", KeyError::Service),
            ("v=DKIM1", KeyError::Syntax),
            ("nonsense", KeyError::Syntax),
        ] {
            assert_eq!(Key::parse(text.as_bytes()), Err(wanted), "{text}");
        }
    }

    #[test]
    fn a_key_says_which_hashes_it_is_for() {
        let key = Key::parse(format!("{ED25519}; h=sha1").as_bytes()).unwrap();
        assert_eq!(key.verify(Algorithm::Ed25519Sha256, b"", b""), Err(Refusal::Algorithm));
        let key = Key::parse(ED25519.as_bytes()).unwrap();
        assert_eq!(key.verify(Algorithm::RsaSha256, b"", b""), Err(Refusal::Algorithm));
        assert_eq!(key.verify(Algorithm::Ed25519Sha256, b"", b""), Err(Refusal::Signature));
    }

    /// A DER element with any error is not read beyond its end.
    #[test]
    fn keys_of_any_size_are_bounded() {
        let rsa = |bytes: usize| {
            let integer = |content: &[u8]| element_of(INTEGER, content);
            let inner = element_of(SEQUENCE, &[integer(&vec![0xff; bytes]), integer(&[1, 0, 1])].concat());
            Key::parse(format!("p={}", text::base64::encode(&inner)).as_bytes()).unwrap()
        };
        for (bytes, refusal) in
            [(64, Refusal::Size), (128, Refusal::Signature), (1_024, Refusal::Signature), (2_048, Refusal::Size)]
        {
            let key = rsa(bytes);
            assert_eq!(key.bits() as usize, bytes * 8);
            assert_eq!(key.verify(Algorithm::RsaSha256, b"x", &vec![1; bytes]), Err(refusal), "{bytes}");
        }
    }

    fn element_of(tag: u8, content: &[u8]) -> Vec<u8> {
        let len = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82, len[0], len[1]], content].concat()
    }
}
