//! Permission to send: restrictions of `smtpd` and postscreen's tests become `[trust]`.

use std::net::IpAddr;

use ::dnsbl::client::sites;
use edge::settings::Network;
use serde_json::json;

use super::draft::Part;
use super::parameters::{Parameters, Place};
use super::services::{Service, endpoint};
use super::tables::{Contents, Entry, Table};
use super::translation::Translation;
use super::ways::seconds;

/// Points with which a client is refused, in `[trust]`.
const REJECT: i64 = 12;

/// Lists of restrictions.
const LISTS: [&str; 8] = [
    "smtpd_client_restrictions",
    "smtpd_helo_restrictions",
    "smtpd_sender_restrictions",
    "smtpd_relay_restrictions",
    "smtpd_recipient_restrictions",
    "smtpd_data_restrictions",
    "smtpd_end_of_data_restrictions",
    "smtpd_etrn_restrictions",
];

/// Restrictions that hold here in any case.
const ALWAYS: &[&str] = &[
    "defer_unauth_destination",
    "permit",
    "permit_auth_destination",
    "permit_sasl_authenticated",
    "reject",
    "reject_authenticated_sender_login_mismatch",
    "reject_known_sender_login_mismatch",
    "reject_sender_login_mismatch",
    "reject_unauth_destination",
    "reject_unauth_pipelining",
    "reject_unlisted_recipient",
];

/// Restrictions that refuse mail of clients to others.
const REFUSES_RELAY: &[&str] = &["defer", "defer_unauth_destination", "reject", "reject_unauth_destination"];

/// Restrictions with a word behind them.
const WITH_WORD: &[&str] =
    &["check_", "reject_rbl_client", "reject_rhsbl_", "permit_dnswl_client", "permit_rhswl_client", "sleep"];

/// A list of restrictions, and where it stands.
struct Restrictions {
    label: String,
    words: Vec<String>,
    place: Option<Place>,
}

/// Tests of clients.
#[derive(Default)]
struct Tests {
    permit: Vec<String>,
    reject: Vec<String>,
    /// Block lists with their points.
    lists: Vec<String>,
}

/// Lists, networks and tests.
pub fn trust(work: &mut Translation<'_>) {
    let mut tests = Tests::default();
    networks(work, &mut tests.permit);
    for name in LISTS {
        work.done(name);
        let (words, place) = (work.parameters.list(name), work.place(name));
        restrictions(work, Restrictions { label: name.into(), words, place }, &mut tests);
    }
    for service in work.services.iter().filter(|service| service.command == "smtpd") {
        of_service(work, service, &mut tests);
    }
    postscreen(work, &mut tests);
    let Tests { permit, reject, mut lists } = tests;
    lists.retain(|list| is_list(work, list));
    for (key, mut list) in [("permit", permit), ("reject", reject), ("dnsbl.lists", lists)] {
        let mut seen = std::collections::BTreeSet::new();
        list.retain(|entry| seen.insert(entry.clone()));
        if !list.is_empty() {
            work.draft.key(Part::Trust, key, &json!(list), None);
        }
    }
}

/// Restrictions of a service: where strangers bring mail they are tests, of other doors notes.
fn of_service(work: &mut Translation<'_>, service: &Service, tests: &mut Tests) {
    let (host, port) = endpoint(&service.name).unwrap_or((None, 25));
    // A way back from a filter is no door here.
    if host.is_some_and(|host| host.starts_with("127.") || host == "::1") {
        return;
    }
    let own = work.parameters.with(&service.options);
    for (place, name, _) in service.options.iter().filter(|(_, name, _)| LISTS.contains(&name.as_str())) {
        let label = format!("{}: -o {name}", service.name);
        let mut found = Tests::default();
        let all = Restrictions { label: label.clone(), words: own.list(name), place: Some(place.clone()) };
        restrictions(work, all, &mut found);
        let Tests { permit, reject, lists } = found;
        if port == 25 {
            tests.permit.extend(permit);
            tests.reject.extend(reject);
            tests.lists.extend(lists);
        } else if !(permit.is_empty() && reject.is_empty() && lists.is_empty()) {
            let setting = format!("{label}={}", own.value(name));
            work.draft.note(
                Some(place),
                setting,
                "tests of clients are those of [trust], at all doors: its lists are not taken from here",
            );
        }
    }
}

/// Whether a block list is one that can be asked; else that is noted.
fn is_list(work: &mut Translation<'_>, list: &str) -> bool {
    let Err(why) = sites::read(list) else { return true };
    let is_named = |name: &&str| work.parameters.value(name).contains(list.split(['=', '*']).next().unwrap_or(list));
    let place = LISTS.iter().copied().chain(["postscreen_dnsbl_sites"]).find(is_named);
    let place = place.and_then(|name| work.place(name));
    work.draft.note(place.as_ref(), list, format!("it is no block list of dnsbl.lists: {why}"));
    false
}

