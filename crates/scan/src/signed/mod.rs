//! What others have signed: certificates, and messages that vouch for other bytes.
//!
//! [`der`] walks over elements, [`certificate`] and [`message`] take certificates and signed messages apart, [`rsa`] checks
//! signatures. Whom to trust is for others to say: [`detached`], signatures beside containers; [`trust`], which follows
//! the rules ([`rule`]) on those who sign programs ([`program`]) and catalogues of them ([`catalogue`]). [`signers`] says who signed, whoever trusts them.
//!
//! Left out: elliptic curves and RSA-PSS, which neither uses, lists of revoked certificates, and constraints of names: a
//! certificate with a critical extension that is not known vouches for nothing.

pub(crate) mod catalogue;
mod certificate;
mod der;
pub(crate) mod detached;
pub(crate) mod message;
pub(crate) mod rsa;
pub(crate) mod rule;
pub(crate) mod signers;
pub(crate) mod trust;

/// Bytes of base 64, in one line or several.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut bits, mut count) = (Vec::with_capacity(text.len() / 4 * 3), 0u32, 0);
    for &letter in text.trim_ascii_end().strip_suffix(b"==").unwrap_or(text.trim_ascii_end()) {
        let digit = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' | b'\r' | b'\n' | b' ' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}
