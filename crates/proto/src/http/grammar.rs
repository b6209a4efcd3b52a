//! Classes of bytes (RFC 9110, section 5.6; RFC 3986).

/// True for a byte of a token: methods and field names.
pub(super) const fn is_token(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
    ) || byte.is_ascii_alphanumeric()
}

/// True for a byte that may stand in a target. Bytes from 0x80 on are no URI, but browsers and curl send them, and servers
/// take them; they cannot change where the target ends.
pub(super) const fn is_target(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// True for `host[:port]`: a name, an IPv4 address or an IPv6 address in brackets, without user information.
pub(super) fn is_authority(text: &[u8]) -> bool {
    let (host, port) = match text.iter().rposition(|&byte| byte == b']') {
        Some(end) => text.split_at(end.saturating_add(1)),
        None => text.split_at(text.iter().position(|&byte| byte == b':').unwrap_or(text.len())),
    };
    let is_host = match host.strip_prefix(b"[") {
        Some(rest) => rest.strip_suffix(b"]").is_some_and(|address| {
            !address.is_empty() && address.iter().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'))
        }),
        None => !host.is_empty() && host.iter().all(|&byte| is_host(byte)),
    };
    let is_port = match port.strip_prefix(b":") {
        Some(digits) => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        None => port.is_empty(),
    };
    is_host && is_port
}

const fn is_host(byte: u8) -> bool {
    matches!(
        byte,
        b'-' | b'.' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
    ) || byte.is_ascii_alphanumeric()
        || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_host_and_a_port() {
        for good in ["a", "a.example:80", "192.0.2.1:8080", "[2001:db8::1]", "[::1]:443", "a:", "xn--bcher-kva.example"]
        {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in ["", ":80", "a:b", "a:123456", "u@a", "a/b", "[::1", "[]", "[::1]x", "a b", "a:80:80", "[g]"] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }
}
