//! Tokens that let a client past a block for some time: HMAC-SHA-256 over the site, the client and the end, under the group's key.
//!
//! E2Guardian's own tokens (MD5) are not taken.

use core::net::IpAddr;

use super::url::Url;

/// Bytes of a block of SHA-256.
const BLOCK_BYTES: usize = 64;
/// Hexadecimal digits of a code.
const CODE_DIGITS: usize = 64;

/// How long a group lets clients past a block.
#[derive(Debug, Clone)]
pub(super) struct Bypass {
    pub seconds: u64,
    pub key: Box<[u8]>,
}

impl Bypass {
    /// A token for the site of a URL, from now on.
    pub fn token(&self, url: &[u8], client: Option<IpAddr>, now: u64) -> String {
        let end = now.saturating_add(self.seconds);
        format!("{}{end}", self.code(url, client, end))
    }

    /// Whether a token holds for the site of a URL.
    pub fn accepts(&self, token: &str, url: &[u8], client: Option<IpAddr>, now: u64) -> bool {
        let Some((code, end)) = token.split_at_checked(CODE_DIGITS) else { return false };
        let Some(end) = end.parse::<u64>().ok().filter(|end| now <= *end) else { return false };
        let wanted = self.code(url, client, end);
        // Each byte is looked at, wherever the first wrong one is.
        let differences = code.bytes().zip(wanted.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
        differences == 0
    }

    fn code(&self, url: &[u8], client: Option<IpAddr>, end: u64) -> String {
        let client = client.map_or(String::new(), |client| client.to_canonical().to_string());
        let text = [&Url::read(url).host[..], b"\0", client.as_bytes(), b"\0", end.to_string().as_bytes()].concat();
        let code = hmac(&self.key, &text);
        code.iter().fold(String::with_capacity(CODE_DIGITS), |text, byte| text + &format!("{byte:02x}"))
    }
}

/// HMAC with SHA-256 (RFC 2104).
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0u8; BLOCK_BYTES];
    let hashed = digest::sha256::digest(key);
    let key = if key.len() > BLOCK_BYTES { &hashed[..] } else { key };
    block[..key.len()].copy_from_slice(key);
    let inner = digest::sha256::digest(&[&block.map(|byte| byte ^ 0x36), text].concat());
    digest::sha256::digest(&[&block.map(|byte| byte ^ 0x5c)[..], &inner].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_standard() {
        // RFC 4231, cases 2 and 6.
        let hex = |code: [u8; 32]| code.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let two = hex(hmac(b"Jefe", b"what do ya want for nothing?"));
        assert_eq!(two, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let six = hex(hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"));
        assert_eq!(six, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn a_token_holds_for_its_site_its_client_and_its_time() {
        let bypass = Bypass { seconds: 60, key: b"key"[..].into() };
        let client = "10.0.0.1".parse().ok();
        let token = bypass.token(b"http://a.test/x", client, 1000);
        assert!(bypass.accepts(&token, b"http://A.test/other", client, 1060));
        assert!(!bypass.accepts(&token, b"http://a.test/x", client, 1061));
        assert!(!bypass.accepts(&token, b"http://b.test/x", client, 1000));
        assert!(!bypass.accepts(&token, b"http://a.test/x", "10.0.0.2".parse().ok(), 1000));
        let later = format!("{}9999", &token[..CODE_DIGITS]);
        assert!(!bypass.accepts(&later, b"http://a.test/x", client, 1000));
        for wrong in ["", "x", &"\u{e9}".repeat(40)] {
            assert!(!bypass.accepts(wrong, b"http://a.test/x", client, 1000));
        }
    }
}
