//! Where mail goes: `relayhost`, `transport_maps`, and how it waits.

use serde_json::json;

use super::draft::Part;
use super::hops::{Hop, hop_of};
use super::logins;
use super::tables::{Contents, Entry};
use super::translation::{Shape, Translation};

/// The reason of a level of TLS that Sluice has not.
pub const STRICT: &str = "TLS is asked of the servers whose domains have DANE or MTA-STS, and not of others";

const ITSELF: &str =
    "the host itself is asked, and not its MX, for which Postfix looks without brackets: write the host of the MX";

const FIRST: &str = "there is one next hop, the first: the others are not asked";

/// Places of the authorities that a distribution has.
const AUTHORITIES: &[&str] =
    &["", "/etc/ssl/certs", "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Whether the site is a gateway: domains are relayed, nobody has mail here, and no clients inside relay.
pub fn shape(work: &mut Translation<'_>, has_insiders: bool) -> Shape {
    let relayed = work.parameters.list("relay_domains");
    let virtuals = ["virtual_mailbox_maps", "virtual_mailbox_domains", "virtual_alias_maps"];
    let hosts = ["localhost", &work.parameters.value("myhostname")].map(str::to_owned);
    let local = work.parameters.list("mydestination");
    let is_host = |name: &String| hosts.contains(name) || name.starts_with("localhost");
    let is_server = virtuals.iter().any(|name| work.parameters.is_set(name)) || local.iter().any(|name| !is_host(name));
    if relayed.is_empty() {
        work.done("relay_domains");
        return Shape::Server;
    }
    if is_server || has_insiders {
        return Shape::Server;
    }
    let domains = work.names("relay_domains");
    let mut hops: Vec<String> = Vec::new();
    for entry in entries(work, "transport_maps") {
        if let (true, Hop::Server(hop, _)) =
            (domains.contains(&entry.key) || entry.key == "*", hop_of(work.services, &entry.value, "smtp"))
        {
            hops.push(hop);
        }
    }
    if hops.is_empty() {
        let names = ["relay_transport", "relayhost"].into_iter().filter(|name| work.parameters.is_set(name));
        hops.extend(names.filter_map(|name| match hop_of(work.services, &work.parameters.value(name), "smtp") {
            Hop::Server(hop, _) => Some(hop),
            _ => None,
        }));
    }
    hops.dedup();
    match hops.pop().filter(|_| hops.is_empty()) {
        Some(hop) => {
            ["transport_maps", "relay_transport", "relayhost"].iter().for_each(|name| work.done(name));
            Shape::Gateway(hop)
        }
        None => Shape::Server,
    }
}

/// `relay_domains` of a mail server, by the queue; domains that are relayed to. Where `relay_transport` has a next hop, they have it.
pub fn relayed(work: &mut Translation<'_>) -> Vec<String> {
    let others: Vec<String> = ["mydestination", "virtual_mailbox_domains", "virtual_alias_domains"]
        .iter()
        .flat_map(|name| work.parameters.list(name))
        .collect();
    let mut domains = work.names("relay_domains");
    domains.retain(|name| !others.contains(name) && !name.contains(['@', '*', '/', ' ']));
    let mut domains = with_subdomains(work, domains);
    // A domain of this host whose mail another server has.
    let routes = entries(work, "transport_maps");
    let is_server = |entry: &&Entry| matches!(hop_of(work.services, &entry.value, "smtp"), Hop::Server(..));
    let away = routes.iter().filter(is_server).map(|entry| entry.key.to_ascii_lowercase());
    domains.extend(away.filter(|name| others.iter().any(|other| other.eq_ignore_ascii_case(name))));
    if domains.is_empty() || !work.has_way {
        return Vec::new();
    }
    let place = work.place("relay_domains");
    work.draft.key(Part::Queue, "relay_domains", &json!(domains), place.as_ref());
    let transport = work.parameters.value("relay_transport");
    if let Some(Hop::Server(hop, _)) = transport.contains(':').then(|| hop_of(work.services, &transport, "relay")) {
        let has_all = routes.iter().any(|entry| entry.key == "*");
        // An entry without a value is that of nobody, and `*` that of all who have none.
        let is_left = |name: &&String| match routes.iter().find(|entry| entry.key.eq_ignore_ascii_case(name)) {
            Some(entry) => is_null(entry),
            None => !has_all,
        };
        for name in domains.iter().filter(is_left) {
            let key = json!(name.to_ascii_lowercase()).to_string();
            work.draft.key(Part::Routes, &key, &json!(hop), work.place("relay_transport").as_ref());
        }
    }
    if !work.parameters.is_set("relay_recipient_maps") {
        work.note("relay_domains", "recipients there are not known here, and what their server refuses comes back: [[recipients]] with call_ahead");
    }
    domains
}

/// Whether an entry of `transport_maps` leaves its domain to the usual way.
fn is_null(entry: &Entry) -> bool {
    matches!(entry.value.trim(), "" | ":")
}

/// The names of `relay_domains` with those below them, where a name stands for them: by default it does, and one with a dot in front is
/// nothing; else a name is itself, and one with a dot what is below it.
pub fn with_subdomains(work: &mut Translation<'_>, domains: Vec<String>) -> Vec<String> {
    const MATCHES: &str = "parent_domain_matches_subdomains";
    work.done(MATCHES);
    let stands = work.parameters.list(MATCHES).iter().any(|name| name == "relay_domains");
    if work.parameters.place(MATCHES).is_some() && !stands {
        return domains;
    }
    let place = work.place("relay_domains");
    let (nothing, names): (Vec<String>, Vec<String>) = domains.into_iter().partition(|name| name.starts_with('.'));
    for name in nothing {
        let why = "with parent_domain_matches_subdomains such a name is none there";
        work.draft.note(place.as_ref(), format!("relay_domains: {name}"), why);
    }
    names.into_iter().flat_map(|name| [name.clone(), format!(".{name}")]).collect()
}

/// `relay`, and the next hops of domains.
pub fn relay(work: &mut Translation<'_>) {
    let value = work.parameters.value("relayhost");
    work.done("relayhost");
    let is_wrapped = work.parameters.is_yes("smtp_tls_wrappermode");
    work.done("smtp_tls_wrappermode");
    let routes = entries(work, "transport_maps");
    usual_way(work, &value, &routes, is_wrapped);
    // Mail from commands goes out by `relay`.
    if work.has_way {
        work.draft.key(Part::Store, "maildrop", &json!("/var/spool/sluice/maildrop"), None);
    }
    for entry in routes {
        route(work, &entry, is_wrapped, !value.is_empty());
    }
    senders(work, is_wrapped);
    if is_strict(&work.parameters.value("smtp_tls_security_level")) {
        work.note("smtp_tls_security_level", STRICT);
    }
    for name in ["smtp_tls_CAfile", "smtp_tls_CApath"] {
        let at = work.parameters.value(name);
        if !AUTHORITIES.iter().any(|usual| at.trim_end_matches('/') == *usual) {
            let why = "a next hop with a login has a certificate of [tls] authorities, one file: put these into it";
            work.note(name, why);
        }
    }
    transports(work);
    logins::logins(work);
}

/// The way of domains without one of their own: the line `*` of `transport_maps`, which Postfix asks first, or `relayhost`.
fn usual_way(work: &mut Translation<'_>, relayhost: &str, routes: &[Entry], is_wrapped: bool) {
    let hop = match relayhost {
        "" => Hop::Direct,
        _ => hop_of(work.services, &format!("smtp:{relayhost}"), "smtp").within(is_wrapped),
    };
    let others = routes.iter().find(|entry| entry.key == "*");
    let others = others.map(|entry| (entry, hop_of(work.services, &entry.value, "smtp").within(is_wrapped)));
    if let Some((Entry { place, key, value }, Hop::Server(way, asks))) = others {
        work.has_way = true;
        if !relayhost.is_empty() {
            work.note("relayhost", "the line * of transport_maps comes before it, and is the way of all others");
        }
        work.draft.key(Part::Store, "relay", &json!(way), Some(place));
        if !work.parameters.list("mydestination").is_empty() {
            let why = "it is the way of mail for accounts of this host too there, and here they have it";
            work.draft.note(Some(place), format!("{key} {value}"), why);
        }
        let has_transport = work.parameters.value("relay_transport").contains(':');
        for Entry { place, key, value } in routes.iter().filter(|entry| is_null(entry) && !has_transport) {
            let why = "this domain goes the way that it would have without the table there, and that of * here";
            work.draft.note(Some(place), format!("{key} {value}"), why);
        }
        if asks {
            work.draft.note(Some(place), format!("{key} {value}"), ITSELF);
        }
        return;
    }
    work.has_way = !matches!(hop, Hop::Other(_));
    match hop {
        Hop::Server(hop, asks) => {
            let place = work.place("relayhost");
            work.draft.key(Part::Store, "relay", &json!(hop), place.as_ref());
            if relayhost.contains(',') {
                work.note("relayhost", FIRST);
            }
            if asks {
                work.note("relayhost", ITSELF);
            }
        }
        Hop::Usual | Hop::Direct => work.draft.key(Part::Store, "relay", &json!("mx"), None),
        Hop::Other(why) => work.note("relayhost", why),
    }
}

/// A line of `transport_maps`.
fn route(work: &mut Translation<'_>, Entry { place, key, value }: &Entry, is_wrapped: bool, has_relayhost: bool) {
    let setting = format!("{key} {value}");
    match hop_of(work.services, value, "smtp").within(is_wrapped) {
        _ if key.contains('@') => work.draft.note(Some(place), setting, "next hops are those of domains"),
        Hop::Server(..) if key == "*" => {}
        Hop::Server(hop, asks) => {
            for (_, why) in [(asks, ITSELF), (value.contains(','), FIRST)].iter().filter(|(is_so, _)| *is_so) {
                work.draft.note(Some(place), setting.clone(), *why);
            }
            work.draft.key(Part::Routes, &json!(key.to_ascii_lowercase()).to_string(), &json!(hop), Some(place));
        }
        Hop::Direct if has_relayhost => {
            let why = "mail to this domain goes to its MX there, and here as relay in [store] says";
            work.draft.note(Some(place), setting, why);
        }
        Hop::Usual | Hop::Direct => {}
        Hop::Other(why) => work.draft.note(Some(place), setting, why),
    }
}

/// Whether a level of TLS refuses to send without.
pub fn is_strict(level: &str) -> bool {
    !matches!(level, "" | "none" | "may" | "dane")
}

/// The next hops of senders.
fn senders(work: &mut Translation<'_>, is_wrapped: bool) {
    let entries = entries(work, "sender_dependent_relayhost_maps");
    let domains: Vec<String> =
        entries.iter().filter_map(|entry| entry.key.strip_prefix('@')).map(str::to_ascii_lowercase).collect();
    for Entry { place, key, value } in entries {
        let (setting, sender) = (format!("{key} {value}"), key.to_ascii_lowercase());
        if value.eq_ignore_ascii_case("dunno") {
            if sender
                .rsplit_once('@')
                .is_some_and(|(name, domain)| !name.is_empty() && domains.iter().any(|known| known == domain))
            {
                let why = "the way of this sender is the usual one there, and here that of its domain";
                work.draft.note(Some(&place), setting, why);
            }
            continue;
        }
        match hop_of(work.services, &format!("smtp:{value}"), "smtp").within(is_wrapped) {
            _ if !key.contains('@') => work.draft.note(Some(&place), setting, "a sender is an address, or @DOMAIN"),
            Hop::Server(hop, asks) => {
                if asks {
                    work.draft.note(Some(&place), setting, ITSELF);
                }
                let key = sender.strip_prefix('@').unwrap_or(&sender);
                work.draft.key(Part::SenderRoutes, &json!(key).to_string(), &json!(hop), Some(&place));
            }
            Hop::Usual | Hop::Direct => {}
            Hop::Other(why) => work.draft.note(Some(&place), setting, why),
        }
    }
}

/// The entries of a parameter with tables of next hops, each key once.
fn entries(work: &mut Translation<'_>, name: &str) -> Vec<Entry> {
    work.done(name);
    let mut found: Vec<Entry> = Vec::new();
    for table in work.tables(name) {
        match table.read(work.folder) {
            Contents::Entries(entries) => {
                for entry in entries {
                    // The first table that has a key decides.
                    if found.iter().all(|known| !known.key.eq_ignore_ascii_case(&entry.key)) {
                        found.push(entry);
                    }
                }
            }
            Contents::Patterns(entries) => entries.iter().for_each(|entry| {
                let setting = format!("{} {}", entry.key, entry.value);
                work.draft.note(Some(&entry.place), setting, "next hops are those of names, and not of patterns");
            }),
            Contents::Query(_) => work.note(name, format!("{}: next hops stand in the configuration", table.whole)),
            Contents::Unread(why) => work.note(name, why),
        }
    }
    found
}

/// Transports other than the usual ones.
fn transports(work: &mut Translation<'_>) {
    for (name, usual) in [
        ("virtual_transport", "virtual"),
        ("local_transport", "local"),
        ("relay_transport", "relay"),
        ("default_transport", "smtp"),
        ("mailbox_transport", ""),
    ] {
        work.done(name);
        let value = work.parameters.value(name);
        if value.is_empty() || value.split(':').next() == Some(usual) {
            continue;
        }
        work.note(
            name,
            match name {
                "default_transport" | "relay_transport" => "relay and [store.queue.routes] say where mail goes",
                _ => {
                    "mail is delivered into the store of Sluice, which takes the place of this program: sluice store import reads its \
                     mailboxes. To keep it, let the listener of port 25 forward to it: lmtp:/PATH or lmtp://HOST:PORT"
                }
            },
        );
    }
}

/// How mail waits.
pub fn queue(work: &mut Translation<'_>, shape: &Shape) {
    let keys = [
        ("retry_first_seconds", "minimal_backoff_time", 's'),
        ("retry_longest_seconds", "maximal_backoff_time", 's'),
        ("warning_seconds", "delay_warning_time", 'h'),
        ("lifetime_seconds", "maximal_queue_lifetime", 'd'),
    ];
    if *shape != Shape::Server {
        let names = keys.map(|(_, name, _)| name);
        return names.into_iter().for_each(|name| work.note(name, "a gateway has no queue: the next hop has it"));
    }
    for (key, name, unit) in keys {
        // Once is tried there and here.
        let least = i64::from(key == "lifetime_seconds");
        work.set(Part::Queue, key, name, |value| seconds(value, unit).map(|value| json!(value.max(least))));
    }
    work.done("queue_run_delay");
    for name in ["default_destination_concurrency_limit", "smtp_destination_concurrency_limit"] {
        let number = |value: &str| value.parse::<u32>().ok().filter(|&number| number > 0).map(|number| json!(number));
        let is_last = name.starts_with("smtp") || !work.parameters.is_set("smtp_destination_concurrency_limit");
        match is_last {
            true => work.set(Part::Queue, "connections_to_one_max", name, number),
            false => work.done(name),
        }
    }
}

/// A time with a unit.
pub fn seconds(value: &str, usual: char) -> Option<i64> {
    let value = value.trim();
    let (digits, unit) = match value.char_indices().next_back() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => (&value[..at], unit),
        _ => (value, usual),
    };
    let unit = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    digits.parse::<u32>().ok().and_then(|number| i64::from(number).checked_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let all = ["300s", "5m", "4h", "5d", "1w", "5", "x", ""].map(|value| seconds(value, 'h'));
        assert_eq!(all, [Some(300), Some(300), Some(14_400), Some(432_000), Some(604_800), Some(18_000), None, None]);
    }
}
