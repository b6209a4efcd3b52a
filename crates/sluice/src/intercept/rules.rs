//! The rules that send connections to transparent listeners, as nft(8) and ip(8) take them.
//!
//! Only what the machine forwards is intercepted: what is meant for itself, and what it sends itself, stays as it is.

use std::fmt::Write as _;
use std::net::SocketAddr;

use edge::settings::{Listener, Network, Protocol, Transparent};

use crate::config::{Config, Interception};

/// The port of HTTP without TLS, where no browser speaks QUIC.
const PLAIN_WEB: u16 = 80;

/// Connections to intercept.
pub struct Rules<'a> {
    listeners: Vec<(SocketAddr, &'a Listener)>,
    settings: &'a Interception,
}

/// The way of packets with our mark to the sockets of this machine, for one version of IP.
pub struct Route {
    ipv4: bool,
    mark: u32,
}

impl<'a> Rules<'a> {
    /// Nothing is intercepted. That the table is there is made sure before it is deleted.
    pub const NONE: &'static str = "table inet sluice\ndelete table inet sluice\n";

    /// As a configuration has it.
    pub fn new(config: &'a Config) -> Rules<'a> {
        let listeners = config.listeners.iter().filter(|listener| listener.hop.transparent.is_some());
        let listeners = listeners.filter_map(|listener| Some((listener.place.address.tcp()?, listener)));
        Rules { listeners: listeners.collect(), settings: &config.intercept }
    }

    /// Whether nothing is intercepted.
    pub fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    /// Everything, for people and for `nft -f`: what ip(8) has to be told stands in comments.
    pub fn text(&self) -> String {
        let mut text = String::from("#!/usr/sbin/nft -f\n");
        for route in self.routes() {
            let _ = writeln!(text, "# ip {}\n# ip {}", route.mark().join(" "), route.deliver().join(" "));
        }
        text + &self.table()
    }

    /// The table, in place of the one that may be there.
    pub fn table(&self) -> String {
        let mut text = format!("{}table inet sluice {{\n", Rules::NONE);
        if self.has(Transparent::Redirect) {
            text.push_str("\tchain redirected {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n");
            self.chain(Transparent::Redirect, &mut text);
        }
        if self.has(Transparent::Tproxy) {
            text.push_str("\tchain tproxied {\n\t\ttype filter hook prerouting priority mangle; policy accept;\n");
            // Sockets that are open already, those towards servers too: what comes back is meant for the client.
            let mark = self.settings.mark;
            let _ = writeln!(
                text,
                "\t\tmeta l4proto tcp socket transparent 1 socket wildcard 0 meta mark set {mark} accept"
            );
            self.chain(Transparent::Tproxy, &mut text);
        }
        self.quic(&mut text);
        text.push_str("}\n");
        text
    }

    /// Browsers that a server has told of HTTP/3 go by UDP, past the listener, until that is refused.
    fn quic(&self, text: &mut String) {
        let web = self.listeners.iter().filter(|(_, listener)| listener.protocol() == Protocol::Http);
        let ports = |listener: &Listener| {
            let secure = listener.intercepted_ports().into_iter().filter(|port| *port != PLAIN_WEB);
            secure.map(|port| port.to_string()).collect::<Vec<_>>().join(", ")
        };
        let rules: Vec<String> = web
            .filter(|(_, listener)| !ports(listener).is_empty())
            .map(|(address, listener)| {
                let (family, ports) = (family(*address), ports(listener));
                format!("\t\t{family}udp dport {{ {ports} }} reject with icmpx type port-unreachable\n")
            })
            .collect();
        if rules.is_empty() || !self.settings.refuse_quic {
            return;
        }
        text.push_str("\tchain quic {\n\t\ttype filter hook forward priority filter; policy accept;\n");
        self.bounds(text);
        rules.iter().for_each(|rule| text.push_str(rule));
        text.push_str("\t}\n");
    }

    fn has(&self, how: Transparent) -> bool {
        self.of(how).next().is_some()
    }

    fn of(&self, how: Transparent) -> impl Iterator<Item = &(SocketAddr, &'a Listener)> {
        self.listeners.iter().filter(move |(_, listener)| listener.hop.transparent == Some(how))
    }

    fn chain(&self, how: Transparent, text: &mut String) {
        text.push_str("\t\tiif \"lo\" return\n\t\tfib daddr type != unicast return\n");
        self.bounds(text);
        for (address, listener) in self.of(how) {
            let _ = writeln!(text, "\t\t{}", self.rule(how, *address, listener));
        }
        text.push_str("\t}\n");
    }

    /// Leaves alone what comes from elsewhere, or goes elsewhere.
    fn bounds(&self, text: &mut String) {
        let Interception { interfaces, clients, servers, .. } = self.settings;
        if !interfaces.is_empty() {
            let names: Vec<String> = interfaces.iter().map(|name| format!("\"{name}\"")).collect();
            let _ = writeln!(text, "\t\tiifname != {{ {} }} return", names.join(", "));
        }
        only("saddr", clients, text);
        only("daddr", servers, text);
    }

    fn rule(&self, how: Transparent, address: SocketAddr, listener: &Listener) -> String {
        let ports: Vec<String> = listener.intercepted_ports().iter().map(u16::to_string).collect();
        let any = address.ip().is_unspecified();
        let to = match address {
            SocketAddr::V4(address) if any => format!("ip to :{}", address.port()),
            SocketAddr::V6(address) if any => format!("to :{}", address.port()),
            SocketAddr::V4(address) => format!("ip to {address}"),
            SocketAddr::V6(address) => format!("ip6 to {address}"),
        };
        let to = match how {
            Transparent::Redirect if any => format!("redirect to :{}", address.port()),
            Transparent::Redirect => format!("dnat {to}"),
            Transparent::Tproxy => format!("tproxy {to} meta mark set {} accept", self.settings.mark),
        };
        format!("{}tcp dport {{ {} }} {to}", family(address), ports.join(", "))
    }

    /// The ways that are needed.
    pub fn routes(&self) -> Vec<Route> {
        let needs = |ipv4: bool| {
            self.of(Transparent::Tproxy).any(|(address, _)| {
                let both = address.is_ipv6() && address.ip().is_unspecified();
                both || address.is_ipv4() == ipv4
            })
        };
        self.every_route().into_iter().filter(|route| needs(route.ipv4)).collect()
    }

    /// The ways that there may be.
    pub fn every_route(&self) -> [Route; 2] {
        [true, false].map(|ipv4| Route { ipv4, mark: self.settings.mark })
    }
}

/// A socket for any address of IPv6 is one for IPv4 too.
fn family(address: SocketAddr) -> &'static str {
    match address {
        SocketAddr::V4(_) => "meta nfproto ipv4 ",
        SocketAddr::V6(address) if address.ip().is_unspecified() => "",
        SocketAddr::V6(_) => "meta nfproto ipv6 ",
    }
}

