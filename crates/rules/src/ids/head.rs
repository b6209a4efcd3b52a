//! Heads of rules: action, protocol, addresses, ports, and the arrow between them.

use super::action::Action;
use super::address::{self, Variables};
use super::buffer::App;
use super::lexer::text;
use super::limits::Limits;
use super::rule::{Head, Transport};

/// A head, and the word because of which the rule never matches here: an action, a protocol, a list without a value.
pub(super) struct Read {
    pub action: Action,
    pub head: Head,
    pub idle: Option<String>,
    /// Whether texts are looked for in packets, and not in streams.
    pub is_about_packets: bool,
}

/// Reads the words in front of the parenthesis.
///
/// # Errors
/// With the word that is wrong, and what is.
pub(super) fn read(words: &[&[u8]], variables: &Variables, limits: &Limits) -> Result<Read, (String, String)> {
    let words: Vec<String> = words.iter().map(|word| text(word)).collect();
    let wrong = |word: &str, reason: &str| (word.to_string(), reason.to_string());
    let (action, rest) = words.split_first().ok_or_else(|| wrong("action", "is missing"))?;
    // Rules that only name files or say what is logged.
    let idle = matches!(action.as_str(), "config" | "file_id").then(|| action.clone());
    let action = Action::named(action).or(idle.is_some().then_some(Action::Alert));
    let action = action.ok_or_else(|| wrong(&words[0], "is no action"))?;
    // Snort 3 may leave the protocol and the addresses out.
    let (protocol, addresses) = rest.split_first().map_or(("ip", &[][..]), |(first, rest)| (first.as_str(), rest));
    // A hook of Suricata 8 says where in the protocol a rule is tried.
    let protocol = protocol.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let (mut head, unspoken) = protocol_of(&protocol).ok_or_else(|| wrong(&protocol, "is no protocol"))?;
    match addresses {
        [] => {}
        [sources, source_ports, arrow, targets, target_ports] => {
            head.goes_both_ways = match arrow.as_str() {
                "->" | "=>" => arrow == "=>",
                "<>" => true,
                _ => return Err(wrong(arrow, "is no direction")),
            };
            let named = |word: &str| {
                let word = word_of(word);
                move |reason: String| (word, reason)
            };
            let items = limits.items_max;
            head.sources = address::addresses(sources, variables, items).map_err(named(sources))?;
            head.source_ports = address::ports(source_ports, variables, items).map_err(named(source_ports))?;
            head.targets = address::addresses(targets, variables, items).map_err(named(targets))?;
            head.target_ports = address::ports(target_ports, variables, items).map_err(named(target_ports))?;
        }
        _ => return Err(wrong("head", "has not five words behind the protocol")),
    }
    let version = match &*protocol {
        "ip4" | "ipv4" => Some(address::version_4()),
        "ip6" | "ipv6" => Some(address::version_6()),
        _ => None,
    };
    if let Some(version) = version {
        (head.sources, head.targets) = (head.sources.and(&version), head.targets.and(&version));
    }
    let is_empty = [
        head.sources.is_empty(),
        head.source_ports.is_empty(),
        false,
        head.targets.is_empty(),
        head.target_ports.is_empty(),
    ];
    let empty = addresses.iter().zip(is_empty).find(|(_, is_empty)| *is_empty);
    let idle = idle.or(unspoken).or(empty.map(|(word, _)| word_of(word)));
    Ok(Read { action, head, idle, is_about_packets: protocol == "tcp-pkt" })
}

/// A word as far as it is worth showing.
fn word_of(word: &str) -> String {
    word.chars().take(60).collect()
}

/// The applications that a name of a protocol means; none where it is the name of none.
pub(super) fn apps_of(name: &str) -> Option<Vec<App>> {
    let apps = protocol_of(name)?.0.apps;
    (!apps.is_empty()).then_some(apps)
}

fn protocol_of(name: &str) -> Option<(Head, Option<String>)> {
    let of = |transport, apps: &[App]| Head { transport, apps: apps.to_vec(), ..Head::default() };
    let head = match name {
        "ip" | "ip4" | "ip6" | "ipv4" | "ipv6" | "pkthdr" | "file" => of(None, &[]),
        "tcp" | "tcp-stream" | "tcp-pkt" => of(Some(Transport::Tcp), &[]),
        "udp" => of(Some(Transport::Udp), &[]),
        "http" => of(None, &[App::Http, App::Http2]),
        "http1" => of(None, &[App::Http]),
        "http2" => of(None, &[App::Http2]),
        "smtp" => of(None, &[App::Smtp]),
        "tls" | "ssl" => of(None, &[App::Tls]),
        "dns" => of(None, &[App::Dns]),
        "pop3" => of(None, &[App::Pop3]),
        "imap" => of(None, &[App::Imap]),
        "ftp" | "ftp-data" => of(None, &[App::Ftp]),
        "ssh" => of(None, &[App::Ssh]),
        "icmp" | "icmpv4" | "icmpv6" | "sctp" | "smb" | "dcerpc" | "nfs" | "tftp" | "sip" | "krb5" | "ikev2"
        | "ike" | "ntp" | "dhcp" | "rfb" | "rdp" | "snmp" | "modbus" | "dnp3" | "enip" | "mqtt" | "telnet" | "quic"
        | "pgsql" | "bittorrent-dht" | "websocket" | "ldap" | "mdns" | "doh2" | "arp" | "netbios-ssn" | "netflow"
        | "mysql" | "sunrpc" | "igmp" | "ether" | "poe" => {
            return Some((of(None, &[App::Other]), Some(name.into())));
        }
        _ => return None,
    };
    Some((head, None))
}
