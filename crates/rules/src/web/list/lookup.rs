//! Looking something up in a list.

use core::net::IpAddr;

use stream::Fuel;

use super::keys::Hash;
use super::{Body, Found, Keys, List, Replacements, Section, Subject};
use crate::web::moment::Moment;

impl List {
    /// The first entry that `find` tells, in the files that hold at this moment.
    fn first(&self, now: Moment, find: impl Fn(&Body) -> Option<String>) -> Option<Found> {
        let holds = |section: &&Section| section.window.is_none_or(|window| window.has(now));
        let mut sections = self.sections.iter().filter(holds);
        sections.find_map(|section| {
            let entry = find(&section.body)?;
            Some(Found { entry, category: section.category.clone() })
        })
    }

    /// The entry that a host is, or stands below. Addresses have nothing above them.
    pub fn site(&self, host: &[u8], walks: bool, now: Moment) -> Option<Found> {
        self.key_of(now, |keys| site(keys, host, walks))
    }

    /// The entry that a URL begins with, `host/path`, or one of a host above.
    pub fn url(&self, url: &[u8], now: Moment) -> Option<Found> {
        self.key_of(now, |keys| self::url(keys, url))
    }

    /// The shortest entry that a URL begins with, whatever follows.
    pub fn beginning(&self, url: &[u8], now: Moment) -> Option<Found> {
        self.key_of(now, |keys| shortest(keys, url).map(<[u8]>::to_vec))
    }

    /// The longest entry that a path ends with.
    pub fn extension(&self, path: &[u8], now: Moment) -> Option<Found> {
        let longest = |keys: &Keys| keys.longest().min(path.len());
        self.key_of(now, |keys| {
            let ends = (path.len() - longest(keys)..path.len()).map(|at| &path[at..]);
            ends.filter(|end| keys.has(end)).map(<[u8]>::to_vec).next()
        })
    }

    /// The entry that equals a text.
    pub fn exact(&self, text: &[u8], now: Moment) -> Option<Found> {
        self.key_of(now, |keys| keys.has(text).then(|| text.to_vec()))
    }

    fn key_of(&self, now: Moment, find: impl Fn(&Keys) -> Option<Vec<u8>>) -> Option<Found> {
        self.first(now, |body| match body {
            Body::Keys(keys) => find(keys).map(|entry| String::from_utf8_lossy(&entry).into_owned()),
            _ => None,
        })
    }

    /// Whether an address is in the list.
    pub fn address(&self, address: IpAddr, now: Moment) -> Option<Found> {
        self.first(now, |body| match body {
            Body::Addresses(addresses) => addresses.get(address).map(|()| address.to_string()),
            _ => None,
        })
    }

    /// The expression that matches a text, and whether a search was given up.
    pub fn expression(&self, text: &[u8], now: Moment) -> (Option<Found>, bool) {
        let mut is_partial = false;
        for section in self.sections.iter().filter(|section| section.window.is_none_or(|window| window.has(now))) {
            let Body::Expressions(all) = &section.body else { continue };
            let (found, given_up) = all.find(text);
            is_partial |= given_up;
            if let Some(expression) = found {
                let entry = String::from_utf8_lossy(expression.text()).into_owned();
                return (Some(Found { entry, category: section.category.clone() }), is_partial);
            }
        }
        (None, is_partial)
    }

    /// Whether it has network rules.
    pub fn has_network(&self) -> bool {
        self.sections.iter().any(|section| matches!(section.body, Body::Network(_)))
    }

    /// The network rule that blocks a request, and whether the search was given up. Exceptions of all files of the list count.
    pub fn network(&self, subject: &Subject, now: Moment) -> (Option<Found>, bool) {
        let mut fuel = Fuel::new(STEPS_MAX);
        let found = self.blocking(subject, now, &mut fuel);
        (found.filter(|_| !fuel.is_empty()), fuel.is_empty())
    }

