//! Hashes of passwords, as passwd files and databases of mail servers have them.
//!
//! | | |
//! |---|---|
//! | `$argon2id$...`, `$argon2i$...`, `$argon2d$...` | Argon2; also behind `{ARGON2ID}`, `{ARGON2I}` |
//! | `$2a$`, `$2b$`, `$2y$` | bcrypt; also behind `{BLF-CRYPT}` |
//! | `$5$`, `$6$` | crypt with SHA-256 and SHA-512; also behind `{SHA256-CRYPT}`, `{SHA512-CRYPT}` |
//! | `$apr1$`, `$1$` | MD5 as `htpasswd` and old passwd files have it; also behind `{MD5-CRYPT}` |
//! | `{CRYPT}`, `{crypt}` | one of the above |
//! | `{SSHA}`, `{SSHA256}`, `{SSHA512}`, `{SHA}`, `{SHA256}`, `{SHA512}` | a digest of password and salt, in Base64 |
//! | `{PLAIN}`, `{CLEARTEXT}` | the password |
//!
//! A hash without a scheme that it says itself is refused: nothing is guessed. Bounds: Argon2 with 256 MiB and 32 passes, bcrypt of
//! cost 16, crypt of 5,000,000 rounds; a hash that asks for more is refused when it is read.

use std::fs;
use std::io::{self, Read};

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use crate::md5_crypt;

const ARGON2_KIB_MAX: u32 = 256 << 10;
const ARGON2_PASSES_MAX: u32 = 32;
const BCRYPT_COST_MAX: u32 = 16;
const CRYPT_ROUNDS_MAX: u32 = 5_000_000;

/// The hash of a password, or the password itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Password {
    scheme: Scheme,
    /// As it was written, for the file.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Argon2,
    Bcrypt,
    ShaCrypt,
    Md5Crypt,
    Sha1,
    Sha256,
    Sha512,
    Plain,
}

impl Password {
    /// Reads a hash.
    ///
    /// # Errors
    /// When its scheme is not known, or it takes too much; the message does not tell the hash.
    pub fn parse(text: &str) -> Result<Password, String> {
        let (named, rest) = match text.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some((name, rest)) => (name.to_ascii_uppercase(), rest),
            None => (String::new(), text),
        };
        let named = named.trim_end_matches(".B64");
        let scheme = match (named, rest) {
            ("" | "CRYPT" | "ARGON2ID" | "ARGON2I" | "ARGON2", rest) if rest.starts_with("$argon2") => argon2_of(rest)?,
            ("" | "CRYPT" | "BLF-CRYPT", rest) if ["$2a$", "$2b$", "$2y$"].iter().any(|id| rest.starts_with(id)) => {
                bcrypt_of(rest)?
            }
            ("" | "CRYPT" | "SHA512-CRYPT", rest) if rest.starts_with("$6$") => crypt_of(rest)?,
            ("" | "CRYPT" | "SHA256-CRYPT", rest) if rest.starts_with("$5$") => crypt_of(rest)?,
            ("" | "CRYPT" | "MD5-CRYPT", rest) if md5_crypt::parts(rest).is_some() => Scheme::Md5Crypt,
            ("SSHA" | "SHA" | "SHA1", rest) => digest_of(Scheme::Sha1, named, rest)?,
            ("SSHA256" | "SHA256", rest) => digest_of(Scheme::Sha256, named, rest)?,
            ("SSHA512" | "SHA512", rest) => digest_of(Scheme::Sha512, named, rest)?,
            ("PLAIN" | "CLEARTEXT", rest) if !rest.is_empty() => Scheme::Plain,
            ("", _) => return Err("a hash without a scheme".into()),
            (name, _) => return Err(format!("not a password hash, or its scheme is not known: {name:?}")),
        };
        Ok(Password { scheme, text: text.to_owned() })
    }

    /// Whether this is it. Takes tens of milliseconds and 19 MiB, for a purpose.
    pub fn is(&self, password: &[u8]) -> bool {
        let hash =
            self.text.split_once('}').filter(|_| self.text.starts_with('{')).map_or(&*self.text, |(_, hash)| hash);
        match self.scheme {
            Scheme::Argon2 => {
                PasswordHash::new(hash).is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
            }
            Scheme::Bcrypt => bcrypt::verify(password, hash).unwrap_or(false),
            Scheme::ShaCrypt => {
                sha_crypt::PasswordVerifier::<str>::verify_password(&sha_crypt::ShaCrypt::default(), password, hash)
                    .is_ok()
            }
            Scheme::Md5Crypt => md5_crypt::is_password(hash, password),
            Scheme::Sha1 => is_digest::<Sha1>(hash, password),
            Scheme::Sha256 => is_digest::<Sha256>(hash, password),
            Scheme::Sha512 => is_digest::<Sha512>(hash, password),
            // Of digests, so that it takes as long wherever they differ.
            Scheme::Plain => Sha256::digest(hash) == Sha256::digest(password),
        }
    }

    /// The password as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Password({:?})", self.scheme)
    }
}