/// Networks of `mynetworks` beyond this machine.
pub fn inside(work: &mut Translation<'_>) -> Vec<String> {
    let is_near = |network: &String| network.starts_with("127.") || network.starts_with("::1");
    let own = work.parameters.with(&[]);
    mynetworks(work, &own).into_iter().filter(|network| !is_near(network)).collect()
}

/// All networks of `mynetworks` without those that are excluded (`!192.0.2.1`); addresses of IPv4 within IPv6 are those of IPv4.
pub fn mynetworks(work: &mut Translation<'_>, own: &Parameters) -> Vec<String> {
    let names = work.listed("mynetworks", own.list("mynetworks"));
    let excluded = names.iter().filter_map(|name| network(name.strip_prefix('!')?)?.parse::<Network>().ok());
    let excluded: Vec<Network> = excluded.collect();
    let all = names.iter().filter_map(|name| network(name));
    let all = all.filter(|network| !network.starts_with("::ffff:") && !network.ends_with("/0"));
    all.flat_map(|network| without(&network, &excluded)).collect()
}

/// A network in parts that have nothing of others.
fn without(network: &str, excluded: &[Network]) -> Vec<String> {
    let Ok(whole) = network.parse::<Network>() else { return Vec::new() };
    let (mut left, mut parts) = (vec![whole], Vec::new());
    while let Some(part) = left.pop() {
        match () {
            () if excluded.iter().any(|other| covers(other, &part)) => {}
            () if excluded.iter().any(|other| covers(&part, other)) => left.extend(halves(&part)),
            () if part == whole => parts.push(network.to_owned()),
            () => parts.push(format!("{}/{}", part.address(), part.bits())),
        }
    }
    parts
}

/// The upper and the lower half of a network.
fn halves(network: &Network) -> [Network; 2] {
    let bits = network.bits() + 1;
    let lower = network.trimmed().address();
    let upper = match lower {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() | 1 << (32 - bits)).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() | 1 << (128 - bits)).into()),
    };
    [Network::around(upper, bits), Network::around(lower, bits)]
}

/// The clients that `smtpd_client_restrictions` let in, if they refuse all others whatever they do. Who has logged in is no stranger.
pub fn only_clients(work: &mut Translation<'_>, own: &Parameters, has_logins: bool) -> Option<Vec<String>> {
    let words = own.list("smtpd_client_restrictions");
    if has_logins && words.iter().any(|word| word == "permit_sasl_authenticated") {
        return None;
    }
    let end = words.iter().position(|word| matches!(word.as_str(), "reject" | "defer" | "permit"))?;
    if words[end] == "permit" {
        return None;
    }
    let mut found = Vec::new();
    let mut words = words[..end].iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "permit_mynetworks" => found.extend(mynetworks(work, own)),
            "check_client_access" => {
                let table = Table::parse(words.next()?);
                if let Contents::Entries(entries) = table.read(work.folder) {
                    let lets_in = |action: &str| ["OK", "PERMIT", "PERMIT_MYNETWORKS"].contains(&action);
                    let entries = judged(entries, table.kind == "cidr").into_iter();
                    found.extend(entries.filter_map(|(_, action, network)| network.filter(|_| lets_in(&action))));
                }
            }
            "permit_sasl_authenticated" => {}
            word if word.starts_with("permit") => {
                let place = own.place("smtpd_client_restrictions").cloned();
                let setting = format!("smtpd_client_restrictions: {word}");
                work.draft.note(
                    place.as_ref(),
                    setting,
                    "all others are refused there, and this is no list of clients",
                );
                return None;
            }
            word if WITH_WORD.iter().any(|front| word.starts_with(front)) => _ = words.next(),
            _ => {}
        }
    }
    Some(found)
}

/// Whether clients of `mynetworks` may relay: both lists decide about that, each by the first word that fits.
pub fn let_networks_relay(own: &Parameters) -> bool {
    ["smtpd_relay_restrictions", "smtpd_recipient_restrictions"].iter().all(|name| {
        let words = own.list(name);
        let decides = |word: &&String| word.as_str() == "permit_mynetworks" || REFUSES_RELAY.contains(&word.as_str());
        let first = words.iter().find(decides);
        match first {
            Some(word) => word == "permit_mynetworks",
            None => words.is_empty() || name.contains("recipient"),
        }
    })
}

