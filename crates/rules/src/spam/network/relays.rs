//! Choice of hosts in the header for list queries.

use super::list::{About, HostList, Only};
use super::scope::Scope;
use crate::spam::eval::Context;
use crate::spam::header::{Relay, find_ips, is_private_ip, parse_ip, reversed};
use crate::spam::message::{Reading, ascii, is_host};

/// The addresses that sets are made of, found once for all lists of a mail.
pub(super) struct Relays {
    /// Hosts of untrusted relays, each once.
    untrusted: Vec<Box<[u8]>>,
    /// Hosts of external relays.
    external: Vec<Box<[u8]>>,
    /// That fields say are those of authors, and the site does not trust.
    originating: Vec<Box<[u8]>>,
    /// Whether there is any that is asked about.
    has_any: bool,
}

impl Relays {
    pub(super) fn of(context: &Context<'_>) -> Relays {
        let path = context.path;
        let text = |relay: &Relay| relay.ip.clone();
        let untrusted: Vec<Box<[u8]>> = path.untrusted.iter().map(text).collect();
        let trusted = path.trusted.iter().filter(|relay| !relay.is_internal).map(text);
        let external = public(trusted.chain(untrusted.iter().cloned()));
        let untrusted = public(untrusted);
        let fields = context.settings.networks.originating().iter();
        let told = fields.flat_map(|name| find_ips(&context.fields.get(&String::from_utf8_lossy(name))));
        let told: Vec<Box<[u8]>> = told.collect();
        let has_any = !untrusted.is_empty() || !told.is_empty();
        let originating = told.into_iter().filter(|ip| !is_trusted(context, ip)).collect();
        Relays { untrusted, external, originating, has_any }
    }

    /// The addresses of the relays that a list is asked about, turned around.
    fn asked(&self, list: &HostList, context: &Context<'_>, most: usize) -> Vec<Vec<u8>> {
        if !self.has_any {
            return Vec::new();
        }
        let suffix = list.set.rsplit(|&byte| byte == b'-').next().filter(|suffix| suffix.len() < list.set.len());
        let all = || public(self.untrusted.iter().chain(&self.originating).cloned());
        let mut chosen = match suffix {
            Some(b"lastexternal") => self.external.iter().take(1).cloned().collect(),
            Some(b"notfirsthop") => {
                let count = self.external.len();
                self.external.iter().take(if count > 1 { count - 1 } else { count }).cloned().collect()
            }
            Some(b"firsttrusted") => all().into_iter().take(1).collect(),
            Some(b"untrusted") => all().into_iter().skip(1).collect(),
            _ => all().into_iter().rev().collect::<Vec<_>>(),
        };
        chosen.truncate(most);
        let trusted = chosen.iter().take_while(|ip| !list.is_nice && is_trusted(context, ip)).count();
        chosen.drain(..trusted);
        chosen.iter().filter_map(|ip| reversed(ip)).collect()
    }
}

/// Names below a list's zone to ask for.
pub(super) fn subjects(list: &HostList, scope: &Scope, relays: &Relays, context: &Context<'_>) -> Vec<Vec<u8>> {
    let reading = &context.settings.reading;
    let named = |hosts: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
        hosts.iter().filter_map(|host| subject(host, list.only, reading)).collect()
    };
    match &list.about {
        About::Relays => relays.asked(list, context, scope.relays_max),
        About::Accredited(name) if is_accredited(context, name) => relays.asked(list, context, scope.relays_max),
        About::Accredited(_) => Vec::new(),
        About::FromHosts => named(context.senders().iter().filter_map(|address| host_of(address)).collect()),
        About::FromDomains => {
            let hosts = context.senders();
            let hosts = hosts.iter().filter_map(|address| host_of(address));
            let domains = hosts.filter(|host| reading.is_known(host)).map(|host| reading.registered(&ascii(&host)));
            named(domains.collect())
        }
        About::Envelope => named(host_of(&context.fields.get("EnvelopeFrom:addr")).into_iter().collect()),
        // Their names come first.
        About::NameServers => Vec::new(),
        About::Fields(names) => names.iter().flat_map(|name| named(hosts_in(context, name))).collect(),
        About::Oldest => {
            let Some(relay) = context.path.untrusted.last() else { return Vec::new() };
            let of = [&relay.ip, &relay.by, &relay.helo, &relay.rdns];
            named(of.into_iter().filter(|text| !text.is_empty()).map(|text| text.to_vec()).collect())
        }
    }
}

