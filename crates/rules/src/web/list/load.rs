//! The files of item lists, read line by line.

use core::net::IpAddr;
use std::borrow::Cow;

use pattern::expression::Expression;

use super::keys::Keys;
use super::{Addresses, Body, Expressions, FLAGS, Kind, List, Replacement, Replacements, Section, network};
use crate::spam::Place;
use crate::web::loading::{Loading, Source, beside, included, lines};
use crate::web::moment::Window;
use crate::web::phrase::category;
use crate::web::url;

/// The most bytes of a line.
const LINE_BYTES_MAX: usize = 2048;

/// Reads a list; `decodes`: entries of URL lists are decoded, as requests are.
pub(crate) fn load(kind: Kind, path: &str, place: &Place, decodes: bool, loading: &mut Loading<'_>) -> List {
    let mut reader = Reader { kind, decodes, sections: Vec::new() };
    if let Some(source) = loading.file_or_within(path, name_in_tree(kind), place) {
        reader.file(&source, None, 0, loading);
    }
    List { sections: reader.sections }
}

/// The file of a kind in a folder of a category, as SquidGuard and the lists of the University of Toulouse have it.
fn name_in_tree(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Site => Some("domains"),
        Kind::Url | Kind::Beginning => Some("urls"),
        Kind::Expression | Kind::UrlExpression => Some("expressions"),
        _ => None,
    }
}

struct Reader {
    kind: Kind,
    decodes: bool,
    sections: Vec<Section>,
}

impl Reader {
    /// Reads a file, which holds as long as those that include it.
    fn file(&mut self, source: &Source, outer: Option<Window>, depth: usize, loading: &mut Loading<'_>) {
        if matches!(self.kind, Kind::Url | Kind::Beginning) && network::is_list(&source.bytes) {
            let section = network::load(source, loading);
            return self.sections.push(Section { window: outer, ..section });
        }
        let mut entries = Entries::new(self.kind, source);
        let (mut name, mut window) = (None, None);
        let mut includes = Vec::new();
        for (place, line) in lines(source) {
            if line.len() < 2 {
                continue;
            }
            if line.len() > LINE_BYTES_MAX {
                loading.error(&place, "the line is too long", "its entry is not read");
                continue;
            }
            if let Some(text) = line.strip_prefix(b"#time:") {
                window = Some(loading.window(text, &place));
            } else if line.starts_with(b"#") {
                name = category(line).or(name);
            } else if let Some(path) = line.starts_with(b".I").then(|| included(line)).flatten() {
                includes.push((beside(&place.file, &path), place));
            } else {
                entries.line(uncommented(line), &place, self.decodes, loading);
            }
        }
        let name = name.unwrap_or_default();
        let window = window.map_or(outer, |own| Some(outer.map_or(own, |outer| own.and(outer))));
        self.sections.push(Section { category: name.as_str().into(), window, body: entries.seal() });
        for (path, place) in includes {
            self.include(&path, &place, window, depth, loading);
        }
    }

    fn include(&mut self, path: &str, place: &Place, outer: Option<Window>, depth: usize, loading: &mut Loading<'_>) {
        if depth >= loading.limits.include_depth_max {
            return loading.error(place, "files include each other too deep", "take the line away");
        }
        if let Some(source) = loading.file_or_within(path, name_in_tree(self.kind), place) {
            self.file(&source, outer, depth + 1, loading);
        }
    }
}

/// The line up to its comment: `#` behind a blank.
fn uncommented(line: &[u8]) -> &[u8] {
    let comment = line.windows(2).position(|pair| matches!(pair, [b' ' | b'\t', b'#']));
    line[..comment.unwrap_or(line.len())].trim_ascii()
}

/// The entries of a file on their way in.
enum Entries {
    Keys(Kind, Keys),
    Addresses(Addresses<()>),
    Expressions(Kind, Vec<Expression>),
    Replacements(Vec<Replacement>),
}