    fn blocking(&self, subject: &Subject, now: Moment, fuel: &mut Fuel) -> Option<Found> {
        let holding = || {
            let holding = self.sections.iter().filter(|section| section.window.is_none_or(|window| window.has(now)));
            holding.filter_map(|section| match &section.body {
                Body::Network(rules) => Some((section, rules)),
                _ => None,
            })
        };
        let mut first = None;
        for (section, rules) in holding() {
            let Some(hit) = rules.block(subject, fuel) else { continue };
            let found = Found { entry: hit.entry, category: section.category.clone() };
            if hit.is_important {
                return Some(found);
            }
            first = first.or(Some(found));
        }
        first.filter(|_| !holding().any(|(_, rules)| rules.spares(subject, fuel)))
    }

    /// The text after all replacements that hold; `None` where nothing is replaced.
    pub fn replaced(&self, text: &[u8], now: Moment) -> Option<Vec<u8>> {
        let mut changed: Option<Vec<u8>> = None;
        for replacements in self.replacements(now) {
            changed = replacements.replaced(changed.as_deref().unwrap_or(text)).or(changed);
        }
        changed
    }

    /// The text after the first replacement that does anything.
    pub fn replaced_once(&self, text: &[u8], now: Moment) -> Option<Vec<u8>> {
        self.replacements(now).find_map(|replacements| replacements.replaced_once(text))
    }

    /// Replacement for the match of the first expression that matches.
    pub fn expanded(&self, text: &[u8], now: Moment) -> Option<Vec<u8>> {
        self.replacements(now).find_map(|replacements| replacements.expanded(text))
    }

    fn replacements(&self, now: Moment) -> impl Iterator<Item = &Replacements> {
        let holds = move |section: &&Section| section.window.is_none_or(|window| window.has(now));
        self.sections.iter().filter(holds).filter_map(|section| match &section.body {
            Body::Replacements(all) => Some(&**all),
            _ => None,
        })
    }
}

/// Steps that the network rules of a list may take for a request.
const STEPS_MAX: u64 = 2_000_000;

/// The names that a host stands below, the host first.
fn hosts(host: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_address = host.starts_with(b"[") || host.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let dots = host.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| &host[at + 1..]);
    std::iter::once(host).chain(dots.filter(move |_| !is_address)).filter(|name| !name.is_empty())
}

fn site(keys: &Keys, host: &[u8], walks: bool) -> Option<Vec<u8>> {
    let names = if walks { usize::MAX } else { 1 };
    if let Some(name) = hosts(host).take(names).find(|name| keys.has(name)) {
        return Some(name.to_vec());
    }
    let last = host.rsplit(|&byte| byte == b'.').next().filter(|_| walks)?;
    let dotted = [b".", last].concat();
    keys.has(&dotted).then_some(dotted)
}

fn url(keys: &Keys, url: &[u8]) -> Option<Vec<u8>> {
    let end = url.iter().position(|&byte| byte == b'/').unwrap_or(url.len());
    let entry_of = |name: &[u8]| beginning(keys, &url[end - name.len()..], name.len());
    hosts(&url[..end]).find_map(entry_of).map(<[u8]>::to_vec)
}

fn shortest<'u>(keys: &Keys, url: &'u [u8]) -> Option<&'u [u8]> {
    let mut hash = Hash::new();
    (1..=url.len().min(keys.longest())).map(|end| &url[..end]).find(|start| {
        hash.add(start[start.len() - 1]);
        keys.has_hashed(hash, start)
    })
}

/// The shortest entry that a URL begins with, of those that end with it or before `/`, `?`, `&`, `=` or a zero.
fn beginning<'u>(keys: &Keys, url: &'u [u8], host_bytes: usize) -> Option<&'u [u8]> {
    let mut hash = Hash::new();
    for (at, &byte) in url.iter().enumerate().take(keys.longest() + 1) {
        let is_end = at >= host_bytes && matches!(byte, b'/' | b'?' | b'&' | b'=' | 0);
        if is_end && keys.has_hashed(hash, &url[..at]) {
            return Some(&url[..at]);
        }
        hash.add(byte);
    }
    (url.len() <= keys.longest() && keys.has_hashed(hash, url)).then_some(url)
}