fn argon2_of(hash: &str) -> Result<Scheme, String> {
    let hash = PasswordHash::new(hash).map_err(|error| format!("not a hash: {error}"))?;
    let params = Params::try_from(&hash).map_err(|error| format!("not a hash: {error}"))?;
    match params.m_cost() <= ARGON2_KIB_MAX && params.t_cost() <= ARGON2_PASSES_MAX {
        true => Ok(Scheme::Argon2),
        false => Err("a hash that takes too much".into()),
    }
}

fn bcrypt_of(hash: &str) -> Result<Scheme, String> {
    let parts: bcrypt::HashParts = hash.parse().map_err(|error| format!("not a hash: {error}"))?;
    match parts.get_cost() <= BCRYPT_COST_MAX {
        true => Ok(Scheme::Bcrypt),
        false => Err("a hash that takes too much".into()),
    }
}

fn crypt_of(hash: &str) -> Result<Scheme, String> {
    let parts: Vec<&str> = hash.split('$').skip(2).collect();
    let rounds = parts.first().and_then(|part| part.strip_prefix("rounds="));
    let is_bounded = rounds.is_none_or(|rounds| rounds.parse::<u32>().is_ok_and(|rounds| rounds <= CRYPT_ROUNDS_MAX));
    match (is_bounded, parts.len()) {
        (true, 2 | 3) => Ok(Scheme::ShaCrypt),
        (true, _) => Err("not a hash".into()),
        (false, _) => Err("a hash that takes too much".into()),
    }
}

fn digest_of(scheme: Scheme, name: &str, hash: &str) -> Result<Scheme, String> {
    let bytes = match scheme {
        Scheme::Sha1 => 20,
        Scheme::Sha256 => 32,
        _ => 64,
    };
    let found = decoded(hash).map_or(0, |raw| raw.len());
    let is_right = if name.starts_with("SS") { found > bytes } else { found == bytes };
    if is_right { Ok(scheme) } else { Err(format!("not a hash of {name}")) }
}

fn decoded(hash: &str) -> Option<Vec<u8>> {
    text::base64::decode(hash.bytes().take_while(|&digit| digit != b'='))
}

/// A digest of the password and of the salt that follows it.
fn is_digest<D: Digest>(hash: &str, password: &[u8]) -> bool {
    let Some(raw) = decoded(hash) else { return false };
    let Some((digest, salt)) = raw.split_at_checked(<D as Digest>::output_size()) else { return false };
    let found = D::new().chain_update(password).chain_update(salt).finalize();
    found.iter().zip(digest).fold(0, |differing, (one, other)| differing | (one ^ other)) == 0
}

/// The hash of a password, with random salt.
///
/// # Errors
/// When there is no randomness.
pub fn hash(password: &[u8]) -> io::Result<String> {
    let hash = Argon2::default().hash_password_with_salt(password, &random::<16>()?);
    Ok(hash.map_err(|error| io::Error::other(error.to_string()))?.to_string())
}

/// A password that nobody guesses: 20 letters, digits and hyphens, which cannot be mistaken for each other.
///
/// # Errors
/// When there is no randomness.
pub fn random_password() -> io::Result<String> {
    const CHARACTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz23456789-";
    Ok(random::<20>()?.iter().map(|byte| char::from(CHARACTERS[usize::from(byte % 32)])).collect())
}

