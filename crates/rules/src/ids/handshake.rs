//! TLS handshakes for rules: the client's offer with its fingerprints JA3 and JA4, the server's choice with JA3S, and the
//! certificates that are sent in the clear.
//!
//! Fingerprints are those of the published texts (JA3: BSD, JA4 for TLS clients: BSD); values that clients make up (RFC 8701) are left
//! out. The bodies of messages come whole, and are as long as their host lets them be.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt::Write;

use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::buffer::Buffer;

/// Certificates of one chain.
const CHAIN_MAX: usize = 32;

/// A client's first message.
#[derive(Debug, Default)]
pub(super) struct Offer {
    version: u16,
    random: Vec<u8>,
    ciphers: Vec<u16>,
    extensions: Vec<u16>,
    groups: Vec<u16>,
    formats: Vec<u16>,
    schemes: Vec<u16>,
    versions: Vec<u16>,
    /// The first protocol of the application that it names.
    protocol: Vec<u8>,
    pub server_name: Option<Vec<u8>>,
}

impl Offer {
    /// Reads the body of a ClientHello; none where it is none.
    pub fn read(body: &[u8]) -> Option<Offer> {
        let mut rest = Bytes(body);
        let mut offer = Offer { version: rest.number()?, ..Offer::default() };
        offer.random = rest.take(32)?.to_vec();
        rest.vector(1)?;
        offer.ciphers = numbers(rest.vector(2)?);
        rest.vector(1)?;
        let mut extensions = Bytes(rest.vector(2).unwrap_or_default());
        while let Some(kind) = extensions.number() {
            let content = extensions.vector(2)?;
            offer.extension(kind, content);
        }
        Some(offer)
    }

    fn extension(&mut self, kind: u16, content: &[u8]) {
        self.extensions.push(kind);
        let list = |length_bytes| Bytes(content).vector(length_bytes).unwrap_or_default();
        match kind {
            0 => {
                let name = Bytes(list(2).get(1..).unwrap_or_default()).vector(2);
                self.server_name = self.server_name.take().or(name.map(<[u8]>::to_vec));
            }
            10 => self.groups = numbers(list(2)),
            11 => self.formats = list(1).iter().map(|&format| u16::from(format)).collect(),
            13 => self.schemes = numbers(list(2)),
            16 => self.protocol = Bytes(list(2)).vector(1).unwrap_or_default().to_vec(),
            43 => self.versions = numbers(list(1)),
            _ => {}
        }
    }

    /// JA3.
    pub fn ja3(&self) -> Fingerprint {
        let lists = [&self.ciphers, &self.extensions, &self.groups, &self.formats];
        let lists = lists.map(|list| list.iter().copied().filter(is_meant).map(|one| one.to_string()));
        let lists = lists.map(|list| list.collect::<Vec<_>>().join("-"));
        Fingerprint::of(format!("{},{}", self.version, lists.join(",")))
    }

    /// The highest version that it offers.
    fn version_max(&self) -> u16 {
        self.versions.iter().copied().filter(is_meant).max().unwrap_or(self.version)
    }

    /// JA4 of a client over TCP.
    pub fn ja4(&self) -> String {
        let version = match self.version_max() {
            0x304 => "13",
            0x303 => "12",
            0x302 => "11",
            0x301 => "10",
            0x300 => "s3",
            2 => "s2",
            _ => "00",
        };
        let [ciphers, mut extensions] = [&self.ciphers, &self.extensions].map(|list| meant(list));
        let counts = [ciphers.len().min(99), extensions.len().min(99)];
        let name = if self.extensions.contains(&0) { 'd' } else { 'i' };
        extensions.retain(|kind| ![0, 16].contains(kind));
        let mut named = sorted(&extensions);
        if !self.schemes.is_empty() && !named.is_empty() {
            named = format!("{named}_{}", hexadecimal(&meant(&self.schemes)));
        }
        let ends = self.protocol_ends();
        format!("t{version}{name}{:02}{:02}{ends}_{}_{}", counts[0], counts[1], short(&sorted(&ciphers)), short(&named))
    }

