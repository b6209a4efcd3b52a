//! The script by which browsers find a proxy (PAC): the proxy that it names, and what does not go through it.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::http::HttpListener;
use super::network::Network;

/// A host or a network that browsers reach without the proxy.
enum Direct<'s> {
    /// A host, with all below it.
    Host(&'s str),
    /// The address of a network of IPv4, and its mask.
    Network(IpAddr, IpAddr),
}

impl HttpListener {
    /// The script, where this door has one.
    pub fn proxy_script(&self, is_in_tls: bool) -> Option<String> {
        let proxy = self.pac.as_deref()?;
        let mut script = String::from(
            "function FindProxyForURL(url, host) {\n  host = host.toLowerCase();\n  var isAddress = /^[0-9.]+$/.test(host);\n\
             \x20 if (isPlainHostName(host)) return \"DIRECT\";\n",
        );
        for direct in self.pac_direct.iter().filter_map(|entry| direct(entry)) {
            _ = match direct {
                Direct::Host(host) => writeln!(
                    script,
                    "  if (host == \"{host}\" || dnsDomainIs(host, \".{host}\")) return \"DIRECT\";",
                    host = host.to_ascii_lowercase()
                ),
                Direct::Network(address, mask) => {
                    writeln!(script, "  if (isAddress && isInNet(host, \"{address}\", \"{mask}\")) return \"DIRECT\";")
                }
            };
        }
        let word = if is_in_tls { "HTTPS" } else { "PROXY" };
        _ = writeln!(script, "  return \"{word} {proxy}\";\n}}");
        Some(script)
    }

    /// Whether the script can be made.
    ///
    /// # Errors
    /// When it cannot; the message says why.
    pub(super) fn check_proxy_script(&self) -> Result<(), String> {
        let is_written =
            |proxy: &str| proxy.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte));
        match &self.pac {
            Some(proxy) if !is_written(proxy) || !super::http::is_host_and_port(proxy) => {
                Err(format!("pac {proxy:?} is not HOST:PORT"))
            }
            None if !self.pac_direct.is_empty() => Err("pac_direct needs pac = \"HOST:PORT\"".into()),
            _ => match self.pac_direct.iter().find(|entry| direct(entry).is_none()) {
                Some(entry) => Err(format!("pac_direct {entry:?} is neither a host nor a network of IPv4")),
                None => Ok(()),
            },
        }
    }
}

/// An entry of `pac_direct`; none if it is neither.
fn direct(entry: &str) -> Option<Direct<'_>> {
    if let Ok(network) = entry.parse::<Network>() {
        let all = IpAddr::from([0xff; 4]);
        let mask = Network::around(all, network.bits()).address();
        return network.is_ipv4().then(|| Direct::Network(network.trimmed().address(), mask));
    }
    let host = entry.trim_start_matches('.');
    let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    (is_host && !host.is_empty()).then_some(Direct::Host(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pac: Option<&str>, direct: &[&str]) -> HttpListener {
        let pac_direct = direct.iter().map(|entry| (*entry).into()).collect();
        HttpListener { pac: pac.map(Into::into), pac_direct, ..HttpListener::default() }
    }

    #[test]
    fn a_script_names_the_proxy_and_what_goes_past_it() {
        let settings = settings(Some("proxy.test:3128"), &[".Intern.test", "10.1.2.3/8"]);
        assert!(settings.check().is_ok());
        let script = settings.proxy_script(false).unwrap();
        for line in [
            "if (host == \"intern.test\" || dnsDomainIs(host, \".intern.test\")) return \"DIRECT\";",
            "if (isAddress && isInNet(host, \"10.0.0.0\", \"255.0.0.0\")) return \"DIRECT\";",
            "return \"PROXY proxy.test:3128\";\n}",
        ] {
            assert!(script.contains(line), "{script}");
        }
        assert!(settings.proxy_script(true).unwrap().contains("\"HTTPS proxy.test:3128\""));
    }

    #[test]
    fn nothing_of_a_setting_becomes_script() {
        for (pac, direct) in [
            (Some("a\";alert(1)//:80"), &[][..]),
            (Some("a"), &[]),
            (Some("a:80"), &["a\"b"]),
            (Some("a:80"), &["2001:db8::/32"]),
            (Some("a:80"), &[""]),
            (None, &["a.test"]),
        ] {
            assert!(settings(pac, direct).check().is_err(), "{pac:?} {direct:?}");
        }
        assert!(settings(None, &[]).check().is_ok() && settings(None, &[]).proxy_script(false).is_none());
        let reverse = HttpListener { mode: super::super::http::Mode::Transparent, ..settings(Some("a:80"), &[]) };
        assert!(reverse.check().is_err());
    }
}
