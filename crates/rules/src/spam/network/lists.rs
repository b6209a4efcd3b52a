//! What the rules of a configuration ask.

use std::collections::{HashMap, HashSet};

use flow::RecordKind;

use super::hashed::Hashed;
use super::subtest::Subtest;
use super::template::Template;
use crate::spam::rule::{Rule, Rules, Test, View};
use crate::spam::syntax::call::Call;
use crate::spam::syntax::dns::{Subject, UriList};
use crate::spam::syntax::value::Value;
use crate::spam::total::ScoreSet;

/// Hosts in addresses of a mail that are asked about, where no setting says otherwise.
const HOSTS_MAX: usize = 20;

/// Addresses of relays that are asked about, where no setting says otherwise.
const RELAYS_MAX: usize = 9;

/// Which hosts of the header a list is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum About {
    /// Relays, by the name of the set.
    Relays,
    /// Relays, where the mail names somebody who vouches for it.
    Accredited(Box<[u8]>),
    /// The hosts of all senders.
    FromHosts,
    /// Their registered domains.
    FromDomains,
    /// The host of the envelope's sender.
    Envelope,
    /// The name servers of that.
    NameServers,
    /// Hosts in these fields.
    Fields(Vec<Box<str>>),
    /// The oldest relay that is not trusted, by its address and all its names.
    Oldest,
}

/// A list of hosts in the header.
#[derive(Debug)]
pub(super) struct HostList {
    pub(super) rule: u32,
    pub(super) about: About,
    pub(super) set: Box<[u8]>,
    pub(super) zone: Box<[u8]>,
    pub(super) kind: RecordKind,
    pub(super) subtest: Subtest,
    /// A list of whom to trust: trusted relays are asked about too.
    pub(super) is_nice: bool,
    pub(super) only: Only,
}

/// Which hosts a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Only {
    /// All of them.
    Any,
    /// Those that are addresses (`ips_only`).
    Addresses,
    /// Those that are names (`domains_only`).
    Names,
}

impl Only {
    fn of(rule: &Rule) -> Only {
        match () {
            () if rule.flags.has("ips_only") => Only::Addresses,
            () if rule.flags.has("domains_only") => Only::Names,
            () => Only::Any,
        }
    }

    pub(super) fn takes(self, is_address: bool) -> bool {
        match self {
            Only::Any => true,
            Only::Addresses => is_address,
            Only::Names => !is_address,
        }
    }
}

/// A list of hosts in addresses.
#[derive(Debug)]
pub(super) struct AddressList {
    pub(super) rule: u32,
    pub(super) subject: Subject,
    pub(super) zone: Box<[u8]>,
    pub(super) kind: RecordKind,
    pub(super) subtest: Subtest,
    pub(super) only: Only,
    /// The addresses of the host are asked about (`a`).
    pub(super) by_address: bool,
    /// The whole name is, and not the registered domain (`notrim`).
    pub(super) is_whole: bool,
    pub(super) hits_max: u32,
}

/// What the rules of a configuration ask.
#[derive(Debug, Default)]
pub struct Lists {
    pub(super) hosts: Vec<HostList>,
    /// Rules that look at the answers of others, by the set.
    pub(super) parts: HashMap<Box<[u8]>, Vec<(u32, Subtest)>>,
    pub(super) addresses: Vec<AddressList>,
    pub(super) templates: Vec<Template>,
    pub(super) hashed: Vec<Hashed>,
    /// Some rule wants to know what authors say of their signatures.
    pub(super) has_practices: bool,
    /// `uridnsbl_skip_domain`
    pub(super) skipped: HashSet<Box<[u8]>>,
    /// `dns_query_restriction`: whether names below a domain are not asked for.
    restricted: HashMap<Box<[u8]>, bool>,
    /// `adsp_override`
    pub(super) practices: HashMap<Box<[u8]>, u8>,
    pub(super) hosts_max: usize,
    pub(super) relays_max: usize,
    /// `uridnsbl_skip_mailto`
    pub(super) skips_mailto: bool,
    /// `hashbl_ignore`
    pub(super) ignored: HashSet<Box<[u8]>>,
    is_off: [bool; 2],
}

