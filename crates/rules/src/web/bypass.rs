//! Tokens that let a client past a block for some time: HMAC-SHA-256 over the subject, the client, its user and the end.
//!
//! `GBYPASS` lets past the blocks of a site and of the hosts below it (of a public suffix, as `co.uk`, of that host alone), `GIBYPASS`
//! spares one URL the scan for malware. A token comes in the query of a URL, and from then on in a cookie: the client is sent to the URL
//! without it, so that no other site reads it in `Referer`. E2Guardian's own tokens (MD5) are not taken.

use core::net::IpAddr;

use super::request::{Request, Tokens};
use super::suffix::Suffixes;
use super::url::Url;

/// Bytes of a block of SHA-256.
const BLOCK_BYTES: usize = 64;
/// Hexadecimal digits of a code.
const CODE_DIGITS: usize = 64;
/// Labels of a host below the site of a token.
const LABELS_MAX: usize = 16;
/// Tokens of a request that are looked at, of its URL and of its cookies each.
const TOKENS_MAX: usize = 8;
/// Bytes of a link. A URL that makes it longer gets none.
const LINK_BYTES_MAX: usize = 8 << 10;

/// The subject of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// A host without `www.`, and the hosts below it unless it is a public suffix.
    Site,
    /// One URL.
    Url,
}

impl Subject {
    /// The name that the token has in a query and in a cookie.
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Site => "GBYPASS",
            Subject::Url => "GIBYPASS",
        }
    }
}

/// The holder of a token.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Who<'w> {
    pub client: Option<IpAddr>,
    pub user: Option<&'w str>,
}

/// The terms on which a group lets clients past blocks of one kind.
#[derive(Debug, Clone)]
pub(super) struct Bypass {
    pub subject: Subject,
    pub seconds: u64,
    /// Empty where the key is made of the host's secret.
    pub key: Box<[u8]>,
    /// The number of the group, which tells keys of one secret apart.
    pub group: u32,
}

impl Bypass {
    /// The URL with a token from now on; `None` where that is too long.
    pub fn link(&self, url: &[u8], who: Who<'_>, tokens: &Tokens<'_>) -> Option<String> {
        let url = std::str::from_utf8(url).ok()?.split('#').next()?;
        let sign = if url.contains('?') { '&' } else { '?' };
        let link = format!("{url}{sign}{}={}", self.subject.name(), self.token(url.as_bytes(), who, tokens));
        (link.len() <= LINK_BYTES_MAX).then_some(link)
    }

    /// The value of `Set-Cookie` by which a client comes past the next blocks of the subject.
    pub fn cookie(&self, url: &[u8], who: Who<'_>, tokens: &Tokens<'_>) -> Vec<u8> {
        let parsed = Url::read(url);
        let site = site(&parsed, tokens.suffixes);
        let token = self.token(url, who, tokens);
        let is_of_site = self.subject == Subject::Site;
        let path = if is_of_site { "/" } else { cookie_path(&parsed) };
        let mut cookie = format!("{}={token}; Path={path}; Max-Age={}; HttpOnly", self.subject.name(), self.seconds);
        let has_below = parsed.address.is_none() && !tokens.suffixes.has(site);
        if is_of_site && has_below && site.iter().all(|byte| is_of_name(*byte)) {
            cookie += &format!("; Domain={}", String::from_utf8_lossy(site));
        }
        cookie.into_bytes()
    }

    /// A token for a URL, from now on.
    fn token(&self, url: &[u8], who: Who<'_>, tokens: &Tokens<'_>) -> String {
        let url = Url::read(url);
        let end = tokens.now.saturating_add(self.seconds);
        let subject = match self.subject {
            Subject::Site => site(&url, tokens.suffixes).to_vec(),
            Subject::Url => whole(&url),
        };
        format!("{}{end}", self.code(&subject, who, end, tokens))
    }

    /// Whether a token holds for a URL.
    pub fn accepts(&self, token: &str, url: &[u8], who: Who<'_>, tokens: &Tokens<'_>) -> bool {
        let Some((code, end)) = token.split_at_checked(CODE_DIGITS) else { return false };
        let Some(end) = end.parse::<u64>().ok().filter(|end| tokens.now <= *end) else { return false };
        let url = Url::read(url);
        let is_it = |subject: &[u8]| is_same(code, &self.code(subject, who, end, tokens));
        match self.subject {
            Subject::Url => is_it(&whole(&url)),
            Subject::Site if url.address.is_some() => is_it(&url.host),
            Subject::Site => sites(&url.host, tokens.suffixes).take(LABELS_MAX).any(is_it),
        }
    }

