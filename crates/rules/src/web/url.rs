//! URLs as lists have them: `host/path`, lower case, decoded once, without scheme, user, port and what leads back up.

use core::net::IpAddr;
use std::borrow::Cow;

/// URLs within a URL that are looked at.
const EMBEDDED_MAX: usize = 8;

/// A URL taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Url {
    /// The scheme, `http` where the URL has none.
    pub scheme: Vec<u8>,
    /// The host without port and user, in lower case and ASCII; an address of IPv6 without its brackets.
    pub host: Vec<u8>,
    /// The host with its port, as they came.
    pub raw_host: Vec<u8>,
    /// The path and the query, decoded, with a slash before it.
    pub path: Vec<u8>,
    /// The path and the query as they came.
    pub raw_path: Vec<u8>,
    /// The host as an address.
    pub address: Option<IpAddr>,
}

impl Url {
    /// Takes a URL apart, however it is written.
    pub fn read(url: &[u8]) -> Url {
        let (scheme, rest) = match url.windows(3).position(|three| three == b"://") {
            Some(at) if at < 16 && url[..at].iter().all(u8::is_ascii_alphanumeric) => (&url[..at], &url[at + 3..]),
            _ => (&b"http"[..], url),
        };
        let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let host = host(authority);
        let address = std::str::from_utf8(&host).ok().and_then(address);
        let host = address.map_or(host, |address| address.to_string().into_bytes());
        let path = if path.is_empty() { b"/" } else { path };
        let slash: &[u8] = if path.starts_with(b"/") { b"" } else { b"/" };
        let raw_path = [slash, path].concat();
        let raw_host = authority.rsplit(|&byte| byte == b'@').next().unwrap_or(authority).to_vec();
        Url {
            scheme: scheme.to_ascii_lowercase(),
            host,
            raw_host,
            path: resolved(&decoded(&raw_path)),
            raw_path,
            address,
        }
    }

    /// The same without the segments `.` and `..` of its path, however they are written (RFC 3986, section 5.2.4).
    pub fn without_dots(self) -> Url {
        let raw_path = without_dots(&self.raw_path);
        Url { path: resolved(&decoded(&raw_path)), raw_path, ..self }
    }