impl Entries {
    fn new(kind: Kind, source: &Source) -> Entries {
        match kind {
            Kind::Address | Kind::AddressSite => Entries::Addresses(Addresses::default()),
            Kind::Expression | Kind::UrlExpression => Entries::Expressions(kind, Vec::new()),
            Kind::Replacement => Entries::Replacements(Vec::new()),
            Kind::Site | Kind::Url | Kind::Network | Kind::Beginning | Kind::Search | Kind::Extension | Kind::Type => {
                Entries::Keys(kind, Keys::with_capacity(source.bytes.len()))
            }
        }
    }

    fn line(&mut self, line: &[u8], place: &Place, decodes: bool, loading: &mut Loading<'_>) {
        match self {
            Entries::Keys(Kind::Site, keys) if hosts(line).is_some() => {
                hosts(line).into_iter().flatten().for_each(|host| keys.push(host.as_bytes()));
            }
            Entries::Keys(kind, keys) => {
                let line = if has_fragment(*kind, line) {
                    let advice = "no request has a fragment: what stands before it is matched";
                    loading.note(place, format!("{} is cut at #", shown(line)), advice);
                    until_fragment(line)
                } else {
                    line
                };
                let entry = cleaned(*kind, line, decodes);
                if let Some(reason) = never_matches(*kind, &entry, decodes) {
                    loading.error(
                        place,
                        format!("{} never matches: {reason}", shown(line)),
                        "write it as requests have it",
                    );
                }
                if *kind == Kind::Search && decodes && !is_sorted(&line.to_ascii_lowercase()) {
                    loading.note(place, format!("{} is not in order", shown(line)), "E2Guardian never finds it");
                }
                keys.push(&entry);
            }
            Entries::Addresses(addresses) => {
                if !std::str::from_utf8(line).is_ok_and(|text| addresses.push(text, ())) {
                    loading.error(
                        place,
                        format!("{} is no address", shown(line)),
                        "write an address, a subnet or a range",
                    );
                }
            }
            Entries::Expressions(kind, all) if all.len() < loading.limits.expressions_max => {
                // E2Guardian takes the slash at the end away here, too.
                let bare = line.strip_suffix(b"/").filter(|_| *kind == Kind::Expression);
                match Expression::new(bare.unwrap_or(line), FLAGS) {
                    Ok(expression) => all.push(expression),
                    Err(error) => {
                        loading.error(place, format!("the expression is not understood: {error}"), "it never matches")
                    }
                }
            }
            Entries::Replacements(all) if all.len() < loading.limits.expressions_max => match Replacement::read(line) {
                Ok(replacement) => all.extend(replacement),
                Err(reason) => loading.error(place, reason, "write \"expression\"->\"text\""),
            },
            _ => loading.error(place, "there are too many expressions in the list", "it is not read"),
        }
    }

    fn seal(self) -> Body {
        match self {
            Entries::Keys(_, mut keys) => {
                keys.seal();
                Body::Keys(keys)
            }
            Entries::Addresses(mut addresses) => {
                addresses.seal();
                Body::Addresses(addresses)
            }
            Entries::Expressions(_, all) => Body::Expressions(Box::new(Expressions::new(all))),
            Entries::Replacements(all) => Body::Replacements(Box::new(Replacements::new(all))),
        }
    }
}

/// The names on a line of a hosts file; those of the machine itself are left out.
fn hosts(line: &[u8]) -> Option<Vec<String>> {
    const OWN: [&str; 4] = ["localhost", "localhost.localdomain", "broadcasthost", "local"];
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let address: IpAddr = words.next()?.parse().ok()?;
    let names: Vec<String> = words.map(url::in_ascii).collect();
    let is_own = |name: &String| OWN.contains(&&**name) || name.parse() == Ok(address) || name.starts_with("ip6-");
    (!names.is_empty()).then(|| names.into_iter().filter(|name| !is_own(name)).collect())
}

/// An entry with its host in ASCII.
fn with_mapped_host(entry: Vec<u8>) -> Vec<u8> {
    let end = entry.iter().position(|&byte| byte == b'/').unwrap_or(entry.len());
    if entry[..end].is_ascii() {
        return entry;
    }
    let mut mapped = text::host::ascii(&entry[..end]);
    mapped.extend_from_slice(&entry[end..]);
    mapped
}

