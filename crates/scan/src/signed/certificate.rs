//! X.509 certificates (RFC 5280) with RSA keys, taken apart; whether one is to be trusted is for others to say.

use super::der::{BIT_STRING, BOOLEAN, Der, INTEGER, OBJECT, OCTET_STRING, SEQUENCE, context};
use super::rsa::{Algorithm, Key, RSA, trimmed};

/// Digital signatures, in a key usage.
const DIGITAL_SIGNATURE: u8 = 0x80;
/// Signatures of certificates, in a key usage.
const CERTIFICATE_SIGNATURE: u8 = 0x04;

/// Uses of a certificate beyond its key usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Purposes {
    pub(crate) code: bool,
    pub(crate) time: bool,
    pub(crate) mail: bool,
    pub(crate) any: bool,
}

/// A certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Certificate<'a> {
    /// The whole of it.
    pub(crate) whole: &'a [u8],
    /// Signed bytes.
    signed: &'a [u8],
    algorithm: Algorithm,
    signature: &'a [u8],
    /// Whether it is of the first version, which has no extensions.
    pub(crate) is_first_version: bool,
    pub(crate) has_extensions: bool,
    /// The serial number, as it is written.
    pub(crate) serial: &'a [u8],
    /// The names within their sequences.
    pub(crate) issuer: &'a [u8],
    pub(crate) subject: &'a [u8],
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    pub(crate) key: Key<'a>,
    key_usage: Option<u8>,
    authority: Option<bool>,
    pub(crate) purposes: Option<Purposes>,
    /// Whether it has a critical extension that is not known here.
    pub(crate) is_beyond: bool,
}

impl<'a> Certificate<'a> {
    /// Reads the next certificate.
    pub(crate) fn read(whole: &'a [u8]) -> Option<Certificate<'a>> {
        let mut outer = Der(whole).enter(SEQUENCE)?;
        let signed = outer.next().filter(|element| element.tag == SEQUENCE)?;
        let algorithm = signature_algorithm(&mut outer)?;
        let signature = bits(outer.take(BIT_STRING)?)?;
        let mut inner = Der(signed.content);
        let is_first_version = inner.take_if(context(0)).is_none();
        let serial = inner.take(INTEGER)?;
        if signature_algorithm(&mut inner)? != algorithm {
            return None;
        }
        let issuer = inner.take(SEQUENCE)?;
        let mut validity = inner.enter(SEQUENCE)?;
        let (not_before, not_after) = (validity.time()?, validity.time()?);
        let subject = inner.take(SEQUENCE)?;
        let key = key(inner.enter(SEQUENCE)?)?;
        let mut certificate = Certificate {
            whole,
            signed: signed.whole,
            algorithm,
            signature,
            is_first_version,
            has_extensions: false,
            serial,
            issuer,
            subject,
            not_before,
            not_after,
            key,
            key_usage: None,
            authority: None,
            purposes: None,
            is_beyond: false,
        };
        while let Some(element) = inner.next() {
            if element.tag == context(3) {
                certificate.has_extensions = true;
                certificate.extensions(Der(element.content).enter(SEQUENCE)?)?;
            }
        }
        inner.is_empty().then_some(certificate)
    }

    fn extensions(&mut self, mut all: Der<'a>) -> Option<()> {
        while !all.is_empty() {
            let mut one = all.enter(SEQUENCE)?;
            let id = one.take(OBJECT)?;
            let critical = one.take_if(BOOLEAN).is_some_and(|flag| flag.content != [0]);
            let value = Der(one.take(OCTET_STRING)?);
            match id {
                b"\x55\x1d\x0f" => self.key_usage = Some(usage(value)?),
                b"\x55\x1d\x13" => self.authority = Some(authority(value)?),
                b"\x55\x1d\x25" => self.purposes = Some(purposes(value)?),
                _ => self.is_beyond |= critical,
            }
        }
        Some(())
    }

    /// Whether it signed another one.
    pub(crate) fn signed(&self, other: &Certificate<'_>) -> bool {
        let digest = other.algorithm.digest(&[other.signed]);
        self.subject == other.issuer && self.key.signs(other.algorithm, &digest, other.signature)
    }

    /// Whether the key `key` signed it.
    pub(crate) fn is_signed_by(&self, key: &Key<'_>) -> bool {
        key.signs(self.algorithm, &self.algorithm.digest(&[self.signed]), self.signature)
    }

    /// Whether it may sign others, by all that it says.
    pub(crate) fn is_authority(&self) -> bool {
        self.authority == Some(true) && self.key_usage.is_none_or(|usage| usage & CERTIFICATE_SIGNATURE != 0)
    }

    /// Whether it may sign others, if what it does not say is in its favour.
    pub(crate) fn may_sign_certificates(&self) -> bool {
        self.key_usage.is_none_or(|usage| usage & CERTIFICATE_SIGNATURE != 0 && self.authority != Some(false))
    }

    /// Whether it may sign what is no certificate.
    pub(crate) fn may_sign(&self) -> bool {
        self.key_usage.is_none_or(|usage| usage & DIGITAL_SIGNATURE != 0)
    }

    /// Whether it is valid at a time.
    pub(crate) fn is_valid(&self, now: i64) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }

