//! One-time passwords by time (TOTP, RFC 6238) as a second step of a login, and recovery codes for when the device is lost.
//!
//! Codes have six digits of HMAC-SHA-1 over steps of thirty seconds: the parameters that every authenticator application knows. The step
//! before and the step after count, for clocks that differ. A code counts once: the step of the last one is kept, and no step up to it
//! counts again. A recovery code counts once, too; of these only digests are kept. Tries are bounded by who asks
//! ([`Logins`](crate::Logins)): a wrong code is a failed login.
//!
//! Passkeys may take the place of the device: then there are recovery codes alone.
//!
//! As text it is `SECRET STEP DIGEST,DIGEST,...`, with the last of all steps where there is no device.
//!
//! It knows no clock: callers hand in the time, and keep the [`Second`] that a check has changed.

use std::fmt;
use std::io;
use std::str::FromStr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::password::random;

/// Seconds of a step.
const STEP_SECONDS: i64 = 30;

/// Steps around the one of now that count.
const DRIFT: i64 = 1;

/// Bytes that a secret has at least (RFC 4226, section 4).
const SECRET_BYTES_MIN: usize = 16;

/// Recovery codes of a set.
const RECOVERY_CODES: usize = 10;

/// The last step of a secret that no device has: no code of it counts.
const NO_DEVICE: i64 = i64::MAX;

/// Letters of secrets (RFC 4648, section 6), and of recovery codes.
const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The second step of a login.
#[derive(Clone, PartialEq, Eq)]
pub struct Second {
    /// The secret that the device shares, in Base32.
    secret: String,
    /// The step of the last code that counted; none up to it counts again.
    last_step: i64,
    /// Digests of recovery codes that were not used.
    recovery: Vec<String>,
}

impl Second {
    /// A secret that was made at random, for a device.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn secret() -> io::Result<String> {
        Ok(letters(&random::<20>()?))
    }

    /// Sets the second step up: the device shows its first code, which counts as used. Returns it with the recovery codes, which are
    /// kept nowhere; `None` if the code is not of this secret.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn begin(secret: &str, code: &str, now: i64) -> io::Result<Option<(Second, Vec<String>)>> {
        let mut second = Second { secret: secret.into(), last_step: 0, recovery: Vec::new() };
        if bytes(secret).is_none_or(|key| key.len() < SECRET_BYTES_MIN) || !second.takes_code(code, now) {
            return Ok(None);
        }
        second.with_codes().map(Some)
    }

    /// Sets the second step up without a device, for one who has passkeys. Returns it with the recovery codes.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn without_device() -> io::Result<(Second, Vec<String>)> {
        Second { secret: Second::secret()?, last_step: NO_DEVICE, recovery: Vec::new() }.with_codes()
    }

    /// Whether a device shows codes.
    pub fn has_device(&self) -> bool {
        self.last_step < NO_DEVICE
    }

    /// It with new recovery codes, of which digests are kept.
    fn with_codes(self) -> io::Result<(Second, Vec<String>)> {
        let codes: io::Result<Vec<String>> = (0..RECOVERY_CODES).map(|_| Ok(letters(&random::<10>()?))).collect();
        let codes = codes?;
        let recovery = codes.iter().map(|code| digest(code)).collect();
        Ok((Second { recovery, ..self }, codes))
    }

    /// Whether a code of the device or a recovery code counts now. It does not count a second time: the caller keeps what has changed.
    pub fn takes(&mut self, code: &str, now: i64) -> bool {
        let code: String = code.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').take(64).collect();
        self.takes_code(&code, now) || self.takes_recovery(&code)
    }

    /// Recovery codes that are left.
    pub fn recovery_count(&self) -> usize {
        self.recovery.len()
    }

    fn takes_code(&mut self, code: &str, now: i64) -> bool {
        let Some(key) = bytes(&self.secret) else { return false };
        let current = now.div_euclid(STEP_SECONDS);
        let steps = current.saturating_sub(DRIFT)..=current.saturating_add(DRIFT);
        let found = steps.filter(|&step| step > self.last_step).find(|&step| is_same(&digits(&key, step), code));
        found.inspect(|&step| self.last_step = step).is_some()
    }

    fn takes_recovery(&mut self, code: &str) -> bool {
        let shown = digest(&code.to_ascii_uppercase());
        let before = self.recovery.len();
        self.recovery.retain(|known| !is_same(known, &shown));
        self.recovery.len() < before
    }
}

impl fmt::Display for Second {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {} {}", self.secret, self.last_step, self.recovery.join(","))
    }
}

impl fmt::Debug for Second {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Second({} recovery codes)", self.recovery.len())
    }
}

impl FromStr for Second {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Second, &'static str> {
        const WRONG: &str = "the second step of a login cannot be read";
        let mut parts = text.splitn(3, ' ');
        let (secret, step) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let digests = parts.next().unwrap_or_default().split(',').filter(|digest| !digest.is_empty());
        bytes(secret).filter(|key| key.len() >= SECRET_BYTES_MIN).ok_or(WRONG)?;
        let last_step = step.parse().map_err(|_| WRONG)?;
        Ok(Second { secret: secret.into(), last_step, recovery: digests.map(str::to_owned).collect() })
    }
}

/// The link that sets up an authenticator application: `otpauth://totp/...`.
pub fn link(issuer: &str, name: &str, secret: &str) -> String {
    let escaped = |text: &str| {
        let escape = |byte: u8| match byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        text.bytes().map(escape).collect::<String>()
    };
    let (issuer, name) = (escaped(issuer), escaped(name));
    format!("otpauth://totp/{issuer}:{name}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits=6&period=30")
}

