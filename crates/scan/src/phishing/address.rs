//! The address of a link, as far as it tells where the link leads.

/// The longest address that is looked at.
const BYTES_MAX: usize = 2048;

/// Endings of hosts that are told without a scheme, beside those of two letters.
const ENDINGS: [&str; 24] = [
    "com", "net", "org", "edu", "gov", "mil", "int", "info", "biz", "name", "pro", "aero", "coop", "museum", "jobs",
    "mobi", "travel", "arpa", "asia", "cat", "tel", "post", "bank", "online",
];

/// Labels below an ending of two letters that anybody can have a domain in.
const SHARED: [&str; 20] = [
    "co", "com", "org", "net", "edu", "gov", "gob", "ac", "or", "ne", "go", "ltd", "plc", "me", "sch", "nhs", "mod",
    "nom", "mil", "id",
];

/// An address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: Box<str>,
    pub(super) is_secure: bool,
    /// Whether there is a NUL in its host, or what some programs take for one.
    pub(super) is_cloaked: bool,
}

impl Address {
    /// Reads where a link leads; nothing if that is no host.
    pub(super) fn parse(text: &str) -> Option<Address> {
        let text: String = text.trim().chars().take(BYTES_MAX).filter(|letter| !letter.is_whitespace()).collect();
        let text = text.to_ascii_lowercase();
        let scheme = ["http://", "https://", "ftp://"].into_iter().find(|scheme| text.starts_with(scheme));
        let rest = &text[scheme.map_or(0, str::len)..];
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let authority = &rest[..end];
        let host = authority.rsplit('@').next().unwrap_or_default();
        if scheme.is_none() && authority.contains('@') {
            return None;
        }
        let (host, port) = host.split_once(':').unwrap_or((host, ""));
        let host = host.trim_end_matches('.');
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        if host.is_empty() || !is_port || (scheme.is_none() && !has_ending(host)) {
            return None;
        }
        Some(Address {
            host: host.into(),
            is_secure: scheme == Some("https://"),
            is_cloaked: ["%00", "%01", "\0", "\u{1}"].iter().any(|cloak| authority.contains(cloak)),
        })
    }

    /// Reads what a link shows; nothing if that is no address.
    pub(super) fn shown(text: &str) -> Option<Address> {
        let address = Address::parse(text)?;
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_');
        address.host.chars().all(plain).then_some(address)
    }

    /// Whether it is this host, or one in it.
    pub(super) fn lies_in(&self, host: &str) -> bool {
        self.host.strip_suffix(host).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }

    /// The domain that somebody has: two labels, or three where the upper two are shared.
    pub(super) fn domain(&self) -> &str {
        let mut dots = self.host.rmatch_indices('.').map(|(at, _)| at);
        let (Some(last), Some(second)) = (dots.next(), dots.next()) else {
            return &self.host;
        };
        if self.host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return &self.host;
        }
        let is_shared = self.host.len() - last == 3 && SHARED.contains(&&self.host[second + 1..last]);
        let start = if is_shared { dots.next().map_or(0, |third| third + 1) } else { second + 1 };
        &self.host[start..]
    }
}

fn has_ending(host: &str) -> bool {
    let ending = host.rsplit_once('.').filter(|(before, _)| !before.is_empty()).map(|(_, ending)| ending);
    ending.is_some_and(|ending| {
        let is_country = ending.len() == 2 && ending.bytes().all(|byte| byte.is_ascii_lowercase());
        is_country || ending.starts_with("xn--") || ENDINGS.contains(&ending)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Option<Box<str>> {
        Address::parse(text).map(|address| address.host)
    }

    #[test]
    fn an_address_has_a_host_or_leads_nowhere() {
        for (text, wanted) in [
            (" HTTP://a:b@Evil.NET.:80/x?y", Some("evil.net")),
            ("evil.net/x", Some("evil.net")),
            ("http://evil", Some("evil")),
            ("bank. com", Some("bank.com")),
            ("user@bank.com", None),
            ("mailto:a@b.com", None),
            ("//evil.net", None),
            ("/x.com", None),
            ("bank.comx", None),
            ("javascript:x", None),
            ("http://", None),
        ] {
            assert_eq!(host(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn a_domain_is_what_somebody_has() {
        for (text, wanted) in [
            ("http://a.b.bank.com", "bank.com"),
            ("http://a.bank.co.uk", "bank.co.uk"),
            ("http://co.uk", "co.uk"),
            ("http://bank.com.uk", "bank.com.uk"),
            ("http://1.2.3.4", "1.2.3.4"),
            ("http://localhost", "localhost"),
        ] {
            assert_eq!(Address::parse(text).expect(text).domain(), wanted, "{text}");
        }
    }
}
