//! Services of ICAP that an HTTP door asks about requests and responses.

use super::http::{HttpListener, is_host_and_port};

/// The port of a service that names none (RFC 3507, section 4.2).
const PORT: u16 = 1344;

/// The host and port of a service; none where the URI is no `icap://HOST[:PORT]/PATH`.
pub fn icap_authority(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("icap://")?;
    let (authority, _) = rest.split_once('/')?;
    let is_clean = uri.bytes().all(|byte| matches!(byte, b'!'..=b'~')) && !uri.contains(['#', '@']);
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let authority = if has_port { authority.to_owned() } else { format!("{authority}:{PORT}") };
    (is_clean && is_host_and_port(&authority)).then_some(authority)
}

impl HttpListener {
    /// Whether the services have URIs, and time to answer.
    ///
    /// # Errors
    /// When one has not; the message says why.
    pub(super) fn check_icap(&self) -> Result<(), String> {
        if !(1..=3600).contains(&self.icap_seconds) {
            return Err("icap_seconds is not between 1 and 3600".into());
        }
        let mut services = self.icap_requests.iter().chain(&self.icap_responses);
        match services.find(|uri| icap_authority(uri).is_none()) {
            Some(uri) => Err(format!("{uri:?} is not icap://HOST[:PORT]/PATH")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_a_uri_with_a_path() {
        for (uri, authority) in [
            ("icap://a.test/respmod", "a.test:1344"),
            ("icap://127.0.0.1:11344/x?y=1", "127.0.0.1:11344"),
            ("icap://[::1]/", "[::1]:1344"),
            ("icap://[::1]:5/", "[::1]:5"),
        ] {
            assert_eq!(icap_authority(uri).as_deref(), Some(authority), "{uri}");
        }
        assert!(HttpListener { icap_seconds: 0, ..HttpListener::default() }.check().is_err());
        for uri in ["icap://a", "http://a/", "icap:///x", "icap://a:0/", "icap://a/ b", "icap://u@a/", "icap://a:x/"] {
            assert_eq!(icap_authority(uri), None, "{uri}");
            assert!(HttpListener { icap_responses: Some(uri.into()), ..HttpListener::default() }.check().is_err());
        }
    }
}