/// The code of a step (RFC 4226, section 5.3).
fn digits(key: &[u8], step: i64) -> String {
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(key) else { return String::new() };
    mac.update(&step.to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let at = usize::from(hash.last().copied().unwrap_or(0) & 15);
    let word = hash.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied().unwrap_or_default();
    format!("{:06}", (u32::from_be_bytes(word) & 0x7fff_ffff) % 1_000_000)
}

fn letters(bytes: &[u8]) -> String {
    let (mut out, mut held, mut bits) = (String::new(), 0u32, 0);
    for &byte in bytes {
        (held, bits) = (held << 8 | u32::from(byte), bits + 8);
        while bits >= 5 {
            bits -= 5;
            out.push(char::from(LETTERS[(held >> bits & 31) as usize]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        out.push(char::from(LETTERS[(held << (5 - bits) & 31) as usize]));
    }
    out
}

/// The bytes of Base32 without padding.
fn bytes(letters: &str) -> Option<Vec<u8>> {
    let (mut out, mut held, mut bits) = (Vec::new(), 0u32, 0);
    for letter in letters.bytes().take(256) {
        let value = LETTERS.iter().position(|&known| known == letter.to_ascii_uppercase())?;
        (held, bits) = (held << 5 | value as u32, bits + 5);
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits & 255) as u8);
        }
        held &= (1 << bits) - 1;
    }
    Some(out)
}

/// Recovery codes are long and made at random, so their digest needs no salt and no slowness.
fn digest(code: &str) -> String {
    Sha256::digest(code).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn is_same(one: &str, other: &str) -> bool {
    webmail::session::is_same(one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"12345678901234567890";

    /// Times and codes of RFC 6238, appendix B, of which the last six digits are those of ours.
    const VECTORS: [(i64, &str); 6] = [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ];

    fn second() -> Second {
        Second { secret: letters(SECRET), last_step: 0, recovery: Vec::new() }
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        for (now, code) in VECTORS {
            assert_eq!(digits(SECRET, now / STEP_SECONDS), code);
            assert!(second().takes(code, now) && second().takes(code, now + 30) && second().takes(code, now - 30));
            assert!(!second().takes(code, now + 90) && !second().takes(code, now - 90));
        }
    }

    #[test]
    fn a_code_counts_once_and_none_before_it_afterwards() {
        let (mut second, now) = (second(), 1_111_111_109);
        let (before, code) = (digits(SECRET, now / 30 - 1), digits(SECRET, now / 30));
        assert!(second.takes(&code, now));
        assert!(!second.takes(&code, now) && !second.takes(&code, now + 30), "a replay");
        assert!(!second.takes(&before, now), "an older code after a newer one");
        assert!(second.takes(&digits(SECRET, now / 30 + 1), now + 30));
        for wrong in ["", "0", "000000", "28708", "2870822", "\u{661}\u{662}\u{663}\u{664}\u{665}\u{666}"] {
            assert!(!second.takes(wrong, 59), "{wrong}");
        }
    }

    #[test]
    fn recovery_codes_count_once_and_in_any_case_of_letters() {
        let secret = letters(SECRET);
        let code = digits(SECRET, 1);
        let (mut second, codes) = Second::begin(&secret, &code, 59).unwrap().unwrap();
        assert!(Second::begin(&secret, "000000", 59).unwrap().is_none());
        assert!(Second::begin("AAAA", "000000", 59).unwrap().is_none(), "a secret that is too short");
        assert_eq!((codes.len(), second.recovery_count()), (RECOVERY_CODES, RECOVERY_CODES));
        assert!(!second.takes(&code, 59), "the code of the set-up counts as used");
        let spaced = format!("{}-{}", &codes[0][..8].to_lowercase(), &codes[0][8..]);
        assert!(second.takes(&spaced, 59) && !second.takes(&codes[0], 59) && second.takes(&codes[9], 59));
        assert_eq!(second.recovery_count(), RECOVERY_CODES - 2);
        let kept = second.to_string();
        assert!(codes.iter().all(|code| !kept.contains(code)));
        assert_eq!(kept.parse(), Ok(second));
        assert!("AAAA 0 ".parse::<Second>().is_err() && kept.replacen(' ', " x", 1).parse::<Second>().is_err());
    }

    #[test]
    fn without_a_device_recovery_codes_alone_count() {
        let (mut second, codes) = Second::without_device().unwrap();
        assert!(!second.has_device() && self::second().has_device());
        let key = bytes(&second.secret).unwrap();
        assert!(
            (-1..=1).all(|step| !second.takes(&digits(&key, step), 0)),
            "nobody has the secret, and it counts for nothing"
        );
        assert!(second.takes(&codes[0], 0) && !second.takes(&codes[0], 0));
        assert_eq!(second.to_string().parse::<Second>().map(|second| second.has_device()), Ok(false));
    }

    #[test]
    fn base32_goes_there_and_back() {
        assert_eq!(letters(b"foobar"), "MZXW6YTBOI");
        for length in 0..40 {
            let text: Vec<u8> = (0..length).map(|at: u8| at.wrapping_mul(83)).collect();
            assert_eq!(bytes(&letters(&text)), Some(text));
        }
        assert_eq!(bytes("M0"), None);
        assert_eq!(
            link("Sluice mx.test", "a b@x", "ABC"),
            "otpauth://totp/Sluice%20mx.test:a%20b@x?secret=ABC&issuer=Sluice%20mx.test&algorithm=SHA1&digits=6&period=30"
        );
    }
}
