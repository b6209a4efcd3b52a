//! AUTH (RFC 4954) as somebody in the middle has to know it: which mechanisms pass, and what a response looks like.
//!
//! Nothing is checked here, and nothing is kept. Not offered: mechanisms that wrap the stream or bind to it, and those
//! that would take the middle for the client (EXTERNAL) or say nothing (ANONYMOUS).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Mechanisms that work through somebody in the middle, by the names that they are passed on by.
const KNOWN: [&str; 9] =
    ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "CRAM-MD5", "PLAIN", "LOGIN", "XOAUTH2", "OAUTHBEARER", "NTLM"];

/// A line of an exchange with its end: what RFC 4954, section 4, asks for.
pub const AUTH_LINE_BYTES_MAX: usize = 12_288 + 2;

/// Some of the mechanisms that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mechanisms(u16);

impl Mechanisms {
    /// All that are known.
    pub const ALL: Mechanisms = Mechanisms((1 << KNOWN.len()) - 1);

    /// None of them.
    pub const NONE: Mechanisms = Mechanisms(0);

    /// The known mechanisms among these names.
    pub fn of(names: &[&str]) -> Mechanisms {
        let mut some = Mechanisms::NONE;
        some.learn(names.iter().copied());
        some
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this one is among them.
    pub fn has(self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Adds the mechanisms in a line of an answer to EHLO, after the keyword.
    pub(super) fn learn<'a>(&mut self, words: impl Iterator<Item = &'a str>) {
        for word in words {
            let known = KNOWN.iter().position(|name| name.eq_ignore_ascii_case(word));
            self.0 |= known.map_or(0, |at| 1 << at);
        }
    }

    /// The name of one of them, whatever its case.
    pub(super) fn find(self, name: &str) -> Option<&'static str> {
        self.names().find(|known| known.eq_ignore_ascii_case(name))
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        KNOWN.into_iter().enumerate().filter(move |(at, _)| self.0 & 1 << at != 0).map(|(_, name)| name)
    }
}

/// A client's response in an exchange, in Base64: most likely a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// A response, or what gives up the exchange if it cannot be one.
    pub(super) fn new(line: Vec<u8>) -> Secret {
        if is_base64(&line) { Secret(line) } else { Secret(b"*".to_vec()) }
    }

    /// As it goes over the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Login name, if this mechanism has it in this response.
    pub fn user(&self, mechanism: &str) -> Option<String> {
        crate::sasl::user(mechanism, &self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Whether this can be a response or a challenge.
pub(super) fn is_base64(text: &[u8]) -> bool {
    text.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_that_cannot_pass_are_not_learnt() {
        let mut learnt = Mechanisms::default();
        learnt.learn("plain GSSAPI SCRAM-SHA-256-PLUS EXTERNAL ANONYMOUS Login DIGEST-MD5".split(' '));
        assert_eq!(learnt.names().collect::<Vec<_>>(), ["PLAIN", "LOGIN"]);
        assert_eq!((learnt.find("pLaIn"), learnt.find("NTLM")), (Some("PLAIN"), None));
        assert!(Mechanisms::ALL.names().all(crate::sasl::is_passable));
    }

    #[test]
    fn a_secret_is_not_shown_and_what_cannot_be_one_gives_up() {
        let secret = Secret::new(b"AHRpbQB0YW5zdGFhZnRhbnN0YWFm".to_vec());
        assert_eq!(alloc::format!("{secret:?}"), "Secret");
        assert_eq!(secret.user("PLAIN").as_deref(), Some("tim"));
        assert_eq!(Secret::new(b"a b".to_vec()).as_bytes(), b"*");
        assert_eq!(Secret::new(b"a\rQUIT".to_vec()).as_bytes(), b"*");
    }
}
