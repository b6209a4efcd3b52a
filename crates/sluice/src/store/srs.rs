//! The Sender Rewriting Scheme: forwarded mail comes from an address here, which SPF allows, and what is sent back finds its way.
//!
//! ```text
//!   SRS0=HASH=DAY=HOST=USER@HERE             of USER@HOST
//!   SRS1=HASH=FIRST==HASH=DAY=HOST=USER@HERE  of SRS0=HASH=DAY=HOST=USER@FIRST: a second forwarder names the first one alone
//! ```
//!
//! The hash is of HMAC-SHA-1 with a secret, 4 digits of Base64, over what stands behind it in lower case; the day is of 1,024, in two digits of
//! Base32. An address is good for [`DAYS_MAX`] days. Secrets stand in a file, a line each: the first makes addresses, all know them.

use std::fs;
use std::path::Path;

use aws_lc_rs::hmac;
use mailbox::Rewriter;
use text::base64;

/// Days for which an address is good.
const DAYS_MAX: i64 = 21;

/// Days until they begin anew.
const DAYS: i64 = 1_024;

/// Digits of a hash.
const HASH_DIGITS: usize = 4;

/// The longest local part: beyond that servers refuse it more often than not (RFC 5321 asks for 64), and still most take it.
const LOCAL_BYTES_MAX: usize = 200;

const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Signs of which one parts the fields of other programs.
const SEPARATORS: [char; 3] = ['=', '+', '-'];

/// Rewrites senders for one site.
pub struct Srs {
    keys: Vec<hmac::Key>,
    domain: String,
}

impl Srs {
    /// With the secrets of a file, for addresses at this domain.
    ///
    /// # Errors
    /// When it cannot be read, or holds no secret of 8 bytes.
    pub fn read(path: &Path, domain: &str) -> Result<Srs, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Srs::new(&text, domain).ok_or_else(|| format!("{}: a secret of 8 bytes at least, a line each", path.display()))
    }

    fn new(text: &str, domain: &str) -> Option<Srs> {
        let secrets: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_right = !secrets.is_empty() && secrets.iter().all(|secret| secret.len() >= 8);
        let key = |secret: &&str| hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
        is_right.then(|| Srs { keys: secrets.iter().map(key).collect(), domain: domain.to_ascii_lowercase() })
    }

    fn hash(&self, key: &hmac::Key, parts: &[&str]) -> String {
        let mut context = hmac::Context::with_key(key);
        parts.iter().for_each(|part| context.update(part.to_ascii_lowercase().as_bytes()));
        let mut hash = base64::encode(context.sign().as_ref());
        hash.truncate(HASH_DIGITS);
        hash
    }

    /// Servers on the way may change the case.
    fn is_hash(&self, hash: &str, parts: &[&str]) -> bool {
        hash.len() == HASH_DIGITS && self.keys.iter().any(|key| self.hash(key, parts).eq_ignore_ascii_case(hash))
    }
}

impl Rewriter for Srs {
    fn forward(&self, from: &str, now: i64) -> Option<String> {
        let (local, host) = from.rsplit_once('@').filter(|(_, host)| !host.eq_ignore_ascii_case(&self.domain))?;
        let key = self.keys.first()?;
        let rewritten = match kind(local) {
            // Of one that a second forwarder has rewritten, only the hash is ours.
            Some((1, rest)) => {
                let (_, rest) = rest.split_once('=')?;
                let (first, user) = rest.split_once('=')?;
                format!("SRS1={}={first}={user}", self.hash(key, &[first, user]))
            }
            Some((_, rest)) => {
                let user = format!("{}{rest}", local.get(4..5)?);
                format!("SRS1={}={host}={user}", self.hash(key, &[host, &user]))
            }
            None => {
                let day = day(now);
                format!("SRS0={}={day}={host}={local}", self.hash(key, &[&day, host, local]))
            }
        };
        (rewritten.len() <= LOCAL_BYTES_MAX).then(|| format!("{rewritten}@{}", self.domain))
    }

