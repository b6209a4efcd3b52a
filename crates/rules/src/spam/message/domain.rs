//! Hosts and the domains that are registered, by the lists of the configuration.

use super::perl::{begins, is_blank};
use super::reading::Reading;
use text::host::{ascii, is_address, is_host};

const STATES: &str = " ak al ar az ca co ct dc de fl ga gu hi ia id il in ks ky la ma md me mi mn mo ms mt nc nd ne nh nj nm nv ny \
                      oh ok or pa pr ri sc sd tn tx ut va vi vt wa wi wv wy ";

impl Reading {
    /// Whether a host ends with a domain of the list.
    pub(crate) fn is_known(&self, host: &[u8]) -> bool {
        let host = ascii(host);
        let Some(dot) = host.iter().rposition(|byte| *byte == b'.') else { return false };
        !host.iter().any(|byte| is_blank(*byte)) && self.is_top(&host[dot + 1..])
    }

    /// The domain that is registered, of a host in ASCII and lower case.
    pub(crate) fn registered(&self, host: &[u8]) -> Vec<u8> {
        let labels: Vec<&[u8]> = host.split(|byte| *byte == b'.').filter(|label| !label.is_empty()).collect();
        let mut at = 0;
        while labels.len() - at > 1 && !self.is_boundary(&labels[at..]) {
            at += 1;
        }
        labels[at.saturating_sub(1).min(labels.len())..].join(&b'.')
    }

    /// Whether names are registered below these labels.
    fn is_boundary(&self, labels: &[&[u8]]) -> bool {
        let is_state = |label: &[u8]| {
            label.len() == 2 && memchr::memmem::find(STATES.as_bytes(), &[b" ", label, b" "].concat()).is_some()
        };
        match labels {
            [_, _] => self.two_level.contains(&labels.join(&b'.')[..]),
            [_, state, b"us"] => is_state(state),
            [_, _, _] => self.three_level.contains(&labels.join(&b'.')[..]),
            [b"pvt", b"k12", state, b"us"] | [b"ci" | b"co", _, state, b"us"] => is_state(state),
            _ => false,
        }
    }

    /// The host of an address and the domain that is registered, if it has a host.
    pub(crate) fn of_uri(&self, uri: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let uri = uri.to_ascii_lowercase();
        if ["javascript:", "cid:", "file:"].iter().any(|scheme| begins(&uri, scheme.as_bytes())) {
            return None;
        }
        let host = match uri.strip_prefix(b"mailto:") {
            Some(address) => mail_host(address)?,
            None => uri_host(&uri),
        };
        if has_escape(host) {
            return None;
        }
        let host = ascii(host);
        if is_address(&host) {
            return Some((host.clone(), host));
        }
        if !is_host(&host) || !self.is_known(&host) {
            return None;
        }
        let domain = self.registered(&host);
        Some((host, domain))
    }
}

fn mail_host(address: &[u8]) -> Option<&[u8]> {
    let address = address.split(|byte| *byte == b'?').next().unwrap_or_default();
    let mut parts = address.split(|byte| *byte == b'@');
    let (_, host) = (parts.next()?, parts.next()?);
    parts.next().is_none().then_some(host)
}

fn uri_host(uri: &[u8]) -> &[u8] {
    let letters = uri.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    let mut rest = uri;
    if letters > 0 && uri.get(letters) == Some(&b':') {
        rest = &uri[letters + 1..];
        let slashes = rest.iter().take(2).take_while(|byte| **byte == b'/').count();
        rest = &rest[slashes..];
    }
    rest = &rest[..rest.iter().take_while(|byte| !b"/?#".contains(byte)).count()];
    if let Some(at) = rest.iter().rposition(|byte| *byte == b'@') {
        rest = &rest[at + 1..];
    }
    let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match rest[..rest.len() - digits].strip_suffix(b":") {
        Some(host) => host,
        None => rest,
    }
}

/// An escape of what needs none: the address is there decoded, too.
fn has_escape(host: &[u8]) -> bool {
    host.windows(3).any(|window| {
        let [b'%', high, low] = window else { return false };
        match high {
            b'2' => matches!(low, b'1'..=b'9' | b'a'..=b'f'),
            b'3'..=b'6' => low.is_ascii_hexdigit(),
            b'7' => matches!(low, b'0'..=b'9' | b'a'..=b'e'),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> Reading {
        let set = |names: &[&str]| names.iter().map(|name| name.as_bytes().into()).collect();
        Reading {
            tlds: set(&["com", "uk", "us", "xn--p1ai"]),
            two_level: set(&["co.uk"]),
            three_level: set(&["demon.co.uk"]),
            ..Reading::default()
        }
    }

    #[test]
    fn a_domain_is_registered_below_a_boundary() {
        let registered = |host: &str| String::from_utf8(reading().registered(host.as_bytes())).unwrap();
        assert_eq!(registered("www.a.com"), "a.com");
        assert_eq!(registered("x.a.co.uk"), "a.co.uk");
        assert_eq!(registered("x.a.demon.co.uk"), "a.demon.co.uk");
        assert_eq!(registered("fire.ci.los-angeles.ca.us"), "fire.ci.los-angeles.ca.us");
        assert_eq!(registered("co.uk"), "co.uk");
    }

    #[test]
    fn an_address_has_a_host() {
        let of = |uri: &str| reading().of_uri(uri.as_bytes()).map(|(host, _)| String::from_utf8(host).unwrap());
        assert_eq!(of("http://u:p@WWW.a.com:80/x?y").as_deref(), Some("www.a.com"));
        assert_eq!(of("mailto:x@a.com?subject=b").as_deref(), Some("a.com"));
        assert_eq!(of("http://1.2.3.4/").as_deref(), Some("1.2.3.4"));
        assert_eq!(of("http://a.b_c.com/"), None);
        assert_eq!(of("http://a.nowhere/"), None);
        assert_eq!(of("http://www%2ea.com/"), None);
    }
}
