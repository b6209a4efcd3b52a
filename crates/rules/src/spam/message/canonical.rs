//! Canonical forms of a URI: decoded, its host cleaned, its redirection targets.

use std::collections::BTreeSet;

use super::Reading;
use super::perl::{begins, find, trim};
use text::host::ascii_of_escaped;

/// As many are followed that stand in each other.
const REDIRECTIONS_MAX: usize = 100;

/// The address and all that it comes to.
pub(super) fn spellings(uri: &[u8], reading: &Reading) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    let mut queue = vec![uri.to_vec()];
    let mut at = 0;
    while at < queue.len() && at < REDIRECTIONS_MAX {
        let uri: Vec<u8> = queue[at].iter().copied().filter(|byte| *byte != b'\n').collect();
        let uri: Vec<u8> = trim(&uri).iter().copied().filter(|byte| *byte != b'\r').collect();
        at += 1;
        let is_part = matches!(uri.first(), Some(b'#' | b'?' | b'&'))
            || (uri.first() == Some(&b'/') && uri.get(1) != Some(&b'/'));
        if uri.len() > 1 && !is_part {
            if begins(&uri, b"mailto:") || is_mail(&uri) {
                mail(&uri, &mut all);
            } else {
                queue.extend(web(&uri, reading, &mut all));
            }
        }
        all.insert(uri);
    }
    all
}

/// Something before the first colon is an address.
fn is_mail(uri: &[u8]) -> bool {
    let end = memchr::memchr(b':', uri).unwrap_or(uri.len());
    uri[..end].contains(&b'@')
}

/// A mail address without what stands around it.
fn mail(uri: &[u8], all: &mut BTreeSet<Vec<u8>>) {
    let Some(at) = memchr::memchr(b'@', uri) else { return };
    let behind = &uri[at + 1..];
    for stops in [&b"?"[..], b"?&"] {
        let length = behind.iter().take_while(|byte| !stops.contains(byte)).count();
        let stop = stops[stops.len() - 1];
        if at > 0 && length > 0 && behind.get(length) == Some(&stop) {
            all.insert(uri[..at + 1 + length].to_vec());
        }
    }
    if memchr::memmem::find(uri, b"%20").is_some() {
        let mut begin = if begins(uri, b"mailto:") { 7 } else { 0 };
        while uri[begin..].starts_with(b"%20") {
            begin += 3;
        }
        let length = behind.iter().take_while(|byte| !b"?&%".contains(byte)).count();
        if at > begin && length > 0 {
            all.insert([b"mailto:", &uri[begin..at + 1 + length]].concat());
        }
    }
    let quoted = uri.iter().take_while(|byte| !b"?&".contains(byte)).count();
    let candidates = (0..quoted).rev().filter(|at| uri[*at] == b'<');
    for begin in candidates {
        let inner = &uri[begin + 1..];
        let at = inner.iter().take_while(|byte| !b"@>".contains(byte)).count();
        let end = at + 1 + inner.get(at + 1..).map_or(0, |rest| rest.iter().take_while(|byte| **byte != b'>').count());
        if at > 0 && inner.get(at) == Some(&b'@') && end > at + 1 && inner.get(end) == Some(&b'>') {
            all.insert([b"mailto:", &inner[..end]].concat());
            return;
        }
    }
}

/// Whether something is escaped with `%`.
pub(super) fn has_escape(uri: &[u8]) -> bool {
    uri.windows(3).any(|window| window[0] == b'%' && window[1].is_ascii_hexdigit() && window[2].is_ascii_hexdigit())
}

/// Normalises the escapes of a URI: needless ones are removed, missing ones added.
pub(super) fn unescaped(uri: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(uri.len());
    let mut rest = uri;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if let (b'%', [high, low, ..]) = (byte, behind)
            && high.is_ascii_hexdigit()
            && low.is_ascii_hexdigit()
        {
            let digit =
                |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0);
            let value = digit(*high) * 16 + digit(*low);
            match value {
                0x21..=0x7e => out.push(value),
                _ => out.extend_from_slice(&[b'%', *high, *low]),
            }
            rest = &behind[2..];
        } else if matches!(byte, 0..=0x20 | 0x7f.. | b'"' | b'%' | b'<' | b'>') {
            out.extend_from_slice(format!("%{byte:02x}").as_bytes());
        } else {
            out.push(byte);
        }
    }
    out
}

