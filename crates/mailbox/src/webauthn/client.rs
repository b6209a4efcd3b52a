//! Client data (section 5.8.1): what the browser says that the authenticator was asked for, and by which page.

use serde_json::Value;

use super::Refused;

/// The site of a request, as its browser names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Host and port.
    authority: String,
    is_secure: bool,
}

impl Origin {
    /// The site of a request with this `Host`. Whether TLS is in front of a server that has none, nobody tells: its pages may be of
    /// HTTPS, and of HTTP on this machine, where browsers have passkeys, too.
    pub fn new(authority: &str, is_secure: bool) -> Origin {
        let authority = authority.to_ascii_lowercase();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
        let authority = if authority.bytes().all(is_name) { authority } else { String::new() };
        Origin { authority, is_secure }
    }

    /// The relying party: the host. Empty if there is none.
    pub fn party(&self) -> &str {
        self.authority.split(':').next().unwrap_or_default()
    }

    fn is(&self, origin: &str) -> bool {
        let is_local = self.party() == "localhost" || self.party().ends_with(".localhost");
        let plain = origin.strip_prefix("http://").filter(|_| is_local && !self.is_secure);
        !self.party().is_empty() && origin.strip_prefix("https://").or(plain) == Some(self.authority.as_str())
    }
}

/// The challenge of client data for a kind of request.
pub(super) fn challenge(json: &[u8], kind: &str, origin: &Origin) -> Result<String, Refused> {
    let data: Value = serde_json::from_slice(json).map_err(|_| Refused::Unreadable)?;
    let text = |name: &str| data.get(name).and_then(Value::as_str).ok_or(Refused::Unreadable);
    if text("type")? != kind {
        return Err(Refused::Kind);
    }
    if !origin.is(text("origin")?) || data.get("crossOrigin").is_some_and(|is_cross| *is_cross != Value::Bool(false)) {
        return Err(Refused::Origin);
    }
    text("challenge").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_the_site_that_was_asked() {
        let is = |host: &str, is_secure, origin: &str| Origin::new(host, is_secure).is(origin);
        assert!(is("Mail.Test:8443", true, "https://mail.test:8443") && is("mail.test", false, "https://mail.test"));
        assert!(is("localhost:1", false, "http://localhost:1") && is("a.localhost", false, "http://a.localhost"));
        for (host, is_secure, origin) in [
            ("mail.test", true, "https://mail.test:8443"),
            ("mail.test:8443", true, "https://mail.test"),
            ("mail.test", true, "https://mail.test.evil.test"),
            ("mail.test", true, "https://mail.test/"),
            ("mail.test", true, "https://mail.test@evil.test"),
            ("mail.test", false, "http://mail.test"),
            ("mail.test", true, "mail.test"),
            ("localhost", true, "http://localhost"),
            ("notlocalhost", false, "http://notlocalhost"),
            ("", true, "https://"),
            (":1", true, "https://:1"),
            ("a b", true, "https://a b"),
        ] {
            assert!(!is(host, is_secure, origin), "{host} {origin}");
        }
        assert_eq!(Origin::new("Mail.Test:8443", true).party(), "mail.test");
    }
}