    /// The first and the last letter of the protocol, or of its hexadecimal digits.
    fn protocol_ends(&self) -> String {
        let (Some(&first), Some(&last)) = (self.protocol.first(), self.protocol.last()) else { return "00".into() };
        if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
            return [first, last].map(char::from).iter().collect();
        }
        let digits = text::hex::encode(&self.protocol);
        digits.chars().take(1).chain(digits.chars().last()).collect()
    }

    /// Fills the buffers of a client.
    pub fn fill(&self, fill: &mut dyn FnMut(Buffer, &[u8])) {
        if let Some(name) = &self.server_name {
            fill(Buffer::TlsSni, name);
        }
        let ja3 = self.ja3();
        fill(Buffer::Ja3, ja3.hash.as_bytes());
        fill(Buffer::Ja3String, ja3.text.as_bytes());
        fill(Buffer::Ja4, self.ja4().as_bytes());
        fill(Buffer::TlsRandom, &self.random);
        fill_facts(self.version_max(), "client_hello", fill);
    }
}

/// A server's choice.
pub(super) struct Choice {
    pub ja3s: Fingerprint,
    pub version: u16,
    random: Vec<u8>,
}

/// Reads a ServerHello.
pub(super) fn choice(body: &[u8]) -> Option<Choice> {
    let mut rest = Bytes(body);
    let version = rest.number()?;
    let random = rest.take(32)?.to_vec();
    rest.vector(1)?;
    let cipher = rest.number()?;
    rest.take(1)?;
    let (mut extensions, mut kinds, mut chosen) = (Bytes(rest.vector(2).unwrap_or_default()), Vec::new(), version);
    while let Some(kind) = extensions.number() {
        let content = extensions.vector(2)?;
        if kind == 43 {
            chosen = Bytes(content).number().unwrap_or(version);
        }
        kinds.push(kind.to_string());
    }
    let ja3s = Fingerprint::of(format!("{version},{cipher},{}", kinds.join("-")));
    Some(Choice { ja3s, version: chosen, random })
}

/// Fills the buffers of a server's choice.
pub(super) fn fill_choice(choice: &Choice, fill: &mut dyn FnMut(Buffer, &[u8])) {
    fill(Buffer::Ja3s, choice.ja3s.hash.as_bytes());
    fill(Buffer::Ja3sString, choice.ja3s.text.as_bytes());
    fill(Buffer::TlsRandom, &choice.random);
    fill_facts(choice.version, "server_hello", fill);
}

/// Fills facts: a version, and the message that has come.
fn fill_facts(version: u16, state: &str, fill: &mut dyn FnMut(Buffer, &[u8])) {
    fill(Buffer::TlsFact, format!("version {version:x}").as_bytes());
    fill(Buffer::TlsFact, format!("state {state}").as_bytes());
}

/// The number of a version as `tls.version` and `ssl_version` name it, in hexadecimal digits as in facts.
pub(super) fn version_named(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let is_named = |known: &str| known == name || known.strip_prefix("tls") == Some(&name);
    VERSIONS.iter().find(|(known, _)| is_named(known)).map(|(_, number)| *number)
}

/// The versions by their names, with their numbers.
pub(super) const VERSIONS: &[(&str, &str)] =
    &[("sslv2", "2"), ("sslv3", "300"), ("tls1.0", "301"), ("tls1.1", "302"), ("tls1.2", "303"), ("tls1.3", "304")];

/// JA3 or JA3S.
#[derive(Debug, Clone, Default)]
pub struct Fingerprint {
    /// The numbers.
    pub text: String,
    /// Their MD5, in hexadecimal digits.
    pub hash: String,
}

impl Fingerprint {
    fn of(text: String) -> Fingerprint {
        Fingerprint { hash: text::hex::encode(&digest::md5::digest(text.as_bytes())), text }
    }
}

/// A server's certificate in words.
#[derive(Debug, Clone, Default)]
pub struct Certificate {
    /// Its subject.
    pub subject: String,
    /// Its issuer.
    pub issuer: String,
    /// Its serial number, in bytes with colons.
    pub serial: String,
    /// Its SHA-1, in bytes with colons.
    pub fingerprint: String,
    /// The time from which it holds, in seconds since 1970.
    pub not_before: i64,
    /// The time until which it holds.
    pub not_after: i64,
    /// The other names that it is for: hosts, addresses, mailboxes, URIs.
    pub names: Vec<String>,
}

/// Names of a certificate besides its subject.
const NAMES_MAX: usize = 256;

/// The names of a certificate besides its subject (RFC 5280, section 4.2.1.6).
fn other_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => Some((*name).into()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| Ipv4Addr::from(bytes).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| Ipv6Addr::from(bytes).to_string()),
        },
        _ => None,
    };
    extension.value.general_names.iter().filter_map(name).take(NAMES_MAX).collect()
}

