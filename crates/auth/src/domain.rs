//! Domain names as mail and DNS records write them. Names with letters beyond ASCII are what the DNS has for them, A-labels
//! (RFC 8616, RFC 5890, by the mapping of UTS 46): they are asked for, compared and told as such.

use std::borrow::Cow;

/// The longest name, without its last dot (RFC 1035 section 3.1).
pub const BYTES_MAX: usize = 253;

/// The longest label.
pub const LABEL_BYTES_MAX: usize = 63;

/// Maximum length of a name with letters beyond ASCII, in bytes: longer ones are too long in ASCII, too.
const INTERNATIONAL_BYTES_MAX: usize = 4 * BYTES_MAX;

/// A name in lower case and without its last dot, if it can be asked for: no empty label, none too long, nor the whole.
pub fn normalised(name: &str) -> Option<Box<str>> {
    let name = if name.is_ascii() { Cow::Borrowed(name) } else { ascii(name)? };
    let name = name.strip_suffix('.').unwrap_or(&name);
    let label_fits = |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len());
    (name.len() <= BYTES_MAX && name.split('.').all(label_fits)).then(|| name.to_ascii_lowercase().into())
}

/// A name with letters beyond ASCII, as the DNS has it; none if it cannot have one.
fn ascii(name: &str) -> Option<Cow<'_, str>> {
    if name.len() > INTERNATIONAL_BYTES_MAX {
        return None;
    }
    idna::domain_to_ascii_cow(name.as_bytes(), idna::AsciiDenyList::EMPTY).ok()
}

/// As [`normalised`], for names of letters, digits, hyphens and underscores: those that headers may have.
pub fn host(name: &str) -> Option<Box<str>> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    normalised(name).filter(|name| name.bytes().all(is_fit))
}

/// Whether a name is `zone` or below it; both normalised.
pub fn is_within(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone).is_some_and(|front| front.is_empty() || front.ends_with('.'))
}

/// The name one label shorter; none of the last label.
pub fn parent(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, parent)| parent)
}

/// The domain of an address, after its last `@`.
pub fn of_address(address: &str) -> Option<&str> {
    address.rsplit_once('@').map(|(_, domain)| domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_normalised_or_none() {
        assert_eq!(normalised("Mail.Example.").as_deref(), Some("mail.example"));
        assert_eq!(normalised("a b.x").as_deref(), Some("a b.x"));
        for name in ["", ".", "a..b", ".a", &"l".repeat(64), &"abc.".repeat(64)] {
            assert_eq!(normalised(name), None, "{name}");
        }
        assert_eq!(host("a b.x"), None);
        assert_eq!(host("_dmarc.Example").as_deref(), Some("_dmarc.example"));
    }

    #[test]
    fn a_name_beyond_ascii_is_what_the_dns_has_for_it() {
        for (name, wanted) in [
            ("Bücher.Example", Some("xn--bcher-kva.example")),
            // Not mapped to two letters (UTS 46, nontransitional), and another dot.
            ("straße\u{3002}example.", Some("xn--strae-oqa.example")),
            ("_dmarc.пример.example", Some("_dmarc.xn--e1afmkfd.example")),
            ("xn--bcher-kva.bücher", Some("xn--bcher-kva.xn--bcher-kva")),
            // Invalid characters, and names that are too long.
            ("a\u{fffd}.example", None),
            (&"ü.".repeat(600), None),
        ] {
            assert_eq!(host(name).as_deref(), wanted, "{name}");
        }
    }

    #[test]
    fn a_name_is_within_itself_and_what_is_above() {
        assert!(is_within("a.example", "example") && is_within("example", "example"));
        assert!(!is_within("aexample", "example") && !is_within("example", "a.example"));
        assert_eq!(parent("a.b.c"), Some("b.c"));
        assert_eq!(parent("c"), None);
        assert_eq!(of_address("\"a@b\"@c"), Some("c"));
    }
}
