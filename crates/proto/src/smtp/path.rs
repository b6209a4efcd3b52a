//! Addresses (RFC 5321, section 4.1.2).

use alloc::string::String;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// The longest path taken, in bytes. RFC 5321 asks for 256; senders with encoded return paths use more.
const PATH_BYTES_MAX: usize = 512;

/// A reverse-path or forward-path, without its angle brackets: nothing, or a mailbox.
///
/// It holds no control character, no angle bracket outside of quotes, and no space outside of quotes, so that it can be
/// written into a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Path(String);

impl Path {
    /// The null path, `<>`.
    pub const fn null() -> Path {
        Path(String::new())
    }

    /// Whether it is the null path.
    pub fn is_null(&self) -> bool {
        self.0.is_empty()
    }

    /// The mailbox as it stands between the angle brackets.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Domain: the text after the last `@`.
    pub fn domain(&self) -> Option<&str> {
        self.0.rsplit_once('@').map(|(_, domain)| domain)
    }

    /// Whether it cannot be sent without SMTPUTF8.
    pub fn needs_utf8(&self) -> bool {
        !self.0.is_ascii()
    }

    /// Takes a path from the front of `text`, and returns it with what follows.
    ///
    /// As lenient as other servers: blanks before it and missing brackets are forgiven, a source route is dropped.
    pub(super) fn take(text: &str) -> Option<(Path, &str)> {
        let text = text.trim_start_matches(' ');
        let (inner, rest) = match text.strip_prefix('<') {
            Some(inner) => split_unquoted(inner, |byte| byte == b'>').map(|(path, rest)| (path, &rest[1..]))?,
            None => split_unquoted(text, |byte| byte == b' ').unwrap_or((text, "")),
        };
        let mailbox = match inner.strip_prefix('@') {
            Some(route) => route.split_once(':')?.1,
            None => inner,
        };
        (is_mailbox(mailbox) && rest.bytes().next().is_none_or(|byte| byte == b' '))
            .then(|| (Path(mailbox.into()), rest))
    }
}

/// A mailbox without angle brackets, as [`Path::as_str`] gives it; nothing is the null path.
impl core::str::FromStr for Path {
    type Err = NotAPath;

    fn from_str(text: &str) -> Result<Path, NotAPath> {
        if is_mailbox(text) { Ok(Path(text.into())) } else { Err(NotAPath) }
    }
}

/// A text that is no path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAPath;

impl fmt::Display for NotAPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an address")
    }
}

impl core::error::Error for NotAPath {}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.0)
    }
}

/// Splits before the first byte that `is_end` and is not in quotes.
fn split_unquoted(text: &str, is_end: impl Fn(u8) -> bool) -> Option<(&str, &str)> {
    let (mut quoted, mut escaped) = (false, false);
    let at = text.bytes().position(|byte| {
        if escaped {
            escaped = false;
            return false;
        }
        match byte {
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        !quoted && is_end(byte)
    })?;
    Some(text.split_at(at))
}

fn is_mailbox(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    if text.len() > PATH_BYTES_MAX || text.bytes().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    let (local, domain) = match split_unquoted(text, |byte| byte == b'@') {
        Some((local, domain)) => (local, Some(&domain[1..])),
        None => (text, None),
    };
    is_local(local) && domain.is_none_or(is_domain)
}

fn is_local(local: &str) -> bool {
    if let Some(quoted) = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        // The last quote is the one that matches the first.
        return !quoted.is_empty() && split_unquoted(&local[..local.len() - 1], |_| true).is_none();
    }
    !local.is_empty() && local.bytes().all(|byte| !b" \t<>()[]:;,\\\"@".contains(&byte))
}

/// An address, of IPv6 marked as such or not; of further kinds (RFC 5321, section 4.1.3) there is none.
fn is_address(literal: &str) -> bool {
    let is_marked = literal.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("IPv6:"));
    let of_six = if is_marked { &literal[5..] } else { literal };
    of_six.parse::<Ipv6Addr>().is_ok() || literal.parse::<Ipv4Addr>().is_ok()
}

fn is_domain(domain: &str) -> bool {
    if let Some(literal) = domain.strip_prefix('[') {
        return literal.strip_suffix(']').is_some_and(is_address);
    }
    let is_label_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || byte >= 0x80;
    domain.len() <= 255
        && domain.trim_end_matches('.').split('.').all(|label| !label.is_empty() && label.bytes().all(is_label_byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn path(text: &str) -> Option<String> {
        Path::take(text).map(|(path, rest)| alloc::format!("{path}{rest}"))
    }

    #[test]
    fn paths_as_clients_write_them() {
        for (text, wanted) in [
            ("<a@b.example>", "<a@b.example>"),
            (" <a@b.example> SIZE=1", "<a@b.example> SIZE=1"),
            ("a@b.example SIZE=1", "<a@b.example> SIZE=1"),
            ("<>", "<>"),
            ("<Postmaster>", "<Postmaster>"),
            ("<@one,@two:a@b.example>", "<a@b.example>"),
            ("<\"a > b @\\\"c\"@b.example>", "<\"a > b @\\\"c\"@b.example>"),
            ("<a@[192.0.2.1]>", "<a@[192.0.2.1]>"),
            ("<a@[IPv6:2001:db8::1]>", "<a@[IPv6:2001:db8::1]>"),
            ("<gr\u{fc}n@b\u{fc}cher.example>", "<gr\u{fc}n@b\u{fc}cher.example>"),
        ] {
            assert_eq!(path(text), Some(wanted.to_string()), "{text}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in [
            "<a@b",
            "<a b@c>",
            "<a@b@c>",
            "<a@>",
            "<@b>",
            "<a@b..c>",
            "<a@b>x",
            "<a@[192.0.2]>",
            "<a@[192.0.2.256]>",
            "<a@[IPv6:192.0.2.1]>",
            "<a@[X25:2001]>",
            "<a\r\n@b>",
            "<\"a@b>",
            "<a@[1>",
            "<a<b@c>",
            "<\"a\"b@c>",
            "<\"a\"b\"c\"@d>",
            "\"a\"\u{570}@b",
        ] {
            assert_eq!(path(text), None, "{text}");
        }
        assert_eq!(path(&alloc::format!("<{}@b>", "a".repeat(600))), None);
    }
}