impl Lists {
    /// Those of a configuration, as far as they count in a score set.
    pub(crate) fn new(rules: &Rules, set: ScoreSet) -> Lists {
        let mut lists = Lists { hosts_max: HOSTS_MAX, relays_max: RELAYS_MAX, skips_mailto: true, ..Lists::default() };
        rules.settings.iter().for_each(|setting| lists.set(&setting.name, &setting.value));
        let is_available =
            !matches!(rules.setting("dns_available"), Some(Value::Text(text)) if **text == *b"no" || **text == *b"0");
        if !set.net || !is_available {
            return lists;
        }
        for (id, rule) in (0..).zip(rules.names()).filter(|(_, rule)| set.score(rule) != 0.0) {
            lists.add(id, rule);
        }
        let [without_lists, without_addresses] = lists.is_off;
        if without_lists {
            lists.hosts.clear();
        }
        if without_addresses {
            lists.addresses.clear();
        }
        lists
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
            && self.addresses.is_empty()
            && self.templates.is_empty()
            && self.hashed.is_empty()
            && !self.has_practices
    }

    fn set(&mut self, name: &str, value: &Value) {
        match (name, value) {
            ("uridnsbl_skip_domain", Value::Pair(first, rest)) => {
                self.skipped.extend(words(first).chain(words(rest)));
            }
            ("clear_uridnsbl_skip_domain", Value::Pair(first, rest)) => {
                let named: Vec<Box<[u8]>> = words(first).chain(words(rest)).collect();
                self.skipped.retain(|domain| !named.is_empty() && !named.contains(domain));
            }
            ("hashbl_ignore", Value::Pair(first, rest)) => self.ignored.extend(words(first).chain(words(rest))),
            ("dns_query_restriction", Value::Text(text)) => {
                let mut named = words(text);
                let is_denied = named.next().is_some_and(|word| *word == *b"deny");
                self.restricted.extend(named.map(|domain| (domain, is_denied)));
            }
            ("clear_dns_query_restriction" | "clear_dns_query_restrictions", _) => self.restricted.clear(),
            ("adsp_override", Value::Pair(domain, practice)) => {
                let domain = domain.strip_prefix(b"@").unwrap_or(domain).to_ascii_lowercase();
                let practice = practice.to_ascii_lowercase();
                self.practices.insert(domain.into(), practice_of(&practice));
            }
            ("uridnsbl_max_domains", &Value::Number(most)) => self.hosts_max = bounded(most),
            ("num_check_received", &Value::Number(most)) => self.relays_max = bounded(most),
            ("uridnsbl_skip_mailto", &Value::Switch(on)) => self.skips_mailto = on,
            ("skip_rbl_checks", &Value::Switch(on)) => self.is_off[0] = on,
            ("skip_uribl_checks", &Value::Switch(on)) => self.is_off[1] = on,
            _ => {}
        }
    }

    fn add(&mut self, id: u32, rule: &Rule) {
        match &rule.test {
            Some(Test::AskDns(asked)) => self.templates.extend(Template::new(id, rule, asked)),
            Some(Test::Eval(_, call)) if &*call.function == "check_uridnsbl" => {
                self.addresses.extend(rule.uri_list.as_ref().and_then(|list| address_list(id, rule, list)));
            }
            Some(Test::Eval(view, call)) => self.call(id, rule, *view, call),
            _ => {}
        }
    }

    fn call(&mut self, id: u32, rule: &Rule, view: View, call: &Call) {
        let argument = |place: usize| call.arguments.get(place).map(|argument| &**argument);
        let set = argument(0).unwrap_or_default();
        // What a rule is about, and where its subtest stands behind the set and the zone.
        let (about, kind) = match &*call.function {
            "check_rbl" => (About::Relays, RecordKind::A),
            "check_rbl_txt" => (About::Relays, RecordKind::Txt),
            "check_rbl_accreditor" => (About::Accredited(argument(3).unwrap_or_default().into()), RecordKind::A),
            "check_rbl_from_host" => (About::FromHosts, RecordKind::A),
            "check_rbl_from_domain" => (About::FromDomains, RecordKind::A),
            "check_rbl_envfrom" => (About::Envelope, RecordKind::A),
            "check_rbl_ns_from" => (About::NameServers, RecordKind::A),
            "check_rbl_headers" => (About::Fields(fields(argument(3))), RecordKind::A),
            "check_rbl_rcvd" => (About::Oldest, RecordKind::A),
            "check_rbl_sub" => {
                if let Some(subtest) = argument(1).and_then(|text| Subtest::of_list(Some(text))) {
                    self.parts.entry(set.into()).or_default().push((id, subtest));
                }
                return;
            }
            "check_dkim_adsp" | "check_dkim_signall" => {
                self.has_practices = true;
                return;
            }
            _ => {
                self.hashed.extend(Hashed::new(id, rule, view, call));
                return;
            }
        };
        let Some(subtest) = Subtest::of_list(argument(2)) else { return };
        let zone = argument(1).map(zone).unwrap_or_default();
        let is_nice = rule.flags.has("nice");
        let only = Only::of(rule);
        self.hosts.push(HostList { rule: id, about, set: set.into(), zone, kind, subtest, is_nice, only });
    }

