//! Functions about lists of senders, recipients and hosts that a site welcomes or blocks.

use super::{Arguments, Context, Function, look, truth};
use crate::spam::header::{Relay, is_ipv4, parse_ip};
use crate::spam::message::ascii;
use crate::spam::settings::{Sent, fits};
use crate::spam::syntax::value::Form;
use crate::spam::syntax::value::Value;

/// The functions, with the names that they had before version 4.
pub(super) const FUNCTIONS: &[Function] = &[
    look("check_from_in_blocklist", |context, _| from_in(context, "blocklist_from")),
    look("check_from_in_blacklist", |context, _| from_in(context, "blocklist_from")),
    look("check_to_in_blocklist", |context, _| to_in(context, "blocklist_to")),
    look("check_to_in_blacklist", |context, _| to_in(context, "blocklist_to")),
    look("check_to_in_welcomelist", |context, _| to_in(context, "welcomelist_to")),
    look("check_to_in_whitelist", |context, _| to_in(context, "welcomelist_to")),
    look("check_to_in_more_spam", |context, _| to_in(context, "more_spam_to")),
    look("check_to_in_all_spam", |context, _| to_in(context, "all_spam_to")),
    look("check_from_in_list", |context, arguments| from_in(context, arguments.text(0))),
    look("check_to_in_list", |context, arguments| to_in(context, arguments.text(0))),
    look("check_replyto_in_list", |context, arguments| {
        let address = context.fields.get("Reply-To:addr");
        truth(!address.is_empty() && context.settings.has(arguments.text(0), &address))
    }),
    look("check_from_in_welcomelist", |context, _| truth(welcome(context) == Standing::Welcome)),
    look("check_from_in_whitelist", |context, _| truth(welcome(context) == Standing::Welcome)),
    look("check_from_in_default_welcomelist", |context, _| truth(default_welcome(context) == Standing::Welcome)),
    look("check_from_in_default_whitelist", |context, _| truth(default_welcome(context) == Standing::Welcome)),
    look("check_forged_in_welcomelist", |context, _| forged(welcome(context), default_welcome(context))),
    look("check_forged_in_whitelist", |context, _| forged(welcome(context), default_welcome(context))),
    look("check_forged_in_default_welcomelist", |context, _| forged(default_welcome(context), welcome(context))),
    look("check_forged_in_default_whitelist", |context, _| forged(default_welcome(context), welcome(context))),
    look("check_mailfrom_matches_rcvd", sender_fits_relay),
    look("check_uri_host_listed", |context, arguments| host_listed(context, arguments.get(0).unwrap_or_default())),
    look("check_uri_host_in_blocklist", |context, _| host_listed(context, b"BLOCK")),
    look("check_uri_host_in_blacklist", |context, _| host_listed(context, b"BLOCK")),
    look("check_uri_host_in_welcomelist", |context, _| host_listed(context, b"WELCOME")),
    look("check_uri_host_in_whitelist", |context, _| host_listed(context, b"WELCOME")),
];

fn from_in(context: &Context<'_>, list: &str) -> f64 {
    truth(context.senders().iter().any(|address| context.settings.has(list, address)))
}

fn to_in(context: &Context<'_>, list: &str) -> f64 {
    truth(context.recipients_of().iter().any(|address| context.settings.has(list, address)))
}

/// Where a sender stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// In no list.
    None,
    /// In a list, and sent by a host that does not send for it.
    Forged,
    /// Welcome.
    Welcome,
}

fn forged(here: Standing, there: Standing) -> f64 {
    truth(here == Standing::Forged && there == Standing::None)
}

fn welcome(context: &Context<'_>) -> Standing {
    let standing = |address: &[u8]| match context.settings.has("welcomelist_from", address) {
        true => Standing::Welcome,
        false => by_relay(context, context.settings.sent("welcomelist_from_rcvd"), address),
    };
    best(context, standing)
}

fn default_welcome(context: &Context<'_>) -> Standing {
    best(context, |address| by_relay(context, context.settings.sent("def_welcomelist_from_rcvd"), address))
}

fn best(context: &Context<'_>, standing: impl Fn(&[u8]) -> Standing) -> Standing {
    context.senders().iter().map(|address| standing(address)).max().unwrap_or(Standing::None)
}

/// The relays that are asked: the newest that is not trusted, or else all that are.
fn relays<'c>(context: &'c Context<'_>) -> &'c [Relay] {
    match context.path.untrusted.first() {
        Some(first) => std::slice::from_ref(first),
        None => &context.path.trusted,
    }
}