impl Certificate {
    /// Reads one; none where it is none.
    pub fn read(bytes: &[u8]) -> Option<Certificate> {
        let (_, certificate) = X509Certificate::from_der(bytes).ok()?;
        let colons = |bytes: &[u8]| {
            let mut text = String::new();
            bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}:"));
            text.pop();
            text
        };
        Some(Certificate {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            serial: colons(certificate.raw_serial()).to_uppercase(),
            fingerprint: colons(&digest::sha1::digest(bytes)),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            names: other_names(&certificate),
        })
    }
}

/// Reads a message with certificates as it was before TLS 1.3, and fills their buffers: all certificates, and what the first says.
pub(super) fn certificates(body: &[u8], seconds: i64, fill: &mut dyn FnMut(Buffer, &[u8])) -> Option<Certificate> {
    let mut chain = Bytes(Bytes(body).vector(3)?);
    let first = Bytes(chain.0).vector(3)?;
    let mut count = 0;
    while count < CHAIN_MAX
        && let Some(bytes) = chain.vector(3)
    {
        fill(Buffer::TlsCerts, bytes);
        count += 1;
    }
    fill(Buffer::TlsChain, &vec![0; count]);
    let certificate = Certificate::read(first)?;
    fill(Buffer::TlsSubject, certificate.subject.as_bytes());
    fill(Buffer::TlsIssuer, certificate.issuer.as_bytes());
    fill(Buffer::TlsSerial, certificate.serial.as_bytes());
    fill(Buffer::TlsFingerprint, certificate.fingerprint.as_bytes());
    certificate.names.iter().for_each(|name| fill(Buffer::TlsAltName, name.as_bytes()));
    let is_valid = (certificate.not_before..=certificate.not_after).contains(&seconds);
    let is_expired = seconds > certificate.not_after;
    for (holds, fact) in [(is_valid, "certificate valid"), (is_expired, "certificate expired")] {
        if holds {
            fill(Buffer::TlsFact, fact.as_bytes());
        }
    }
    Some(certificate)
}

/// Whether a value is no made-up one (GREASE).
fn is_meant(value: &u16) -> bool {
    value & 0x0f0f != 0x0a0a
}

fn meant(values: &[u16]) -> Vec<u16> {
    values.iter().copied().filter(is_meant).collect()
}

fn sorted(values: &[u16]) -> String {
    let mut values = values.to_vec();
    values.sort_unstable();
    hexadecimal(&values)
}

fn hexadecimal(values: &[u16]) -> String {
    values.iter().map(|value| format!("{value:04x}")).collect::<Vec<_>>().join(",")
}

/// The first twelve digits of a SHA-256; zeros for nothing.
fn short(text: &str) -> String {
    if text.is_empty() {
        return "0".repeat(12);
    }
    text::hex::encode(&digest::sha256::digest(text.as_bytes()))[..12].into()
}

fn numbers(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
}

