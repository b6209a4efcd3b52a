//! Settings of HTTP alone.

use std::net::IpAddr;

use serde::Deserialize;

use super::network::Network;

/// `protocol = "http"`
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct HttpListener {
    /// Where requests go: `explicit`, `reverse` or `transparent`.
    pub mode: Mode,
    /// The server behind `mode = "reverse"`, as `HOST:PORT`; otherwise a proxy ahead, as `http://HOST:PORT`.
    pub upstream: Option<String>,
    /// The name for the proxy ahead.
    pub upstream_user: Option<String>,
    /// The password at the proxy ahead.
    pub upstream_password: Option<String>,
    /// Hosts, with all below them, and networks that are reached without the proxy ahead.
    pub upstream_except: Vec<String>,
    /// The service of ICAP that is asked about requests (REQMOD), as `icap://HOST[:PORT]/PATH`.
    pub icap_requests: Option<String>,
    /// The service of ICAP that is asked about responses (RESPMOD).
    pub icap_responses: Option<String>,
    /// Messages about which a service gives no answer: `refuse` or `pass`.
    pub icap_failure: IcapFailure,
    /// Seconds that a service may keep a message waiting before its answer, and again for each 64 KiB that it takes or gives.
    pub icap_seconds: u64,
    /// Ports that a request may ask for.
    pub ports: Vec<u16>,
    /// Ports that a tunnel (`CONNECT`) may lead to.
    pub connect_ports: Vec<u16>,
    /// Networks that requests may ask for although they are of this machine or this link alone.
    pub destinations: Vec<Network>,
    /// Requests for a part of an object: `whole` or `pass`.
    pub ranges: Ranges,
    /// Content in a coding that nobody here knows: `refuse` or `pass`.
    pub unknown_codings: UnknownCodings,
    /// Connections whose client names another server than it goes to: `log` or `refuse`.
    pub mismatched_names: MismatchedNames,
    /// TLS of clients with servers: `tunnel` or `inspect`.
    pub https: Https,
    /// Hosts whose TLS is never opened, with all below them.
    pub tunnelled: Vec<String>,
    /// Hosts that cannot be opened: `refuse` or `tunnel`.
    pub pinned: Pinned,
    /// Whether clients have to log in.
    pub login: bool,
    /// Networks whose clients need not log in.
    pub login_free: Vec<Network>,
    /// The proxy that the script for browsers names, as `HOST:PORT`; none: there is no script.
    pub pac: Option<String>,
    /// Hosts, with all below them, and networks that browsers reach without the proxy.
    pub pac_direct: Vec<String>,
}

impl Default for HttpListener {
    fn default() -> HttpListener {
        HttpListener {
            mode: Mode::Explicit,
            upstream: None,
            upstream_user: None,
            upstream_password: None,
            upstream_except: Vec::new(),
            icap_requests: None,
            icap_responses: None,
            icap_failure: IcapFailure::Refuse,
            icap_seconds: 120,
            ports: vec![80, 443, 8080],
            connect_ports: vec![443],
            destinations: Vec::new(),
            ranges: Ranges::Whole,
            unknown_codings: UnknownCodings::Refuse,
            mismatched_names: MismatchedNames::Log,
            https: Https::Tunnel,
            tunnelled: Vec::new(),
            pinned: Pinned::Refuse,
            login: false,
            login_free: Vec::new(),
            pac: None,
            pac_direct: Vec::new(),
        }
    }
}

/// Where requests go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// To the host that each of them names: clients know that this is a proxy.
    Explicit,
    /// To one server, whose place this is.
    Reverse,
    /// To the address that the connection was meant for.
    Transparent,
}

/// Treatment of requests for a part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ranges {
    /// The whole object is asked for.
    Whole,
    /// Ranges pass, and each part is inspected alone.
    Pass,
}

/// Treatment of content in an unknown coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownCodings {
    /// It is refused.
    Refuse,
    /// It is inspected as it is coded.
    Pass,
}

/// Treatment of a tunnel whose handshake names another host than the request, and of an intercepted request whose `Host` has
/// another address than the connection was meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MismatchedNames {
    /// It passes, and the log says so.
    Log,
    /// It is refused, as is a tunnel that begins without a handshake of TLS.
    Refuse,
}

/// TLS of clients with servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Https {
    /// It passes as it is.
    Tunnel,
    /// It is opened: the client is shown a certificate of the signing authority, and what is within is inspected.
    Inspect,
}

/// Treatment of hosts that cannot be opened: their clients trust their own certificate alone, or they ask for one of
/// the client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pinned {
    /// Such hosts are refused.
    Refuse,
    /// Their TLS passes as it is for an hour.
    Tunnel,
}

impl HttpListener {
    /// Whether the TLS of this host is never opened.
    pub fn is_tunnelled(&self, host: &str) -> bool {
        let host = host.as_bytes();
        self.tunnelled.iter().map(|entry| entry.trim_start_matches('.').as_bytes()).any(|name| {
            let Some(at) = host.len().checked_sub(name.len()).filter(|_| !name.is_empty()) else { return false };
            host[at..].eq_ignore_ascii_case(name) && (at == 0 || host[at - 1] == b'.')
        })
    }

