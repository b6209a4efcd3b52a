//! Whether rules on certificates vouch for a message (Authenticode), as clamscan decides it.
//!
//! The certificates in the message that a rule trusts are trusted, and those that a trusted one signed, and so on; of what
//! they may sign only what the one above may sign, too. Whoever signed the message has to be among them and to be allowed to
//! sign code. It counts while the certificate is valid, or for ever if a countersignature says that it was signed while it
//! was; a countersignature by nobody who is trusted makes the whole untrusted. A time-stamp token (RFC 3161) is worth the same,
//! which clamscan does not look at.
//!
//! Bound: [`VERIFICATIONS_MAX`] signatures of certificates are verified for one program or catalogue.

use super::certificate::Certificate;
use super::der::{Der, INTEGER, OBJECT, OCTET_STRING, SEQUENCE};
use super::message::{DATA, Message, Signer, attribute};
use super::rsa::{Algorithm, Key};
use super::rule::{Rule, Uses, digest};

const COUNTERSIGNATURE: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x06";
/// A time-stamp token as an attribute of a signature of a program.
const TOKEN: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x03\x03\x01";
const TIMESTAMP: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x04";

/// The most signatures of certificates that are verified for one program, whatever messages it has, or one catalogue.
pub(crate) const VERIFICATIONS_MAX: u32 = 256;

/// Somebody who is trusted: by a rule, or a certificate of the message.
struct Trusted<'a> {
    subject: [u8; 20],
    key: Key<'a>,
    uses: Uses,
    certificate: Option<&'a Certificate<'a>>,
}

/// The numbers of the names of the rules by which certificates of a message are told.
pub(crate) fn told(message: &Message<'_>, rules: &[Rule]) -> Vec<u32> {
    let told = rules.iter().filter(|rule| !rule.trusts);
    told.filter(|rule| message.certificates.iter().any(|one| rule.means(one))).map(|rule| rule.name).collect()
}

/// Digests that a message with content of this type vouches for, if rules vouch for the message. Without a time, in
/// seconds since 1970, only countersigned messages count. `left` is how many signatures of certificates may still be
/// verified.
pub(crate) fn vouched<'m>(
    message: &'m Message<'_>,
    content_type: &[u8],
    rules: &[&Rule],
    now: Option<i64>,
    left: &mut u32,
) -> Option<&'m [u8]> {
    let (signer, content) = (message.signer.as_ref()?, message.content?);
    let fits = message.content_type == content_type && signer.content_type == content_type;
    if !fits || content.tag != SEQUENCE || signer.message_digest != signer.algorithm.digest(&[content.content]) {
        return None;
    }
    let trusted = trusted(&message.certificates, rules, left);
    let by = by(&trusted, signer, |uses| uses.code)?;
    let is_in_time = match (attribute(signer.unsigned.0, COUNTERSIGNATURE), attribute(signer.unsigned.0, TOKEN)) {
        (Some(mut values), _) => by.is_valid(stamped(&trusted, &Signer::read(values.enter(SEQUENCE)?)?, signer)?),
        (None, Some(mut values)) => {
            by.is_valid(token_time(&Message::read(values.next()?.whole)?, signer, rules, left)?)
        }
        (None, None) => now.is_some_and(|now| by.is_valid(now)),
    };
    is_in_time.then_some(content.content)
}

/// The time in a time-stamp token about a signature, if rules vouch for the token (RFC 3161, section 2.4.2).
fn token_time(token: &Message<'_>, signer: &Signer<'_>, rules: &[&Rule], left: &mut u32) -> Option<i64> {
    let (authority, content) = (token.signer.as_ref()?, token.content?);
    let fits = token.content_type == TIMESTAMP && authority.content_type == TIMESTAMP && content.tag == OCTET_STRING;
    if !fits || authority.message_digest != authority.algorithm.digest(&[content.content]) {
        return None;
    }
    by(&trusted(&token.certificates, rules, left), authority, |uses| uses.time)?;
    let mut info = Der(content.content).enter(SEQUENCE)?;
    info.take(INTEGER)?;
    info.take(OBJECT)?;
    let mut imprint = info.enter(SEQUENCE)?;
    let algorithm = Algorithm::of(imprint.enter(SEQUENCE)?.take(OBJECT)?)?;
    if imprint.take(OCTET_STRING)? != algorithm.digest(&[signer.signature]) {
        return None;
    }
    info.take(INTEGER)?;
    info.time()
}

/// All who are trusted.
fn trusted<'a>(certificates: &'a [Certificate<'a>], rules: &[&'a Rule], left: &mut u32) -> Vec<Trusted<'a>> {
    let by_rule =
        |rule: &&'a Rule| Trusted { subject: rule.subject, key: rule.key(), uses: rule.uses, certificate: None };
    let mut all: Vec<Trusted<'a>> = rules.iter().map(by_rule).collect();
    let with = |one: &'a Certificate<'a>, uses| Trusted {
        subject: digest(one.subject),
        key: one.key,
        uses,
        certificate: Some(one),
    };
    let (named, mut rest): (Vec<_>, Vec<_>) = certificates
        .iter()
        .map(|one| (one, Uses::of(one)))
        .partition(|(one, uses)| rules.iter().any(|rule| rule.trusts(one, *uses)));
    all.extend(named.into_iter().map(|(one, uses)| with(one, uses)));
    loop {
        let signed = rest.iter().enumerate().find_map(|(at, (one, uses))| Some((at, above(&all, one, *uses, left)?)));
        let Some((at, parent)) = signed else { return all };
        let (one, uses) = rest.remove(at);
        let uses = Uses { code: uses.code && parent.code, time: uses.time && parent.time, ..uses };
        all.push(with(one, uses));
    }
}

/// Uses that a trusted signer of this certificate allows; best all that it may sign itself.
fn above(all: &[Trusted<'_>], certificate: &Certificate<'_>, uses: Uses, left: &mut u32) -> Option<Uses> {
    let issuer = digest(certificate.issuer);
    let shared = |other: &Uses| u8::from(uses.code && other.code) + u8::from(uses.time && other.time);
    let mut best: Option<Uses> = None;
    for one in all.iter().filter(|one| one.uses.certificates && one.subject == issuer) {
        *left = left.checked_sub(1)?;
        if !certificate.is_signed_by(&one.key) {
            continue;
        }
        if uses.code <= one.uses.code && uses.time <= one.uses.time {
            return Some(one.uses);
        }
        if shared(&one.uses) > best.as_ref().map_or(0, shared) {
            best = Some(one.uses);
        }
    }
    best
}

/// The trusted certificate that signed, if it may be used so.
fn by<'a>(all: &[Trusted<'a>], signer: &Signer<'_>, may: fn(&Uses) -> bool) -> Option<&'a Certificate<'a>> {
    let certificates = all.iter().filter(|one| may(&one.uses)).filter_map(|one| one.certificate);
    let mut named = certificates.filter(|one| one.issuer == signer.issuer && one.serial == signer.serial);
    named.find(|one| signer.is_by(one))
}

/// When a signature was countersigned.
fn stamped(all: &[Trusted<'_>], counter: &Signer<'_>, signer: &Signer<'_>) -> Option<i64> {
    let fits = matches!(counter.content_type, DATA | TIMESTAMP)
        && counter.message_digest == counter.algorithm.digest(&[signer.signature]);
    by(all, counter, |uses| uses.time).filter(|_| fits)?;
    counter.signing_time
}
