//! Facts that a trusted client gives about its own client: the attributes of Postfix's XFORWARD and XCLIENT
//! (XFORWARD_README, XCLIENT_README).
//!
//! `NAME=value` several times, values in xtext (RFC 3461, section 4). Bounds: [`ATTRIBUTES_MAX`] of
//! [`VALUE_BYTES_MAX`]. Which name means what is the host's to know; what says that it is not known is left out.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

const ATTRIBUTES_MAX: usize = 16;
const VALUE_BYTES_MAX: usize = 255;

/// Attributes of XFORWARD.
pub(super) const XFORWARD: [&str; 7] = ["NAME", "ADDR", "PORT", "PROTO", "HELO", "SOURCE", "IDENT"];

/// Attributes of XCLIENT.
pub(super) const XCLIENT: [&str; 8] = ["NAME", "ADDR", "PORT", "PROTO", "HELO", "LOGIN", "DESTADDR", "DESTPORT"];

/// The attributes behind a verb, if all are of those `known`: names in upper case, values in xtext as they came.
pub(super) fn parse(argument: &str, known: &[&str]) -> Option<Vec<(String, String)>> {
    let mut all = Vec::new();
    for word in argument.split_ascii_whitespace() {
        let (name, value) = word.split_once('=')?;
        let name = name.to_ascii_uppercase();
        let safe = value.len() <= VALUE_BYTES_MAX && value.bytes().all(|byte| byte.is_ascii_graphic());
        if !known.contains(&name.as_str()) || !safe || all.len() == ATTRIBUTES_MAX {
            return None;
        }
        all.push((name, value.into()));
    }
    (!all.is_empty()).then_some(all)
}

/// The value of an attribute in plain text; none if it was not told, is not known, or is no xtext.
pub fn attribute(attributes: &[(String, String)], name: &str) -> Option<String> {
    let (_, value) = attributes.iter().find(|(other, _)| other == name)?;
    if value.starts_with('[') && value.ends_with(']') {
        // [UNAVAILABLE], [TEMPUNAVAIL]
        return None;
    }
    let mut plain = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        plain.push(match byte {
            b'+' => (digit(bytes.next())? << 4 | digit(bytes.next())?) as u8,
            byte => byte,
        });
    }
    String::from_utf8(plain).ok().filter(|plain| !plain.chars().any(char::is_control))
}

/// The client's address (`ADDR`), of IPv6 marked as such or not.
pub fn address(attributes: &[(String, String)]) -> Option<IpAddr> {
    let text = attribute(attributes, "ADDR")?;
    let is_marked = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("IPv6:"));
    text.get(if is_marked { 5 } else { 0 }..)?.parse().ok()
}

/// A command with these attributes, in xtext.
pub(super) fn command(verb: &str, attributes: &[(&str, String)]) -> String {
    let mut line = String::from(verb);
    for (name, value) in attributes {
        let value: String = value.chars().filter(char::is_ascii_graphic).take(VALUE_BYTES_MAX).collect();
        line.push_str(&alloc::format!(" {name}={}", if value.is_empty() { "[UNAVAILABLE]" } else { &value }));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_meant() {
        let all = parse("addr=192.0.2.1 HELO=a+2Bb NAME=[UNAVAILABLE] PORT=+0A PROTO=+2 LOGIN=", &XCLIENT).unwrap();
        assert_eq!(attribute(&all, "ADDR").as_deref(), Some("192.0.2.1"));
        assert_eq!(address(&all), "192.0.2.1".parse().ok());
        assert_eq!(address(&[("ADDR".into(), "ipv6:2001:db8::1".into())]), "2001:db8::1".parse().ok());
        assert_eq!(attribute(&all, "HELO").as_deref(), Some("a+b"));
        assert_eq!(attribute(&all, "LOGIN").as_deref(), Some(""));
        for name in ["NAME", "PORT", "PROTO", "DESTADDR"] {
            assert_eq!(attribute(&all, name), None, "{name}");
        }
    }

    #[test]
    fn what_is_not_known_or_too_much_is_refused() {
        for wrong in ["", "ADDR", "SOURCE=LOCAL", &"ADDR=1 ".repeat(17), &alloc::format!("HELO={}", "x".repeat(256))] {
            assert_eq!(parse(wrong, &XCLIENT), None, "{wrong}");
        }
        assert!(parse("SOURCE=LOCAL IDENT=1", &XFORWARD).is_some());
    }
}