/// Bytes that are left to read.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(*self.take(2)?.first_chunk()?))
    }

    /// Bytes behind their length, which has so many bytes itself.
    fn vector(&mut self, length_bytes: usize) -> Option<&'b [u8]> {
        let length = self.take(length_bytes)?.iter().fold(0, |length: usize, &byte| length << 8 | usize::from(byte));
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(length_bytes: usize, content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32).to_be_bytes()[4 - length_bytes..], content].concat()
    }

    fn list(values: &[u16]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_be_bytes()).collect()
    }

    /// The body of a ClientHello; extensions that are read have these contents, others none.
    fn hello(version: u16, ciphers: &[u16], extensions: &[u16], groups: &[u16], schemes: &[u16]) -> Vec<u8> {
        let content = |kind: u16| match kind {
            0 => vector(2, &[&[0][..], &vector(2, b"A.test")].concat()),
            10 => vector(2, &list(groups)),
            11 => vector(1, &[0]),
            13 => vector(2, &list(schemes)),
            16 => vector(2, &[vector(1, b"h2"), vector(1, b"http/1.1")].concat()),
            43 => vector(1, &list(&[0x2a2a, 0x304, 0x303])),
            _ => Vec::new(),
        };
        let extensions: Vec<u8> =
            extensions.iter().flat_map(|&kind| [list(&[kind]), vector(2, &content(kind))].concat()).collect();
        let head =
            [&list(&[version])[..], &[7; 32], &vector(1, &[9; 32]), &vector(2, &list(ciphers)), &[1, 0]].concat();
        [head, vector(2, &extensions)].concat()
    }

    #[test]
    fn fingerprints_are_those_of_the_published_examples() {
        let ciphers = [47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4];
        let offer = Offer::read(&hello(769, &ciphers, &[0, 10, 11], &[23, 24, 25], &[])).expect("an offer");
        let text = "769,47-53-5-10-49161-49162-49171-49172-50-56-19-4,0-10-11,23-24-25,0";
        assert_eq!((&*offer.ja3().text, &*offer.ja3().hash), (text, "ada70206e40642a3e4461f35503241d5"));
        assert_eq!(offer.server_name.as_deref(), Some(&b"A.test"[..]));

        let ciphers = [
            0x2a2a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x9c, 0x9d,
            0x2f, 0x35,
        ];
        let extensions = [0x1a1a, 0, 0x17, 0xff01, 10, 11, 0x23, 16, 5, 13, 0x12, 0x33, 0x2d, 43, 0x1b, 0x4469, 0x15];
        let schemes = [0x403, 0x804, 0x401, 0x503, 0x805, 0x501, 0x806, 0x601];
        let offer = Offer::read(&hello(0x303, &ciphers, &extensions, &[0x1a1a, 29], &schemes)).expect("an offer");
        assert_eq!(offer.ja4(), "t13d1516h2_8daaf6152771_e5627efa2ab1");
        assert!(offer.ja3().text.starts_with("771,4865-4866-"), "{:?}", offer.ja3());
    }

    #[test]
    fn broken_messages_are_none() {
        let whole = hello(0x303, &[0x1301], &[0, 10, 16], &[29], &[]);
        (0..whole.len()).for_each(|end| _ = Offer::read(&whole[..end]).map(|offer| offer.ja4()));
        assert!(Offer::read(&whole[..40]).is_none() && choice(&whole[..30]).is_none());
        assert!(certificates(&vector(3, &vector(3, b"no DER")), 0, &mut |_, _| {}).is_none());
        let empty = Offer::read(&hello(0x301, &[], &[], &[], &[])).expect("an offer");
        assert_eq!(empty.ja4(), "t10i000000_000000000000_000000000000");
    }

    #[test]
    fn names_of_certificates_fill_a_buffer_each() {
        let text = "MIIByzCCAXGgAwIBAgIUAa/UckCASUH9DTF7h8Ghe0koW6QwCgYIKoZIzj0EAwIwETEPMA0GA1UEAwwGYS50ZXN0MB4XDTI2MTEz\
            MDIyMDQ1NVoXDTM2MTEyNzIyMDQ1NVowETEPMA0GA1UEAwwGYS50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE2QNOjR7g\
            wRtVw2odGeJ11PlQjDWP91lIZ+0jmzsZjNL62nE0OYtM8ZDS0M8G61M6qxfahXobJ969XhkFwgOWVKOBpjCBozAdBgNVHQ4EFgQU\
            smYe/SuEJp7mKEb/pstd2Eu+EZUwHwYDVR0jBBgwFoAUsmYe/SuEJp7mKEb/pstd2Eu+EZUwDwYDVR0TAQH/BAUwAwEB/zBQBgNV\
            HREESTBHggZhLnRlc3SCCnd3dy5iLnRlc3SHBMAAAgGHECABDbgAAAAAAAAAAAAAAAGBCW1lQGMudGVzdIYOaHR0cDovL2QudGVz\
            dC8wCgYIKoZIzj0EAwIDSAAwRQIgFJ1qsWJJqSxKcC5s/ALCdgJMvf5QnVhH9FrLdZJRju4CIQD020NyEkM0K4R1ONItqYMwxfbc\
            I1wUBUgZur0z4QdCBg==";
        let certificate = text::base64::decode_loosely(text);
        let body = vector(3, &vector(3, &certificate));
        let mut names = Vec::new();
        let mut fill = |buffer: Buffer, bytes: &[u8]| {
            if buffer == Buffer::TlsAltName {
                names.push(String::from_utf8_lossy(bytes).into_owned());
            }
        };
        assert_eq!(certificates(&body, 0, &mut fill).expect("a certificate").subject, "CN=a.test");
        assert_eq!(names, ["a.test", "www.b.test", "192.0.2.1", "2001:db8::1", "me@c.test", "http://d.test/"]);
    }
}