/// Bytes that nobody can guess.
///
/// # Errors
/// When there is no randomness.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of `tanstaaf`, made by `doveadm pw`, `openssl passwd` and `slappasswd`.
    const HASHES: [&str; 15] = [
        "$apr1$tanstaaf$zeG0TVxeeHkKMvdXT9dyn1",
        "{ARGON2ID}$argon2id$v=19$m=65536,t=3,p=1$z6Iidix/gTD5+Egt1zlRhA$fdvMMf1u3yvK8u5cWqU4j2mPRVUAQrlSVjM93/9eurE",
        "{ARGON2I}$argon2i$v=19$m=32768,t=4,p=1$WFYht6c0litOtoZed9dJKg$zbvYS0rOSLe+LwP9N+SnXk1hL96S366p2946etBsqnc",
        "{BLF-CRYPT}$2y$05$VxWyAEYfBQv1cXdVd6l7fuyl1IBFGKgz305bMM5rE7IeS/0FzJzue",
        "{SHA512-CRYPT}$6$sXlzhsgAo2hAMqHJ$9V9PlBYc4jQCvfW.6MhW6OS51YuK4MCwUyt.2kx0koQuMXVlkTMCwni64ETFqxAl4Ge5VnqfzjScek7bxGABj.",
        "{CRYPT}$5$pk5wKVEv5lAGDF7W$a1avpfddf9v0.dNPyMkUapvnwDKH5L5/LInImq3tKk/",
        "{SSHA}BEjKS6QkjZOOhRKi/qqGQbwtIHaB3nXC",
        "{SSHA256}CA2GEHCpiYoExWxS+ejlvoNYqLVqnvFR6V6Cgi1JL9x/CADs",
        "{SSHA512}8HOpfxvTjS3oIPbyh2EOm/xuNxqXM5IO1gnUtjKJ8oXquZIIpop+dUlo9f6p/QPIoFOc0G31VyforAey7cot2AtXvCg=",
        "{SHA}60cXn4M+9rlkPiIl1CM8mjjFKYE=",
        "{SHA256}2OZJiX4f3IEocTIetqYiu1a2GovhuIBYRxZR+uXBLKo=",
        "{SHA512}7k4B2Jp+VfRq9eIRUB9fGp9ZeNyZPWiiDRYSh7oJALW7dmzxjah/z/nf+cj/MOzDknLTjla4zoq4EfWvmjU7oA==",
        "{PLAIN}tanstaaf",
        "$6$abcdefgh$Do.voiaiW61EmXmNVa79i4/Xls.8Y.t8XppJLhkeseHYWz.PAgFtRVSSnnGt8seBbSxBol8XOP1w44Mjj1vzV/",
        "{ssha}4aRW/nt8yuNP72YFbJctVN/S/eKpqnjD",
    ];

    #[test]
    fn hashes_of_other_programs_are_known() {
        for hash in HASHES {
            let password = Password::parse(hash).unwrap_or_else(|error| panic!("{hash}: {error}"));
            assert!(password.is(b"tanstaaf"), "{hash}");
            assert!(!password.is(b"tanstaag") && !password.is(b""), "{hash}");
            assert!(!format!("{password:?}").contains(&hash[hash.len() - 8..]));
        }
    }

    #[test]
    fn what_says_nothing_or_takes_too_much_is_refused() {
        for (hash, wanted) in [
            ("secret", "without a scheme"),
            ("", "without a scheme"),
            ("{MD5}x", "not known"),
            ("{SSHA}AAAA", "not a hash"),
            ("{PLAIN}", "not known"),
            ("{SHA512-CRYPT}$5$salt$x", "not known"),
            ("$6$rounds=999999999$salt$x", "too much"),
            ("$6$", "not a hash"),
            ("$argon2id$v=19$m=4194304,t=2,p=1$c2FsdHNhbHQ$YWJjZGVmZ2hpamtsbW5vcA", "too much"),
            ("$2y$31$VxWyAEYfBQv1cXdVd6l7fuyl1IBFGKgz305bMM5rE7IeS/0FzJzue", "too much"),
        ] {
            let error = Password::parse(hash).unwrap_err();
            assert!(error.contains(wanted), "{hash}: {error}");
        }
    }
}