/// Networks that are trusted are not tested.
fn networks(work: &mut Translation<'_>, permit: &mut Vec<String>) {
    let is_set = work.parameters.is_set("mynetworks");
    for name in work.names("mynetworks") {
        match network(&name) {
            Some(network) if network.ends_with("/0") => {
                work.note("mynetworks", "a network of all addresses is an open relay");
            }
            None if name.strip_prefix('!').and_then(network).is_some() => {}
            None if is_set => {
                let place = work.place("mynetworks");
                let why = "no address and no network: no client is trusted for it";
                work.draft.note(place.as_ref(), format!("mynetworks: {name}"), why);
            }
            _ => {}
        }
    }
    let far = inside(work);
    if !far.is_empty() && !work.has_way {
        work.note(
            "mynetworks",
            "these clients are not tested, and relay nothing, since mail has no way out: relay in [store], and relay_clients of a listener",
        );
    }
    permit.extend(far);
}

/// An address or network as `[trust]` has it.
fn network(text: &str) -> Option<String> {
    let text: String = text.chars().filter(|letter| !"[]".contains(*letter)).collect();
    let (address, bits) = text.split_once('/').map_or((text.as_str(), None), |(address, bits)| (address, Some(bits)));
    // As tables have networks: 192.0.2.
    let short = address.trim_end_matches('.').split('.').collect::<Vec<_>>();
    if bits.is_none() && address.parse::<IpAddr>().is_err() {
        let is_number = short.iter().all(|part| part.parse::<u8>().is_ok());
        let padded = [short.as_slice(), &["0"; 4][short.len().min(4)..]].concat().join(".");
        return (is_number && short.len() < 4).then(|| format!("{padded}/{}", short.len() * 8));
    }
    let address: IpAddr = address.parse().ok()?;
    match bits {
        None => Some(address.to_string()),
        Some(bits) => {
            let most = if address.is_ipv4() { 32 } else { 128 };
            bits.parse::<u8>().ok().filter(|&bits| bits <= most).map(|bits| format!("{address}/{bits}"))
        }
    }
}

fn restrictions(work: &mut Translation<'_>, all: Restrictions, tests: &mut Tests) {
    let Restrictions { label, words, place } = all;
    let mut all = words.into_iter();
    let mut warns = false;
    while let Some(word) = all.next() {
        if word == "warn_if_reject" {
            warns = true;
            continue;
        }
        let warns = std::mem::take(&mut warns);
        let behind = WITH_WORD.iter().any(|front| word.starts_with(front)).then(|| all.next()).flatten();
        let behind = behind.unwrap_or_default();
        let why = match word.as_str() {
            _ if warns => "a refusal is only logged there, and this is not tested here",
            word if ALWAYS.contains(&word) => continue,
            "permit_mynetworks" => continue,
            "reject_rbl_client" => {
                tests.lists.push(format!("{behind}*{REJECT}"));
                continue;
            }
            "permit_dnswl_client" => {
                tests.lists.push(format!("{behind}*-{REJECT}"));
                continue;
            }
            "check_client_access" => {
                clients(work, &label, place.as_ref(), &behind, tests);
                continue;
            }
            "check_recipient_access" => {
                "recipients are refused by lists of [[recipients]], which read such tables as files"
            }
            "check_sender_access" | "check_helo_access" => {
                "a [[listener.rule]] has actions for senders; names that clients give are judged by rules of spam"
            }
            "check_policy_service" => {
                "policy servers are not asked: SPF is [authentication], greylisting is greylist in [spam], rates are [trust]"
            }
            "reject_unverified_recipient" => "a table of [[recipients]] asks another server with call_ahead",
            "reject_unverified_sender" | "reject_unknown_sender_domain" | "reject_non_fqdn_sender" => {
                "senders are not looked up: rules of spam score them"
            }
            "reject_unknown_client_hostname" | "reject_unknown_reverse_client_hostname" => {
                "names of clients are not looked up at the door: rules of spam score them"
            }
            word if word.contains("helo_hostname") => "names that clients give are judged by rules of spam",
            word if word.starts_with("reject_rhsbl_") => {
                "lists of names are asked by rules of spam, with network = true in [spam]"
            }
            "reject_non_fqdn_recipient" | "reject_unknown_recipient_domain" => {
                "a recipient without an account here is refused"
            }
            "sleep" => "a new client waits for its greeting: greet_wait_ms in [trust]",
            _ => "there is no such restriction",
        };
        work.draft.note(place.as_ref(), format!("{label}: {word} {behind}").trim_end().to_owned(), why);
    }
}

/// Clients of a table: addresses and networks with `OK` or a refusal.
fn clients(work: &mut Translation<'_>, label: &str, place: Option<&Place>, word: &str, tests: &mut Tests) {
    let table = Table::parse(word);
    let entries = match table.read(work.folder) {
        Contents::Entries(entries) => entries,
        Contents::Unread(why) => return work.draft.note(place, format!("{label}: {word}"), why),
        _ => return work.draft.note(place, format!("{label}: {word}"), "clients are addresses and networks"),
    };
    for (entry, action, found) in judged(entries, table.kind == "cidr") {
        let is_refusal = action == "REJECT" || action.starts_with('5');
        match found {
            Some(network) if matches!(action.as_str(), "OK" | "PERMIT" | "PERMIT_MYNETWORKS") => {
                tests.permit.push(network)
            }
            Some(network) if is_refusal => tests.reject.push(network),
            Some(_) if action == "DUNNO" => {}
            _ => {
                let setting = format!("{} {}", entry.key, entry.value);
                work.draft.note(
                    Some(&entry.place),
                    setting,
                    "clients are addresses and networks, which pass or are refused for good",
                );
            }
        }
    }
}

