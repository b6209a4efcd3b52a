//! Addresses of IP in text.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether all of it is an address.
pub fn is_ip(text: &[u8]) -> bool {
    parse(text).is_some()
}

/// Whether all of it is an address of version 4: four numbers, without leading zeros.
pub fn is_ipv4(text: &[u8]) -> bool {
    core::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv4Addr>().is_ok())
}

/// The address that all of the text is; `IPv6:` may stand before it.
pub fn parse(text: &[u8]) -> Option<IpAddr> {
    let text = core::str::from_utf8(text).ok()?;
    let rest = text.get(..5).filter(|start| start.eq_ignore_ascii_case("ipv6:")).and_then(|_| text.get(5..));
    match rest {
        Some(rest) => rest.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse().ok(),
    }
}

/// Whether hosts in a network of its own use it: private, link-local, shared or loopback addresses. As the rules have it:
/// unique local addresses of IPv6 are not among them.
pub fn is_private(text: &[u8]) -> bool {
    match parse(text) {
        Some(IpAddr::V4(address)) => is_private_v4(address),
        Some(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(address) => is_private_v4(address),
            None => address.is_loopback() || address.segments()[0] & 0xffc0 == 0xfe80,
        },
        None => false,
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    matches!((first, second), (10 | 127, _) | (169, 254) | (172, 16..=31) | (192, 168) | (100, 64..=127))
}

/// The first address in a text that stands free, without dots around it.
pub fn find(text: &[u8]) -> Option<&[u8]> {
    const BYTES_MAX: usize = 45;
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let run = |at: usize, part: &dyn Fn(&u8) -> bool| {
        text[at..].iter().take(BYTES_MAX + 1).take_while(|byte| part(byte)).count()
    };
    let mut at = 0;
    while at < text.len() {
        let before = at.checked_sub(1).map(|before| &text[before]);
        if before.is_some_and(|before| word(before) || b".:".contains(before)) {
            at += 1;
            continue;
        }
        let four = run(at, &|byte| byte.is_ascii_digit() || *byte == b'.');
        let six = run(at, &|byte| byte.is_ascii_hexdigit() || b".:".contains(byte));
        for length in [four, six] {
            let candidate = &text[at..at + length];
            if length > 0 && length <= BYTES_MAX && !text.get(at + length).is_some_and(word) && is_ip(candidate) {
                return Some(candidate);
            }
        }
        at += 1;
    }
    None
}

/// An address as lists have it (RFC 5782): its bytes or its digits in reverse.
pub(crate) fn reversed(text: &[u8]) -> Option<Vec<u8>> {
    Some(match parse(text)? {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}").into_bytes()
        }
        IpAddr::V6(address) => {
            let digits = address.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            digits.map(|digit| format!("{digit:x}")).collect::<Vec<_>>().join(".").into_bytes()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_where_they_stand_free() {
        for (text, found) in [
            ("from [192.0.2.1] by", Some("192.0.2.1")),
            ("x 1.2.3.4.5 y 10.0.0.1:25", Some("10.0.0.1")),
            ("v1.2.3.4", None),
            ("a 2001:db8::1, b", Some("2001:db8::1")),
            ("300.1.1.1", None),
        ] {
            assert_eq!(find(text.as_bytes()), found.map(str::as_bytes), "{text}");
        }
        assert!(is_private(b"192.168.3.4") && is_private(b"::1") && is_private(b"100.64.0.1"));
        assert!(!is_private(b"192.169.0.1") && !is_private(b"fd00::1"));
    }
}