fn by_relay(context: &Context<'_>, list: &[Sent], address: &[u8]) -> Standing {
    let relays = relays(context);
    if relays.is_empty() {
        return Standing::None;
    }
    let address = address.to_ascii_lowercase();
    let mut entries = list.iter().filter(|entry| fits(&entry.address, &address)).peekable();
    if entries.peek().is_none() {
        return Standing::None;
    }
    if entries.any(|entry| relays.iter().any(|relay| is_of(relay, &entry.relay))) {
        return Standing::Welcome;
    }
    match context.settings.has("welcomelist_allows_relays", &address) {
        true => Standing::None,
        false => Standing::Forged,
    }
}

/// Whether a relay is what an entry says: `[192.0.2.]`, `[192.0.2.0/24]`, `[2001:db8::]/32`, or the end of its name.
fn is_of(relay: &Relay, wanted: &[u8]) -> bool {
    let Some((inner, behind)) = wanted.strip_prefix(b"[").and_then(|rest| {
        let end = rest.iter().rposition(|&byte| byte == b']')?;
        Some((&rest[..end], &rest[end + 1..]))
    }) else {
        let name = relay.rdns.to_ascii_lowercase();
        return name.strip_suffix(wanted).is_some_and(|rest| rest.is_empty() || rest.ends_with(b"."));
    };
    let text = [inner, behind].concat();
    if is_ipv4(&text) {
        return *text == *relay.ip;
    }
    if text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') {
        let start = text.iter().rposition(|&byte| byte != b'.').map_or(0, |last| last + 1);
        return relay.ip.starts_with(&[&text[..start], b"."].concat());
    }
    let network = match Form::Networks.read("", &text) {
        Ok(Value::Networks(networks)) => networks.first().copied(),
        _ => None,
    };
    network.zip(parse_ip(&relay.ip)).is_some_and(|(network, address)| network.contains(address))
}

/// Whether the sender of the envelope is of the same domain as the relay.
fn sender_fits_relay(context: &Context<'_>, _: &Arguments<'_>) -> f64 {
    let sender = context.fields.get("EnvelopeFrom:addr");
    let host = sender.rsplit(|&byte| byte == b'@').next().unwrap_or_default();
    let is_dotted =
        host.len() < sender.len() && host.split(|&byte| byte == b'.').filter(|part| !part.is_empty()).count() > 1;
    if !is_dotted {
        return 0.0;
    }
    let reading = &context.settings.reading;
    let wanted = reading.registered(&ascii(host));
    let mut named = relays(context).iter().filter(|relay| !relay.rdns.is_empty());
    truth(named.any(|relay| reading.registered(&ascii(&relay.rdns)) == wanted))
}

/// Whether a list has the host of an address in the mail, or a name above it; what is longest counts.
fn host_listed(context: &Context<'_>, list: &[u8]) -> f64 {
    let Some(list) = context.settings.hosts.get(list) else { return 0.0 };
    const NAMES_MAX: usize = 11;
    let is_listed = |host: &[u8]| {
        let host = host.to_ascii_lowercase();
        let plain = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(&host);
        if is_ipv4(plain) || plain.len() < host.len() {
            return list.get(plain).copied().unwrap_or(false);
        }
        let dots = plain.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| at + 1);
        let mut names: Vec<&[u8]> = std::iter::once(0).chain(dots).map(|from| &plain[from..]).collect();
        names.drain(..names.len().saturating_sub(NAMES_MAX));
        names.into_iter().find_map(|name| list.get(name)).copied().unwrap_or(false)
    };
    for uri in context.mail.uris() {
        if uri.raw.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"mailto:")) {
            continue;
        }
        if let Some(host) = uri.hosts.keys().find(|host| is_listed(host)) {
            context.note(&[b"URI: ", &host[..]].concat());
            return 1.0;
        }
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relays_are_what_lists_say() {
        let relay = Relay { ip: b"192.0.2.7"[..].into(), rdns: b"mx.Example.com"[..].into(), ..Relay::default() };
        for (wanted, is) in [
            ("example.com", true),
            ("ample.com", false),
            ("[192.0.2.7]", true),
            ("[192.0.2]", true),
            ("[192.0.2.0/24]", true),
            ("[192.0.3.0]/24", false),
            ("[2001:db8::]/32", false),
        ] {
            assert_eq!(is_of(&relay, wanted.as_bytes()), is, "{wanted}");
        }
    }
}