/// The spellings of an address of the web; what it redirects to.
fn web(uri: &[u8], reading: &Reading, all: &mut BTreeSet<Vec<u8>>) -> Option<Vec<u8>> {
    let uri = decoded(uri);
    all.insert(uri.clone());
    let (scheme, mut host, rest) = split(&uri)?;
    let has_user = uri.len() > scheme.len() + host.len() + rest.len();
    let joined = |host: &[u8], rest: &[u8]| [scheme, host, rest].concat();
    let digits = rest.strip_prefix(b":").map(|rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let port = digits.map_or(&b""[..], |digits| &rest[1..1 + digits]);
    let is_http = scheme == b"http://";
    let default: &[u8] = if is_http { b"80" } else { b"443" };
    let mut rest_without = rest;
    if port.starts_with(default)
        && (port == default && !rest.get(1 + port.len()).is_some_and(|byte| super::perl::is_word_byte(*byte)))
    {
        rest_without = &rest[1 + port.len()..];
        all.insert(joined(&host, rest_without));
    }
    let in_ascii = ascii_of_escaped(&host);
    if in_ascii != host.to_ascii_lowercase() {
        all.insert(joined(&in_ascii, rest));
        if !port.is_empty() && !rest_without.is_empty() {
            all.insert(joined(&in_ascii, rest_without));
        }
        host = in_ascii.clone();
    }
    if host.iter().any(|byte| *byte <= 0x20) {
        host.retain(|byte| *byte > 0x20);
        all.insert(joined(&host, rest));
    }
    let whole = joined(&host, rest);
    let target =
        reading.redirectors.as_ref().and_then(|redirectors| redirectors.target(&whole)).or_else(|| inner(rest));
    if let Some(at) = host.iter().rposition(|byte| *byte == b'@') {
        host.drain(..=at);
        all.insert(joined(&host, rest));
    }
    let end = host.iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |last| last + 1);
    if end < host.len() {
        host.truncate(end);
        all.insert(joined(&host, rest));
    }
    let is_plain = is_http && !has_user && (port.is_empty() || port == b"80");
    if let Some(address) = address(&host) {
        all.insert(joined(&address, rest));
    } else if let Some(name) = bare_name(&in_ascii).filter(|name| is_plain && *name != b"localhost")
        && !reading.is_known(&in_ascii)
    {
        all.insert([scheme, b"www.", name, b".com", rest].concat());
    }
    target
}

/// An address decoded.
fn decoded(uri: &[u8]) -> Vec<u8> {
    let mut uri: Vec<u8> = uri.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect();
    for scheme in ["https:", "http:"] {
        if begins(&uri, scheme.as_bytes()) {
            let slashes = uri[scheme.len()..].iter().take(2).take_while(|byte| **byte == b'/').count();
            uri.splice(scheme.len()..scheme.len() + slashes, *b"//");
            break;
        }
    }
    if has_escape(&uri) {
        uri = unescaped(&uri);
    }
    let word = uri.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')).count();
    if word == 0 || uri.get(word) != Some(&b':') {
        let scheme: &[u8] = if uri.starts_with(b"ftp.") { b"ftp://" } else { b"http://" };
        uri = [scheme, &uri].concat();
    }
    if let Some(scheme) = scheme(&uri) {
        let end = scheme + uri[scheme..].iter().take_while(|byte| !b"/?#".contains(byte)).count();
        if end > scheme && matches!(uri.get(end), Some(b'?' | b'#')) {
            uri.insert(end, b'/');
        }
    }
    references_undone(&uri)
}

/// The length of `http://` or `https://`.
fn scheme(uri: &[u8]) -> Option<usize> {
    ["https://", "http://"].iter().find(|scheme| begins(uri, scheme.as_bytes())).map(|scheme| scheme.len())
}

