//! SCRAM-SHA-256 (RFC 5802, 7677), the server's side: the password does not cross the wire, and the server proves that it knows it.
//!
//! What is kept of a password are the [`Keys`], as RFC 5803 writes them. There is no channel binding, since TLS ends elsewhere.
//! Passwords are taken as they are: one whose characters have several forms (RFC 4013) works in the form in which it was set.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use text::base64;

/// How often a password is hashed: a client takes about 0.1 seconds for it.
const ITERATIONS: u32 = 65_536;
/// Largest iteration count read from a file.
const ITERATIONS_MAX: u32 = 10_000_000;
const SALT_BYTES_MAX: usize = 64;
/// The longest nonce of a client, in bytes.
const NONCE_BYTES_MAX: usize = 256;
/// The longest message of a client, in bytes.
const MESSAGE_BYTES_MAX: usize = 2_048;

const NAME: &str = "SCRAM-SHA-256";

type Hash = [u8; 32];

/// Keys derived from a password: all that is stored of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    iterations: u32,
    salt: Vec<u8>,
    stored: Hash,
    server: Hash,
}

impl Keys {
    /// Derives the keys of a password.
    pub fn new(password: &[u8], salt: &[u8]) -> Keys {
        let mut salted = Hash::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, ITERATIONS, &mut salted);
        let stored = Sha256::digest(keyed(&salted, b"Client Key")).into();
        Keys { iterations: ITERATIONS, salt: salt.to_vec(), stored, server: keyed(&salted, b"Server Key") }
    }

    /// Keys for an unknown account: always the same for a secret and a name, and no password fits.
    pub fn of_nobody(secret: &[u8], name: &str) -> Keys {
        let salt = keyed(secret, name.as_bytes());
        Keys { iterations: ITERATIONS, salt: salt[..16].to_vec(), stored: keyed(secret, &salt), server: salt }
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [salt, stored, server] = [&self.salt[..], &self.stored, &self.server].map(base64::encode);
        write!(f, "{NAME}${}:{salt}${stored}:{server}", self.iterations)
    }
}

impl FromStr for Keys {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Keys, &'static str> {
        let read = || {
            let (name, rest) = text.split_once('$')?;
            let (first, second) = rest.split_once('$').filter(|_| name == NAME)?;
            let ((iterations, salt), (stored, server)) = (first.split_once(':')?, second.split_once(':')?);
            let iterations = iterations.parse().ok().filter(|count| (1..=ITERATIONS_MAX).contains(count))?;
            let salt = decode(salt).filter(|salt| salt.len() <= SALT_BYTES_MAX)?;
            Some(Keys {
                iterations,
                salt,
                stored: decode(stored)?.try_into().ok()?,
                server: decode(server)?.try_into().ok()?,
            })
        };
        read().ok_or("scram= takes SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER")
    }
}

/// The first message of a client.
pub(crate) struct First {
    /// Login name that the client claims.
    pub name: String,
    /// `n,,` and the like, which comes again.
    header: String,
    bare: String,
    nonce: String,
}

impl First {
    /// Reads it. None if it is none, or its sender would be somebody else.
    pub fn read(message: &[u8]) -> Option<First> {
        let message = std::str::from_utf8(message).ok().filter(|message| message.len() <= MESSAGE_BYTES_MAX)?;
        let mut parts = message.splitn(3, ',');
        let (binding, authorization, bare) = (parts.next()?, parts.next()?, parts.next()?);
        // "y": it could bind to the channel, and has seen that we do not offer it.
        let header = format!("{binding},{authorization},");
        let mut attributes = bare.split(',');
        let name = unescaped(attributes.next()?.strip_prefix("n=")?)?;
        let nonce = attributes.next()?.strip_prefix("r=")?.to_owned();
        let as_whom = authorization.strip_prefix("a=").map(unescaped);
        let is_self = match as_whom {
            None => authorization.is_empty(),
            // Some clients say that they would be nobody else.
            Some(as_whom) => as_whom.is_some_and(|whom| whom.is_empty() || whom.eq_ignore_ascii_case(&name)),
        };
        let is_nonce =
            (1..=NONCE_BYTES_MAX).contains(&nonce.len()) && nonce.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = matches!(binding, "n" | "y") && is_self && is_nonce && !name.is_empty() && !name.contains('\0');
        fits.then(|| First { name, header, bare: bare.into(), nonce })
    }

    /// The server's first message, and the state that awaits the client's proof.
    pub fn answer(self, keys: Keys, random: &[u8]) -> (String, Waiting) {
        let nonce = format!("{}{}", self.nonce, base64::encode(random));
        let said = format!("r={nonce},s={},i={}", base64::encode(&keys.salt), keys.iterations);
        let waiting = Waiting { keys, nonce, header: self.header, before: format!("{},{said}", self.bare) };
        (said, waiting)
    }
}

