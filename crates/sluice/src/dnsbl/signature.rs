//! Signed texts: the last line is `signature HEX`, an Ed25519 signature (RFC 8032) of all bytes before that line.

use std::path::Path;

use ::dnsbl::delta::{from_hex, hex};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use edge::net::pem;

use crate::output::Failure;

/// Prefix of an Ed25519 public key in DER (RFC 8410 section 4).
const ED25519_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The line that holds the signature.
const KEYWORD: &str = "signature ";

/// Signs a text with the key in a file.
///
/// # Errors
/// When the file holds no Ed25519 key.
pub fn sign(text: &str, key: &Path) -> Result<String, Failure> {
    let der = pem::private_key(key)?;
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
        .map_err(|error| format!("{}: not an Ed25519 key: {error}", key.display()))?;
    Ok(format!("{text}{KEYWORD}{}\n", hex(pair.sign(text.as_bytes()).as_ref())))
}

/// The text that was signed with the key whose public half is in a file.
///
/// # Errors
/// When it was not, or the file holds no such key.
pub fn verified<'a>(signed: &'a str, key: &Path) -> Result<&'a str, Failure> {
    let der = pem::public_key(key)?;
    let public =
        der.strip_prefix(&ED25519_HEAD[..]).ok_or_else(|| format!("{}: not an Ed25519 public key", key.display()))?;
    let body = signed.strip_suffix('\n').unwrap_or(signed);
    let at = body.rfind('\n').map_or(0, |at| at + 1);
    let (text, line) = (&signed[..at], &body[at..]);
    let signature = line.strip_prefix(KEYWORD).and_then(from_hex).ok_or("no signature in it")?;
    UnparsedPublicKey::new(&ED25519, public)
        .verify(text.as_bytes(), &signature)
        .map_err(|_| "its signature is not of this key")?;
    Ok(text)
}