/// Leaves alone what is not of these networks.
fn only(field: &str, networks: &[Network], text: &mut String) {
    if networks.is_empty() {
        return;
    }
    for (family, ipv4) in [("ip", true), ("ip6", false)] {
        let of_family: Vec<String> =
            networks.iter().filter(|network| network.is_ipv4() == ipv4).map(Network::to_string).collect();
        let _ = match (of_family.is_empty(), ipv4) {
            (false, _) => writeln!(text, "\t\t{family} {field} != {{ {} }} return", of_family.join(", ")),
            (true, true) => writeln!(text, "\t\tmeta nfproto ipv4 return"),
            (true, false) => writeln!(text, "\t\tmeta nfproto ipv6 return"),
        };
    }
}

impl Route {
    /// `ip` is to send what has our mark to a table of its own.
    pub fn mark(&self) -> Vec<String> {
        self.words(&format!("rule add fwmark {} lookup {}", self.mark, self.mark))
    }

    /// Where every address is this machine's.
    pub fn deliver(&self) -> Vec<String> {
        self.words(&format!("route replace local default dev lo table {}", self.mark))
    }

    /// `ip` is not to do the first any more.
    pub fn forget(&self) -> Vec<String> {
        self.words(&format!("rule del fwmark {} lookup {}", self.mark, self.mark))
    }

