//! Catalogues (`.cat`): signed lists of the digests of programs, "Certificate Trust Lists" of Microsoft.
//!
//! ```text
//!  SEQUENCE { catalogue }  list id  date  SEQUENCE { member }  SEQUENCE OF
//!      SEQUENCE { name, SET OF
//!          SEQUENCE { SPC_INDIRECT_DATA, SET { SEQUENCE {
//!              SEQUENCE { what is digested, ... }, SEQUENCE { SEQUENCE { algorithm }, digest } } } } }
//! ```
//! Digests of programs by SHA-1 and SHA-256 are read; those of cabinets and other things mean nothing here.

use super::der::{Der, OBJECT, OCTET_STRING, SEQUENCE, SET, UTC_TIME};
use super::message::Message;
use super::rsa::Algorithm;
use super::rule::Rule;
use super::trust::{VERIFICATIONS_MAX, vouched};
use crate::hashes::AnyDigest;

const TRUST_LIST: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x0a\x01";
const CATALOGUE: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x0c\x01\x01";
pub(crate) const INDIRECT_DATA: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x02\x01\x04";
const PE_IMAGE: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x02\x01\x0f";

/// The digests of programs that a catalogue lists, if rules vouch for it.
///
/// # Errors
/// If they do not, or it cannot be read.
pub(crate) fn listed(bytes: &[u8], rules: &[&Rule], now: Option<i64>) -> Result<Vec<AnyDigest>, &'static str> {
    let message = Message::read(bytes).ok_or("not a catalogue that can be read")?;
    let mut left = VERIFICATIONS_MAX;
    let content = vouched(&message, TRUST_LIST, rules, now, &mut left)
        .ok_or("a catalogue that no certificate rule vouches for")?;
    digests(content).ok_or("not a catalogue that can be read")
}

fn digests(content: &[u8]) -> Option<Vec<AnyDigest>> {
    let mut list = Der(content);
    if list.enter(SEQUENCE)?.take(OBJECT)? != CATALOGUE {
        return None;
    }
    list.take(OCTET_STRING)?;
    list.take(UTC_TIME)?;
    list.take(SEQUENCE)?;
    let (mut members, mut digests) = (list.enter(SEQUENCE)?, Vec::new());
    while !members.is_empty() {
        let mut member = members.enter(SEQUENCE)?;
        member.take(OCTET_STRING)?;
        let mut attributes = member.enter(SET)?;
        while !attributes.is_empty() {
            let mut attribute = attributes.enter(SEQUENCE)?;
            if attribute.take(OBJECT)? == INDIRECT_DATA {
                digests.extend(program(attribute.enter(SET)?.take(SEQUENCE)?)?);
            }
        }
    }
    Some(digests)
}

/// The digest of a program; nothing of other things.
fn program(content: &[u8]) -> Option<Option<AnyDigest>> {
    let (algorithm, digest) = match indirect(content)? {
        (PE_IMAGE, algorithm, digest) => (algorithm, digest),
        _ => return Some(None),
    };
    Some(match algorithm {
        Algorithm::Sha1 => digest.try_into().ok().map(AnyDigest::Sha1),
        Algorithm::Sha256 => digest.try_into().ok().map(AnyDigest::Sha256),
        _ => None,
    })
}

/// The digest that a program's own signature is of.
pub(crate) fn signed_digest(content: &[u8]) -> Option<(Algorithm, &[u8])> {
    indirect(content).filter(|(what, ..)| *what == PE_IMAGE).map(|(_, algorithm, digest)| (algorithm, digest))
}

/// Digested bytes of a message, with their algorithm and digest.
fn indirect(content: &[u8]) -> Option<(&[u8], Algorithm, &[u8])> {
    let mut data = Der(content);
    let what = data.enter(SEQUENCE)?.take(OBJECT)?;
    let mut digest = data.enter(SEQUENCE)?;
    let algorithm = Algorithm::of(digest.enter(SEQUENCE)?.take(OBJECT)?)?;
    Some((what, algorithm, digest.take(OCTET_STRING)?))
}