/// References to characters that can be seen, and to what counts as a dot.
fn references_undone(uri: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(uri.len());
    let mut rest = uri;
    while let Some(at) = memchr::memmem::find(rest, b"&#") {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match reference(&rest[2..]) {
            Some((byte, length)) => {
                out.push(byte);
                rest = &rest[2 + length..];
            }
            None => {
                out.extend_from_slice(b"&#");
                rest = &rest[2..];
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

fn reference(text: &[u8]) -> Option<(u8, usize)> {
    let end = text.iter().take(64).position(|byte| *byte == b';')?;
    let number = std::str::from_utf8(&text[..end]).ok()?;
    let dots = ["x2e", "12290", "x3002", "65294", "xff0e", "65377", "xff61"];
    if dots.iter().any(|dot| number.eq_ignore_ascii_case(dot)) {
        return Some((b'.', end + 1));
    }
    let value = match number.strip_prefix('x') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => u32::from_str_radix(digits, 16).ok()?,
        None if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse().ok()?,
        _ => return None,
    };
    let byte = u8::try_from(value).ok()?;
    (0x21..=0x7e).contains(&byte).then_some((byte, end + 1))
}

/// The scheme, the host, and what is behind it.
fn split(uri: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
    let begin = scheme(uri)?;
    let user = uri[begin..].iter().position(|byte| b"@/?#".contains(byte)).filter(|at| uri[begin + at] == b'@');
    let behind = |from: usize| uri[from..].iter().take_while(|byte| !b"/?#:".contains(byte)).count();
    let host = user.map_or(begin, |at| begin + at + 1);
    let (host, length) = match behind(host) {
        0 => (begin, behind(begin)),
        length => (host, length),
    };
    let end = host + length;
    (length > 0 && !uri[end..].contains(&b'\n')).then(|| (&uri[..begin], uri[host..end].to_vec(), &uri[end..]))
}

/// An address within the rest of one.
fn inner(rest: &[u8]) -> Option<Vec<u8>> {
    let mut from = 0;
    loop {
        let at = find(rest, b"http", from)?;
        from = at + 4;
        let behind = &rest[at + 4..];
        let behind = if begins(behind, b"s:") {
            &behind[2..]
        } else if behind.first() == Some(&b':') {
            &behind[1..]
        } else {
            continue;
        };
        let length = behind.iter().take_while(|byte| !b"&#".contains(byte)).count();
        if length == 0 {
            continue;
        }
        let target = &rest[at..rest.len() - behind.len() + length];
        return target.contains(&b'.').then(|| target.to_vec());
    }
}

/// A host that is an IP address in another spelling, in the usual one.
fn address(host: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(host).ok()?.to_ascii_lowercase();
    let octets: Vec<&str> = text.split('.').collect();
    let is_number = |text: &&str| match text.strip_prefix("0x") {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
    };
    if !octets.iter().all(is_number) {
        return None;
    }
    match octets[..] {
        [one] => Some(of_number(one)),
        [_, _, _, _] => Some(octets.iter().map(|octet| plain_octet(octet)).collect::<Vec<_>>().join(".").into_bytes()),
        _ => None,
    }
}

/// One number for all four.
fn of_number(text: &str) -> Vec<u8> {
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(&digits[digits.len().saturating_sub(8)..], 16).unwrap_or(0),
        None => text.parse().unwrap_or(u64::MAX),
    };
    // Of longer numbers the first digits count.
    let digits = format!("{value:08x}");
    let octets: Vec<String> =
        (0..4).map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap_or(0).to_string()).collect();
    octets.join(".").into_bytes()
}

/// An octet, hexadecimal or octal, as a decimal number without zeros before it.
fn plain_octet(text: &str) -> String {
    let decimal = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap_or(u64::MAX).to_string(),
        None => text.to_owned(),
    };
    let digits = decimal.trim_start_matches('0');
    let is_octal = digits.len() < decimal.len()
        && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte))
        && (1..=3).contains(&digits.len())
        && (digits.len() < 3 || digits.as_bytes()[0] < b'4');
    match u64::from_str_radix(digits, 8) {
        Ok(value) if is_octal => value.to_string(),
        _ => digits.to_owned(),
    }
}

/// A host of one label, `www.` taken off.
fn bare_name(host: &[u8]) -> Option<&[u8]> {
    let name = host.strip_prefix(b"www.").filter(|name| !name.is_empty()).unwrap_or(host);
    (!name.is_empty() && !name.contains(&b'.')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(uri: &str) -> Vec<String> {
        spellings(uri.as_bytes(), &Reading::default())
            .iter()
            .map(|uri| String::from_utf8_lossy(uri).into_owned())
            .collect()
    }

    #[test]
    fn addresses_are_cleared_up() {
        assert_eq!(all("http://%77ww.a.com"), ["http://%77ww.a.com", "http://www.a.com"]);
        assert_eq!(all("www.a.com?x"), ["http://www.a.com/?x", "www.a.com?x"]);
        assert_eq!(all("http://0x7f000001/"), ["http://0x7f000001/", "http://127.0.0.1/"]);
        assert_eq!(all("http://0177.0x0.0.01/"), ["http://0177.0x0.0.01/", "http://127...1/"]);
        assert_eq!(all("http://a.b/?u=http://c.d/&e"), ["http://a.b/?u=http://c.d/&e", "http://c.d/"]);
        assert_eq!(all("http://a.com:80/"), ["http://a.com/", "http://a.com:80/"]);
        assert_eq!(all("http://foo/"), ["http://foo/", "http://www.foo.com/"]);
        assert_eq!(all("mailto:a@b.c?subject=d"), ["mailto:a@b.c", "mailto:a@b.c?subject=d"]);
        assert_eq!(all("#top"), ["#top"]);
        assert_eq!(all("http://ev%C2%ADil.com/"), ["http://ev%C2%ADil.com/", "http://evil.com/"]);
        assert_eq!(all("http://ev%E2%81%A0il.com/"), ["http://ev%E2%81%A0il.com/", "http://evil.com/"]);
    }
}