    fn code(&self, subject: &[u8], who: Who<'_>, end: u64, tokens: &Tokens<'_>) -> String {
        let client = who.client.map_or(String::new(), |client| client.to_canonical().to_string());
        let user = who.user.unwrap_or_default().as_bytes();
        let end = end.to_string();
        let text = [self.subject.name().as_bytes(), subject, client.as_bytes(), user, end.as_bytes()].join(&b'\0');
        let code = match self.key.is_empty() {
            true => hmac(&hmac(tokens.secret, &self.group.to_be_bytes()), &text),
            false => hmac(&self.key, &text),
        };
        code.iter().fold(String::with_capacity(CODE_DIGITS), |text, byte| text + &format!("{byte:02x}"))
    }
}

/// The site of a URL.
fn site<'u>(url: &'u Url, suffixes: &Suffixes) -> &'u [u8] {
    url.host.strip_prefix(b"www.").filter(|rest| !suffixes.has(rest)).unwrap_or(&url.host)
}

/// The path of a URL for a cookie: browsers send the cookie for it and what is below it.
fn cookie_path(url: &Url) -> &str {
    let path = url.raw_path.split(|byte| b"?#".contains(byte)).next().unwrap_or_default();
    let is_clean = path.iter().all(|&byte| byte.is_ascii_graphic() && byte != b';');
    std::str::from_utf8(path).ok().filter(|_| is_clean).unwrap_or("/")
}

/// The sites that a host may belong to: itself, and what stands behind each of its dots, but for public suffixes.
fn sites<'h>(host: &'h [u8], suffixes: &Suffixes) -> impl Iterator<Item = &'h [u8]> {
    let starts = host.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| at + 1);
    let above = starts.map(|at| &host[at..]).filter(|site| !suffixes.has(site));
    std::iter::once(host).chain(above)
}

/// A URL as the subject of a token: a host has no slash, so it is no site.
fn whole(url: &Url) -> Vec<u8> {
    [&url.scheme[..], b"://", &url.host, &url.raw_path].concat()
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-')
}

/// Compares two codes. Each byte is looked at, wherever the first wrong one is.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

impl<'r> Request<'r> {
    /// The holder of the tokens that a request carries.
    pub(super) fn who(&self) -> Who<'r> {
        Who { client: self.client, user: self.user }
    }
}

/// The tokens of a request, and the request without them.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The URL without tokens, where it has some.
    pub url: Option<Vec<u8>>,
    /// Fields `Cookie` and `Referer` without tokens, by their places; an empty one is left out.
    pub fields: Vec<(usize, Vec<u8>)>,
    /// The tokens of the URL, and those of cookies.
    pub of_url: Vec<(Subject, String)>,
    pub of_cookies: Vec<(Subject, String)>,
}

impl Carried {
    /// Takes the tokens out of a URL and fields.
    pub fn take(url: &[u8], fields: &[super::request::Field<'_>]) -> Carried {
        let mut carried = Carried::default();
        carried.url = carried.take_from_query(url);
        for (place, (name, value)) in fields.iter().enumerate() {
            if name.eq_ignore_ascii_case(b"cookie") {
                carried.take_from_cookie(place, value);
            }
            if name.eq_ignore_ascii_case(b"referer")
                && let Some(clean) = Carried::default().take_from_query(value)
            {
                carried.fields.push((place, clean));
            }
        }
        carried
    }

    fn take_from_query(&mut self, url: &[u8]) -> Option<Vec<u8>> {
        let (before, query) = url.split_at_checked(url.iter().position(|&byte| byte == b'?')?)?;
        let (mut kept, mut has_token) = (Vec::new(), false);
        for pair in query.get(1..)?.split(|&byte| byte == b'&') {
            let found = token(pair);
            has_token |= found.is_some();
            match found {
                Some(found) if self.of_url.len() < TOKENS_MAX => self.of_url.push(found),
                Some(_) => {}
                None => kept.push(pair),
            }
        }
        let rest = kept.join(&b'&');
        let sign: &[u8] = if rest.is_empty() { b"" } else { b"?" };
        has_token.then(|| [before, sign, &rest].concat())
    }

    fn take_from_cookie(&mut self, place: usize, value: &[u8]) {
        let (mut kept, mut has_token) = (Vec::new(), false);
        for pair in value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii) {
            let found = token(pair);
            has_token |= found.is_some();
            match found {
                Some(found) if self.of_cookies.len() < TOKENS_MAX => self.of_cookies.push(found),
                Some(_) => {}
                None => kept.push(pair),
            }
        }
        if has_token {
            self.fields.push((place, kept.join(&b"; "[..])));
        }
    }
}

