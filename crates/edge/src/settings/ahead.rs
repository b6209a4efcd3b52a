//! The proxy ahead (`upstream`), through which an explicit or transparent proxy reaches servers, and what it reaches without it.

use std::net::IpAddr;

use super::http::{HttpListener, Mode, is_host_and_port};
use super::network::Network;

impl HttpListener {
    /// The proxy ahead, as `HOST:PORT`.
    pub fn proxy_ahead(&self) -> Option<&str> {
        let upstream = self.upstream.as_deref().filter(|_| self.mode != Mode::Reverse)?;
        upstream.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'))
    }

    /// The name and the password for the proxy ahead, with a colon between.
    pub fn login_ahead(&self) -> Option<String> {
        let name = self.upstream_user.as_deref()?;
        Some(format!("{name}:{}", self.upstream_password.as_deref().unwrap_or_default()))
    }

    /// Whether a host of this name, or this address, is reached without the proxy ahead.
    pub fn is_reached_directly(&self, host: &str) -> bool {
        let is_below = |name: &str| {
            let rest = host.strip_suffix(&*name.trim_start_matches('.').to_ascii_lowercase());
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        match host.parse::<IpAddr>() {
            Ok(address) => self.is_near(address),
            Err(_) => self.upstream_except.iter().any(|entry| entry.parse::<Network>().is_err() && is_below(entry)),
        }
    }

    /// Whether this address is reached without the proxy ahead.
    pub fn is_near(&self, address: IpAddr) -> bool {
        self.near_networks().any(|network| network.holds(address))
    }

    /// The networks that are reached without the proxy ahead.
    pub fn near_networks(&self) -> impl Iterator<Item = Network> {
        self.upstream_except.iter().filter_map(|entry| entry.parse().ok())
    }

    /// Whether what is set for the proxy ahead goes together.
    ///
    /// # Errors
    /// When it does not; the message says why.
    pub(super) fn check_ahead(&self) -> Result<(), String> {
        let is_entry = |entry: &str| {
            let is_name = entry.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
            entry.parse::<Network>().is_ok() || is_name && !entry.trim_start_matches('.').is_empty()
        };
        match (&self.upstream, self.proxy_ahead()) {
            (Some(upstream), None) if self.mode != Mode::Reverse => {
                Err(format!("upstream {upstream:?} is not http://HOST:PORT"))
            }
            (Some(upstream), Some(proxy)) if !is_host_and_port(proxy) || proxy.contains(['/', '@']) => {
                Err(format!("upstream {upstream:?} is not http://HOST:PORT"))
            }
            (_, None) if self.upstream_user.is_some() || !self.upstream_except.is_empty() => {
                Err("upstream_user and upstream_except need upstream = \"http://HOST:PORT\"".into())
            }
            _ if self.upstream_password.is_some() && self.upstream_user.is_none() => {
                Err("upstream_password needs upstream_user".into())
            }
            _ if self.upstream_user.as_ref().is_some_and(|name| name.is_empty() || name.contains(':')) => {
                Err("upstream_user is a name without a colon".into())
            }
            _ => match self.upstream_except.iter().find(|entry| !is_entry(entry)) {
                Some(entry) => Err(format!("upstream_except {entry:?} is neither a host nor a network")),
                None => Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(upstream: &str, user: Option<&str>, except: &[&str]) -> HttpListener {
        HttpListener {
            upstream: Some(upstream.into()),
            upstream_user: user.map(Into::into),
            upstream_except: except.iter().map(|entry| (*entry).into()).collect(),
            ..HttpListener::default()
        }
    }

    #[test]
    fn a_proxy_ahead_is_a_url_with_a_port() {
        assert_eq!(settings("http://p.test:3128/", None, &[]).proxy_ahead(), Some("p.test:3128"));
        assert!(settings("http://[::1]:3128", Some("a"), &["Intern.test", "10.0.0.0/8"]).check().is_ok());
        for wrong in ["p.test:3128", "https://p.test:1", "http://p.test", "http://p.test:1/x", "http://a@p.test:1"] {
            assert!(settings(wrong, None, &[]).check().is_err(), "{wrong}");
        }
        assert!(settings("http://p:1", Some("a:b"), &[]).check().is_err());
        assert!(settings("http://p:1", None, &["a/b"]).check().is_err());
        let alone = HttpListener { upstream_user: Some("a".into()), ..HttpListener::default() };
        assert!(alone.check().is_err());
        let reverse = HttpListener { mode: Mode::Reverse, ..settings("p.test:80", None, &[]) };
        assert!(reverse.check().is_ok() && reverse.proxy_ahead().is_none());
    }

    #[test]
    fn hosts_and_networks_are_reached_directly() {
        let settings = settings("http://p:1", None, &[".Intern.test", "10.0.0.0/8", "2001:db8::/32"]);
        for host in ["intern.test", "a.intern.test", "10.9.8.7", "2001:db8::1"] {
            assert!(settings.is_reached_directly(host), "{host}");
        }
        for host in ["xintern.test", "test", "11.0.0.1", "10.test"] {
            assert!(!settings.is_reached_directly(host), "{host}");
        }
    }
}
