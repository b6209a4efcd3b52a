//! Functions about the path of a mail.

use super::{Arguments, Context, Function, look, truth};
use crate::spam::header::{find, is_ipv4, is_private_ip};

/// The functions.
pub(super) const FUNCTIONS: &[Function] = &[
    look("check_for_numeric_helo", numeric_helo),
    look("check_for_illegal_ip", |_, _| 0.0),
    look("helo_ip_mismatch", helo_mismatch),
    look("check_all_trusted", |context, _| {
        let path = context.path;
        truth(!path.trusted.is_empty() && path.untrusted.is_empty() && path.unknown == 0)
    }),
    look("check_no_relays", |context, _| {
        let path = context.path;
        truth(path.trusted.is_empty() && path.untrusted.is_empty() && path.unknown == 0)
    }),
    look("check_relays_unparseable", |context, _| truth(context.path.unknown > 0)),
    look("check_for_sender_no_reverse", |context, _| {
        let sender = context.path.untrusted.last();
        truth(sender.is_some_and(|relay| relay.rdns.contains(&b'.') && !relay.is_private))
    }),
    look("check_for_from_domain_in_received_headers", from_domain_in_path),
    look("check_for_forged_received_trail", |context, _| truth(forged(context).names > 1)),
    look("check_for_forged_received_ip_helo", |context, _| truth(forged(context).addresses > 0)),
    look("check_for_no_rdns_dotcom_helo", no_rdns_for_known),
    look("have_any_bounce_relays", |context, _| truth(has_bounce_relays(context))),
    look("check_welcomelist_bounce_relays", bounced_by_known),
    look("check_whitelist_bounce_relays", bounced_by_known),
];

/// A greeting that is an address, of the first relay that has one.
fn numeric_helo(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let mut greetings = context.path.untrusted.iter().map(|relay| &*relay.helo);
    truth(greetings.find(|helo| is_ipv4(helo)).is_some_and(|helo| !is_private_ip(helo)))
}

/// The first three numbers of an address.
fn network(address: &[u8]) -> &[u8] {
    let end = address.iter().rposition(|&byte| byte == b'.').map_or(0, |at| at + 1);
    &address[..end]
}

fn helo_mismatch(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let is_public = |address: &[u8]| is_ipv4(address) && !is_private_ip(address);
    let differs = |helo: &[u8], ip: &[u8]| is_public(helo) && is_public(ip) && !ip.starts_with(network(helo));
    truth(context.path.untrusted.iter().any(|relay| differs(&relay.helo, &relay.ip)))
}

fn from_domain_in_path(context: &Context<'_>, arguments: &Arguments<'_>) -> f64 {
    let domain = arguments.get(0).unwrap_or_default();
    let from = context.fields.get("From:addr").to_ascii_lowercase();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let at_border = |text: &[u8], at: usize| !at.checked_sub(1).is_some_and(|before| word(text[before]));
    if !find(&from, domain).is_some_and(|at| at_border(&from, at)) {
        return 0.0;
    }
    let ends = |name: &[u8]| name.ends_with(domain) && at_border(name, name.len() - domain.len());
    let mut relays = context.path.trusted.iter().chain(&context.path.untrusted);
    let is_in = relays.any(|relay| ends(&relay.rdns) && ends(&relay.by));
    truth(is_in == (arguments.text(1) == "true"))
}

/// How the path contradicts itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forged {
    names: u32,
    addresses: u32,
}

/// A name as a domain, roughly: two labels of those that end in a long one, else three.
fn domain(name: &[u8]) -> Vec<u8> {
    let name = name.to_ascii_lowercase();
    if !name.iter().any(u8::is_ascii_alphabetic) {
        return name;
    }
    let labels: Vec<&[u8]> = name.split(|&byte| byte == b'.').collect();
    let last = labels.last().copied().unwrap_or_default();
    let is_long = last.len() >= 3 || [&b"ie"[..], b"fr", b"de"].contains(&last);
    let count = match labels.len() {
        2.. if is_long => 2,
        3.. => 3,
        _ => return name,
    };
    labels[labels.len() - count..].join(&b'.')
}