    /// Whether a name may not be asked for.
    pub(super) fn is_restricted(&self, name: &[u8]) -> bool {
        let mut rest = Some(name);
        while let Some(domain) = rest {
            if let Some(&is_denied) = self.restricted.get(domain) {
                return is_denied;
            }
            rest = domain.iter().position(|&byte| byte == b'.').map(|dot| &domain[dot + 1..]);
        }
        self.restricted.get(&b"*"[..]).copied().unwrap_or(false)
    }

    /// Whether nobody asks about a host, or the domain above it.
    pub(super) fn skips(&self, host: &[u8], domain: &[u8]) -> bool {
        self.skipped.contains(host) || self.skipped.contains(domain)
    }
}

fn address_list(id: u32, rule: &Rule, list: &UriList) -> Option<AddressList> {
    let subtest = Subtest::of_uri(list.subtest.as_deref())?;
    let kind = if &*list.record == "TXT" { RecordKind::Txt } else { RecordKind::A };
    Some(AddressList {
        rule: id,
        subject: list.subject,
        zone: zone(list.zone.as_bytes()),
        kind,
        subtest,
        only: Only::of(rule),
        by_address: rule.flags.has("a"),
        is_whole: rule.flags.has("notrim"),
        hits_max: rule.flags.hits_max(),
    })
}

/// A zone as questions have it.
pub(super) fn zone(text: &[u8]) -> Box<[u8]> {
    let end = text.iter().rposition(|&byte| byte != b'.').map_or(0, |last| last + 1);
    text[..end].to_ascii_lowercase().into()
}

/// The fields whose hosts are asked about.
fn fields(named: Option<&[u8]>) -> Vec<Box<str>> {
    const USUAL: &[u8] = b"EnvelopeFrom,Reply-To,Disposition-Notification-To,X-WebmailclientIP,X-Source-IP";
    let text = named.unwrap_or(USUAL);
    text.split(|&byte| byte == b',').map(|name| String::from_utf8_lossy(name.trim_ascii()).into()).collect()
}

/// The letter of a practice: unknown, all, discardable, of a domain that does not exist, or what a site has called it.
fn practice_of(name: &[u8]) -> u8 {
    match name {
        b"custom_low" => b'1',
        b"custom_med" => b'2',
        b"custom_high" => b'3',
        [] => b'D',
        [first, ..] => first.to_ascii_uppercase(),
    }
}

fn words(text: &[u8]) -> impl Iterator<Item = Box<[u8]>> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(|word| word.to_ascii_lowercase().into())
}

fn bounded(most: f64) -> usize {
    const MOST: f64 = 1_000.0;
    most.clamp(0.0, MOST) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restrictions_hold_for_what_is_below_and_the_nearest_counts() {
        let mut lists = Lists::default();
        let text = |text: &str| Value::Text(text.as_bytes().into());
        lists.set("dns_query_restriction", &text("deny spamhaus.org surbl.org"));
        lists.set("dns_query_restriction", &text("allow zen.spamhaus.org"));
        for (name, is) in [
            ("a.dbl.spamhaus.org", true),
            ("2.0.0.127.zen.spamhaus.org", false),
            ("spamhaus.org", true),
            ("notsurbl.org", false),
        ] {
            assert_eq!(lists.is_restricted(name.as_bytes()), is, "{name}");
        }
        lists.set("dns_query_restriction", &text("deny *"));
        assert!(lists.is_restricted(b"x.example") && !lists.is_restricted(b"zen.spamhaus.org"));
        lists.set("clear_dns_query_restriction", &Value::Bare);
        assert!(!lists.is_restricted(b"x.example"));
    }

    #[test]
    fn practices_have_letters() {
        for (name, letter) in [("", b'D'), ("all", b'A'), ("custom_med", b'2'), ("nxdomain", b'N')] {
            assert_eq!(practice_of(name.as_bytes()), letter, "{name}");
        }
    }
}