/// The token in a pair of a name and a value.
fn token(pair: &[u8]) -> Option<(Subject, String)> {
    [Subject::Site, Subject::Url].into_iter().find_map(|subject| {
        let rest = pair.strip_prefix(subject.name().as_bytes())?.strip_prefix(b"=")?;
        Some((subject, String::from_utf8_lossy(rest).into_owned()))
    })
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
    use std::sync::LazyLock;

    use super::*;

    fn bypass(subject: Subject) -> Bypass {
        Bypass { subject, seconds: 60, key: b"key"[..].into(), group: 1 }
    }

    static REGISTRIES: LazyLock<Suffixes> = LazyLock::new(Suffixes::default);

    fn at(now: u64) -> Tokens<'static> {
        Tokens { now, secret: b"secret", suffixes: &REGISTRIES }
    }

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
        let bypass = bypass(Subject::Site);
        let of = |client: &str, user| Who { client: client.parse().ok(), user };
        let client = of("10.0.0.1", None);
        let token = bypass.token(b"http://www.a.test/x", client, &at(1000));
        let holds = |url: &[u8], client, now| bypass.accepts(&token, url, client, &at(now));
        assert!(holds(b"http://A.test/other", client, 1060) && holds(b"https://img.a.test/", client, 1000));
        assert!(!holds(b"http://a.test/x", client, 1061));
        assert!(!holds(b"http://b.test/x", client, 1000) && !holds(b"http://ba.test/x", client, 1000));
        assert!(!holds(b"http://test/x", client, 1000));
        assert!(!holds(b"http://a.test/x", of("10.0.0.2", None), 1000));
        assert!(!holds(b"http://a.test/x", of("10.0.0.1", Some("ann")), 1000));
        let later = format!("{}9999", &token[..CODE_DIGITS]);
        assert!(!bypass.accepts(&later, b"http://a.test/x", client, &at(1000)));
        for wrong in ["", "x", &"\u{e9}".repeat(40), &"0".repeat(64)] {
            assert!(!bypass.accepts(wrong, b"http://a.test/x", client, &at(1000)));
        }
        let of_address = bypass.token(b"http://10.9.8.7/", client, &at(1000));
        assert!(!bypass.accepts(&of_address, b"http://1.10.9.8.7.test/", client, &at(1000)));
        assert!(bypass.accepts(&of_address, b"http://10.9.8.7:81/x", client, &at(1000)));
    }

    #[test]
    fn a_token_of_a_url_holds_for_it_alone_and_for_no_site() {
        let (site, url) = (bypass(Subject::Site), bypass(Subject::Url));
        let token = url.token(b"http://a.test/x?b=1", Who::default(), &at(1000));
        assert!(url.accepts(&token, b"http://a.test/x?b=1", Who::default(), &at(1000)));
        assert!(!url.accepts(&token, b"http://a.test/x?b=2", Who::default(), &at(1000)));
        assert!(!url.accepts(&token, b"https://a.test/x?b=1", Who::default(), &at(1000)));
        assert!(!site.accepts(&token, b"http://a.test/x?b=1", Who::default(), &at(1000)));
        assert!(!url.accepts(
            &site.token(b"http://a.test/x", Who::default(), &at(1000)),
            b"http://a.test/x",
            Who::default(),
            &at(1000)
        ));
    }

    #[test]
    fn without_a_key_tokens_are_of_the_hosts_secret_and_of_one_group() {
        let own = Bypass { key: Box::default(), ..bypass(Subject::Site) };
        let token = own.token(b"http://a.test/", Who::default(), &at(1000));
        assert!(own.accepts(&token, b"http://a.test/", Who::default(), &at(1000)));
        assert!(!own.accepts(&token, b"http://a.test/", Who::default(), &Tokens { secret: b"other", ..at(1000) }));
        assert!(!Bypass { group: 2, ..own }.accepts(&token, b"http://a.test/", Who::default(), &at(1000)));
    }

    #[test]
    fn tokens_are_taken_out_of_urls_and_cookies() {
        let url = |url: &str| {
            let carried = Carried::take(url.as_bytes(), &[]);
            let found = carried.of_url.into_iter().map(|(subject, token)| format!("{}={token}", subject.name()));
            (carried.url.map(|url| String::from_utf8_lossy(&url).into_owned()), found.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(url("http://a.test/?GBYPASS=1"), (Some("http://a.test/".into()), "GBYPASS=1".into()));
        let both = "http://a.test/x?a=1&GBYPASS=1&b&GIBYPASS=2";
        assert_eq!(url(both), (Some("http://a.test/x?a=1&b".into()), "GBYPASS=1 GIBYPASS=2".into()));
        for without in ["http://a.test/GBYPASS=1", "http://a.test/?XGBYPASS=1&GBYPASSX=1", "http://a.test"] {
            assert_eq!(url(without), (None, String::new()));
        }
        let fields: [(&[u8], &[u8]); 5] = [
            (b"cookie", b"a=1; GBYPASS=7;b=2; GIBYPASS=9"),
            (b"X", b"GBYPASS=1"),
            (b"Cookie", b"GBYPASS=8"),
            (b"Referer", b"http://a.test/?GBYPASS=1&b"),
            (b"referer", b"http://a.test/?b"),
        ];
        let carried = Carried::take(b"", &fields);
        let wanted = [(0, b"a=1; b=2".to_vec()), (2, Vec::new()), (3, b"http://a.test/?b".to_vec())];
        assert_eq!(carried.fields, wanted);
        let of_cookies = [(Subject::Site, "7"), (Subject::Url, "9"), (Subject::Site, "8")];
        assert_eq!(carried.of_cookies, of_cookies.map(|(subject, token)| (subject, token.to_string())));
    }

    #[test]
    fn a_token_of_a_public_suffix_holds_for_that_host_alone() {
        let bypass = bypass(Subject::Site);
        for host in ["co.uk", "www.co.uk"] {
            let url = format!("http://{host}/");
            let token = bypass.token(url.as_bytes(), Who::default(), &at(1000));
            assert!(bypass.accepts(&token, url.as_bytes(), Who::default(), &at(1000)), "{host}");
            assert!(!bypass.accepts(&token, b"http://shop.co.uk/", Who::default(), &at(1000)), "{host}");
            let cookie = String::from_utf8(bypass.cookie(url.as_bytes(), Who::default(), &at(1000))).expect("text");
            assert_eq!(cookie.contains("Domain="), host != "co.uk", "{cookie}");
        }
        let listed = Suffixes::read("io\ngithub.io\n");
        let tokens = Tokens { suffixes: &listed, ..at(1000) };
        let token = bypass.token(b"http://github.io/", Who::default(), &tokens);
        assert!(!bypass.accepts(&token, b"http://a.github.io/", Who::default(), &tokens));
        let token = bypass.token(b"http://a.github.io/", Who::default(), &tokens);
        assert!(bypass.accepts(&token, b"http://b.a.github.io/", Who::default(), &tokens));
    }

    #[test]
    fn a_cookie_for_one_url_goes_to_its_path() {
        let bypass = bypass(Subject::Url);
        for (url, path) in [
            ("http://a.test/x/y.zip?a=/b", "/x/y.zip"),
            ("http://a.test", "/"),
            ("http://a.test/x;y", "/"),
            ("http://a.test/\u{e9}", "/"),
            ("http://a.test/x#y", "/x"),
        ] {
            let cookie = bypass.cookie(url.as_bytes(), Who::default(), &at(1000));
            let cookie = String::from_utf8(cookie).expect("text");
            assert!(cookie.contains(&format!("; Path={path}; ")), "{url}: {cookie}");
        }
    }

    #[test]
    fn a_cookie_is_of_the_site_where_browsers_take_that() {
        let cookie =
            |url: &[u8]| String::from_utf8(bypass(Subject::Site).cookie(url, Who::default(), &at(1000))).expect("text");
        assert!(cookie(b"http://www.a.test/").ends_with("1060; Path=/; Max-Age=60; HttpOnly; Domain=a.test"));
        for host in ["10.0.0.1", "[::1]", "intern"] {
            assert!(cookie(format!("http://{host}/").as_bytes()).ends_with("; HttpOnly"), "{host}");
        }
    }
}
