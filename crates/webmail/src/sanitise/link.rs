//! Links out of mails: `http`, `https` and `mailto`, written so that a browser reads them as they were checked.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::Write as _;

/// The longest link, in bytes.
pub(crate) const LINK_BYTES_MAX: usize = 4 << 10;

/// The link that a value is; `None` if it is of another scheme, or of none.
pub(crate) fn link(value: &str) -> Option<String> {
    let mut value = Cow::Borrowed(value.trim_matches(|c: char| c <= ' '));
    // Browsers pass over these wherever they stand.
    if memchr::memchr3(b'\t', b'\n', b'\r', value.as_bytes()).is_some() {
        value = Cow::Owned(value.replace(['\t', '\n', '\r'], ""));
    }
    let (scheme, rest) = value.split_once(':')?;
    let scheme = ["https", "http", "mailto"].into_iter().find(|known| known.eq_ignore_ascii_case(scheme))?;
    let (between, rest) = match scheme {
        "mailto" => (":", Some(rest).filter(|rest| rest.contains('@'))?),
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
    fn links_of_three_schemes_pass_and_no_others() {
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
            ("x", None),
        ] {
            assert_eq!(link(value).as_deref(), wanted, "{value}");
            assert_eq!(link(value).as_deref().and_then(link), link(value));
        }
    }
}
