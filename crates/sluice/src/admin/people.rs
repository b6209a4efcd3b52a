//! People and tokens: the file `access` in the folder of the page, JSON, for its owner alone.
//!
//! ```text
//! {"people": [{"name": "ann", "role": "administrator", "password": "$argon2id$...", "second": "SECRET STEP DIGESTS",
//!              "passkeys": ["ID CREDENTIAL PARTY PUBLIC COUNTER MADE USED NAME"]}],
//!  "tokens": [{"name": "backup", "role": "reader", "digest": "SHA-256 in hexadecimal", "made": "2026-11-29T02:00:00Z"}]}
//! ```
//! Each request reads the file again if it has changed, so a person or a token that was removed is out at once. A file that cannot be
//! read lets nobody in. Bounds: [`ENTRIES_MAX`] people and as many tokens.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mailbox::accounts::{self, rewrite};
use mailbox::password::Password;
use mailbox::totp::Second;
use mailbox::webauthn::Passkey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use webmail::session::{hex, is_same};

use super::role::Role;
use crate::audit;

/// People, and tokens.
const ENTRIES_MAX: usize = 1_000;

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The largest file.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// All that the file has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct People {
    pub people: Vec<Person>,
    pub tokens: Vec<Token>,
}

/// A person, who logs in with a password and, once that is set up, with a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    pub name: String,
    pub role: Role,
    /// The hash of the password.
    pub password: String,
    /// The second step.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "as_text")]
    pub second: Option<Second>,
    /// Passkeys.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "as_lines")]
    pub passkeys: Vec<Passkey>,
}

/// A token of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    pub name: String,
    pub role: Role,
    /// SHA-256 of the token, in hexadecimal digits.
    pub digest: String,
    /// When it was made.
    pub made: String,
}

/// The file in a folder.
pub fn file(folder: &Path) -> PathBuf {
    folder.join("access")
}

impl People {
    /// Reads a file; nobody if there is none.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub fn read(path: &Path) -> Result<People, String> {
        let named = |error: io::Error| format!("{}: {error}", path.display());
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(People::default()),
            Err(error) => return Err(named(error)),
            Ok(facts) if facts.len() > FILE_BYTES_MAX => return Err(format!("{}: is too large", path.display())),
            Ok(_) => {}
        }
        People::parse(&fs::read_to_string(path).map_err(named)?).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<People, String> {
        match text.trim() {
            "" => Ok(People::default()),
            text => serde_json::from_str(text).map_err(|error| error.to_string()),
        }
    }

    /// Changes a file under its lock.
    ///
    /// # Errors
    /// When it cannot be read or written, and what `change` fails with.
    pub fn edit<T>(path: &Path, change: impl FnOnce(&mut People) -> Result<T, String>) -> Result<T, String> {
        let mut outcome = None;
        let edited = rewrite(path, |before| {
            let mut people = People::parse(before)?;
            outcome = Some(change(&mut people)?);
            serde_json::to_string_pretty(&people).map(|text| text + "\n").map_err(|error| error.to_string())
        });
        edited.map_err(|error| format!("{}: {error}", path.display()))?;
        outcome.ok_or_else(|| "nothing was changed".into())
    }

    /// The person with this name.
    pub fn person(&mut self, name: &str) -> Result<&mut Person, String> {
        self.people.iter_mut().find(|person| person.name == name).ok_or_else(|| format!("there is no person {name}"))
    }

    /// Adds a person.
    ///
    /// # Errors
    /// When the name is not one, or is there already.
    pub fn add_person(&mut self, name: &str, role: Role, password: &str) -> Result<(), String> {
        if self.people.iter().any(|person| person.name == name) {
            return Err(format!("{name} is there already"));
        }
        let password = hash(password)?;
        let person =
            Person { name: checked(name, self.people.len())?, role, password, second: None, passkeys: Vec::new() };
        self.people.push(person);
        Ok(())
    }

    /// Adds a token, and returns the text that a program logs in with. It is kept nowhere.
    ///
    /// # Errors
    /// When the name is not one, or is there already, or there is no randomness.
    pub fn add_token(&mut self, name: &str, role: Role) -> Result<String, String> {
        if self.tokens.iter().any(|token| token.name == name) {
            return Err(format!("{name} is there already"));
        }
        let random = mailbox::password::random::<32>().map_err(|error| error.to_string())?;
        let text = format!("sluice_{}", hex(&random));
        let name = checked(name, self.tokens.len())?;
        self.tokens.push(Token { name, role, digest: digest(&text), made: audit::now() });
        Ok(text)
    }

    /// The token that a program shows. Digests are compared, so it takes as long wherever they differ.
    pub fn token(&self, text: &str) -> Option<&Token> {
        let shown = digest(text);
        self.tokens.iter().find(|token| is_same(&token.digest, &shown))
    }
}

