//! Functions about addresses of shorteners: the plugin DecodeShortURLs, as far as it looks at the mail alone.
//!
//! Left out: no address is fetched, so nothing is known of where it leads.

use super::{Context, Function, ask, look, truth};
use crate::spam::map::HashSet;

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    look("short_url", |context, _| truth(has_short(context))),
    // These fetch the address.
    ask("short_url_200"),
    ask("short_url_404"),
    ask("short_url_chained"),
    ask("short_url_code"),
    ask("short_url_loop"),
    ask("short_url_maxchain"),
    ask("short_url_redir"),
    ask("short_url_tests"),
];

fn has_short(context: &Context<'_>) -> bool {
    let shorteners = &context.settings.shorteners;
    let mut uris = context.mail.uris().iter().filter(|uri| !uri.hosts.is_empty());
    uris.any(|uri| is_short(&uri.raw, shorteners))
}

/// Whether an address is one of a shortener: of its host, of its domain after `www`, or of any host directly below `.domain`. A name
/// of two labels counts with a path alone.
fn is_short(uri: &[u8], shorteners: &HashSet<Box<[u8]>>) -> bool {
    let uri = uri.split(|byte| b"?#".contains(byte)).next().unwrap_or_default();
    let scheme = [&b"http://"[..], b"https://"]
        .into_iter()
        .find(|scheme| uri.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let Some(rest) = scheme.and_then(|scheme| uri.get(scheme.len()..)) else { return false };
    let authority_end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
    let start = rest[..authority_end].iter().position(|&byte| byte == b'@').map_or(0, |at| at + 1);
    let rest = &rest[start..];
    let host_end = rest.iter().position(|byte| b"/:".contains(byte)).unwrap_or(rest.len());
    let (host, behind) = rest.split_at(host_end);
    let digits =
        behind.strip_prefix(b":").map_or(0, |port| port.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let path = if digits > 0 { &behind[digits + 1..] } else { behind };
    let has_path = path.iter().any(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let host = host.to_ascii_lowercase();
    let labels: Vec<&[u8]> = host.split(|&byte| byte == b'.').collect();
    let below = host.iter().position(|&byte| byte == b'.').map(|dot| &host[dot..]);
    match labels.as_slice() {
        [_, _] => has_path && shorteners.contains(&*host),
        [b"www", ..] if labels.len() == 3 => {
            shorteners.contains(&*host) || below.is_some_and(|domain| shorteners.contains(&domain[1..]))
        }
        [first, ..] if labels.len() == 3 && !first.starts_with(b"www") => {
            shorteners.contains(&*host) || below.is_some_and(|domain| shorteners.contains(domain))
        }
        _ => shorteners.contains(&*host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_shorteners_are_known_by_their_hosts() {
        let names = ["bit.ly", ".page.link", "a.b.c.example", "x.short.example"];
        let shorteners: HashSet<Box<[u8]>> = names.iter().map(|name| name.as_bytes().into()).collect();
        for (uri, expected) in [
            ("http://bit.ly/abc", true),
            ("HTTPS://user:pw@BIT.ly:8080/abc?x#y", true),
            ("http://www.bit.ly", true),
            ("http://bit.ly/", false),
            ("http://bit.ly/?abc", false),
            ("http://bit.ly", false),
            ("http://x.bit.ly/abc", false),
            ("http://foo.page.link", true),
            ("http://www.page.link/a", false),
            ("http://page.link/abc", false),
            ("http://a.b.c.example", true),
            ("http://x.short.example", true),
            ("ftp://bit.ly/abc", false),
            ("http://evil.example/@bit.ly/abc", false),
            ("", false),
        ] {
            assert_eq!(is_short(uri.as_bytes(), &shorteners), expected, "{uri}");
        }
    }
}