    /// Whether a client of this address has to log in.
    pub fn asks_for_login(&self, client: IpAddr) -> bool {
        self.login && !self.login_free.iter().any(|network| network.holds(client))
    }

    /// Whether a request may lead to this address. Addresses of this machine and of this link need to be named.
    pub fn leads_to(&self, address: IpAddr) -> bool {
        // The server of a proxy before it is named.
        let is_far = self.mode == Mode::Reverse || !is_local(address.to_canonical());
        is_far || self.destinations.iter().any(|network| network.holds(address))
    }

    /// Whether all of it goes together.
    ///
    /// # Errors
    /// When it does not; the message says why.
    pub fn check(&self) -> Result<(), String> {
        match (&self.upstream, self.mode) {
            (None, Mode::Reverse) => Err("mode = \"reverse\" needs upstream = \"HOST:PORT\"".into()),
            (_, Mode::Reverse | Mode::Transparent) if self.login => {
                Err("login is for mode = \"explicit\": other clients do not know of a proxy".into())
            }
            (_, Mode::Reverse) if self.https == Https::Inspect => Err(
                "https = \"inspect\" is for mode = \"explicit\" and \"transparent\": here tls = \"implicit\" opens it"
                    .into(),
            ),
            (Some(upstream), Mode::Reverse) if !is_host_and_port(upstream) => {
                Err(format!("upstream {upstream:?} is not HOST:PORT"))
            }
            (_, Mode::Reverse | Mode::Transparent) if self.pac.is_some() => {
                Err("pac is for mode = \"explicit\": other clients do not know of a proxy".into())
            }
            _ => self.check_ahead().and_then(|()| self.check_proxy_script()).and_then(|()| self.check_icap()),
        }
    }
}

/// Treatment of messages about which a service of ICAP gives no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IcapFailure {
    /// Such messages are refused.
    Refuse,
    /// Such messages pass, if they are still complete.
    Pass,
}

pub(super) fn is_host_and_port(text: &str) -> bool {
    let parts = text.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0))
}

/// Whether an address means this machine, this link, or more than one machine.
pub fn is_local(address: IpAddr) -> bool {
    let is_special = address.is_loopback() || address.is_unspecified() || address.is_multicast();
    is_special
        || match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast() || address.octets()[0] == 0,
            IpAddr::V6(address) => {
                address.is_unicast_link_local() || embedded(address).is_some_and(|inner| is_local(inner.into()))
            }
        }
}

/// The address of IPv4 that a translator reaches by this one (RFC 6052), that 6to4 wraps, or that stands in it in the old form.
fn embedded(address: std::net::Ipv6Addr) -> Option<std::net::Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| std::net::Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match (a, b) {
        (0x64, 0xff9b) => Some(of(g, h)),
        (0x2002, _) => Some(of(b, c)),
        (0, 0) if (c, d, e, f) == (0, 0, 0, 0) => Some(of(g, h)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_this_machine_has_to_be_named() {
        let mut settings = HttpListener::default();
        let leads = |settings: &HttpListener, address: &str| settings.leads_to(address.parse().unwrap());
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!leads(&settings, address), "{address}");
        }
        for address in ["192.0.2.1", "10.0.0.1", "2001:db8::1", "64:ff9b::c000:201", "fd00::1"] {
            assert!(leads(&settings, address), "{address}");
        }
        settings.destinations = vec!["127.0.0.0/8".parse().unwrap()];
        assert!(leads(&settings, "127.0.0.1") && leads(&settings, "::ffff:127.0.0.1") && !leads(&settings, "::1"));
    }

    #[test]
    fn hosts_are_tunnelled_by_their_names() {
        let tunnelled = vec!["Bank.test".into(), ".gov.test".into()];
        let settings = HttpListener { tunnelled, ..HttpListener::default() };
        for host in ["bank.test", "a.bank.test", "gov.test", "a.b.gov.test"] {
            assert!(settings.is_tunnelled(host), "{host}");
        }
        for host in ["xbank.test", "agov.test", "", "test"] {
            assert!(!settings.is_tunnelled(host), "{host}");
        }
    }

    #[test]
    fn a_server_is_for_one_mode() {
        let with = |mode, upstream: Option<&str>| {
            HttpListener { mode, upstream: upstream.map(Into::into), ..HttpListener::default() }.check()
        };
        assert!(with(Mode::Reverse, Some("[::1]:80")).is_ok() && with(Mode::Reverse, Some("a.test:80")).is_ok());
        assert!(with(Mode::Reverse, None).is_err() && with(Mode::Explicit, Some("a:80")).is_err());
        for wrong in ["a", "a:0", ":80", "::1:80", "http://a:80/"] {
            assert!(with(Mode::Reverse, Some(wrong)).is_err(), "{wrong}");
        }
    }
}