    /// The port that it names.
    pub fn port(&self) -> Option<&[u8]> {
        let behind = self.raw_host.rsplit(|&byte| byte == b']').next()?;
        let colon = behind.iter().position(|&byte| byte == b':')?;
        Some(&behind[colon + 1..]).filter(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit))
    }

    /// `host/path` as URL lists have it, in lower case.
    pub fn bare(&self) -> Vec<u8> {
        let mut bare = [&self.host, &self.path[..]].concat();
        if bare.ends_with(b"/") {
            bare.pop();
        }
        bare.make_ascii_lowercase();
        bare
    }

    /// `host/path` as squidGuard's lists of URLs have it, in lower case, and the same without `www`, `web` or `ftp` before the host.
    pub fn beginnings(&self) -> impl Iterator<Item = Vec<u8>> {
        let whole = [&self.host, &self.path[..]].concat().to_ascii_lowercase();
        let label = whole.iter().position(|&byte| byte == b'.').unwrap_or(0);
        let is_service = [&b"www"[..], b"web", b"ftp"]
            .iter()
            .any(|name| whole[..label].strip_prefix(*name).is_some_and(|number| number.iter().all(u8::is_ascii_digit)));
        let bare = is_service.then(|| whole[label + 1..].to_vec());
        std::iter::once(whole).chain(bare)
    }

    /// `host:port/path` as squidGuard's expressions see it. Behind the host of a tunnel stands nothing.
    pub fn plain(&self, is_tunnel: bool) -> Vec<u8> {
        let path = if is_tunnel { &b""[..] } else { &self.path };
        [&self.named_host(), path].concat()
    }

    /// The host with its port: as they came, but in ASCII if the host has characters beyond it or escapes.
    fn named_host(&self) -> Cow<'_, [u8]> {
        if self.raw_host.is_ascii() && !self.raw_host.contains(&b'%') {
            return Cow::Borrowed(&self.raw_host);
        }
        let port = self.port().map(|port| [b":", port].concat()).unwrap_or_default();
        Cow::Owned([&self.host[..], &port].concat())
    }

    /// The whole URL as replacements see it: with `http` and the host as lists have it, without user and the port of its scheme; nothing stands
    /// behind a bare host.
    pub fn whole(&self) -> Vec<u8> {
        let path: &[u8] = if self.raw_path == b"/" { b"" } else { &self.raw_path };
        let usual: u16 = if self.scheme == b"https" { 443 } else { 80 };
        let number = |port: &&[u8]| std::str::from_utf8(port).ok().and_then(|port| port.parse().ok()) != Some(usual);
        let port = self.port().filter(number).map(|port| [&b":"[..], port].concat()).unwrap_or_default();
        let (open, close): (&[u8], &[u8]) = if self.host.contains(&b':') { (b"[", b"]") } else { (b"", b"") };
        [&b"http://"[..], open, &self.host, close, &port, path].concat()
    }

    /// The path without its query, in lower case.
    pub fn file(&self) -> Vec<u8> {
        let end = self.path.iter().position(|&byte| byte == b'?').unwrap_or(self.path.len());
        self.path[..end].to_ascii_lowercase()
    }

    /// Hosts behind a colon in the path, with what follows, and in the query up to its next `&`; `is_decoded` reads the query decoded, too.
    pub fn embedded(&self, is_decoded: bool) -> Vec<Url> {
        let file = self.file();
        let query = self.raw_path.iter().position(|&byte| byte == b'?').map_or(&b""[..], |at| &self.raw_path[at..]);
        let in_path = hosts(&file).map(|at| Url::read(&self.path[at..]));
        let parts = query.split(|&byte| byte == b'&').flat_map(|part| {
            let plain = decoded(part);
            let other = (is_decoded && plain != part).then_some(plain);
            [Some(Cow::Borrowed(part)), other].into_iter().flatten()
        });
        let in_query = parts.flat_map(|part| hosts(&part).map(|at| Url::read(&part[at..])).collect::<Vec<_>>());
        in_path.chain(in_query).take(EMBEDDED_MAX).collect()
    }
}

/// Places behind a colon, and up to two slashes, at which a name with a dot begins: `http://a.example`, `cache:a.example`.
fn hosts(text: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memchr_iter(b':', text).filter_map(|colon| {
        let slashes = text[colon + 1..].iter().take(2).take_while(|byte| **byte == b'/').count();
        let at = colon + 1 + slashes;
        let is_host = |byte: &&u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-._%@[]".contains(byte);
        let length = text[at..].iter().take_while(is_host).count();
        text[at..at + length].contains(&b'.').then_some(at)
    })
}

/// The host in an authority: without user and port, decoded, in ASCII as browsers map it, without the dot at its end.
fn host(authority: &[u8]) -> Vec<u8> {
    let authority = authority.rsplit(|&byte| byte == b'@').next().unwrap_or(authority);
    let host = match authority.strip_prefix(b"[") {
        Some(rest) => rest.split(|&byte| byte == b']').next().unwrap_or(rest),
        None => authority.split(|&byte| byte == b':').next().unwrap_or(authority),
    };
    let mut host = text::host::ascii(&decoded(host));
    while host.last() == Some(&b'.') {
        host.pop();
    }
    host
}

/// The name of a host in lower case and ASCII.
pub(super) fn in_ascii(host: &str) -> String {
    if host.is_ascii() {
        return host.to_ascii_lowercase();
    }
    String::from_utf8(text::host::ascii(host.as_bytes())).unwrap_or_else(|_| host.to_owned())
}

