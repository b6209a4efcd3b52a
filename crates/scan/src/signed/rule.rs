//! Rules on certificates of programs (`.crb`):
//! `name;trusted;subject;serial;key;exponent;code;time;certificates;not before;comment[;least level[;highest level]]`.
//!
//! After the ClamAV manual, "Trusted and Revoked Certificates". Subject and serial are SHA-1 digests of what is in them, the
//! key is its modulus, the exponent is 65,537 whatever stands there. A rule without a serial means all of them. A rule that
//! trusts says what its certificate may sign: code, points in time, certificates.

use std::io;
use std::sync::Arc;

use pattern::flat::{Flat, Reader, Unfit, Writer};
use sha1::{Digest, Sha1};

use super::certificate::Certificate;
use super::rsa::{Key, trimmed};
use crate::hashes::AnyDigest;
use crate::syntax::body::hex_bytes;
use crate::syntax::line::number;
use crate::syntax::line::{Reject, check_levels};

/// Things that a certificate may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Uses {
    pub(super) code: bool,
    pub(super) time: bool,
    pub(super) certificates: bool,
}

/// A rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// The number of its name.
    pub(crate) name: u32,
    /// Whether it trusts; else what is signed with the certificate is told.
    pub(crate) trusts: bool,
    pub(super) subject: [u8; 20],
    serial: Option<[u8; 20]>,
    modulus: Box<[u8]>,
    pub(super) uses: Uses,
    not_before: i64,
    line: Box<str>,
}

impl Rule {
    /// Reads a line.
    pub(crate) fn parse(line: &str) -> Result<Rule, Reject> {
        let fields: Vec<&str> = line.split(';').collect();
        let [_, trusted, subject, serial, key, _exponent, code, time, certificates, not_before, _, levels @ ..] =
            fields.as_slice()
        else {
            return Err(Reject::Malformed("fewer than eleven fields".to_owned()));
        };
        check_levels(levels)?;
        let serial = if serial.is_empty() { None } else { Some(sha1(serial)?) };
        let modulus = hex_bytes(key)?;
        if Key::new(&modulus, EXPONENT).is_none() {
            return Err(Reject::Unsupported("a key that does not have 1,024 to 4,096 bits".to_owned()));
        }
        let not_before = if not_before.is_empty() { 0 } else { number::<u32>(not_before)?.into() };
        Ok(Rule {
            name: 0,
            trusts: bit(trusted)?,
            subject: sha1(subject)?,
            serial,
            modulus: trimmed(&modulus).into(),
            uses: Uses { code: bit(code)?, time: bit(time)?, certificates: bit(certificates)? },
            not_before,
            line: line.into(),
        })
    }

    /// The same under another number of its name.
    pub(crate) fn named(self, name: u32) -> Rule {
        Rule { name, ..self }
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key { modulus: &self.modulus, exponent: EXPONENT }
    }

    /// Whether it means this certificate, for whatever it may be used.
    pub(super) fn means(&self, certificate: &Certificate<'_>) -> bool {
        self.modulus[..] == *certificate.key.modulus
            && self.subject == digest(certificate.subject)
            && self.serial.is_none_or(|serial| serial == digest(certificate.serial))
    }

    /// Whether it trusts this certificate for all that it may be used for.
    pub(super) fn trusts(&self, certificate: &Certificate<'_>, uses: Uses) -> bool {
        certificate.not_before >= self.not_before && uses.are_within(self.uses) && self.means(certificate)
    }
}

const EXPONENT: &[u8] = &[1, 0, 1];

impl Uses {
    /// Uses of a certificate, as clamscan has it: one of the first version stamps times, one that names no purposes may
    /// do everything.
    pub(super) fn of(certificate: &Certificate<'_>) -> Uses {
        if certificate.is_first_version {
            return Uses { code: false, time: true, certificates: true };
        }
        if !certificate.has_extensions {
            return Uses { code: false, time: false, certificates: false };
        }
        let (code, time) = certificate.purposes.map_or((true, true), |purposes| (purposes.code, purposes.time));
        Uses { code, time, certificates: certificate.may_sign_certificates() }
    }

    fn are_within(self, other: Uses) -> bool {
        self.code <= other.code && self.time <= other.time && self.certificates <= other.certificates
    }
}

/// The digest that rules name parts of certificates by.
pub(super) fn digest(content: &[u8]) -> [u8; 20] {
    Sha1::digest(content).into()
}

fn sha1(text: &str) -> Result<[u8; 20], String> {
    match AnyDigest::parse(text)? {
        AnyDigest::Sha1(digest) => Ok(digest),
        _ => Err(format!("{text:?} is no SHA-1")),
    }
}

fn bit(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("{text:?} is neither 0 nor 1")),
    }
}

/// Writes rules.
pub(crate) fn store(all: &[Rule], writer: &mut Writer<'_>) -> io::Result<()> {
    writer.texts(all.iter().map(|one| &*one.line))?;
    writer.array(&all.iter().map(|one| one.name).collect::<Vec<_>>())
}

/// Stored rules, whose names are numbered below `names_end`.
pub(crate) fn load(reader: &mut Reader, names_end: u32) -> Result<Arc<[Rule]>, Unfit> {
    let (lines, names): (_, Flat<u32>) = (reader.texts()?, reader.array()?);
    let read = |(line, &name): (String, &u32)| {
        let one = Rule::parse(&line).ok().filter(|_| name < names_end)?;
        Some(one.named(name))
    };
    if lines.len() != names.len() {
        return Err(Unfit::Malformed);
    }
    lines.into_iter().zip(names.iter()).map(read).collect::<Option<_>>().ok_or(Unfit::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_what_is_wrong_is_told() {
        let (digest, key) = ("a5f872f51516a7b95493a152eb79b61d8999188c", format!("C1{}", "00".repeat(126) + "01"));
        let line = format!("A;1;{digest};;{key};010001;1;0;1;0;note");
        assert!(Rule::parse(&line).is_ok_and(|rule| rule.trusts && rule.serial.is_none()));
        assert!(Rule::parse(&format!("{line};80;300")).is_ok());
        assert!(matches!(Rule::parse(&format!("{line};300")), Err(Reject::OtherEngine)));
        for wrong in [
            line.replace("A;1", "A;2"),
            line.replace(digest, &digest[2..]),
            line.replace(";;", ";12;"),
            line.replace(&key, "xy"),
            line.replace("1;0;1", "1;;1"),
            line.replace(";0;note", ";-1;note"),
            line.replace(";note", ""),
        ] {
            assert!(matches!(Rule::parse(&wrong), Err(Reject::Malformed(_))), "{wrong}");
        }
        assert!(matches!(Rule::parse(&line.replace(&key, "0101")), Err(Reject::Unsupported(_))));
    }
}