/// The entries of a table that decide, with their action and their network. In a table of networks (`is_cidr`) the first that fits decides,
/// and here the smallest.
fn judged(entries: Vec<Entry>, is_cidr: bool) -> Vec<(Entry, String, Option<String>)> {
    let mut earlier: Vec<String> = Vec::new();
    let judged = |entry: Entry| {
        let action = entry.value.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        let found = network(&entry.key);
        if is_cidr && let Some(found) = &found {
            if earlier.iter().any(|network| is_within(found, network)) {
                return None;
            }
            earlier.push(found.clone());
        }
        Some((entry, action, found))
    };
    entries.into_iter().filter_map(judged).collect()
}

/// Whether an address or network is within another.
fn is_within(one: &str, other: &str) -> bool {
    matches!((one.parse(), other.parse()), (Ok(one), Ok(other)) if covers(&other, &one))
}

/// Whether a network has all of another.
fn covers(network: &Network, other: &Network) -> bool {
    network.is_ipv4() == other.is_ipv4()
        && network.bits() <= other.bits()
        && Network::around(other.address(), network.bits()) == network.trimmed()
}

fn postscreen(work: &mut Translation<'_>, tests: &mut Tests) {
    if !work.services.iter().any(|service| service.command == "postscreen") {
        for name in [
            "postscreen_access_list",
            "postscreen_dnsbl_sites",
            "postscreen_dnsbl_action",
            "postscreen_dnsbl_threshold",
            "postscreen_greet_wait",
        ] {
            work.note(name, "no service of master.cf is postscreen: it is not used there, and not here");
        }
        return;
    }
    work.done("postscreen_access_list");
    for word in work.parameters.list("postscreen_access_list") {
        if word != "permit_mynetworks" {
            let place = work.place("postscreen_access_list");
            clients(work, "postscreen_access_list", place.as_ref(), &word, tests);
        }
    }
    work.done("postscreen_dnsbl_action");
    work.done("postscreen_dnsbl_threshold");
    if matches!(work.parameters.value("postscreen_dnsbl_action").as_str(), "" | "ignore") {
        work.note(
            "postscreen_dnsbl_sites",
            "with postscreen_dnsbl_action = ignore nobody is refused for them there: dnsbl.lists in [trust]",
        );
    } else {
        work.done("postscreen_dnsbl_sites");
        tests.lists.extend(work.parameters.list("postscreen_dnsbl_sites"));
        for key in ["scores.reject", "scores.defer"] {
            let number =
                |value: &str| value.parse::<i64>().ok().filter(|&number| number > 0).map(|number| json!(number));
            work.set(Part::Trust, key, "postscreen_dnsbl_threshold", number);
        }
    }
    work.set(Part::Trust, "greet_wait_ms", "postscreen_greet_wait", |value| {
        seconds(value.rsplit('}').next().unwrap_or(value), 's').map(|wait| json!((wait * 1_000).clamp(0, 60_000)))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_is_in_no_part() {
        let excluded: Vec<Network> =
            ["10.22.0.3", "2001:db8::/33"].iter().filter_map(|text| text.parse().ok()).collect();
        let mut parts = without("10.22.0.0/28", &excluded);
        parts.sort();
        assert_eq!(parts, ["10.22.0.0/31", "10.22.0.2/32", "10.22.0.4/30", "10.22.0.8/29"]);
        assert_eq!(without("2001:db8::/32", &excluded), ["2001:db8:8000::/33"]);
        assert_eq!(without("10.22.0.3", &excluded), [""; 0]);
        assert_eq!(without("192.0.2.0/24", &excluded), ["192.0.2.0/24"]);
    }

    #[test]
    fn networks_are_understood() {
        for (text, wanted) in [
            ("192.0.2.0/24", Some("192.0.2.0/24")),
            ("[2001:db8::]/32", Some("2001:db8::/32")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("192.0.2", Some("192.0.2.0/24")),
            ("10.", Some("10.0.0.0/8")),
            ("[::ffff:127.0.0.0]/104", Some("::ffff:127.0.0.0/104")),
            ("example.org", None),
            ("192.0.2.0/33", None),
            ("192.0.2.256", None),
        ] {
            assert_eq!(network(text).as_deref(), wanted, "{text}");
        }
    }
}