fn forged(context: &Context<'_>) -> Forged {
    *context.forged.get_or_init(|| {
        let mut forged = Forged::default();
        let relays = &context.path.untrusted;
        let mut before: Option<Vec<u8>> = None;
        for (place, relay) in relays.iter().enumerate() {
            let (by, mut from) = (domain(&relay.by), Some(domain(&relay.rdns)));
            if !is_dotted(&by) {
                before = from;
                continue;
            }
            if matches!(from.as_deref(), Some(b"localhost" | b"localhost.localdomain")) && *relay.ip == *b"127.0.0.1" {
                from = None;
            }
            let helo = relay.helo.to_ascii_lowercase();
            let half = |address: &[u8]| network(network(address).strip_suffix(b".").unwrap_or_default()).to_vec();
            let are_addresses = is_numbers(&helo) && is_numbers(&relay.ip);
            if are_addresses && half(&helo) != half(&relay.ip) && !is_private_ip(&helo) {
                forged.addresses += 1;
            }
            let is_welcome = |name: &[u8]| by == b"msn.com" && name == b"hotmail.com";
            if place > 0 && before.as_ref().is_some_and(|name| is_dotted(name) && *name != by && !is_welcome(name)) {
                forged.names += 1;
            }
            before = from;
        }
        forged
    })
}

/// Words with dots between them.
fn is_dotted(name: &[u8]) -> bool {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let all = name.iter().all(|byte| word(byte) || b".-".contains(byte));
    let inner = name.iter().rposition(|&byte| byte == b'.');
    let ends = name.first().is_some_and(word) && name.last().is_some_and(word);
    all && ends && inner.is_some_and(|at| at >= 2)
}

fn is_numbers(text: &[u8]) -> bool {
    let mut parts = 0;
    let all = text.split(|&byte| byte == b'.').all(|part| {
        parts += 1;
        !part.is_empty() && part.iter().all(u8::is_ascii_digit)
    });
    all && parts == 4
}

/// A greeting of a large provider's, of a host that has no name.
fn no_rdns_for_known(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    const KNOWN: [&str; 11] = [
        "lycos.com",
        "lycos.co.uk",
        "hotmail.com",
        "localhost.com",
        "excite.com",
        "caramail.com",
        "cs.com",
        "aol.com",
        "msn.com",
        "yahoo.com",
        "drizzle.com",
    ];
    let is_known = |helo: &[u8]| {
        let helo = String::from_utf8_lossy(helo).to_ascii_lowercase();
        KNOWN.iter().any(|name| helo.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    };
    // The last relay decides.
    let mut relays = context.path.untrusted.iter().rev().filter(|relay| !relay.is_private);
    truth(relays.next().is_some_and(|relay| relay.has_no_rdns && is_known(&relay.helo)))
}

fn has_bounce_relays(context: &Context<'_>) -> bool {
    context.settings.list("welcomelist_bounce_relays").is_some_and(|list| !list.is_empty())
}

/// Whether a mail that came back tells of a server of the site.
fn bounced_by_known(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    if !has_bounce_relays(context) {
        return 0.0;
    }
    let is_received = |line: &[u8]| {
        let marks = line.iter().take_while(|byte| b"> ".contains(byte)).count();
        line[marks..].get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"received:"))
    };
    let is_known = |line: &[u8]| {
        let mut words = line.split(u8::is_ascii_whitespace);
        words.any(|word| {
            let inner = word.get(1..word.len().saturating_sub(1)).unwrap_or_default();
            inner.contains(&b'.') && context.settings.has("welcomelist_bounce_relays", word)
        })
    };
    if context.mail.body().iter().any(|line| is_received(line) && is_known(line)) {
        return 1.0;
    }
    let mut header: Vec<u8> = Vec::new();
    let lines = context.mail.full_body().split(|&byte| byte == b'\n');
    for line in lines.skip_while(|line| !is_received(line)) {
        if line.first().is_some_and(u8::is_ascii_whitespace) {
            const BYTES_MAX: usize = 8192;
            if header.len() < BYTES_MAX {
                header.extend_from_slice(line);
            }
        } else {
            header = line.to_vec();
        }
        if is_received(&header) && is_known(&header) {
            return 1.0;
        }
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_domains() {
        for (name, cut) in [
            ("a.b.example.com", "example.com"),
            ("a.b.co.uk", "b.co.uk"),
            ("mx.x.de", "x.de"),
            ("1.2.3.4", "1.2.3.4"),
            ("host", "host"),
        ] {
            assert_eq!(domain(name.as_bytes()), cut.as_bytes(), "{name}");
        }
        assert!(is_dotted(b"foo.bar.com") && !is_dotted(b"foo") && !is_dotted(b".foo.bar"));
    }
}
