//! A next hop of Postfix, `TRANSPORT:NEXTHOP`, as one of Sluice.

use super::services::Service;
use crate::config::Outward;

/// A next hop as Postfix names it, as Sluice does.
#[derive(Debug, PartialEq, Eq)]
pub enum Hop {
    /// `smtp://HOST:PORT` and the like, and whether Postfix asks for the MX of the host.
    Server(String, bool),
    /// The usual way.
    Usual,
    /// The MX of the recipient's domain.
    Direct,
    /// No way of Sluice; the reason.
    Other(&'static str),
}

impl Hop {
    /// The same within TLS from the first byte on, if `smtp_tls_wrappermode` says so of all.
    pub fn within(self, is_wrapped: bool) -> Hop {
        match self {
            Hop::Server(hop, asks) if is_wrapped => Hop::Server(hop.replacen("smtp://", "smtps://", 1), asks),
            other => other,
        }
    }
}

/// Reads `TRANSPORT:NEXTHOP`; a next hop alone is one of the transport `usual`. A transport is the program of its service in `master.cf`.
pub fn hop_of(services: &[Service], value: &str, usual: &str) -> Hop {
    let value = value.trim();
    let (transport, hop) = match value.split_once(':') {
        Some((transport, hop)) if !value.starts_with('[') && hop.parse::<u16>().is_err() => (transport, hop),
        _ => (usual, value),
    };
    let service = services.iter().find(|service| service.name == transport && service.kind != "inet");
    let is_wrapped = service.is_some_and(|service| {
        let mut options = service.options.iter();
        options.any(|(_, name, value)| name == "smtp_tls_wrappermode" && value.eq_ignore_ascii_case("yes"))
    });
    let scheme = match service.map_or(transport, |service| &service.command) {
        "" | "smtp" | "relay" if is_wrapped => "smtps",
        "smtps" => "smtps",
        "" | "smtp" | "relay" => "smtp",
        "lmtp" => return Hop::Other("mail that goes out goes by SMTP: lmtp is the forward of a listener"),
        "local" | "virtual" => return Hop::Other("recipients here are those with accounts"),
        "discard" => return Hop::Other("nothing is discarded: a Sieve script can do it"),
        "error" | "retry" => return Hop::Other("recipients are refused by the lists of [[recipients]]"),
        "pipe" | "spawn" => return Hop::Other("programs are not started for mails"),
        _ => return Hop::Other("there is no such transport, and no such service in master.cf"),
    };
    if hop.is_empty() {
        return if transport.is_empty() { Hop::Usual } else { Hop::Direct };
    }
    // Where there are several, they are asked in turn.
    let hop = hop.split(',').next().unwrap_or(hop).trim();
    let asks = !hop.starts_with('[');
    let (host, port) = match hop.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => hop.split_once(':').map_or((hop, None), |(host, port)| (host, Some(port))),
    };
    let port = match port.unwrap_or("25") {
        "smtp" => "25",
        "smtps" | "submissions" => "465",
        "submission" => "587",
        port => port,
    };
    let scheme = if port == "465" { "smtps" } else { scheme };
    let host = host.strip_prefix("ipv6:").or(host.strip_prefix("IPv6:")).unwrap_or(host);
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let is_right =
        port.parse::<u16>().is_ok_and(|port| port > 0) && !host.is_empty() && !host.contains(['/', ' ', ',']);
    let hop = format!("{scheme}://{host}:{port}");
    match is_right && hop.parse::<Outward>().is_ok() {
        true => Hop::Server(hop, asks && !is_address),
        false => Hop::Other("the next hop is not understood: it is [HOST]:PORT, with a port from 1 to 65535"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::services::services;

    #[test]
    fn next_hops_are_understood() {
        let server = |hop: &str, asks| Hop::Server(hop.into(), asks);
        let master = "slow unix - - n - 5 smtp\nwrapped unix - - n - - smtp -o smtp_tls_wrappermode=yes\n\
            filter unix - - n - 2 lmtp\nfax unix - n n - 1 pipe\nsmtps inet n - n - - smtpd\n";
        let services: Vec<Service> = services("master.cf", master).into_iter().flatten().collect();
        for (value, wanted) in [
            ("smtp:[mail.example.org]:587", server("smtp://mail.example.org:587", false)),
            ("[mail.example.org]", server("smtp://mail.example.org:25", false)),
            ("slow:[mail.example.org]", server("smtp://mail.example.org:25", false)),
            ("wrapped:[mail.example.org]:2465", server("smtps://mail.example.org:2465", false)),
            ("slow:", Hop::Direct),
            ("smtp:[a.example]:587, [b.example]", server("smtp://a.example:587", false)),
            ("mail.example.org:2525", server("smtp://mail.example.org:2525", true)),
            ("relay:[192.0.2.1]:smtps", server("smtps://192.0.2.1:465", false)),
            ("smtp:[ipv6:2001:db8::1]", server("smtp://[2001:db8::1]:25", false)),
            ("smtp:192.0.2.1", server("smtp://192.0.2.1:25", false)),
            (":", Hop::Usual),
            ("smtp:", Hop::Direct),
        ] {
            assert_eq!(hop_of(&services, value, "smtp"), wanted, "{value}");
        }
        for value in [
            "error:no",
            "lmtp:unix:/x",
            "filter:[127.0.0.1]:10024",
            "fax:x",
            "maildrop:",
            "smtp:[a b]",
            "smtp:[a]:99999",
            "smtp:host:0",
            "smtp:[a]:x",
        ] {
            assert!(matches!(hop_of(&services, value, "smtp"), Hop::Other(_)), "{value}");
        }
    }
}
