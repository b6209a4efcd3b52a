//! Lists of digests of addresses (`.gdb`).
//!
//! After the ClamAV manual, "Phishing signatures", and "URLs and Hashing" of the Safe Browsing API, version 4: the digest is the
//! SHA-256 of an address in one spelling, from some label of its host on, and up to some part of its path. They
//! are looked up in clamscan's order, and the first that stands in a list decides.
//!
//! Bounds: an address has at most [`FORMS_MAX`] forms.

use std::io;

use pattern::flat::{Reader, Unfit, Writer};

use crate::hashes::{ANY_SIZE, AnyDigest, HashEntry, HashTable};
use crate::links::address;
use crate::links::entry::levels;
use crate::syntax::line::{FUNCTIONALITY_LEVEL, Reject};

/// Hosts beside the whole one, and paths beside the whole ones.
const HOSTS_MAX: usize = 4;
const FOLDERS_MAX: usize = 5;

/// How many forms an address has at most.
#[cfg(test)]
const FORMS_MAX: usize = (HOSTS_MAX + 1) * (FOLDERS_MAX + 2);

/// Kind of a line of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Addresses with this digest are told under this name.
    Told(AnyDigest, &'static str),
    /// Addresses with this digest are not.
    Allowed(AnyDigest),
    /// How digests begin that have lines of their own.
    Prefix,
}

impl Line {
    /// Reads a line.
    pub(crate) fn parse(line: &str) -> Result<Line, Reject> {
        let unknown = || Reject::Unsupported(format!("no digest of an address: {line:?}"));
        let mut fields = line.split(':');
        let (Some(list), Some(kind), Some(digits)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(unknown());
        };
        if let Some(last) = fields.next() {
            let (min, max) = levels(last).ok_or_else(unknown)??;
            if !(min..=max).contains(&FUNCTIONALITY_LEVEL) {
                return Err(Reject::OtherEngine);
            }
        }
        let name = match list {
            "S" => "Heuristics.Safebrowsing.Suspected-malware_safebrowsing.clamav.net",
            "S1" => "Heuristics.Phishing.URL.Blocked",
            "S2" => "Heuristics.Safebrowsing.Suspected-phishing_safebrowsing.clamav.net",
            _ => return Err(unknown()),
        };
        if kind == "P" {
            return u32::from_str_radix(digits, 16).map(|_| Line::Prefix).map_err(|_| unknown());
        }
        let digest = AnyDigest::parse(digits).map_err(Reject::Unsupported)?;
        match (kind, &digest) {
            ("F", AnyDigest::Sha256(_)) => Ok(Line::Told(digest, name)),
            ("W", AnyDigest::Sha256(_)) => Ok(Line::Allowed(digest)),
            _ => Err(unknown()),
        }
    }
}

/// The digests of all lists.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digests {
    pub(crate) told: HashTable,
    pub(crate) allowed: HashTable,
}

impl Digests {
    pub(crate) fn new(told: Vec<HashEntry>, allowed: Vec<HashEntry>) -> Digests {
        Digests { told: HashTable::new(told), allowed: HashTable::new(allowed) }
    }

    /// Whether no address is told.
    pub(crate) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        self.told.store(writer)?;
        self.allowed.store(writer)
    }

    pub(crate) fn load(reader: &mut Reader, names_end: u32) -> Result<Digests, Unfit> {
        Ok(Digests { told: HashTable::load(reader, names_end)?, allowed: HashTable::load(reader, names_end)? })
    }
}

/// An entry of a table of digests of addresses.
pub(crate) fn entry(digest: AnyDigest, name: u32) -> HashEntry {
    HashEntry { digest, size: ANY_SIZE, name }
}

/// The forms of an address that may stand in a list: folders from the longest on, then the path, then with the query; none
/// if it is not an address of the web.
pub(crate) fn forms(address: &str) -> Vec<String> {
    let Some((host, path)) = address::canonical(address) else { return Vec::new() };
    let (folders, query) = path.split_once('?').map_or((&*path, None), |(folders, query)| (folders, Some(query)));
    let ends = folders.match_indices('/').map(|(at, _)| at + 1).take(FOLDERS_MAX);
    let mut paths: Vec<&str> = ends.map(|end| &folders[..end]).collect();
    paths.reverse();
    if !paths.contains(&folders) {
        paths.push(folders);
    }
    paths.extend(query.map(|_| &*path));
    let mut hosts = vec![&*host];
    if !host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        let dots: Vec<usize> = host.match_indices('.').map(|(at, _)| at + 1).collect();
        let shorter = dots.iter().rev().skip(1).take(HOSTS_MAX);
        hosts.extend(shorter.map(|&start| &host[start..]));
    }
    paths.iter().flat_map(|path| hosts.iter().map(move |host| format!("{host}{path}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_forms_of_safe_browsing() {
        let forms_of = |address: &str| forms(address).join(" ");
        assert_eq!(
            forms_of("http://a.b.c/1/2.html?param=1"),
            "a.b.c/1/ b.c/1/ a.b.c/ b.c/ a.b.c/1/2.html b.c/1/2.html a.b.c/1/2.html?param=1 b.c/1/2.html?param=1"
        );
        assert_eq!(forms_of("http://1.2.3.4/"), "1.2.3.4/");
        assert!(forms("http://a.b/1/2/3/4/5/6/").contains(&"a.b/1/2/3/4/5/6/".to_owned()));
        assert_eq!(forms_of("mailto:a@b.com"), "");
        let hosts = forms("http://a.b.c.d.e.f.g/");
        assert_eq!(hosts, ["a.b.c.d.e.f.g/", "f.g/", "e.f.g/", "d.e.f.g/", "c.d.e.f.g/"]);
        assert_eq!(forms("http://a.b.c.d.e.f.g/1/2/3/4/5/6/7?8").len(), FORMS_MAX);
    }

    #[test]
    fn what_is_no_line_is_said() {
        let digest = "0a".repeat(32);
        assert_eq!(Line::parse(&format!("S1:F:{digest}:500-")), Err(Reject::OtherEngine));
        for line in ["S1:F:00", "S3:F", "S1:P:xx"] {
            assert!(matches!(Line::parse(line), Err(Reject::Unsupported(_))), "{line}");
        }
        assert!(matches!(Line::parse(&format!("Q:F:{digest}")), Err(Reject::Unsupported(_))));
        assert!(matches!(Line::parse(&format!("S:X:{digest}")), Err(Reject::Unsupported(_))));
    }
}
