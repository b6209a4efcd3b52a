//! Signed messages (PKCS #7 and CMS, RFC 5652) with one signer, who has signed attributes.

use super::certificate::Certificate;
use super::der::{Der, Element, INTEGER, OBJECT, OCTET_STRING, SEQUENCE, SET, context};
use super::rsa::{Algorithm, RSA};

const SIGNED_DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";
pub(crate) const DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
const CONTENT_TYPE: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03";
const MESSAGE_DIGEST: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04";
const SIGNING_TIME: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x05";

/// A signature as an attribute of another.
const NESTED: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x02\x04\x01";

/// The most certificates in one message.
const CERTIFICATES_MAX: usize = 64;
/// The most messages that are read, one within the other.
const MESSAGES_MAX: usize = 16;

/// A message.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) content_type: &'a [u8],
    /// Signed content, if the message has it.
    pub(crate) content: Option<Element<'a>>,
    /// Certificates that can be read.
    pub(crate) certificates: Vec<Certificate<'a>>,
    /// Signer, if it can be read.
    pub(crate) signer: Option<Signer<'a>>,
}

/// Signer of a message, with the signed attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signer<'a> {
    pub(crate) issuer: &'a [u8],
    pub(crate) serial: &'a [u8],
    pub(crate) algorithm: Algorithm,
    attributes: Element<'a>,
    pub(crate) content_type: &'a [u8],
    pub(crate) message_digest: &'a [u8],
    pub(crate) signing_time: Option<i64>,
    pub(crate) signature: &'a [u8],
    /// Attributes that nobody signed.
    pub(crate) unsigned: Der<'a>,
}

impl<'a> Message<'a> {
    /// Reads a message; what is behind it does not matter.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        let mut outer = Der(bytes).enter(SEQUENCE)?;
        if outer.take(OBJECT)? != SIGNED_DATA {
            return None;
        }
        let mut inner = outer.enter(context(0))?.enter(SEQUENCE)?;
        inner.take(INTEGER)?;
        inner.take(SET)?;
        let mut content = inner.enter(SEQUENCE)?;
        let content_type = content.take(OBJECT)?;
        let content = content.enter(context(0)).and_then(|mut content| content.next());
        let certificates = inner.take_if(context(0)).map(|all| certificates(Der(all.content))).unwrap_or_default();
        inner.take_if(context(1));
        let signer = inner.enter(SET).and_then(Signer::only);
        Some(Message { content_type, content, certificates, signer })
    }

    /// Reads a message and those that are attributes of it, as programs have that are signed by two digests; one that cannot
    /// be read is nothing.
    pub(crate) fn read_with_nested(bytes: &'a [u8]) -> Vec<Option<Message<'a>>> {
        let (mut waiting, mut all) = (vec![bytes], Vec::new());
        while let Some(bytes) = waiting.pop() {
            let message = Message::read(bytes);
            let signer = message.as_ref().and_then(|message| message.signer);
            let mut nested = signer.and_then(|signer| attribute(signer.unsigned.0, NESTED));
            all.push(message);
            while let Some(element) = nested.as_mut().and_then(Der::next) {
                if all.len() + waiting.len() < MESSAGES_MAX {
                    waiting.push(element.whole);
                }
            }
        }
        all
    }

    /// The certificate of who signed it.
    pub(crate) fn signers_certificate(&self) -> Option<&Certificate<'a>> {
        let signer = self.signer.as_ref()?;
        self.certificates.iter().find(|one| one.issuer == signer.issuer && one.serial == signer.serial)
    }
}

fn certificates(mut all: Der<'_>) -> Vec<Certificate<'_>> {
    let mut certificates: Vec<Certificate<'_>> = Vec::new();
    while let Some(element) = all.next() {
        let certificate = Certificate::read(element.whole).filter(|one| !certificates.contains(one));
        certificates.extend(certificate);
        if certificates.len() == CERTIFICATES_MAX {
            break;
        }
    }
    certificates
}

impl<'a> Signer<'a> {
    /// The one of a set.
    fn only(mut set: Der<'a>) -> Option<Signer<'a>> {
        let signer = Signer::read(set.enter(SEQUENCE)?)?;
        set.is_empty().then_some(signer)
    }

    /// Reads what is in the sequence of a signer.
    pub(crate) fn read(mut der: Der<'a>) -> Option<Signer<'a>> {
        der.take(INTEGER)?;
        let mut name = der.enter(SEQUENCE)?;
        let (issuer, serial) = (name.take(SEQUENCE)?, name.take(INTEGER)?);
        let algorithm = Algorithm::of(der.enter(SEQUENCE)?.take(OBJECT)?)?;
        let attributes = der.next().filter(|element| element.tag == context(0))?;
        let cipher = der.enter(SEQUENCE)?.take(OBJECT)?;
        if cipher != RSA && Algorithm::of_signature(cipher) != Some(algorithm) {
            return None;
        }
        let signature = der.take(OCTET_STRING)?;
        let unsigned = Der(der.take_if(context(1)).map_or(&[][..], |all| all.content));
        let content_type = attribute(attributes.content, CONTENT_TYPE)?.take(OBJECT)?;
        let message_digest = attribute(attributes.content, MESSAGE_DIGEST)?.take(OCTET_STRING)?;
        let signing_time = attribute(attributes.content, SIGNING_TIME).and_then(|mut values| values.time());
        Some(Signer {
            issuer,
            serial,
            algorithm,
            attributes,
            content_type,
            message_digest,
            signing_time,
            signature,
            unsigned,
        })
    }

    /// The digest of the attributes: they are signed as a set, whatever stands before them in the message.
    pub(crate) fn attributes_digest(&self) -> Vec<u8> {
        self.algorithm.digest(&[&[SET], &self.attributes.whole[1..]])
    }

    /// Whether the key of this certificate signed the attributes.
    pub(crate) fn is_by(&self, certificate: &Certificate<'_>) -> bool {
        certificate.key.signs(self.algorithm, &self.attributes_digest(), self.signature)
    }
}

/// The values of the one attribute of this type; nothing if there are two of them.
pub(crate) fn attribute<'a>(attributes: &'a [u8], wanted: &[u8]) -> Option<Der<'a>> {
    let (mut all, mut found) = (Der(attributes), None);
    while !all.is_empty() {
        let mut one = all.enter(SEQUENCE)?;
        if one.take(OBJECT)? == wanted && found.replace(one.enter(SET)?).is_some() {
            return None;
        }
    }
    found
}
