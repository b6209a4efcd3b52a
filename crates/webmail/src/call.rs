//! A request as the pages see it: method, path, query, form, cookie, and whether a page of this site has sent it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proto::http::Request;

use crate::form::Form;
use crate::language::Language;
use crate::percent::decoded;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Whether it changes something.
    pub is_post: bool,
    /// Whether the method is one of those that are known.
    pub is_known: bool,
    /// The segments of its path.
    pub path: Vec<String>,
    /// The fields of its query.
    pub query: Form,
    /// The fields of its body.
    pub form: Form,
    /// The token of a session.
    pub cookie: Option<String>,
    /// The token of a browser that logs in by a passkey.
    pub passkey: Option<String>,
    /// Host and port of this site, as the browser names them.
    pub authority: String,
    /// The browser, by its own words.
    pub agent: String,
    /// The language that the browser asks for.
    pub language: Language,
    /// Whether another site has sent it, as far as the browser tells.
    pub is_foreign: bool,
}

/// The name of the cookie. Over TLS a browser takes it from this host alone.
pub const fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure { "__Host-sluice" } else { "sluice" }
}

/// The name of the cookie of a browser that logs in by a passkey.
pub(crate) const fn passkey_cookie_name(is_secure: bool) -> &'static str {
    if is_secure { "__Host-sluice-passkey" } else { "sluice-passkey" }
}

/// The field that sets the cookie of a session.
pub(crate) fn set_cookie(token: &str, is_secure: bool, more: &str) -> String {
    set_named(cookie_name(is_secure), token, is_secure, more)
}

pub(crate) fn set_named(name: &str, token: &str, is_secure: bool, more: &str) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict{secure}{more}")
}

impl Call {
    /// Reads the head of a request.
    pub fn new(request: &Request, is_secure: bool) -> Call {
        let target = request.path();
        let end = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
        let (path, query) = target.split_at(end);
        let segments = path.split(|&byte| byte == b'/').filter(|segment| !segment.is_empty());
        let path = segments.take(8).map(|segment| decoded(segment, false)).collect();
        let is_post = request.method == "POST";
        Call {
            is_post,
            is_known: is_post || matches!(request.method.as_str(), "GET" | "HEAD"),
            path,
            query: Form::of_fields(query.get(1..).unwrap_or_default()),
            form: Form::default(),
            cookie: cookie(request, cookie_name(is_secure)),
            passkey: cookie(request, passkey_cookie_name(is_secure)),
            authority: String::from_utf8_lossy(request.authority().unwrap_or_default()).into_owned(),
            agent: agent(request),
            language: Language::accepted(request.fields.get("accept-language").unwrap_or_default()),
            is_foreign: is_post && is_foreign(request, is_secure),
        }
    }

    /// The segments of the path.
    pub fn segments(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }
}

/// The token of a session in the cookie of this name: 64 hexadecimal digits.
pub fn cookie(request: &Request, name: &str) -> Option<String> {
    let pairs = request.fields.all("cookie").flat_map(|value| value.split(|&byte| byte == b';'));
    let found = pairs.map(<[u8]>::trim_ascii).find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    let token = core::str::from_utf8(found?).ok()?;
    (token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| token.into())
}

/// The browser, by its own words, of which the first are enough.
fn agent(request: &Request) -> String {
    let words = String::from_utf8_lossy(request.fields.get("user-agent").unwrap_or_default()).into_owned();
    words.chars().filter(|character| !text::hazard::is_hazard(*character)).take(200).collect()
}

/// Whether another site has sent a form. Browsers say by `Sec-Fetch-Site` who has, others by `Origin`; `null` is what they say of a page
/// that sends no referrer, where they do not know the first. Clients that say nothing are no browsers of today.
pub fn is_foreign(request: &Request, is_secure: bool) -> bool {
    if let Some(site) = request.fields.get("sec-fetch-site") {
        return site != b"same-origin";
    }
    let Some(origin) = request.fields.get("origin") else { return false };
    let scheme: &[u8] = if is_secure { b"https://" } else { b"http://" };
    let host = origin.strip_prefix(scheme);
    origin != b"null" && (host.is_none() || host != request.authority())
}