/// An entry as it is compared.
fn cleaned(kind: Kind, line: &[u8], decodes: bool) -> Vec<u8> {
    let line = line.strip_suffix(b"/").filter(|_| kind != Kind::Beginning).unwrap_or(line);
    let mut entry = line.to_ascii_lowercase();
    if entry.starts_with(b"ftp://") {
        entry.drain(..6);
    }
    if kind == Kind::Search && decodes {
        return sorted_words(&String::from_utf8_lossy(line)).into_bytes();
    }
    if matches!(kind, Kind::Url | Kind::Beginning) {
        entry = without_port(entry);
        if decodes && let Cow::Owned(decoded) = url::decoded(&entry) {
            entry = decoded;
        }
    }
    if matches!(kind, Kind::Site | Kind::Url | Kind::Beginning) { with_mapped_host(entry) } else { entry }
}

/// `host:8080/path` without the port.
fn without_port(mut entry: Vec<u8>) -> Vec<u8> {
    let end = entry.iter().position(|&byte| byte == b'/').unwrap_or(entry.len());
    if let Some(colon) = entry[..end].iter().position(|&byte| byte == b':')
        && !entry.starts_with(b"[")
        && colon + 1 < end
        && entry[colon + 1..end].iter().all(u8::is_ascii_digit)
    {
        entry.drain(colon..end);
    }
    entry
}

/// Why no request can have an entry.
fn never_matches(kind: Kind, entry: &[u8], decodes: bool) -> Option<&'static str> {
    let has = |byte: u8| entry.contains(&byte);
    match kind {
        Kind::Site if entry.windows(3).any(|three| three == b"://") => Some("it has a scheme"),
        Kind::Site if has(b'/') => Some("it has a path"),
        Kind::Site if has(b':') && !entry.starts_with(b"[") => Some("it has a port"),
        Kind::Site if entry.ends_with(b".") => Some("it ends with a dot"),
        Kind::Site | Kind::Url | Kind::Beginning if entry.starts_with(b"*") => {
            Some("sites stand for those below them, without a star")
        }
        Kind::Url | Kind::Beginning
            if entry.windows(3).any(|three| three == b"://") && !has_host_before_scheme(entry) =>
        {
            Some("it has a scheme")
        }
        Kind::Url | Kind::Beginning if !decodes && matches!(url::decoded(entry), Cow::Owned(_)) => {
            Some("requests are decoded")
        }
        Kind::Site if !entry.is_ascii() => Some("requests have names beyond ASCII as xn--"),
        Kind::Search if entry.is_empty() => Some("it has no word"),
        Kind::Search if !is_sorted(entry) => Some("its words are not in order"),
        _ => None,
    }
}

fn has_fragment(kind: Kind, line: &[u8]) -> bool {
    matches!(kind, Kind::Url | Kind::Beginning) && line.contains(&b'#')
}

/// The line up to its first `#`.
fn until_fragment(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b'#').next().unwrap_or(line)
}

fn has_host_before_scheme(entry: &[u8]) -> bool {
    let slash = entry.iter().position(|&byte| byte == b'/');
    slash.is_some_and(|slash| slash > 0 && entry[slash - 1] != b':')
}

fn is_sorted(entry: &[u8]) -> bool {
    entry.split(|&byte| byte == b'+').collect::<Vec<_>>().is_sorted()
}

/// An entry as a message shows it.
fn shown(entry: &[u8]) -> String {
    String::from_utf8_lossy(entry.get(..60).unwrap_or(entry)).into_owned()
}

/// Terms of a search that are compared.
const TERMS_MAX: usize = 200;

/// The words of a search, parted at all that is no letter and no digit, as search engines part them.
pub(crate) fn sorted_words(terms: &str) -> String {
    let lower = text::normal::composed(terms).to_lowercase();
    sorted_terms(&lower.replace(|letter: char| !letter.is_alphanumeric(), " "))
}

/// The words of a search: decoded, in lower case, in order, each once.
pub(crate) fn sorted_terms(terms: &str) -> String {
    let terms = terms.to_ascii_lowercase();
    let mut words: Vec<&str> = terms.split([' ', '+']).filter(|word| !word.is_empty()).take(TERMS_MAX).collect();
    words.sort_unstable();
    words.dedup();
    words.join("+")
}