    /// And not the second.
    pub fn flush(&self) -> Vec<String> {
        self.words(&format!("route flush table {}", self.mark))
    }

    fn words(&self, what: &str) -> Vec<String> {
        let family = if self.ipv4 { "-4" } else { "-6" };
        std::iter::once(family).chain(what.split(' ')).map(String::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text, "test").unwrap()
    }

    #[test]
    fn redirection_is_written_for_each_listener() {
        let config = config(
            "[intercept]\ninterfaces = ['eth1', 'eth2']\nclients = ['192.0.2.0/24']\n\
             [[listener]]\nprotocol = 'smtp'\naddress = '0.0.0.0:2525'\ntransparent = 'redirect'\n\
             [[listener]]\nprotocol = 'pop3'\naddress = '192.0.2.1:1100'\ntransparent = 'redirect'\nintercepts = [110]",
        );
        let rules = Rules::new(&config);
        assert_eq!(
            rules.table(),
            "table inet sluice\ndelete table inet sluice\ntable inet sluice {\n\tchain redirected {\n\
             \t\ttype nat hook prerouting priority dstnat; policy accept;\n\
             \t\tiif \"lo\" return\n\t\tfib daddr type != unicast return\n\
             \t\tiifname != { \"eth1\", \"eth2\" } return\n\
             \t\tip saddr != { 192.0.2.0/24 } return\n\t\tmeta nfproto ipv6 return\n\
             \t\tmeta nfproto ipv4 tcp dport { 25, 587 } redirect to :2525\n\
             \t\tmeta nfproto ipv4 tcp dport { 110 } dnat ip to 192.0.2.1:1100\n\t}\n}\n"
        );
        assert!(rules.routes().is_empty());
    }

    #[test]
    fn quic_is_refused_where_a_browser_would_have_tls() {
        let listener = |more: &str, intercepts: &str| {
            config(&format!(
                "[intercept]\ninterfaces = ['eth1']\n{more}\n[[listener]]\nprotocol = 'http'\nmode = 'transparent'\n\
                 address = '[::]:3128'\ntransparent = 'redirect'\nintercepts = [{intercepts}]"
            ))
        };
        let table = |config: &Config| Rules::new(config).table();
        let with = table(&listener("", "80, 443"));
        assert!(
            with.ends_with(
                "\tchain quic {\n\t\ttype filter hook forward priority filter; policy accept;\n\
                 \t\tiifname != { \"eth1\" } return\n\
                 \t\tudp dport { 443 } reject with icmpx type port-unreachable\n\t}\n}\n"
            ),
            "{with}"
        );
        assert!(!table(&listener("refuse_quic = false", "80, 443")).contains("quic"));
        assert!(!table(&listener("", "80")).contains("quic"));
    }

    #[test]
    fn tproxy_needs_routes_for_the_families_it_serves() {
        let listener = |address: &str| {
            config(&format!("[[listener]]\nprotocol = 'smtp'\naddress = '{address}'\ntransparent = 'tproxy'"))
        };
        for (address, rule, routes) in [
            ("127.0.0.1:2525", "meta nfproto ipv4 tcp dport { 25, 587 } tproxy ip to 127.0.0.1:2525 meta", 1),
            ("[::1]:2525", "meta nfproto ipv6 tcp dport { 25, 587 } tproxy ip6 to [::1]:2525 meta", 1),
            ("0.0.0.0:2525", "meta nfproto ipv4 tcp dport { 25, 587 } tproxy ip to :2525 meta", 1),
            ("[::]:2525", "\t\ttcp dport { 25, 587 } tproxy to :2525 meta", 2),
        ] {
            let config = listener(address);
            let rules = Rules::new(&config);
            assert!(rules.table().contains(rule), "{}", rules.table());
            assert_eq!(rules.routes().len(), routes, "{address}");
        }
        let config = listener("127.0.0.1:2525");
        let text = Rules::new(&config).text();
        assert!(
            text.contains("# ip -4 rule add fwmark 29548 lookup 29548\n# ip -4 route replace local default"),
            "{text}"
        );
    }
}
