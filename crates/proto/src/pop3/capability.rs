//! The lines of an answer to CAPA (RFC 2449): which of the server's the client may see.

use alloc::string::String;
use alloc::vec::Vec;

use crate::sasl;

/// Whether a line of the server's answer says that it offers `name`.
pub fn offers(line: &[u8], name: &str) -> bool {
    line.split(|&byte| byte == b' ').next().is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
}

/// Line of CAPA to send to the client for a line of the server; none if it is dropped.
///
/// STLS is not the server's to offer; what is not known is not offered; of SASL only what can pass remains.
pub fn offers_to_client(line: &[u8]) -> Option<Vec<u8>> {
    const KNOWN: [&str; 11] = [
        "TOP",
        "USER",
        "RESP-CODES",
        "AUTH-RESP-CODE",
        "LOGIN-DELAY",
        "PIPELINING",
        "EXPIRE",
        "UIDL",
        "IMPLEMENTATION",
        "UTF8",
        "LANG",
    ];
    if offers(line, "SASL") {
        let text = core::str::from_utf8(line).ok()?;
        let passable: Vec<&str> =
            text.split_ascii_whitespace().skip(1).filter(|word| sasl::is_passable(word)).collect();
        let told = (!passable.is_empty()).then(|| alloc::format!("SASL {}", passable.join(" ")));
        return told.map(String::into_bytes);
    }
    KNOWN.iter().any(|name| offers(line, name)).then(|| line.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_pass_is_offered() {
        let told = |line: &str| offers_to_client(line.as_bytes()).map(|line| String::from_utf8(line).unwrap());
        assert_eq!(told("SASL PLAIN GSSAPI SCRAM-SHA-1-PLUS LOGIN").as_deref(), Some("SASL PLAIN LOGIN"));
        assert_eq!(told("SASL GSSAPI"), None);
        assert_eq!(told("STLS"), None);
        assert_eq!(told("X-COMPRESS"), None);
        assert_eq!(told("expire NEVER").as_deref(), Some("expire NEVER"));
    }
}
