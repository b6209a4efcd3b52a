//! Passkeys and security keys (Web Authentication, level 3): what a browser's authenticator answers, checked.
//!
//! ```text
//!  registration ─ client data ─ attestation object ─ authenticator data ─► identifier, public key ─► Passkey
//!  login ──────── client data ─ authenticator data ─ signature ──────────► counter
//! ```
//! Checked are kind, challenge and origin of the client data, the relying party in the authenticator data, the user's presence, and in a
//! login the signature and a counter that grows, if there is one. Signatures are ES256, EdDSA (Ed25519) and RS256. No
//! attestation is asked for, and the statement of one is read over: the make of an authenticator counts for nothing here. Extensions are
//! read over, too.
//!
//! As text a passkey is a line: `ID CREDENTIAL PARTY PUBLIC COUNTER MADE USED NAME`, bytes in Base64 for URLs.
//!
//! It knows no clock and no store. Bounds: [`PASSKEYS_MAX`] of one user, names of [`NAME_CHARACTERS_MAX`], 4 KiB of
//! client data, 16 KiB of each other field.

mod base64;
mod cbor;
mod challenge;
mod client;
mod data;
mod public;

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

pub use challenge::Challenges;
pub use client::Origin;
use data::Data;
use public::Public;

/// Passkeys of one user.
pub const PASSKEYS_MAX: usize = 10;

/// Characters of a name.
pub const NAME_CHARACTERS_MAX: usize = 60;

/// Bytes of client data.
const CLIENT_BYTES_MAX: usize = 4 << 10;

/// Bytes of an attestation object, of authenticator data, and of a signature.
const FIELD_BYTES_MAX: usize = 16 << 10;

/// A passkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passkey {
    /// Its number among those of its user.
    pub id: u32,
    /// The name that its user has given it.
    pub name: String,
    /// When it was made, seconds since 1970.
    pub made: i64,
    /// When it was used last, if it was.
    pub used: Option<i64>,
    credential: Credential,
}

/// A credential of an authenticator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    id: Vec<u8>,
    party: String,
    public: Vec<u8>,
    counter: u32,
}

/// A request to an authenticator, as it was made.
pub struct Ceremony<'a> {
    /// The challenges of this server.
    pub challenges: &'a Challenges,
    /// The purpose that the challenge was made for.
    pub purpose: &'a str,
    /// The site that was asked.
    pub origin: &'a Origin,
    /// The time, seconds since 1970.
    pub now: i64,
}

/// The answer of an authenticator to a login: fields in Base64 for URLs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Assertion<'a> {
    /// The client data, JSON.
    pub client: &'a str,
    /// The authenticator data.
    pub data: &'a str,
    /// The signature.
    pub signature: &'a str,
}

/// Why an answer of an authenticator does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A field is not what it should be, or is too long.
    Unreadable,
    /// It answers another kind of request.
    Kind,
    /// The challenge is of another server or purpose, too old, or used.
    Challenge,
    /// A page of another site has asked.
    Origin,
    /// The credential is of another relying party.
    Party,
    /// The user was not present.
    Absent,
    /// The authenticator has not verified who the user is.
    Unverified,
    /// The public key is of another algorithm.
    Algorithm,
    /// The credential is not known.
    Unknown,
    /// The signature is wrong.
    Signature,
    /// The counter has not grown: the authenticator may have been copied.
    Counter,
}

impl Ceremony<'_> {
    /// The credential of a registration.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn register(&self, client: &str, attestation: &str) -> Result<Credential, Refused> {
        let client = decoded(client, CLIENT_BYTES_MAX)?;
        let challenge = client::challenge(&client, "webauthn.create", self.origin)?;
        let object = decoded(attestation, FIELD_BYTES_MAX)?;
        let data = self.data(data::of_attestation(&object)?)?;
        let (id, public) = data.credential.ok_or(Refused::Unreadable)?;
        let party = self.origin.party().to_owned();
        let credential = Credential { id: id.to_vec(), party, public: public.to_vec(), counter: data.counter };
        self.take(&challenge).map(|()| credential)
    }

    /// Checks a login by a passkey; with `is_alone` the authenticator has to have verified who the user is. Returns the counter, which
    /// the caller [keeps](Passkey::note).
    ///
    /// # Errors
    /// Why it does not count.
    pub fn check(&self, passkey: &Passkey, assertion: &Assertion<'_>, is_alone: bool) -> Result<u32, Refused> {
        let credential = &passkey.credential;
        if credential.party != self.origin.party() {
            return Err(Refused::Party);
        }
        let client = decoded(assertion.client, CLIENT_BYTES_MAX)?;
        let challenge = client::challenge(&client, "webauthn.get", self.origin)?;
        let signed = decoded(assertion.data, FIELD_BYTES_MAX)?;
        let data = self.data(&signed)?;
        if is_alone && !data.is_verified() {
            return Err(Refused::Unverified);
        }
        let message = [&signed[..], &Sha256::digest(&client)].concat();
        let (public, _) = Public::read(&credential.public)?;
        if !public.has_signed(&message, &decoded(assertion.signature, FIELD_BYTES_MAX)?) {
            return Err(Refused::Signature);
        }
        if !credential.precedes(data.counter) {
            return Err(Refused::Counter);
        }
        self.take(&challenge).map(|()| data.counter)
    }

    /// Authenticator data for this site.
    fn data<'d>(&self, text: &'d [u8]) -> Result<Data<'d>, Refused> {
        let data = Data::read(text)?;
        match (data.party[..] == Sha256::digest(self.origin.party())[..], data.is_present()) {
            (false, _) => Err(Refused::Party),
            (true, false) => Err(Refused::Absent),
            (true, true) => Ok(data),
        }
    }

    /// Uses the challenge up, once all else is right.
    fn take(&self, challenge: &str) -> Result<(), Refused> {
        match self.challenges.take(challenge, self.purpose, self.now) {
            true => Ok(()),
            false => Err(Refused::Challenge),
        }
    }
}

