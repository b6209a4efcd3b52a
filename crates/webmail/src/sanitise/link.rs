//! Links out of mails: `http`, `https` and `mailto`, written so that a browser reads them as they were checked.

use alloc::format;
use alloc::string::String;

/// The longest link, in bytes.
const LINK_BYTES_MAX: usize = 4 << 10;

/// The link that a value is; `None` if it is of another scheme, or of none.
pub(crate) fn link(value: &str) -> Option<String> {
    // Browsers pass over these wherever they stand.
    let is_read = |character: &char| !matches!(character, '\t' | '\n' | '\r');
    let value: String = value.trim_matches(|c: char| c <= ' ').chars().filter(is_read).collect();
    let (scheme, rest) = value.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    let rest = match scheme.as_str() {
        "http" | "https" => {
            rest.strip_prefix("//").filter(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '['))?
        }
        "mailto" if rest.contains('@') => rest,
        _ => return None,
    };
    let mut link = format!("{scheme}:{}", if scheme == "mailto" { "" } else { "//" });
    for byte in rest.bytes() {
        if byte <= b' ' || byte >= 0x7f || b"\"'<>\\^`{|}".contains(&byte) {
            link.push_str(&format!("%{byte:02X}"));
        } else {
            link.push(char::from(byte));
        }
    }
    (link.len() <= LINK_BYTES_MAX).then_some(link)
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