/// `%41` decoded, once.
pub(super) fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| (byte as char).to_digit(16));
    let mut out: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let coded = digit(text.get(at + 1)).zip(digit(text.get(at + 2))).filter(|_| byte == b'%');
        let (byte, length) = coded.map_or((byte, 1), |(high, low)| ((high << 4 | low) as u8, 3));
        if length > 1 && out.is_none() {
            out = Some(text[..at].to_vec());
        }
        if let Some(out) = &mut out {
            out.push(byte);
        }
        at += length;
    }
    out.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// A path with `//` as one slash, `/x/..` taken back, and `/.` left out at its end; its query stays.
fn resolved(path: &[u8]) -> Vec<u8> {
    let end = path.iter().position(|&byte| byte == b'?').unwrap_or(path.len());
    let (path, query) = path.split_at(end);
    let mut out: Vec<u8> = Vec::with_capacity(path.len() + query.len());
    let mut names = path.split(|&byte| byte == b'/').peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        if name == b".." {
            let start = out.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            out.truncate(start);
        } else if !(name.is_empty() || name == b"." && is_last) {
            // The slashes of a URL within stay two.
            out.push(b'/');
            out.extend(name);
            if name.ends_with(b":") && names.peek().is_some_and(|next| next.is_empty()) {
                out.push(b'/');
            }
            continue;
        }
        if is_last {
            out.push(b'/');
        }
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out.extend(query);
    out
}

/// A path as it came without the segments `.` and `..`, which browsers also take for such where they are written as `%2e`.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let end = path.iter().position(|&byte| byte == b'?').unwrap_or(path.len());
    let (path, query) = path.split_at(end);
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments = path.split(|&byte| byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let dots = decoded(segment);
        if *dots == *b".." {
            kept.pop();
        }
        match (matches!(&*dots, b"." | b".."), segments.peek().is_none()) {
            (false, _) => kept.push(segment),
            (true, true) => kept.push(b""),
            (true, false) => {}
        }
    }
    let mut out: Vec<u8> = kept.iter().flat_map(|segment| [b"/", *segment].concat()).collect();
    out.extend_from_slice(query);
    out
}

