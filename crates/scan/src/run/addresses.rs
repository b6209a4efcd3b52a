//! Links of a mail that show one address and lead to another.
//!
//! After the ClamAV manual, "Phishing signatures"; what it leaves open was learnt by trying it out with clamscan 1.4.
//! Hosts that are worth imitating stand in display lists (`.pdb`), pairs that are no fraud in allow lists (`.wdb`).
//! A link is told if the address that it shows is of such a host, no pair allows it, and
//! - the address that it leads to has a NUL in its host: `Cloaked.Null`;
//! - it shows `https` and leads elsewhere: `SSL-Spoof`;
//! - the domain that it shows is not the one that it leads to: `SpoofedDomain`.
//!
//! Expressions of the lists are matched over the two hosts, each with a dot before it, and a colon between them.
//!
//! Where a link leads is looked up in lists of digests of addresses besides (`.gdb`).

use sha2::{Digest, Sha256};
use stream::{Class, Finding};

use crate::hashes::HashTable;
use crate::links::address::Address;
use crate::links::digests::forms;
use crate::links::entry::Entry;
use crate::table::database::{Database, Name};

impl Database {
    /// Whether links are looked at at all: some host may be imitated, or some address is told.
    pub(crate) fn wants_links(&self) -> bool {
        let wants = |layer: &Database| layer.links.iter().any(|entry| !entry.allows) || !layer.addresses.is_empty();
        self.layers().any(wants)
    }

    /// Judges a link that leads to an address and shows another.
    pub(crate) fn judge(&self, real: &str, shown: &str) -> Option<Finding> {
        let (real, shown) = (Address::parse(real)?, Address::shown(shown)?);
        let layers = self.layers().enumerate();
        let all = layers.flat_map(|(layer, database)| database.links.iter().map(move |entry| (layer, entry)));
        let counts = |(layer, entry): &(usize, &Entry)| self.name(Name { layer: *layer, number: entry.name }).is_some();
        let of_list = |allows: bool| {
            let mut of_list = all.clone().filter(|(_, entry)| entry.allows == allows);
            of_list.any(|one| one.1.means(&real, &shown) && counts(&one))
        };
        if !of_list(false) || of_list(true) {
            return None;
        }
        let name = match () {
            () if real.is_cloaked => "Heuristics.Phishing.Email.Cloaked.Null",
            () if shown.is_secure && !real.is_secure => "Heuristics.Phishing.Email.SSL-Spoof",
            () if real.domain() == shown.domain() => return None,
            () => "Heuristics.Phishing.Email.SpoofedDomain",
        };
        Some(Finding::new(Class::Match, name, 0))
    }
}

impl Database {
    /// Looks an address up in the lists.
    pub(crate) fn look_up(&self, address: &str) -> Option<Finding> {
        let listed = forms(address).into_iter().find_map(|form| self.listed(&form));
        listed.flatten().map(|name| Finding { class: Class::Match, name: name.into(), offset: 0 })
    }

    /// Whether a form stands in a list: the name that it is told under, none if it is allowed.
    fn listed(&self, form: &str) -> Option<Option<String>> {
        let sums = digest::Sums { sha256: Some(Sha256::digest(form).into()), ..digest::Sums::default() };
        let name =
            |of: fn(&Database) -> &HashTable| self.matching(of, &sums).into_iter().find_map(|name| self.name(name));
        if name(|layer| &layer.addresses.allowed).is_some() {
            return Some(None);
        }
        name(|layer| &layer.addresses.told).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    fn judge(lists: &[(&str, &str)], real: &str, shown: &str) -> Option<String> {
        let mut builder = Builder::new();
        for (name, text) in lists {
            builder.add(name, text.as_bytes()).expect("a list");
        }
        builder.build().judge(real, shown).map(|finding| finding.name.rsplit('.').next().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_link_is_told_if_it_shows_a_host_of_the_list_and_leads_elsewhere() {
        let lists = [("a.pdb", "H:bank.com\n")];
        for (real, shown, told) in [
            ("http://evil.net/", "bank.com", Some("SpoofedDomain")),
            ("http://evil.net/", "www.bank.com/login", Some("SpoofedDomain")),
            ("http://evil.net/", "mybank.com", None),
            ("http://www2.bank.com/", "bank.com", None),
            ("http://bank.com.evil.net", "http://bank.com", Some("SpoofedDomain")),
            ("http://bank.com", "https://bank.com", Some("SSL-Spoof")),
            ("https://evil.net", "https://bank.com", Some("SpoofedDomain")),
            ("http://bank.com%00.evil.net", "http://bank.com", Some("Null")),
            ("mailto:a@evil.net", "bank.com", None),
        ] {
            assert_eq!(judge(&lists, real, shown).as_deref(), told, "{real} {shown}");
        }
        assert_eq!(judge(&[], "http://evil.net", "bank.com"), None);
    }

    #[test]
    fn pairs_are_allowed_by_host_and_by_expression() {
        let told = |allow: &str, real: &str, shown: &str| {
            judge(&[("a.pdb", "H:bank.com\n"), ("a.wdb", allow)], real, shown).is_some()
        };
        assert!(!told("M:ok.net:bank.com", "http://sub.ok.net/x", "http://bank.com/y"));
        assert!(told("M:ok.net:bank.com", "http://ok.net/x", "http://www.bank.com/y"));
        assert!(told("M:ok.net:bank.com:500-", "http://ok.net/x", "http://bank.com/y"));
        assert!(!told(
            "X:.+\\.ok\\.net([/?].*)?:.+\\.bank\\.com([/?].*)?:17-",
            "http://a.ok.net",
            "http://www.bank.com"
        ));
        assert!(told("X:.+\\.ok\\.net:.+\\.bank\\.com", "http://ok.net", "http://bank.com"));
    }

    fn sha256(form: &str) -> String {
        text::hex::encode(&Sha256::digest(form))
    }

    fn told(lines: &[String], address: &str) -> Option<String> {
        let mut builder = Builder::new();
        builder.add("a.gdb", lines.join("\n").as_bytes()).expect("a list");
        builder.build().look_up(address).map(|finding| finding.name.into_owned())
    }

    #[test]
    fn the_first_form_that_stands_in_a_list_decides() {
        let list = |list: &str, kind: &str, form: &str| format!("{list}:{kind}:{}", sha256(form));
        let address = "http://www.bad.com/x";
        assert_eq!(told(&[list("S1", "F", "bad.com/x")], address).as_deref(), Some("Heuristics.Phishing.URL.Blocked"));
        let both = [list("S1", "F", "bad.com/x"), list("S2", "F", "bad.com/")];
        assert!(told(&both, address).is_some_and(|name| name.contains("Suspected-phishing")));
        assert_eq!(told(&[list("S", "F", "bad.com/x"), list("S", "W", "bad.com/x")], address), None);
        assert!(told(&[list("S", "F", "bad.com/"), list("S", "W", "bad.com/x")], address).is_some());
        assert_eq!(told(&[list("S1", "F", "good.com/")], address), None);
        assert_eq!(told(&["S1:P:01234567".into()], address), None);
    }
}