    fn reverse(&self, to: &str, now: i64) -> Option<String> {
        let (local, host) = to.rsplit_once('@')?;
        if !host.eq_ignore_ascii_case(&self.domain) {
            return None;
        }
        let (number, rest) = kind(local)?;
        let (hash, rest) = rest.split_once('=')?;
        if number == 1 {
            let (first, user) = rest.split_once('=')?;
            let is_ours = self.is_hash(hash, &[first, user]) && user.starts_with(SEPARATORS);
            return is_ours.then(|| format!("SRS0{user}@{first}"));
        }
        let mut parts = rest.splitn(3, '=');
        let (day, host, user) = (parts.next()?, parts.next()?, parts.next()?);
        let is_ours = self.is_hash(hash, &[day, host, user]) && is_recent(day, now);
        (is_ours && !host.is_empty() && !user.is_empty()).then(|| format!("{user}@{host}"))
    }
}

/// Whether a local part is `SRS0` or `SRS1`, and what stands behind its separator.
fn kind(local: &str) -> Option<(u8, &str)> {
    let (tag, rest) = local.split_at_checked(4)?;
    let number = match tag.to_ascii_uppercase().as_str() {
        "SRS0" => 0,
        "SRS1" => 1,
        _ => return None,
    };
    rest.strip_prefix(SEPARATORS).map(|rest| (number, rest))
}

fn day(now: i64) -> String {
    let day = usize::try_from(now.div_euclid(86_400).rem_euclid(DAYS)).unwrap_or(0);
    [DIGITS[day >> 5 & 31], DIGITS[day & 31]].iter().map(|&digit| digit as char).collect()
}

fn is_recent(day: &str, now: i64) -> bool {
    let digit = |byte: u8| DIGITS.iter().position(|&digit| digit == byte.to_ascii_uppercase());
    let digits: Option<Vec<usize>> = day.bytes().map(digit).collect();
    let Some(&[high, low]) = digits.as_deref() else { return false };
    let then = i64::try_from(high << 5 | low).unwrap_or(0);
    (now.div_euclid(86_400) - then).rem_euclid(DAYS) <= DAYS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_000_000;

    fn srs(domain: &str) -> Srs {
        Srs::new("tops3cr3t\nolder-secret\n", domain).unwrap()
    }

    #[test]
    fn a_sender_comes_back_over_one_forwarder_and_over_two() {
        let (first, second, third) = (srs("first.test"), srs("second.test"), srs("third.test"));
        let one = first.forward("Ann+x=y@example.org", NOW).unwrap();
        assert!(one.starts_with("SRS0=") && one.ends_with("=example.org=Ann+x=y@first.test"), "{one}");
        assert_eq!(first.reverse(&one, NOW).as_deref(), Some("Ann+x=y@example.org"));
        let two = second.forward(&one, NOW).unwrap();
        assert!(two.starts_with("SRS1=") && two.contains("=first.test==") && two.ends_with("@second.test"), "{two}");
        assert_eq!(second.reverse(&two, NOW).as_deref(), Some(one.as_str()));
        let three = third.forward(&two, NOW).unwrap();
        assert_eq!(third.reverse(&three, NOW).as_deref(), Some(one.as_str()), "it goes to the first at once");
        assert_eq!(first.forward("ann@FIRST.test", NOW), None, "it is one of ours");
    }

    #[test]
    fn only_addresses_of_ours_come_back_and_not_for_ever() {
        let srs = srs("mx.test");
        let one = srs.forward("ann@example.org", NOW).unwrap();
        assert_eq!(srs.reverse(&one.to_ascii_lowercase(), NOW).as_deref(), Some("ann@example.org"));
        assert!(srs.reverse(&one, NOW + DAYS_MAX * 86_400).is_some());
        assert_eq!(srs.reverse(&one, NOW + (DAYS_MAX + 1) * 86_400), None);
        assert_eq!(srs.reverse(&one, NOW - 86_400), None, "it is of tomorrow");
        for wrong in [
            one.replace("ann", "eve"),
            one.replace("mx.test", "other.test"),
            one.replace("SRS0=", "SRS2="),
            "SRS0=@mx.test".into(),
            "SRS0=aaaa=AA=@mx.test".into(),
            "SRS1=aaaa=x@mx.test".into(),
            "SRS0\u{fc}@mx.test".into(),
        ] {
            assert_eq!(srs.reverse(&wrong, NOW), None, "{wrong}");
        }
        let older = Srs::new("older-secret", "mx.test").unwrap().forward("ann@example.org", NOW).unwrap();
        assert!(srs.reverse(&older, NOW).is_some(), "a former secret is known");
        assert!(Srs::new("short", "x").is_none() && Srs::new("\n", "x").is_none());
        assert_eq!(srs.forward(&format!("{}@example.org", "a".repeat(300)), NOW), None);
    }
}
