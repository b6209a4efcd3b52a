//! Login names, as far as a proxy can read them in the first responses of a SASL exchange (RFC 4422).
//!
//! Nothing is checked: the name only tells mailboxes apart. Passwords are not looked at. Mechanisms that would wrap the
//! stream in a layer of their own (GSSAPI, DIGEST-MD5), or bind to a channel that ends at us (`-PLUS`), cannot pass.

use alloc::string::String;
use alloc::vec::Vec;

/// Whether a mechanism works through somebody in the middle.
pub(crate) fn is_passable(mechanism: &str) -> bool {
    let known = ["PLAIN", "LOGIN", "CRAM-MD5", "XOAUTH2", "OAUTHBEARER", "EXTERNAL", "ANONYMOUS", "NTLM"];
    let mechanism = mechanism.to_ascii_uppercase();
    known.contains(&mechanism.as_str()) || mechanism.starts_with("SCRAM-") && !mechanism.ends_with("-PLUS")
}

/// The user name in the first non-empty response of a client, in Base64, if the mechanism sends it there.
pub(crate) fn user(mechanism: &str, response: &[u8]) -> Option<String> {
    let response = base64(response)?;
    let name = match mechanism.to_ascii_uppercase().as_str() {
        // [authorization] NUL authentication NUL password
        "PLAIN" => response.split(|&byte| byte == 0).nth(1)?,
        "LOGIN" => &response,
        // name blank digest
        "CRAM-MD5" => &response[..response.iter().rposition(|&byte| byte == b' ')?],
        // user=NAME SOH auth=...
        "XOAUTH2" => field(&response, b"user=", 1)?,
        // n,a=NAME,SOH auth=...
        "OAUTHBEARER" => field(&response, b"a=", b',')?,
        // n,,n=NAME,r=NONCE
        mechanism if mechanism.starts_with("SCRAM-") => {
            let bare = response.splitn(3, |&byte| byte == b',').nth(2)?;
            field(bare, b"n=", b',')?
        }
        _ => return None,
    };
    let name = core::str::from_utf8(name).ok()?;
    (!name.is_empty() && name.len() <= 255).then(|| name.into())
}

fn field<'a>(response: &'a [u8], name: &[u8], end: u8) -> Option<&'a [u8]> {
    response.split(|&byte| byte == end).find_map(|part| part.strip_prefix(name))
}

/// Base64 up to its padding.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    text::base64::decode(text.iter().copied().take_while(|&digit| digit != b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_found_in_each_mechanism() {
        for (mechanism, response) in [
            ("PLAIN", "AHRpbQB0YW5zdGFhZnRhbnN0YWFm"),
            ("login", "dGlt"),
            ("CRAM-MD5", "dGltIGI5MTNhNjAyYzdlZGE3YTQ5NWI0ZTZlNzMzNGQzODkw"),
            ("SCRAM-SHA-256", "biwsbj10aW0scj1yT3ByTkdmd0ViZVJXZ2JORWtxTw=="),
            ("XOAUTH2", "dXNlcj10aW0BYXV0aD1CZWFyZXIgeAEB"),
            ("OAUTHBEARER", "bixhPXRpbSwBYXV0aD1CZWFyZXIgeAEB"),
        ] {
            assert_eq!(user(mechanism, response.as_bytes()).as_deref(), Some("tim"), "{mechanism}");
        }
        for (mechanism, response) in [("PLAIN", "!"), ("PLAIN", ""), ("NTLM", "dGlt"), ("SCRAM-SHA-1", "bg==")] {
            assert_eq!(user(mechanism, response.as_bytes()), None);
        }
    }

    #[test]
    fn mechanisms_that_cannot_pass_are_known() {
        assert!(is_passable("plain") && is_passable("SCRAM-SHA-256"));
        assert!(!is_passable("SCRAM-SHA-256-PLUS") && !is_passable("GSSAPI") && !is_passable("DIGEST-MD5"));
    }
}
