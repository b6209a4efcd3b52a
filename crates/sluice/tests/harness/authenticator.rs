//! An authenticator of passkeys, with the browser before it: answers to the pages that ask for one.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

use super::base64;
use super::browser::Page;

/// The user is present, and verified; a credential follows.
const PRESENT: u8 = 1;
const VERIFIED: u8 = 4;
const ATTESTED: u8 = 64;

/// An authenticator with one key, for pages of one site.
pub struct Authenticator {
    key: EcdsaKeyPair,
    /// The site, as a browser names it.
    pub origin: String,
    /// The name of the user who has registered it.
    user: String,
    pub counter: u32,
    /// Whether it verifies the user.
    pub verifies: bool,
}

impl Authenticator {
    /// A new key, for the site with this authority.
    pub fn new(authority: &str) -> Authenticator {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref()).unwrap();
        let origin = format!("https://{authority}");
        Authenticator { key, origin, user: String::new(), counter: 0, verifies: true }
    }

    /// The fields of the form that makes a passkey.
    pub fn create(&mut self, page: &Page) -> String {
        self.user = page.quoted("data-user=\"");
        let public = self.key.public_key().as_ref();
        let (x, y) = public[1..].split_at(32);
        let cose = [b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20", x, b"\x22\x58\x20", y].concat();
        let data = [&self.data(ATTESTED)[..], &[0; 16], &[0, 16], self.id(), &cose].concat();
        let object =
            [b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58", &[u8::try_from(data.len()).unwrap()][..], &data]
                .concat();
        format!("client={}&attestation={}", encode_url(&self.client(page, "webauthn.create")), encode_url(&object))
    }

    /// The fields of the form that asks for it.
    pub fn get(&mut self, page: &Page) -> String {
        self.counter += 1;
        let (client, data) = (self.client(page, "webauthn.get"), self.data(0));
        let message = [&data[..], digest(&SHA256, &client).as_ref()].concat();
        let signature = self.key.sign(&SystemRandom::new(), &message).unwrap();
        let fields = [
            ("credential", self.id()),
            ("client", &client),
            ("data", &data),
            ("signature", signature.as_ref()),
            ("user", self.user.as_bytes()),
        ];
        fields.map(|(name, value)| format!("{name}={}", encode_url(value))).join("&")
    }

    /// The identifier of its credential.
    fn id(&self) -> &[u8] {
        &self.key.public_key().as_ref()[1..17]
    }

    fn client(&self, page: &Page, kind: &str) -> Vec<u8> {
        let (challenge, origin) = (page.quoted("data-challenge=\""), &self.origin);
        format!(r#"{{"type":"{kind}","challenge":"{challenge}","origin":"{origin}","crossOrigin":false}}"#).into_bytes()
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let party = self.origin.trim_start_matches("https://").split(':').next().unwrap();
        let flags = flags | PRESENT | if self.verifies { VERIFIED } else { 0 };
        [digest(&SHA256, party.as_bytes()).as_ref(), &[flags], &self.counter.to_be_bytes()].concat()
    }
}

/// Base64 for URLs, without padding.
fn encode_url(bytes: &[u8]) -> String {
    base64(bytes).split_whitespace().collect::<String>().trim_end_matches('=').replace('+', "-").replace('/', "_")
}