/// The domain whose name servers are asked for.
pub(super) fn envelope_domain(context: &Context<'_>) -> Option<Vec<u8>> {
    host_of(&context.fields.get("EnvelopeFrom:addr"))
}

/// A host as it stands below a zone: an address turned around, or a name that can be registered.
fn subject(host: &[u8], only: Only, reading: &Reading) -> Option<Vec<u8>> {
    if let Some(turned) = reversed(host) {
        return only.takes(true).then_some(turned);
    }
    let end = host.iter().rposition(|&byte| byte != b'.').map_or(0, |last| last + 1);
    let name = ascii(&host[..end]);
    (only.takes(false) && is_host(&name) && reading.is_known(&name)).then_some(name)
}

/// The host behind the first `@` of an address, in lower case, if it has a dot: dots at its ends and doubled ones do not count.
fn host_of(address: &[u8]) -> Option<Vec<u8>> {
    let at = address.iter().position(|&byte| byte == b'@')?;
    let host = address[at + 1..].split(|&byte| byte == b'@' || byte.is_ascii_whitespace()).next()?;
    let labels: Vec<&[u8]> = host.split(|&byte| byte == b'.').filter(|label| !label.is_empty()).collect();
    (labels.len() > 1).then(|| labels.join(&b'.').to_ascii_lowercase())
}

/// The host of an address in a field, or each line that is one.
fn hosts_in(context: &Context<'_>, name: &str) -> Vec<Vec<u8>> {
    if let Some(host) = host_of(&context.fields.get(&format!("{name}:addr"))) {
        return vec![host];
    }
    let text = context.fields.get(name);
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Whether the mail says that somebody vouches for it: `a--NAME` in its sender's host, or a field of its own.
fn is_accredited(context: &Context<'_>, name: &[u8]) -> bool {
    let sender = context.fields.get("EnvelopeFrom:addr").to_ascii_lowercase();
    let mark = [b"a--", &name.to_ascii_lowercase()[..], b"."].concat();
    let by_sender = sender
        .windows(mark.len())
        .enumerate()
        .any(|(at, window)| *window == mark && at > 0 && b"@.".contains(&sender[at - 1]));
    let told = context.fields.get("Accreditor");
    let mut terms = told
        .split(|&byte| byte == b',')
        .filter_map(|term| term.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()));
    by_sender || terms.any(|term| term.eq_ignore_ascii_case(name))
}

fn is_trusted(context: &Context<'_>, ip: &[u8]) -> bool {
    parse_ip(ip).is_some_and(|address| context.settings.networks.is_trusted(address))
}

/// Each address once, without those of private networks.
fn public(all: impl IntoIterator<Item = Box<[u8]>>) -> Vec<Box<[u8]>> {
    let mut seen = std::collections::HashSet::new();
    all.into_iter().filter(|ip| !ip.is_empty() && seen.insert(ip.clone()) && !is_private_ip(ip)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_turned_around() {
        assert_eq!(reversed(b"192.0.2.7").as_deref(), Some(&b"7.2.0.192"[..]));
        let turned = reversed(b"2001:db8::1").unwrap();
        assert!(turned.starts_with(b"1.0.0.0.") && turned.ends_with(b".8.b.d.0.1.0.0.2"));
        assert_eq!(reversed(b"mx.example"), None);
    }

    #[test]
    fn the_host_of_an_address_has_a_dot_and_no_more_than_it_needs() {
        for (address, host) in [
            ("a@B.example", Some("b.example")),
            ("a@.b..example.", Some("b.example")),
            ("a@localhost", None),
            ("postmaster", None),
            ("a@b.example c", Some("b.example")),
        ] {
            assert_eq!(host_of(address.as_bytes()).as_deref(), host.map(str::as_bytes), "{address}");
        }
    }
}