impl Person {
    /// Whether this is the password. Takes tens of milliseconds, on purpose.
    pub fn is_password(&self, password: &str) -> bool {
        Password::parse(&self.password).is_ok_and(|hash| hash.is(password.as_bytes()))
    }

    /// Gives the person a password.
    ///
    /// # Errors
    /// When it is not one.
    pub fn set_password(&mut self, password: &str) -> Result<(), String> {
        self.password = hash(password)?;
        Ok(())
    }
}

mod as_text {
    //! The second step of a login as a text of JSON.

    use mailbox::totp::Second;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(second: &Option<Second>, to: S) -> Result<S::Ok, S::Error> {
        match second {
            Some(second) => to.collect_str(second),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Second>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

mod as_lines {
    //! Passkeys as texts of JSON.

    use mailbox::webauthn::Passkey;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(passkeys: &[Passkey], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(passkeys.iter().map(Passkey::to_string))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Passkey>, D::Error> {
        let lines = Vec::<String>::deserialize(from)?;
        lines.iter().map(|line| line.parse().map_err(D::Error::custom)).collect()
    }
}

fn hash(password: &str) -> Result<String, String> {
    match password.len() {
        0..8 => Err("a password of a person has at least 8 characters".into()),
        8..=1_024 => accounts::hash(password.as_bytes()).map_err(|error| error.to_string()),
        _ => Err("a password has at most 1,024 bytes".into()),
    }
}

fn checked(name: &str, count: usize) -> Result<String, String> {
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@._+-".contains(&byte));
    match (is_name, count < ENTRIES_MAX) {
        (true, true) => Ok(name.into()),
        (false, _) => Err(format!("{name:?} is not a name: letters, digits and @._+-")),
        (_, false) => Err(format!("there are {ENTRIES_MAX} already")),
    }
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_kept_as_digests_and_known_by_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        let text = People::edit(&path, |people| people.add_token("backup", Role::Reader)).unwrap();
        let people = People::read(&path).unwrap();
        assert_eq!(people.token(&text).map(|token| (token.name.as_str(), token.role)), Some(("backup", Role::Reader)));
        assert!(people.token("").is_none() && people.token(&text[..text.len() - 1]).is_none());
        assert!(people.token(&people.tokens[0].digest).is_none(), "a digest is no token");
        assert!(!fs::read_to_string(&path).unwrap().contains(&text));
        assert!(People::edit(&path, |people| people.add_token("backup", Role::Reader)).is_err());
    }

    #[test]
    fn people_are_added_with_names_and_passwords_that_are_some() {
        let mut people = People::default();
        for (name, password) in [("", "long enough"), ("a b", "long enough"), ("<b>", "long enough"), ("ann", "short")]
        {
            assert!(people.add_person(name, Role::Helpdesk, password).is_err(), "{name} {password}");
        }
        people.add_person("ann", Role::Helpdesk, "long enough").unwrap();
        assert!(people.add_person("ann", Role::Helpdesk, "long enough").is_err());
        let ann = people.person("ann").unwrap();
        assert!(ann.is_password("long enough") && !ann.is_password("Long enough") && !ann.is_password(""));
        assert!(People::parse("{\"people\": 1}").is_err() && People::parse("").is_ok());
    }
}