impl Credential {
    /// Whether a counter may follow the one of now. Passkeys that are on several devices count nothing: theirs is always 0.
    fn precedes(&self, counter: u32) -> bool {
        counter > self.counter || (counter == 0 && self.counter == 0)
    }
}

impl Passkey {
    /// The identifier of its credential, as pages have it.
    pub fn credential(&self) -> String {
        base64::encode(&self.credential.id)
    }

    /// Whether it is of this site.
    pub fn is_of(&self, origin: &Origin) -> bool {
        self.credential.party == origin.party()
    }

    /// Notes a login with a counter; false if another one has come in between.
    pub fn note(&mut self, counter: u32, now: i64) -> bool {
        let follows = self.credential.precedes(counter);
        if follows {
            self.credential.counter = counter;
            self.used = Some(now);
        }
        follows
    }
}

/// The passkey with this identifier, as the browser names it.
pub fn find<'a>(all: &'a [Passkey], credential: &str) -> Option<&'a Passkey> {
    let id = base64::decode(credential)?;
    all.iter().find(|one| one.credential.id == id)
}

/// Adds a passkey; false if it has no name, is there already, or there are as many as may be.
pub fn add(all: &mut Vec<Passkey>, name: &str, credential: Credential, now: i64) -> bool {
    let name: String = name.chars().filter(|c| !text::hazard::is_hazard(*c)).take(NAME_CHARACTERS_MAX).collect();
    let name = name.trim().to_owned();
    let is_known = all.iter().any(|one| one.credential.id == credential.id);
    if name.is_empty() || is_known || all.len() >= PASSKEYS_MAX {
        return false;
    }
    let id = all.iter().map(|one| one.id).max().unwrap_or(0).saturating_add(1);
    all.push(Passkey { id, name, made: now, used: None, credential });
    true
}

/// The name by which authenticators know a user, of the field that an answer has for it.
pub fn user(field: &str) -> Option<String> {
    String::from_utf8(base64::decode(field)?).ok()
}

/// Passkeys as lines.
pub fn write(all: &[Passkey]) -> String {
    all.iter().map(|one| format!("{one}\n")).collect()
}

/// Passkeys of lines. A line that cannot be read is none.
pub fn read(lines: &str) -> Vec<Passkey> {
    lines.lines().filter_map(|line| line.parse().ok()).collect()
}

impl Display for Passkey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Passkey { id, name, made, used, credential } = self;
        let Credential { id: key, party, public, counter } = credential;
        let (key, public, used) = (base64::encode(key), base64::encode(public), used.unwrap_or(0));
        write!(f, "{id} {key} {party} {public} {counter} {made} {used} {name}")
    }
}

impl FromStr for Passkey {
    type Err = &'static str;

    fn from_str(line: &str) -> Result<Passkey, &'static str> {
        passkey(line).ok_or("a passkey cannot be read")
    }
}

fn passkey(line: &str) -> Option<Passkey> {
    let mut words = line.splitn(8, ' ');
    let id = words.next()?.parse().ok()?;
    let key = base64::decode(words.next()?)?;
    let (party, public) = (words.next()?.to_owned(), base64::decode(words.next()?)?);
    let (counter, made) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let used: i64 = words.next()?.parse().ok()?;
    let credential = Credential { id: key, party, public, counter };
    Some(Passkey { id, name: words.next()?.into(), made, used: Some(used).filter(|&used| used != 0), credential })
}

impl Display for Refused {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Unreadable => "a field cannot be read",
            Refused::Kind => "it answers another kind of request",
            Refused::Challenge => "the challenge is of another request, too old, or used",
            Refused::Origin => "a page of another site has asked",
            Refused::Party => "the credential is of another site",
            Refused::Absent => "the user was not present",
            Refused::Unverified => "the authenticator has not verified the user",
            Refused::Algorithm => "the key is of another algorithm",
            Refused::Unknown => "the credential is not known",
            Refused::Signature => "the signature is wrong",
            Refused::Counter => "the counter of signatures has not grown",
        })
    }
}

fn decoded(text: &str, bytes_max: usize) -> Result<Vec<u8>, Refused> {
    if text.len() / 4 * 3 > bytes_max {
        return Err(Refused::Unreadable);
    }
    base64::decode(text).ok_or(Refused::Unreadable)
}

/// Fuzz body: an attestation object is read or refused, and a passkey of it goes to text and back.
///
/// # Panics
/// If not.
pub fn fuzz_webauthn(data: &[u8]) {
    let origin = Origin::new("mail.test", true);
    let _ = client::challenge(data, "webauthn.get", &origin);
    let _ = Data::read(data).map(|data| data.is_verified());
    let _ = Public::read(data).map(|(public, rest)| public.has_signed(rest, rest));
    let found = data::of_attestation(data).and_then(Data::read).ok().and_then(|data| data.credential);
    if let Some((id, public)) = found {
        let credential = Credential { id: id.to_vec(), party: "mail.test".into(), public: public.to_vec(), counter: 1 };
        let mut all = Vec::new();
        assert!(add(&mut all, "a key", credential, 1), "a credential is not added");
        assert_eq!(read(&write(&all)), all, "another passkey comes back");
    }
}

#[cfg(test)]
mod tests;
