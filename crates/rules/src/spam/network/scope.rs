//! Settings of queries: exclusions, and bounds.

use std::collections::{HashMap, HashSet};

use crate::spam::rule::Rules;
use crate::spam::syntax::value::Value;

/// Hosts in addresses of a mail that are asked about, where no setting says otherwise.
const HOSTS_MAX: usize = 20;

/// Addresses of relays that are asked about, where no setting says otherwise.
const RELAYS_MAX: usize = 9;

/// Exclusions and bounds of queries.
#[derive(Debug)]
pub(super) struct Scope {
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
    /// `skip_rbl_checks`
    pub(super) is_without_lists: bool,
    /// `skip_uribl_checks`
    pub(super) is_without_addresses: bool,
}

impl Default for Scope {
    fn default() -> Scope {
        Scope {
            skipped: HashSet::new(),
            restricted: HashMap::new(),
            practices: HashMap::new(),
            hosts_max: HOSTS_MAX,
            relays_max: RELAYS_MAX,
            skips_mailto: true,
            ignored: HashSet::new(),
            is_without_lists: false,
            is_without_addresses: false,
        }
    }
}

impl Scope {
    /// Reads the settings.
    pub(super) fn of(rules: &Rules) -> Scope {
        let mut scope = Scope::default();
        rules.settings.iter().for_each(|setting| scope.set(&setting.name, &setting.value));
        scope
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
            ("skip_rbl_checks", &Value::Switch(on)) => self.is_without_lists = on,
            ("skip_uribl_checks", &Value::Switch(on)) => self.is_without_addresses = on,
            _ => {}
        }
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
        let mut scope = Scope::default();
        let text = |text: &str| Value::Text(text.as_bytes().into());
        scope.set("dns_query_restriction", &text("deny spamhaus.org surbl.org"));
        scope.set("dns_query_restriction", &text("allow zen.spamhaus.org"));
        for (name, is) in [
            ("a.dbl.spamhaus.org", true),
            ("2.0.0.127.zen.spamhaus.org", false),
            ("spamhaus.org", true),
            ("notsurbl.org", false),
        ] {
            assert_eq!(scope.is_restricted(name.as_bytes()), is, "{name}");
        }
        scope.set("dns_query_restriction", &text("deny *"));
        assert!(scope.is_restricted(b"x.example") && !scope.is_restricted(b"zen.spamhaus.org"));
        scope.set("clear_dns_query_restriction", &Value::Bare);
        assert!(!scope.is_restricted(b"x.example"));
    }

    #[test]
    fn practices_have_letters() {
        for (name, letter) in [("", b'D'), ("all", b'A'), ("custom_med", b'2'), ("nxdomain", b'N')] {
            assert_eq!(practice_of(name.as_bytes()), letter, "{name}");
        }
    }
}
