//! Choice of hosts in a mail's addresses for list queries: those that a reader sees and follows first.

use std::collections::BTreeMap;

use super::scope::Scope;
use crate::spam::message::{Message, Uri};

/// Hosts with their registered domains, in the order of their names.
pub(in crate::spam) type Hosts = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// How soon an address is seen: links with a text, forms, pictures, others, what stands in the text, links without one.
const RANKS: usize = 6;

/// The hosts of a mail, at most so many as the configuration says.
pub(super) fn chosen(mail: &Message, scope: &Scope) -> Hosts {
    let mut ranked: [Hosts; RANKS] = Default::default();
    for uri in mail.uris() {
        if scope.skips_mailto && is_mailto(&uri.raw) {
            continue;
        }
        for (host, domain) in &uri.hosts {
            if !scope.skips(host, domain) {
                ranked[rank(uri)].insert(host.clone(), domain.clone());
            }
        }
    }
    let mut chosen = Hosts::new();
    for (host, domain) in ranked.into_iter().flatten() {
        if chosen.len() >= scope.hosts_max {
            break;
        }
        chosen.entry(host).or_insert(domain);
    }
    chosen
}

pub(super) fn is_mailto(uri: &[u8]) -> bool {
    uri.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"mailto:"))
}

fn rank(uri: &Uri) -> usize {
    let is = |kind: &str| uri.kinds.contains(kind);
    match () {
        () if is("a") && uri.anchor_texts.iter().any(|text| !text.is_empty()) => 0,
        () if is("a") => 5,
        () if is("form") => 1,
        () if is("img") => 2,
        () if is("parsed") && uri.kinds.len() == 1 => 4,
        () => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_with_a_text_come_first_and_those_without_last() {
        let uri = |kinds: &[&'static str], text: &str| Uri {
            kinds: kinds.iter().copied().collect(),
            anchor_texts: vec![text.as_bytes().into()],
            ..Uri::default()
        };
        for (kinds, text, expected) in [
            (&["a"][..], "x", 0),
            (&["a"], "", 5),
            (&["form"], "", 1),
            (&["img", "parsed"], "", 2),
            (&["parsed"], "", 4),
            (&["parsed", "unlinked"], "", 3),
            (&["domainkeys"], "", 3),
        ] {
            assert_eq!(rank(&uri(kinds, text)), expected, "{kinds:?}");
        }
    }
}
