//! Signed data of others: certificates, and messages that vouch for other bytes.
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
    let passed_over = |letter: &u8| matches!(letter, b'=' | b'\r' | b'\n' | b' ');
    text::base64::decode(text.trim_ascii_end().iter().copied().filter(|letter| !passed_over(letter)))
}
