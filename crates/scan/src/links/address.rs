//! The address of a link, as far as it tells where the link leads.

use std::borrow::Cow;

/// The longest address that is looked at.
const BYTES_MAX: usize = 2048;

/// Endings of hosts that are told without a scheme, beside those of two letters.
const ENDINGS: [&str; 24] = [
    "com", "net", "org", "edu", "gov", "mil", "int", "info", "biz", "name", "pro", "aero", "coop", "museum", "jobs",
    "mobi", "travel", "arpa", "asia", "cat", "tel", "post", "bank", "online",
];

/// Labels below an ending of two letters that anybody can have a domain in.
const SHARED: [&str; 20] = [
    "co", "com", "org", "net", "edu", "gov", "gob", "ac", "or", "ne", "go", "ltd", "plc", "me", "sch", "nhs", "mod",
    "nom", "mil", "id",
];

/// An address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: Box<str>,
    pub(crate) is_secure: bool,
    /// Whether there is a NUL in its host, or what some programs take for one.
    pub(crate) is_cloaked: bool,
}

impl Address {
    /// Reads where a link leads; nothing if that is no host.
    pub(crate) fn parse(text: &str) -> Option<Address> {
        let text: String = text.trim().chars().take(BYTES_MAX).filter(|letter| !letter.is_whitespace()).collect();
        let text = text.to_ascii_lowercase();
        let scheme = ["http://", "https://", "ftp://"].into_iter().find(|scheme| text.starts_with(scheme));
        let rest = &text[scheme.map_or(0, str::len)..];
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let authority = &rest[..end];
        let host = authority.rsplit('@').next().unwrap_or_default();
        if scheme.is_none() && authority.contains('@') {
            return None;
        }
        let (host, port) = host.split_once(':').unwrap_or((host, ""));
        let host = plain(host);
        let host = host.trim_end_matches('.');
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        if host.is_empty() || !is_port || (scheme.is_none() && !has_ending(host)) {
            return None;
        }
        Some(Address {
            host: host.into(),
            is_secure: scheme == Some("https://"),
            is_cloaked: ["%00", "%01", "\0", "\u{1}"].iter().any(|cloak| authority.contains(cloak)),
        })
    }

    /// Reads what a link shows; nothing if that is no address.
    pub(crate) fn shown(text: &str) -> Option<Address> {
        let address = Address::parse(text)?;
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_');
        address.host.chars().all(plain).then_some(address)
    }

    /// Whether it is this host, or one in it.
    pub(crate) fn lies_in(&self, host: &str) -> bool {
        self.host.strip_suffix(host).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }

    /// The domain that somebody has: two labels, or three where the upper two are shared.
    pub(crate) fn domain(&self) -> &str {
        let mut dots = self.host.rmatch_indices('.').map(|(at, _)| at);
        let (Some(last), Some(second)) = (dots.next(), dots.next()) else {
            return &self.host;
        };
        if self.host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return &self.host;
        }
        let is_shared = self.host.len() - last == 3 && SHARED.contains(&&self.host[second + 1..last]);
        let start = if is_shared { dots.next().map_or(0, |third| third + 1) } else { second + 1 };
        &self.host[start..]
    }
}

/// The host and the path of an address of the web in the spelling of Safe Browsing: without user, port and fragment, with
/// escapes only where they have to be, without empty labels and folders, and `.` and `..` followed.
pub(crate) fn canonical(text: &str) -> Option<(String, String)> {
    let text: String = text.trim().chars().take(BYTES_MAX).filter(|letter| !"\t\r\n".contains(*letter)).collect();
    let (scheme, rest) = text.split_once(':')?;
    if !["http", "https", "ftp"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    let rest = rest.trim_start_matches(['/', '\\']).split('#').next().unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(host, |(host, _)| host);
    let host = unescaped(host).to_ascii_lowercase();
    let labels: Vec<_> = host.split(|byte| *byte == b'.').filter(|label| !label.is_empty()).collect();
    let (folders, query) = path.split_once('?').map_or((path, None), |(folders, query)| (folders, Some(query)));
    let query = query.map(|query| format!("?{}", escaped(&unescaped(query)))).unwrap_or_default();
    let path = escaped(&followed(&unescaped(folders))) + &query;
    let host = labels.join(&b'.');
    let host = mapped(&host).unwrap_or_else(|| escaped(&host));
    (!labels.is_empty()).then_some((host, path))
}

/// A host without escapes, as browsers map it; as it is where that makes no name.
fn plain(host: &str) -> Cow<'_, str> {
    if host.is_ascii() && !host.contains('%') {
        return Cow::Borrowed(host);
    }
    let bytes = unescaped(host);
    let is_name = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    let name = mapped(&bytes).or_else(|| String::from_utf8(bytes.to_ascii_lowercase()).ok().filter(is_name));
    name.map_or(Cow::Borrowed(host), Cow::Owned)
}

/// A host with letters beyond ASCII as browsers map it (UTS 46); none without such letters, or where that forbids them.
fn mapped(host: &[u8]) -> Option<String> {
    let host = str::from_utf8(host).ok().filter(|host| !host.is_ascii())?;
    text::host::mapped(host).filter(|host| !host.is_empty())
}

/// A path without empty folders, `.` and `..`.
fn followed(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let names = path.split(|byte| *byte == b'/');
    let is_folder = names.clone().next_back().is_none_or(|last| matches!(last, b"" | b"." | b".."));
    for name in names {
        match name {
            b"" | b"." => {}
            b".." => _ = kept.pop(),
            name => kept.push(name),
        }
    }
    let mut path = [b"/", kept.join(&b'/').as_slice()].concat();
    if is_folder && path.len() > 1 {
        path.push(b'/');
    }
    path
}