/// The address that a host is, however it is written.
fn address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address = bare.parse().ok().or_else(|| text::host::ipv4(host).ok()?.map(IpAddr::V4));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_however_it_is_written() {
        let bare = |url: &str| String::from_utf8(Url::read(url.as_bytes()).bare()).expect("text");
        assert_eq!(bare("http://user:pw@B%61nned.TEST.:8080/A/../b//c/?x=%41"), "banned.test/b/c/?x=a");
        assert_eq!(bare("a.test"), "a.test");
        assert_eq!(bare("http://[2001:db8::1]:80/x/"), "2001:db8::1/x");
        assert_eq!(bare("http://a.test/b/."), "a.test/b");
        assert_eq!(bare("http://a.test/%2561/./b"), "a.test/%61/./b");
        assert_eq!(bare("http://a.test/http://b.test/c"), "a.test/http://b.test/c");
        for host in [
            "ev\u{ad}il.a.test",
            "ev\u{200b}il.a.test",
            "ev\u{2060}il.a.test",
            "ev\u{feff}il.a.test",
            "\u{ff45}vil\u{3002}a\u{ff0e}test",
            "\u{24d4}vil.a.test\u{3002}",
            "ev%C2%ADil.a.test",
            "EVIL.a.test",
        ] {
            assert_eq!(bare(&format!("http://{host}/x")), "evil.a.test/x", "{host:?}");
            let plain = Url::read(format!("http://{host}:81/x").as_bytes()).plain(false);
            assert_eq!(plain.to_ascii_lowercase(), b"evil.a.test:81/x", "{host:?}");
        }
        assert_eq!(bare("http://b\u{fc}cher.test/\u{fc}"), "xn--bcher-kva.test/\u{fc}");
        assert_eq!(Url::read("http://\u{ff11}27.0.0.1/".as_bytes()).address, "127.0.0.1".parse().ok());
        assert!(Url::read(b"http://[2001:db8::1]/").address.is_some());
        let port = |url: &'static str| Url::read(url.as_bytes()).port().map(<[u8]>::to_vec);
        assert_eq!((port("http://[2001:db8::1]:81/"), port("http://[2001:db8::1]/")), (Some(b"81".to_vec()), None));
        assert_eq!((port("a.test:443"), port("http://a.test:x/")), (Some(b"443".to_vec()), None));
    }

    #[test]
    fn dots_in_a_path_are_taken_back() {
        for (path, wanted) in [
            ("/a/./b", "/a/b"),
            ("/a/%2e/b", "/a/b"),
            ("/a/.%2E/b", "/b"),
            ("/a/..", "/"),
            ("/a/.", "/a/"),
            ("/../../a//b", "/a//b"),
            ("/", "/"),
            ("/.a/..b/c.?x=/./", "/.a/..b/c.?x=/./"),
            ("/http://b.test/./c", "/http://b.test/c"),
        ] {
            let url = Url::read(format!("http://a.test{path}").as_bytes()).without_dots();
            assert_eq!(String::from_utf8_lossy(&url.raw_path), wanted, "{path}");
        }
    }

    #[test]
    fn replacements_see_one_form_of_a_host() {
        let whole = |url: &str| String::from_utf8(Url::read(url.as_bytes()).whole()).expect("text");
        for url in [
            "http://h.test/X",
            "http://H.test:80/X",
            "http://me@h.test.:080/X",
            "https://h.test:443/X",
            "http://h%2etest/X",
        ] {
            assert_eq!(whole(url), "http://h.test/X", "{url}");
        }
        assert_eq!(whole("https://h.test:80/"), "http://h.test:80");
        assert_eq!(
            (whole("http://[::1]:81/x"), whole("http://[::1]")),
            ("http://[::1]:81/x".into(), "http://[::1]".into())
        );
        assert_eq!(whole("http://h.test:99999/"), "http://h.test:99999");
    }

    #[test]
    fn squid_guard_sees_urls_without_the_names_of_services() {
        let all = |url: &str| Url::read(url.as_bytes()).beginnings().collect::<Vec<_>>();
        assert_eq!(all("http://www3.A.test:80/B/"), [b"www3.a.test/b/".to_vec(), b"a.test/b/".to_vec()]);
        assert_eq!(all("http://wwwx.a.test/"), [b"wwwx.a.test/".to_vec()]);
        assert_eq!(Url::read(b"http://me@A.test:80/B%43/").plain(false), b"A.test:80/BC/");
        assert_eq!(Url::read(b"a.test:443").plain(true), b"a.test:443");
    }

    #[test]
    fn urls_within_a_path_and_a_query_are_found() {
        let read = |url: &str, is_decoded| {
            Url::read(url.as_bytes()).embedded(is_decoded).iter().map(Url::bare).collect::<Vec<_>>()
        };
        let found = |url: &str| read(url, false);
        assert_eq!(found("http://o.test/http://u.test/a"), [b"u.test/a".to_vec()]);
        assert_eq!(found("http://o.test/x/https://u.test/a"), [b"u.test/a".to_vec()]);
        assert_eq!(
            found("http://o.test/?u=HTTP://u.test/a&v=https://v.test&w"),
            [b"u.test/a".to_vec(), b"v.test".to_vec()]
        );
        // As caches and translators have them.
        for url in ["?q=cache:u.test", "cache:u.test", "?q=cache:AbCd:u.test/", "http:/u.test/", "?u=ftp://u.test"] {
            assert_eq!(found(&format!("http://o.test/{url}")), [b"u.test".to_vec()], "{url}");
        }
        assert!(found("http://o.test:8080/12:30/?a=b:c&d=http:").is_empty());
        assert!(found("http://o.test/?u=http%3A%2F%2Fu.test/a").is_empty(), "as e2guardian has it");
        assert_eq!(read("http://o.test/?u=http%3A%2F%2Fu.test/a", true), [b"u.test/a".to_vec()]);
    }
}
