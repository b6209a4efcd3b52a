//! Whether a signature verifies (RFC 6376 section 6.1).

use flow::{Outcome as Answered, RecordKind};

use super::signature::{Base, Signature};
use super::{Limits, Outcome, Report};
use crate::body::{BodyHashes, Hash};
use crate::header::Header;
use crate::inquiry::{Inquiry, Pending};
use crate::key::{Key, KeyError, Refusal};

/// Texts of a key's name that are tried.
const RECORDS_MAX: usize = 4;

/// Inputs for the verification of signatures.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    /// The header.
    pub header: &'a Header,
    /// The hashes of the body, which is complete.
    pub body: &'a BodyHashes,
    /// Seconds since 1970.
    pub now: u64,
    /// Limits on keys and signatures.
    pub limits: Limits,
}

/// Early end of a check.
type Stop = (Outcome, &'static str);

impl Signature {
    /// Asks for the key, which can be done before there is a body.
    pub fn ask(&self, inquiry: &mut Inquiry) {
        let _ = look(&self.base, inquiry);
    }

    /// Verifies the signature.
    ///
    /// # Errors
    /// The key has not been answered.
    pub fn verify(&self, judge: &Judge<'_>, inquiry: &mut Inquiry) -> Result<Report, Pending> {
        let mut report = self.report(judge.header);
        report.expired = self.expires.is_some_and(|expires| expires < judge.now);
        let checked = match self.refused_for_its_own_sake(judge) {
            Some(stop) => Err(stop),
            None => self.check(judge, inquiry, &mut report)?,
        };
        if let Err((outcome, reason)) = checked {
            (report.outcome, report.reason) = (outcome, reason);
        }
        Ok(report)
    }

    /// Checks that need no key.
    fn refused_for_its_own_sake(&self, judge: &Judge<'_>) -> Option<Stop> {
        let limits = &judge.limits;
        if self.base.algorithm.hash() == Hash::Sha1 && !limits.sha1 {
            return Some((Outcome::Policy, "SHA-1 is not taken"));
        }
        let is_ahead = self.created.is_some_and(|created| created > judge.now.saturating_add(limits.ahead_max));
        is_ahead.then_some((Outcome::Policy, "signed in the future"))
    }

    fn check(
        &self,
        judge: &Judge<'_>,
        inquiry: &mut Inquiry,
        report: &mut Report,
    ) -> Result<Result<(), Stop>, Pending> {
        let key = match key(&self.base, inquiry, report)? {
            Ok(key) => key,
            Err(stop) => return Ok(Err(stop)),
        };
        report.testing = key.testing;
        if key.strict && !is_at(&self.identity, &self.base.domain) {
            return Ok(Err((Outcome::PermError, "key is not for subdomains")));
        }
        Ok(match self.base.check(judge, &key, report) {
            Ok(()) if report.expired => Err((Outcome::Policy, "signature has expired")),
            checked => checked,
        })
    }
}

/// The domain of an identity is that of the signature and none below.
fn is_at(identity: &str, domain: &str) -> bool {
    crate::domain::of_address(identity).and_then(crate::domain::host).is_some_and(|at| *at == *domain)
}

fn look(base: &Base, inquiry: &mut Inquiry) -> Result<crate::inquiry::Found, Pending> {
    inquiry.look(&format!("{}._domainkey.{}", base.selector, base.domain), RecordKind::Txt)
}

/// The key of a signature: the first TXT record at its name that is a key.
pub(crate) fn key(base: &Base, inquiry: &mut Inquiry, report: &mut Report) -> Result<Result<Key, Stop>, Pending> {
    let found = look(base, inquiry)?;
    report.security = found.security;
    if *found.outcome == Answered::Unavailable {
        return Ok(Err((Outcome::TempError, "key cannot be looked up")));
    }
    let mut error = None;
    for text in found.texts().take(RECORDS_MAX) {
        match Key::parse(text) {
            Ok(key) => {
                report.key_bits = Some(key.bits());
                return Ok(Ok(key));
            }
            Err(why) => error = error.or(Some(why)),
        }
    }
    Ok(Err((Outcome::PermError, error.map_or("there is no key", KeyError::reason))))
}

impl Base {
    /// Body, then header.
    pub(crate) fn check(&self, judge: &Judge<'_>, key: &Key, report: &mut Report) -> Result<(), Stop> {
        if !key.is_for(self.algorithm) {
            return Err((Outcome::PermError, "key is for another algorithm"));
        }
        let (digest, left) =
            judge.body.digest(self.wanted).ok_or((Outcome::Fail, "body is shorter than was signed"))?;
        report.bytes_unsigned = left;
        if digest != &self.body_hash[..] {
            return Err((Outcome::Fail, "body has changed"));
        }
        self.check_signature(judge, key, &self.signed(judge.header))
    }

    /// Checks the signature over the signed fields.
    pub(crate) fn check_signature(&self, judge: &Judge<'_>, key: &Key, signed: &[u8]) -> Result<(), Stop> {
        if key.is_for(crate::key::Algorithm::RsaSha256) && key.bits() < judge.limits.key_bits_min {
            return Err((Outcome::Policy, "key is too short"));
        }
        key.verify(self.algorithm, signed, &self.signature).map_err(|refusal| match refusal {
            Refusal::Algorithm => (Outcome::PermError, "key is for another algorithm"),
            Refusal::Size => (Outcome::Policy, "key is too short or too long"),
            Refusal::Signature => (Outcome::Fail, "signature does not verify"),
        })
    }
}