    /// The common name, or nothing.
    pub(crate) fn common_name(&self) -> String {
        let mut sets = Der(self.subject);
        while let Some(set) = sets.next() {
            let Some(mut pair) = Der(set.content).enter(SEQUENCE) else { continue };
            if pair.take(OBJECT) == Some(b"\x55\x04\x03")
                && let Some(text) = pair.next()
            {
                return String::from_utf8_lossy(text.content).chars().filter(|c| !c.is_control()).take(128).collect();
            }
        }
        String::new()
    }
}

fn signature_algorithm(der: &mut Der<'_>) -> Option<Algorithm> {
    Algorithm::of_signature(der.enter(SEQUENCE)?.take(OBJECT)?)
}

/// The bytes of a string of bits, which has to end with a byte.
fn bits(content: &[u8]) -> Option<&[u8]> {
    content.split_first().filter(|(unused, _)| **unused == 0).map(|(_, bytes)| bytes)
}

fn key(mut der: Der<'_>) -> Option<Key<'_>> {
    if der.enter(SEQUENCE)?.take(OBJECT)? != RSA {
        return None;
    }
    let mut numbers = Der(bits(der.take(BIT_STRING)?)?).enter(SEQUENCE)?;
    let (modulus, exponent) = (numbers.take(INTEGER)?, numbers.take(INTEGER)?);
    Key::new(trimmed(modulus), exponent)
}

fn usage(mut value: Der<'_>) -> Option<u8> {
    let (&unused, bytes) = value.take(BIT_STRING)?.split_first()?;
    let first = *bytes.first().unwrap_or(&0);
    // Bits of the last byte beyond those that are used mean nothing.
    Some(if bytes.len() == 1 { first & 0xffu8.checked_shl(u32::from(unused)).unwrap_or(0) } else { first })
}

fn authority(mut value: Der<'_>) -> Option<bool> {
    let mut constraints = value.enter(SEQUENCE)?;
    Some(constraints.take_if(BOOLEAN).is_some_and(|flag| flag.content != [0]))
}

fn purposes(mut value: Der<'_>) -> Option<Purposes> {
    let (mut all, mut purposes) = (value.enter(SEQUENCE)?, Purposes::default());
    while !all.is_empty() {
        match all.take(OBJECT)? {
            b"\x2b\x06\x01\x05\x05\x07\x03\x03" => purposes.code = true,
            b"\x2b\x06\x01\x05\x05\x07\x03\x04" => purposes.mail = true,
            b"\x2b\x06\x01\x05\x05\x07\x03\x08" => purposes.time = true,
            b"\x55\x1d\x25\x00" => purposes.any = true,
            _ => {}
        }
    }
    Some(purposes)
}
