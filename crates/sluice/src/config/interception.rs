//! `[intercept]`: what the packet filter sends to transparent listeners, and whether they can have it.

use edge::settings::{Forward, Listener, Network, Transparent};
use serde::Deserialize;

use super::Config;

/// `[intercept]`: which connections are sent to transparent listeners. Empty lists mean any.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Interception {
    /// Names of the interfaces that they come in by.
    pub interfaces: Vec<String>,
    /// Networks that they come from.
    pub clients: Vec<Network>,
    /// Networks that they go to.
    pub servers: Vec<Network>,
    /// The mark of packets that are meant for sockets of ours, and the number of the routing table that brings them there.
    pub mark: u32,
    /// Whether UDP is refused at the ports of web listeners where browsers have TLS.
    pub refuse_quic: bool,
}

impl Default for Interception {
    fn default() -> Interception {
        Interception {
            interfaces: Vec::new(),
            clients: Vec::new(),
            servers: Vec::new(),
            mark: 0x736c,
            refuse_quic: true,
        }
    }
}

impl Interception {
    /// The names go into the rules as they are.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.len() < 16
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-@:+".contains(c))
        };
        match self.interfaces.iter().find(|name| !is_name(name)) {
            Some(name) => Err(format!("intercept: {name:?} is not an interface")),
            None if self.mark == 0 => Err("intercept: mark is not 0".into()),
            None => Ok(()),
        }
    }
}

impl Config {
    pub(super) fn check_interception(&self, index: usize) -> Result<(), String> {
        let listener = &self.listeners[index];
        let Some(transparent) = listener.hop.transparent else {
            return match (listener.hop.intercepts.is_empty(), listener.hop.keep_source) {
                (false, _) => Err("intercepts needs transparent = \"redirect\" or \"tproxy\"".into()),
                (_, true) => Err("keep_source needs transparent = \"tproxy\"".into()),
                _ => Ok(()),
            };
        };
        if listener.hop.forward != Forward::Original {
            return Err("transparent and forward exclude each other: mail goes where the client wanted".into());
        }
        let Some(address) = listener.place.address.tcp() else {
            return Err("a UNIX socket cannot be transparent".into());
        };
        if listener.towards_server(address).is_none() {
            return Err(format!("{:?} cannot be transparent", listener.protocol()));
        }
        if !listener.guests.proxy_from.is_empty() {
            return Err("transparent and proxy_from exclude each other".into());
        }
        if transparent == Transparent::Redirect && listener.hop.keep_source {
            return Err("keep_source needs transparent = \"tproxy\"".into());
        }
        if transparent == Transparent::Redirect && address.ip().is_loopback() {
            return Err("redirected connections cannot reach a loopback address".into());
        }
        let ports = listener.intercepted_ports();
        let same = |other: &Listener| {
            other.place.address.tcp().is_some_and(|other| other.is_ipv4() == address.is_ipv4())
                && other.intercepted_ports().iter().any(|port| ports.contains(port))
        };
        if ports.contains(&0) || self.listeners[..index].iter().any(same) {
            return Err(format!("the ports {ports:?} cannot be intercepted, or are by another listener"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(settings: &str) -> Result<Config, String> {
        let text = format!("[[listener]]\nprotocol='smtp'\naddress='0.0.0.0:2525'\n{settings}");
        Config::parse(&text, "test").map_err(|error| error.to_string())
    }

    #[test]
    fn the_next_hop_is_the_server_that_was_meant() {
        let config = parse("transparent='redirect'").unwrap();
        let listener = &config.listeners[0];
        assert_eq!(listener.hop.forward, Forward::Original);
        assert_eq!(listener.intercepted_ports(), [25, 587]);
        let hop = listener.towards_server("[2001:db8::1]:25".parse().unwrap()).unwrap();
        assert_eq!(hop.to_string(), "smtp://[2001:db8::1]:25");
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (settings, reason) in [
            ("transparent='redirect'\nforward='discard:'", "exclude each other"),
            ("transparent='redirect'\nkeep_source=true", "keep_source needs"),
            ("transparent='tproxy'\nproxy_from=['192.0.2.1']", "exclude each other"),
            ("transparent='tproxy'\nintercepts=[0]", "cannot be intercepted"),
            ("forward='discard:'\nintercepts=[25]", "intercepts needs"),
            ("forward='discard:'\nkeep_source=true", "keep_source needs"),
            (
                "transparent='tproxy'\n[[listener]]\nprotocol='smtp'\naddress='0.0.0.0:2526'\ntransparent='tproxy'",
                "by another listener",
            ),
        ] {
            let refusal = parse(settings).unwrap_err();
            assert!(refusal.contains(reason), "{settings}: {refusal}");
        }
        assert!(parse("").unwrap_err().contains("forward is missing"));
        let loopback = "[[listener]]\nprotocol='pop3'\naddress='127.0.0.1:1'\ntransparent=";
        assert!(Config::parse(&format!("{loopback}'redirect'"), "test").is_err());
        assert!(Config::parse(&format!("{loopback}'tproxy'"), "test").is_ok());
    }
}