/// The second message of a client is to come.
pub(crate) struct Waiting {
    keys: Keys,
    nonce: String,
    header: String,
    before: String,
}

impl Waiting {
    /// Whether the client knows the password: then what the server says last, to prove that it does.
    pub fn check(&self, message: &[u8]) -> Option<String> {
        let message = std::str::from_utf8(message).ok().filter(|message| message.len() <= MESSAGE_BYTES_MAX)?;
        let (without, proof) = message.rsplit_once(",p=")?;
        let mut attributes = without.split(',');
        let binding = decode(attributes.next()?.strip_prefix("c=")?)?;
        let nonce = attributes.next()?.strip_prefix("r=")?;
        if binding != self.header.as_bytes() || nonce != self.nonce {
            return None;
        }
        let proof: Hash = decode(proof)?.try_into().ok()?;
        let all = format!("{},{without}", self.before);
        let signature = keyed(&self.keys.stored, all.as_bytes());
        let mut key = proof;
        key.iter_mut().zip(signature).for_each(|(byte, other)| *byte ^= other);
        let is_right = is_same(&Sha256::digest(key), &self.keys.stored);
        is_right.then(|| format!("v={}", base64::encode(&keyed(&self.keys.server, all.as_bytes()))))
    }
}

fn keyed(key: &[u8], message: &[u8]) -> Hash {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("keys have any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// Takes as long wherever they differ.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |differ, (left, right)| differ | (left ^ right)) == 0
}

fn decode(text: &str) -> Option<Vec<u8>> {
    base64::decode(text.trim_end_matches('=').bytes())
}

/// A name, in which `=2C` is a comma and `=3D` is `=`.
fn unescaped(name: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, behind)) = rest.split_once('=') {
        out.push_str(before);
        let (code, behind) = behind.split_at_checked(2)?;
        out.push(match code {
            "2C" => ',',
            "3D" => '=',
            _ => return None,
        });
        rest = behind;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_example_of_the_standard_is_spoken() {
        let salt = decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let mut salted = Hash::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(b"pencil", &salt, 4096, &mut salted);
        let stored = Sha256::digest(keyed(&salted, b"Client Key")).into();
        let keys = Keys { iterations: 4096, salt, stored, server: keyed(&salted, b"Server Key") };
        let written = keys.to_string();
        assert_eq!(written.parse::<Keys>(), Ok(keys));
        let first = First::read(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(first.name, "user");
        // The nonce of the example is text of its own, which Base64 gives as well but for its alphabet.
        let (said, mut waiting) = first.answer(written.parse().unwrap(), b"");
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        waiting.before = waiting.before.replace("r=rOprNGfwEbeRWgbNEkqO,s=", &format!("r={nonce},s="));
        waiting.nonce = nonce.into();
        assert_eq!(said, "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let right = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let last = waiting.check(right.as_bytes());
        assert_eq!(last.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        for (from, to) in [("biws", "eSws"), ("p=dH", "p=eH"), ("k0,", "k1,"), ("c=", "d="), ("VQ=", "")] {
            assert_eq!(waiting.check(right.replace(from, to).as_bytes()), None, "{from} {to}");
        }
    }

    #[test]
    fn first_messages_that_are_none_are_refused() {
        for wrong in [
            "",
            "n,,",
            "n,,r=x",
            "n,,n=,r=x",
            "n,,n=a,r=",
            "n,,n=a=,r=x",
            "n,,n=a=41,r=x",
            "p=tls-unique,,n=a,r=x",
            "n,a=other,n=a,r=x",
            "n,x,n=a,r=x",
            "n,,m=ext,n=a,r=x",
            "n,,n=a,r=\u{7f}",
        ] {
            assert!(First::read(wrong.as_bytes()).is_none(), "{wrong}");
        }
        assert_eq!(First::read(b"y,a=A=2Cb,n=a=2Cb,r=x,e=1").unwrap().name, "a,b");
        assert!(First::read(b"n,a=,n=a,r=x").is_some());
        assert!(First::read("x".repeat(5_000).as_bytes()).is_none());
    }

    #[test]
    fn keys_that_are_none_are_refused() {
        for wrong in
            ["", "x", "SCRAM-SHA-256$0:AA==$AA==:AA==", "SCRAM-SHA-256$4096:AA==$AA==:AA==", "SCRAM-SHA-1$1:$:"]
        {
            assert!(wrong.parse::<Keys>().is_err(), "{wrong}");
        }
        assert_eq!(Keys::of_nobody(b"s", "a"), Keys::of_nobody(b"s", "a"));
        assert_ne!(Keys::of_nobody(b"s", "a").salt, Keys::of_nobody(b"s", "b").salt);
    }
}
