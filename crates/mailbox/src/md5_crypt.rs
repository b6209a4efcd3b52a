//! Hashes of `htpasswd` (`$apr1$`) and of old passwd files (`$1$`): MD5 in a thousand rounds, with a salt.
//!
//! They are read, for files that are there already, and never made: a graphics card tries millions of passwords a second.

/// The beginnings of hashes: that of Apache, and that of the passwd file.
pub(crate) const MAGICS: [&str; 2] = ["$apr1$", "$1$"];

const ROUNDS: usize = 1_000;
const SALT_BYTES_MAX: usize = 8;
/// Digits of the hash behind the salt.
const DIGITS: usize = 22;
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The order in which bytes of the digest are written, three by three.
const ORDER: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];

/// The magic, the salt and the digits of a hash; none if it is not one.
pub(crate) fn parts(hash: &str) -> Option<(&'static str, &str, &str)> {
    let magic = MAGICS.into_iter().find(|magic| hash.starts_with(magic))?;
    let (salt, digits) = hash.get(magic.len()..)?.split_once('$')?;
    let is_right = digits.len() == DIGITS && digits.bytes().all(|digit| ALPHABET.contains(&digit));
    (is_right && salt.len() <= SALT_BYTES_MAX).then_some((magic, salt, digits))
}

/// Whether a hash is that of a password.
pub(crate) fn is_password(hash: &str, password: &[u8]) -> bool {
    let Some((magic, salt, digits)) = parts(hash) else { return false };
    let found = encoded(&rounds(password, salt.as_bytes(), first(password, magic.as_bytes(), salt.as_bytes())));
    found.bytes().zip(digits.bytes()).fold(0, |differing, (one, other)| differing | (one ^ other)) == 0
}

/// The digest before the rounds.
fn first(password: &[u8], magic: &[u8], salt: &[u8]) -> [u8; 16] {
    let between = digest::md5::digest(&[password, salt, password].concat());
    let mut text = [password, magic, salt].concat();
    text.extend(between.iter().cycle().take(password.len()));
    let mut length = password.len();
    while length > 0 {
        let byte = if length & 1 == 1 { 0 } else { password.first().copied().unwrap_or_default() };
        text.push(byte);
        length >>= 1;
    }
    digest::md5::digest(&text)
}

fn rounds(password: &[u8], salt: &[u8], first: [u8; 16]) -> [u8; 16] {
    (0..ROUNDS).fold(first, |last, round| {
        let is_odd = round % 2 == 1;
        let parts: [&[u8]; 4] = [
            if is_odd { password } else { &last },
            if round % 3 == 0 { b"" } else { salt },
            if round % 7 == 0 { b"" } else { password },
            if is_odd { &last } else { password },
        ];
        digest::md5::digest(&parts.concat())
    })
}

fn encoded(digest: &[u8; 16]) -> String {
    let mut text = String::with_capacity(DIGITS);
    let mut write = |mut word: u32, digits: usize| {
        for _ in 0..digits {
            text.push(char::from(ALPHABET[(word & 63) as usize]));
            word >>= 6;
        }
    };
    for bytes in ORDER {
        let [high, middle, low] = bytes.map(|at| u32::from(digest[at]));
        write(high << 16 | middle << 8 | low, 4);
    }
    write(u32::from(digest[11]), 2);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_other_programs() {
        // Made by `openssl passwd -apr1` and `-1`.
        for (hash, password) in [
            ("$apr1$tanstaaf$zeG0TVxeeHkKMvdXT9dyn1", "tanstaaf"),
            ("$apr1$ab$8ItIMBWI2mJuA9q7tymP40", "a longer password than sixteen bytes"),
            ("$1$abcd$CwbBDotm4UoKv5fATTtzT.", ""),
        ] {
            assert!(is_password(hash, password.as_bytes()), "{hash}");
            assert!(!is_password(hash, b"another") && !is_password(&hash.replace("$a", "$b"), password.as_bytes()));
        }
        for wrong in
            ["$apr1$tanstaaf$", "$apr1$ninebytes$zeG0TVxeeHkKMvdXT9dyn1", "$1$ab$8ItIMBWI2mJuA9q7tymP4!", "$1$", ""]
        {
            assert!(parts(wrong).is_none(), "{wrong}");
        }
    }
}