/// Without any escapes, those that come out of escapes neither.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    loop {
        let mut plain = Vec::with_capacity(bytes.len());
        let mut rest = &bytes[..];
        while let Some((&first, behind)) = rest.split_first() {
            let digit = |at: usize| behind.get(at).and_then(|byte| char::from(*byte).to_digit(16));
            match (first, digit(0), digit(1)) {
                (b'%', Some(high), Some(low)) => {
                    plain.push((high << 4 | low) as u8);
                    rest = &behind[2..];
                }
                _ => {
                    plain.push(first);
                    rest = behind;
                }
            }
        }
        if plain.len() == bytes.len() {
            return plain;
        }
        bytes = plain;
    }
}

/// With escapes for what is no visible letter of ASCII, and for `#` and `%`.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'#' | b'%' | ..=b' ' | 0x7f.. => {
                let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
                text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
            _ => text.push(char::from(byte)),
        }
    }
    text
}

fn has_ending(host: &str) -> bool {
    let ending = host.rsplit_once('.').filter(|(before, _)| !before.is_empty()).map(|(_, ending)| ending);
    ending.is_some_and(|ending| {
        let is_country = ending.len() == 2 && ending.bytes().all(|byte| byte.is_ascii_lowercase());
        is_country || ending.starts_with("xn--") || ENDINGS.contains(&ending)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Option<Box<str>> {
        Address::parse(text).map(|address| address.host)
    }

    #[test]
    fn an_address_has_a_host_or_leads_nowhere() {
        for (text, wanted) in [
            (" HTTP://a:b@Evil.NET.:80/x?y", Some("evil.net")),
            ("evil.net/x", Some("evil.net")),
            ("http://evil", Some("evil")),
            ("bank. com", Some("bank.com")),
            ("http://Ev\u{ad}il.net", Some("evil.net")),
            ("http://\u{ff45}vil\u{3002}net", Some("evil.net")),
            ("http://ev%C2%ADil.net", Some("evil.net")),
            ("http://%65vil.n%45t", Some("evil.net")),
            ("http://evil.net%00.a.net", Some("evil.net%00.a.net")),
            ("evil\u{3002}net", Some("evil.net")),
            ("\u{24d4}vil.\u{ff4e}et\u{3002}", Some("evil.net")),
            ("http://b\u{fc}cher.net", Some("xn--bcher-kva.net")),
            ("user@bank.com", None),
            ("mailto:a@b.com", None),
            ("//evil.net", None),
            ("/x.com", None),
            ("bank.comx", None),
            ("javascript:x", None),
            ("http://", None),
        ] {
            assert_eq!(host(text).as_deref(), wanted, "{text}");
        }
    }

    /// Examples of "URLs and Hashing".
    #[test]
    fn an_address_has_one_spelling() {
        for (text, wanted) in [
            ("http://host/%25%32%35", "host/%25"),
            ("http://host/%2525252525252525", "host/%25"),
            (
                "http://host%23.com/%257Ea%2521b%2540c%2523d%2524e%25f%255E00%252611%252A22%252833%252944_55%252B",
                "host%23.com/~a!b@c%23d$e%25f^00&11*22(33)44_55+",
            ),
            ("http://www.google.com/blah/..", "www.google.com/"),
            ("http://www.evil.com/blah#frag", "www.evil.com/blah"),
            ("http://www.GOOgle.com/", "www.google.com/"),
            ("http://www.google.com.../", "www.google.com/"),
            ("http://www.google.com/foo\tbar\rbaz\n2", "www.google.com/foobarbaz2"),
            ("http://www.google.com/q?r?s", "www.google.com/q?r?s"),
            ("http://evil.com/foo;", "evil.com/foo;"),
            ("http://\x01\u{80}.com/", "%01%C2%80.com/"),
            ("http://notrailingslash.com", "notrailingslash.com/"),
            ("http://www.gotaport.com:1234/", "www.gotaport.com/"),
            ("  http://www.google.com/  ", "www.google.com/"),
            ("http:// leadingspace.com/", "%20leadingspace.com/"),
            ("https://www.securesite.com/", "www.securesite.com/"),
            ("http://host.com/ab%23cd", "host.com/ab%23cd"),
            ("http://ev%C2%ADil.com/", "evil.com/"),
            ("http://\u{200b}evil\u{ff0e}com/", "evil.com/"),
            ("http://b\u{fc}cher.com/", "xn--bcher-kva.com/"),
            ("http://host.com//twoslashes?more//slashes", "host.com/twoslashes?more//slashes"),
        ] {
            let (host, path) = canonical(text).expect(text);
            assert_eq!(host + &path, wanted, "{text:?}");
        }
        assert_eq!(canonical("javascript:x"), None);
        assert_eq!(canonical("http://"), None);
    }

    #[test]
    fn a_domain_is_what_somebody_has() {
        for (text, wanted) in [
            ("http://a.b.bank.com", "bank.com"),
            ("http://a.bank.co.uk", "bank.co.uk"),
            ("http://co.uk", "co.uk"),
            ("http://bank.com.uk", "bank.com.uk"),
            ("http://1.2.3.4", "1.2.3.4"),
            ("http://localhost", "localhost"),
        ] {
            assert_eq!(Address::parse(text).expect(text).domain(), wanted, "{text}");
        }
    }
}
