//! Links out of mails, of schemes that lead to a server or to a person, written so that a browser reads them as they were checked.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write as _;

/// The longest link, in bytes.
pub(crate) const LINK_BYTES_MAX: usize = 4 << 10;

/// Schemes that a server follows.
const SERVERS: [&str; 3] = ["https", "http", "ftp"];

/// Schemes that name a person, a number or a room, for a program that asks.
const PEOPLE: [&str; 7] = ["mailto", "tel", "sms", "callto", "xmpp", "matrix", "geo"];

/// The beginnings of all links.
pub(crate) fn is_link(value: &str) -> bool {
    let scheme = value.split_once(':').map_or("", |(scheme, _)| scheme);
    SERVERS.contains(&scheme) && value.get(scheme.len()..).is_some_and(|rest| rest.starts_with("://"))
        || PEOPLE.contains(&scheme)
}

/// The link that a value is in a mail whose links begin at a base; `None` if it is of another scheme.
pub(super) fn resolved(value: &str, base: Option<&str>) -> Option<String> {
    let plain = value.trim_matches(|c: char| c <= ' ');
    let begin = |end: usize| base.and_then(|base| base.get(..end));
    let (host, path) = base.map_or((0, 0), parts);
    match plain.as_bytes() {
        [] | [b'#', ..] => None,
        [b'/' | b'\\', b'/' | b'\\', rest @ ..] => {
            let scheme = base.and_then(|base| base.split_once(':')).map_or("https", |(scheme, _)| scheme);
            link(&[scheme, "://", core::str::from_utf8(rest).ok()?].concat())
        }
        _ if has_scheme(plain) => link(plain),
        [b'/', ..] => link(&[begin(host)?, plain].concat()),
        [b'?', ..] => {
            let whole = base?;
            link(&[whole.get(..whole.find(['?', '#']).unwrap_or(whole.len()))?, plain].concat())
        }
        _ => link(&[begin(path)?, if path == host { "/" } else { "" }, plain].concat()),
    }
}

/// Whether a value is of a scheme, as browsers read it: letters, then a colon.
fn has_scheme(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-.\t\r\n".contains(c);
    value.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(plain))
}

/// Where the host of a URL ends, and the last folder of its path.
fn parts(url: &str) -> (usize, usize) {
    let begin = url.find("://").map_or(0, |at| at.saturating_add(3));
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let rest = url.get(begin..end).unwrap_or_default();
    let host = begin.saturating_add(rest.find('/').unwrap_or(rest.len()));
    let path = rest.rfind('/').map_or(host, |at| begin.saturating_add(at).saturating_add(1));
    (host, path)
}

/// The link that a value is; `None` if it is of another scheme, or of none.
pub(crate) fn link(value: &str) -> Option<String> {
    let mut value = Cow::Borrowed(value.trim_matches(|c: char| c <= ' '));
    // Browsers pass over these wherever they stand.
    if memchr::memchr3(b'\t', b'\n', b'\r', value.as_bytes()).is_some() {
        value = Cow::Owned(value.replace(['\t', '\n', '\r'], ""));
    }
    let (scheme, rest) = value.split_once(':')?;
    let scheme = SERVERS.into_iter().chain(PEOPLE).find(|known| known.eq_ignore_ascii_case(scheme))?;
    let (between, rest) = match scheme {
        // A mail to nobody yet has a subject.
        "mailto" => (":", Some(rest).filter(|rest| rest.contains('@') || rest.starts_with('?'))?),
        scheme if PEOPLE.contains(&scheme) => (":", Some(rest).filter(|rest| !rest.is_empty())?),
        _ => {
            ("://", rest.strip_prefix("//").filter(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '['))?)
        }
    };
    let mut link = String::with_capacity(value.len().saturating_add(8));
    link.push_str(scheme);
    link.push_str(between);
    let mut rest = rest;
    while let Some(at) = rest.bytes().position(is_escaped) {
        let (plain, escaped) = rest.split_at(at);
        link.push_str(plain);
        let mut characters = escaped.chars();
        let behind = characters.next().map_or("", |_| characters.as_str());
        for byte in escaped.bytes().take(escaped.len().saturating_sub(behind.len())) {
            let _ = write!(link, "%{byte:02X}");
        }
        rest = behind;
    }
    link.push_str(rest);
    (link.len() <= LINK_BYTES_MAX).then_some(link)
}

/// Whether a byte of a link is written by its number.
fn is_escaped(byte: u8) -> bool {
    byte <= b' ' || byte >= 0x7f || b"\"'<>\\^`{|}".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_some_schemes_pass_and_no_others() {
        for (value, wanted) in [
            ("https://a.example/b?c=d&e#f", Some("https://a.example/b?c=d&e#f")),
            (" HTTP://a.example/\u{e4} \"x\" ", Some("http://a.example/%C3%A4%20%22x%22")),
            ("mailto:a@b.example?subject=x", Some("mailto:a@b.example?subject=x")),
            ("ht\ntps://a.example", Some("https://a.example")),
            ("javascript:alert(1)", None),
            ("java\tscript:alert(1)", None),
            ("\u{1}javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("//a.example", None),
            ("/a", None),
            ("#a", None),
            ("https:a.example", None),
            ("https:///a", None),
            ("mailto:x", None),
            ("mailto:?subject=x", Some("mailto:?subject=x")),
            ("TEL:+49 1", Some("tel:+49%201")),
            ("sms:+491", Some("sms:+491")),
            ("ftp://a.example/x", Some("ftp://a.example/x")),
            ("xmpp:a@b.example", Some("xmpp:a@b.example")),
            ("matrix:u/x", Some("matrix:u/x")),
            ("tel:", None),
            ("ftp:x", None),
            ("file:///c:/x", None),
            ("vbscript:x", None),
            ("blob:https://a.example/x", None),
            ("view-source:https://a.example", None),
            ("x", None),
        ] {
            assert_eq!(link(value).as_deref(), wanted, "{value}");
            assert_eq!(link(value).as_deref().and_then(link), link(value));
        }
    }

    #[test]
    fn links_are_of_the_base_of_their_page() {
        let base = Some("https://a.example/b/c?d=/e");
        for (value, base, wanted) in [
            ("f/g", base, Some("https://a.example/b/f/g")),
            ("/f", base, Some("https://a.example/f")),
            ("?f", base, Some("https://a.example/b/c?f")),
            ("//b.example/x", base, Some("https://b.example/x")),
            ("\\\\b.example\\x", None, Some("https://b.example%5Cx")),
            ("//b.example/x", None, Some("https://b.example/x")),
            ("//", None, None),
            ("x", Some("http://a.example"), Some("http://a.example/x")),
            ("x", None, None),
            ("/x", None, None),
            ("#x", base, None),
            ("", base, None),
            ("javascript:x", base, None),
            ("java\tscript:x", base, None),
            ("\u{1}javascript:x", base, None),
            ("http://c.example", base, Some("http://c.example")),
        ] {
            assert_eq!(resolved(value, base).as_deref(), wanted, "{value}");
        }
    }
}
