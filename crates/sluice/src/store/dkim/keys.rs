//! The file of keys: a line each, `DOMAIN SELECTOR KIND FROM KEY`, the last in Base64; replaced as a whole, for its owner alone.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use text::base64;

use super::rsa;

/// Characters of one string of a text record.
const STRING_CHARACTERS: usize = 250;

/// The keys of all domains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

/// A key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The domain that signs.
    pub domain: String,
    /// Its name among the keys of the domain.
    pub selector: String,
    /// Its kind.
    pub kind: Kind,
    /// From when on it signs, seconds since 1970.
    pub from: i64,
    /// The private key, in DER.
    pub private: Vec<u8>,
    /// `p=` of the record.
    public: String,
}

/// Kinds of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All verify it.
    Rsa,
    /// RFC 8463.
    Ed25519,
}

impl Kind {
    /// As records have it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Rsa => "rsa",
            Kind::Ed25519 => "ed25519",
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} {}", self.domain, self.selector, self.kind.name())
    }
}

impl Keys {
    /// Reads a file; no keys if there is none.
    ///
    /// # Errors
    /// When it cannot be read, or a line is wrong.
    pub fn read(path: &Path) -> io::Result<Keys> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Keys::default()),
            text => text?,
        };
        Keys::parse(&text)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// When a line is wrong.
    pub fn parse(text: &str) -> io::Result<Keys> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let keys = lines.map(|(at, line)| {
            let wrong = || io::Error::new(ErrorKind::InvalidData, format!("line {}: not a key", at + 1));
            Key::parse(line).ok_or_else(wrong)
        });
        keys.collect::<io::Result<_>>().map(Keys)
    }

    /// The text of a file with these keys.
    pub fn text(&self) -> String {
        let line = |key: &Key| {
            let private = base64::encode(&key.private);
            format!("{} {} {} {} {private}\n", key.domain, key.selector, key.kind.name(), key.from)
        };
        let lines = self.0.iter().map(line);
        std::iter::once("# keys that mail is signed with, see sluice dkim\n".to_owned()).chain(lines).collect()
    }

    /// All of them.
    pub fn all(&self) -> &[Key] {
        &self.0
    }

    /// Adds some.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Key>) {
        self.0.extend(more);
    }

    /// Keeps some.
    pub fn retain(&mut self, is_kept: impl FnMut(&Key) -> bool) {
        self.0.retain(is_kept);
    }

    /// Whether a key is the one of its kind that signs for its domain at this time.
    pub fn signs(&self, key: &Key, now: i64) -> bool {
        let rivals = self.0.iter().filter(|other| other.domain == key.domain && other.kind == key.kind);
        let last = rivals.filter(|other| other.from <= now).max_by_key(|other| other.from);
        last.is_some_and(|last| last.selector == key.selector)
    }
}

impl Key {
    /// Makes a key.
    ///
    /// # Errors
    /// Why this is no domain or no selector, or when there is no randomness.
    pub fn make(domain: &str, selector: &str, kind: Kind, from: i64) -> Result<Key, String> {
        let random = SystemRandom::new();
        let private = match kind {
            Kind::Rsa => rsa::private_key().ok_or("no randomness")?,
            Kind::Ed25519 => Ed25519KeyPair::generate_pkcs8(&random).map_err(|_| "no randomness")?.as_ref().to_vec(),
        };
        let (domain, selector) = (domain.to_ascii_lowercase(), selector.to_ascii_lowercase());
        if !is_name(&domain) || !is_name(&selector) {
            return Err(format!("{domain} or {selector} is not a name of the DNS"));
        }
        Key::new(domain, selector, kind, from, private).ok_or_else(|| "the key cannot be used".into())
    }

    fn new(domain: String, selector: String, kind: Kind, from: i64, private: Vec<u8>) -> Option<Key> {
        let public = match kind {
            Kind::Rsa => base64::encode(&rsa::public_key(&private)?),
            Kind::Ed25519 => {
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&private).ok()?;
                base64::encode(pair.public_key().as_ref())
            }
        };
        Some(Key { domain, selector, kind, from, private, public })
    }

    fn parse(line: &str) -> Option<Key> {
        let words: Vec<&str> = line.split(' ').collect();
        let [domain, selector, kind, from, private] = words[..] else { return None };
        let kind = [Kind::Rsa, Kind::Ed25519].into_iter().find(|known| known.name() == kind)?;
        let private = base64::decode(private.bytes().take_while(|&digit| digit != b'='))?;
        let names = is_name(domain) && is_name(selector);
        names.then(|| Key::new(domain.into(), selector.into(), kind, from.parse().ok()?, private)).flatten()
    }

    /// The name of its record.
    pub fn record_name(&self) -> String {
        format!("{}._domainkey.{}.", self.selector, self.domain)
    }

    /// The text of its record.
    pub fn record(&self) -> String {
        format!("v=DKIM1; k={}; p={}", self.kind.name(), self.public)
    }

    /// Its record as a line of a zone.
    pub fn zone_line(&self) -> String {
        format!("{} IN TXT {}", self.record_name(), strings(&self.record()))
    }
}

/// A text as the strings of a TXT record in a zone.
pub fn strings(text: &str) -> String {
    let parts = text.as_bytes().chunks(STRING_CHARACTERS);
    let strings: Vec<String> = parts.map(|part| format!("\"{}\"", String::from_utf8_lossy(part))).collect();
    strings.join(" ")
}

fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    text.len() <= 200 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_from_their_file_and_the_last_that_began_signs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dkim");
        let key = |selector: &str, from| Key::make("Example.org", selector, Kind::Ed25519, from).unwrap();
        let mut keys = Keys::default();
        keys.extend([key("a", 0), key("b", 100), key("c", 300)]);
        std::fs::write(&path, keys.text()).unwrap();
        assert_eq!(Keys::read(&path).unwrap(), keys);
        let signing =
            |now| keys.all().iter().filter(|key| keys.signs(key, now)).map(|key| &*key.selector).collect::<Vec<_>>();
        assert_eq!([signing(-1), signing(99), signing(100), signing(300)], [vec![], vec!["a"], vec!["b"], vec!["c"]]);
        assert!(keys.all()[0].zone_line().starts_with("a._domainkey.example.org. IN TXT \"v=DKIM1; k=ed25519; p="));
        for wrong in ["../x", "a b", "", "a..b"] {
            assert!(Key::make(wrong, "s", Kind::Ed25519, 0).is_err(), "{wrong}");
        }
        std::fs::write(&path, "example.org s rsa 0 AAAA\n").unwrap();
        assert!(Keys::read(&path).is_err());
    }

    #[test]
    fn a_key_of_rsa_is_one_that_others_take() {
        let key = Key::make("example.org", "s", Kind::Rsa, 0).unwrap();
        assert!(auth::dkim::sign::SigningKey::from_der(&key.private).is_ok());
        let published = auth::key::Key::parse(key.record().as_bytes());
        assert!(published.is_ok(), "{published:?} {}", key.record());
        assert!(key.zone_line().matches('"').count() >= 4, "longer than one string");
    }
}
