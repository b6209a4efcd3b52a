//! Addresses in a mail: in its text, in its HTML, in its DKIM signatures.

use std::collections::{BTreeMap, BTreeSet};

use super::html::{Link, URI_BYTES_MAX};
use super::perl::{Text, begins, is_blank, is_word_byte};
use super::{MessageLimits, Reading, canonical, host};
use crate::spam::map::{HashMap, HashSet};

/// An address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uri {
    /// As it is written in the mail, with a scheme where it has none.
    pub raw: Box<[u8]>,
    /// The spellings that `uri` rules look at: it, and what it comes to when it is decoded, cut and redirected.
    pub cleaned: BTreeSet<Box<[u8]>>,
    /// Where it was found: `a`, `img`, `form`, `parsed`, `unlinked`, `schemeless`, `domainkeys`, ...
    pub kinds: BTreeSet<&'static str>,
    /// Link texts, each once.
    pub anchor_texts: Vec<Box<[u8]>>,
    /// Hosts, with the registered domain of each.
    pub hosts: BTreeMap<Box<[u8]>, Box<[u8]>>,
}

impl Uri {
    /// The registered domains, each once.
    pub fn domains(&self) -> BTreeSet<&[u8]> {
        self.hosts.values().map(|domain| &**domain).collect()
    }
}

/// The addresses of a mail, as they are found.
#[derive(Debug)]
pub(super) struct Uris<'a> {
    reading: &'a Reading,
    limits: &'a MessageLimits,
    pub(super) found: Vec<Uri>,
    places: HashMap<Box<[u8]>, usize>,
    pub(super) is_cut: bool,
    /// An address was cut.
    pub(super) has_long: bool,
}

impl<'a> Uris<'a> {
    pub(super) fn new(reading: &'a Reading, limits: &'a MessageLimits) -> Uris<'a> {
        Uris { reading, limits, found: Vec::new(), places: HashMap::default(), is_cut: false, has_long: false }
    }

    /// Adds an address. With `needs_host` only if it has a host. Whether it was added.
    fn add(&mut self, uri: &[u8], kinds: &[&'static str], needs_host: bool) -> bool {
        let is_plain = kinds.contains(&"domainkeys");
        let spellings = match is_plain {
            true => BTreeSet::from([uri.to_vec()]),
            false => canonical::spellings(uri, self.reading),
        };
        let mut hosts = BTreeMap::new();
        let mut cleaned: BTreeSet<Box<[u8]>> = BTreeSet::new();
        for mut spelling in spellings {
            self.has_long |= spelling.len() > URI_BYTES_MAX;
            spelling.truncate(URI_BYTES_MAX);
            if let Some((host, domain)) = self.reading.of_uri(&spelling) {
                hosts.insert(host.into_boxed_slice(), domain.into_boxed_slice());
            }
            cleaned.insert(spelling.into_boxed_slice());
        }
        if cleaned.is_empty() || (needs_host && hosts.is_empty()) {
            return false;
        }
        let Some(entry) = self.entry(uri) else { return false };
        if !is_plain {
            entry.cleaned.extend(cleaned);
        }
        entry.hosts.extend(hosts);
        entry.kinds.extend(kinds);
        true
    }

    fn entry(&mut self, uri: &[u8]) -> Option<&mut Uri> {
        let at = match self.places.get(uri) {
            Some(at) => *at,
            None if self.found.len() >= self.limits.uris_max => {
                self.is_cut = true;
                return None;
            }
            None => {
                self.places.insert(uri.into(), self.found.len());
                self.found.push(Uri { raw: uri.into(), ..Uri::default() });
                self.found.len() - 1
            }
        };
        self.found.get_mut(at)
    }

    /// The addresses in HTML.
    pub(super) fn html(&mut self, links: &[Link]) {
        for link in links {
            let kinds: Vec<&'static str> = match link.kinds.is_empty() {
                true => vec!["parsed"],
                false => link.kinds.iter().copied().collect(),
            };
            if !self.add(&link.uri, &kinds, false) {
                continue;
            }
            let Some(entry) = self.entry(&link.uri) else { continue };
            let mut seen: BTreeSet<&str> = BTreeSet::new();
            let texts = link.texts.iter().filter(|text| seen.insert(text.characters.as_str()));
            entry.anchor_texts.extend(texts.map(|text: &Text| Box::from(&*text.bytes())));
        }
    }

    /// The domains of a DKIM signature.
    pub(super) fn signature(&mut self, value: &[u8]) {
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'd', value.get(at..).unwrap_or_default()) {
            let begin = at + found;
            at = begin + 1;
            let is_apart = begin == 0 || !is_word_byte(value[begin - 1]);
            let rest = super::perl::trim_start(&value[at..]);
            let Some(rest) = rest.strip_prefix(b"=").map(super::perl::trim_start).filter(|_| is_apart) else {
                continue;
            };
            let length = rest.iter().take_while(|byte| **byte != b';').count();
            if length == 0 {
                continue;
            }
            let name: Vec<u8> = rest[..length].iter().copied().filter(|byte| !is_blank(*byte)).collect();
            self.add(&[b"domainkeys:", &name[..]].concat(), &["domainkeys", "nocanon", "noclean"], true);
            at = value.len() - rest.len() + length;
        }
    }

    /// The addresses in the lines of a rendered body.
    pub(super) fn text(&mut self, lines: &[Box<[u8]>]) {
        let mut seen = HashSet::default();
        for line in lines {
            let mut from = 0;
            while let Some(found) = next(line, from, self.reading) {
                from = found.end;
                if seen.len() >= self.limits.uris_max.saturating_mul(2) {
                    self.is_cut = true;
                    return;
                }
                let raw = trimmed(&line[found.begin..found.end]);
                if seen.insert(raw.to_vec()) {
                    self.text_uri(raw, &found);
                }
            }
        }
    }

    /// Adds an address that was found in text.
    fn text_uri(&mut self, raw: &[u8], found: &Found) {
        let is_bogus = found.kind == Kind::Mail && !raw.contains(&b'@');
        let is_no_host = found.host.as_ref().is_some_and(|host| !host::is_host(&host.to_ascii_lowercase()));
        if is_bogus || is_no_host || begins(raw, b"cid:") || begins(raw, b"mid:") || is_scheme_only(raw) {
            return;
        }
        let mut kinds = vec!["parsed"];
        let Some(mut uri) = with_scheme(raw, &mut kinds) else { return };
        if begins(&uri, b"mailto:") {
            if canonical::has_escape(&uri) {
                uri = canonical::unescaped(&uri);
            }
            let Some(at) = memchr::memchr(b'@', &uri) else { return };
            let mut host = &uri[at + 1..];
            host = &host[..host.iter().take_while(|byte| !b"?&>".contains(byte)).count()];
            while let Some(rest) = host.strip_suffix(b"%20") {
                host = rest;
            }
            if !self.reading.is_known(host) {
                return;
            }
        }
        self.add(&uri, &kinds, true);
    }
}

/// With the scheme that it is taken to have.
fn with_scheme(raw: &[u8], kinds: &mut Vec<&'static str>) -> Option<Vec<u8>> {
    if ["http:", "https:", "ftp:", "mailto:"].iter().any(|scheme| begins(raw, scheme.as_bytes())) {
        return Some(raw.to_vec());
    }
    let with = |scheme: &[u8], raw: &[u8]| Some([scheme, raw].concat());
    let at = raw.iter().rposition(|byte| *byte == b'@');
    let slash = memchr::memchr(b'/', raw);
    let out = if begins(raw, b"ftp.") {
        with(b"ftp://", raw)
    } else if is_www(raw) || slash.zip(at).is_some_and(|(slash, at)| at > slash + 1) {
        with(b"http://", raw)
    } else if raw.contains(&b'@') {
        // No link to anybody unless a dot stands behind it, with something between.
        let first = memchr::memchr(b'@', raw)?;
        let behind = raw.get(first + 2..).unwrap_or_default();
        if !behind.contains(&b'.') || memchr::memmem::find(raw, b"&nbsp;").is_some() {
            return None;
        }
        with(b"mailto:", without_misparse(raw))
    } else if raw.contains(&b'.') {
        kinds.push("unlinked");
        with(b"http://", raw)
    } else {
        return None;
    };
    kinds.push("schemeless");
    out
}

/// `www.`, `www2.`, `www02.`
fn is_www(raw: &[u8]) -> bool {
    if !begins(raw, b"www") {
        return false;
    }
    let digits = raw[3..].iter().take(2).take_while(|byte| byte.is_ascii_digit()).count();
    raw.get(3 + digits) == Some(&b'.')
}

/// Without `e-mail:` and the like before it.
fn without_misparse(raw: &[u8]) -> &[u8] {
    for word in ["skype", "e-mail", "email", "-mail", "mail", ""] {
        if begins(raw, word.as_bytes()) {
            let colons = raw[word.len()..].iter().take_while(|byte| **byte == b':').count();
            if colons > 0 {
                return &raw[word.len() + colons..];
            }
        }
    }
    raw
}

/// `http://` and no more.
fn is_scheme_only(raw: &[u8]) -> bool {
    let word = raw.iter().take_while(|byte| is_word_byte(**byte)).count();
    word > 0 && matches!(&raw[word..], b":" | b":/" | b"://")
}

/// Without what mail readers do not take for a part of a link.
fn trimmed(raw: &[u8]) -> &[u8] {
    // A parenthesis ends a link, unless one was opened in it.
    let end = memchr::memchr2(b'(', b')', raw).filter(|at| raw[*at] == b')').unwrap_or(raw.len());
    let raw = &raw[..end];
    let end = raw.iter().rposition(|byte| !b"-~!@#^&*()_+=:;'?,.".contains(byte)).map_or(0, |last| last + 1);
    &raw[..end]
}

/// Apparent kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scheme,
    Mail,
    Schemeless,
}

/// A possible address in a line.
#[derive(Debug)]
struct Found {
    begin: usize,
    end: usize,
    kind: Kind,
    host: Option<Vec<u8>>,
}

/// Bytes that end an address.
fn is_end(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b'>' | b'<' | b'"' | b'`' | b'}' | b']' | b'{' | b'[' | b'|' | 0x1b | 0xa0)
}

/// Bytes that end a mail address.
fn is_mail_end(byte: u8) -> bool {
    is_end(byte) || matches!(byte, b',' | b'(' | b'\'' | 0x80..)
}

fn is_begin(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, b'>' | b'<' | b'"' | b'\'' | b'`' | b',' | b'{' | b'[' | b'(' | b'|' | 0x1b | 0xa0)
}

/// Bytes allowed in front of an address without a scheme.
fn is_schemeless_begin(byte: u8) -> bool {
    is_blank(byte) || matches!(byte, 0x1b | 0xa0) || b"!\"#$&'()*+,/:;<=>?@[\\]^`{|}~".contains(&byte)
}

const RUN_MAX: usize = 2048;
const MAIL_MAX: usize = 251;

/// The next of them in a line.
fn next(line: &[u8], from: usize, reading: &Reading) -> Option<Found> {
    // The next `@` and where the run around a place ends: kept, so that a line is read once.
    let mut at_sign = memchr::memchr(b'@', line.get(from..)?).map(|at| from + at);
    let (mut next, mut word_end) = (from, from);
    while next < line.len() {
        if next >= word_end {
            // What is an address has no blank, and one of these in it.
            let mark = next + memchr::memchr3(b'.', b'@', b':', &line[next..])?;
            next = line[next..mark].iter().rposition(|byte| is_blank(*byte)).map_or(next, |blank| next + blank + 1);
            word_end = line[mark..].iter().position(|byte| is_blank(*byte)).map_or(line.len(), |blank| mark + blank);
        }
        let begin = next;
        next += 1;
        if at_sign.is_some_and(|at| at < begin) {
            at_sign = memchr::memchr(b'@', &line[begin..]).map(|at| begin + at);
        }
        let before = begin.checked_sub(1).map(|at| line[at]);
        let is_edge = before.is_some_and(is_word_byte) != is_word_byte(line[begin]);
        let is_shifted = begin >= 3 && line[begin - 3] == 0x1b && line[begin - 2] == b'(' && line[begin - 1] != b'\n';
        if !is_edge && !is_shifted && !before.is_some_and(is_begin) {
            continue;
        }
        let found = with_known_scheme(&line[begin..])
            .map(|length| (length, Kind::Scheme, None))
            .or_else(|| mail(&line[begin..], at_sign.map(|at| at - begin)).map(|length| (length, Kind::Mail, None)))
            .or_else(|| {
                let may = before.is_none_or(is_schemeless_begin);
                let found = may.then(|| schemeless(&line[begin..], reading)).flatten();
                found.map(|(length, host)| (length, Kind::Schemeless, Some(line[begin..begin + host].to_vec())))
            });
        if let Some((length, kind, host)) = found {
            return Some(Found { begin, end: begin + length, kind, host });
        }
    }
    None
}

/// The run of bytes before what ends it, if it is not too long. A byte 0xa0 is an end where it is a blank, alone or behind 0xc2, and not
/// where it belongs to another character of UTF-8.
fn run(bytes: &[u8], max: usize, is_end: fn(u8) -> bool) -> Option<usize> {
    let mut before = 0;
    let goes_on = |byte: &u8| {
        let is_inner = *byte == 0xa0 && before >= 0x80 && before != 0xc2 && !is_end(before);
        before = *byte;
        is_inner || !is_end(*byte)
    };
    let length = bytes.iter().take(max + 1).copied().take_while(goes_on).count();
    (1..=max).contains(&length).then_some(length)
}

fn with_known_scheme(text: &[u8]) -> Option<usize> {
    let schemes = ["https://", "http://", "ftp://", "ftp."].iter().find(|scheme| begins(text, scheme.as_bytes()));
    let prefix = match schemes {
        Some(scheme) => scheme.len(),
        None if is_www(text) => 4 + text[3..].iter().take(2).take_while(|byte| byte.is_ascii_digit()).count(),
        None => return None,
    };
    Some(prefix + run(&text[prefix..], RUN_MAX, is_end)?)
}

fn mail(text: &[u8], at_sign: Option<usize>) -> Option<usize> {
    if begins(text, b"mailto:")
        && let Some(length) = run(&text[7..], RUN_MAX, is_mail_end)
    {
        return Some(7 + length);
    }
    let at = at_sign.filter(|at| (1..=MAIL_MAX).contains(at))?;
    if text[..at].iter().any(|byte| is_mail_end(*byte)) {
        return None;
    }
    Some(at + 1 + run(&text[at + 1..], MAIL_MAX, is_mail_end)?)
}

/// An address that begins with a host: its length, and that of the host.
fn schemeless(text: &[u8], reading: &Reading) -> Option<(usize, usize)> {
    if !text.first()?.is_ascii_alphanumeric() {
        return None;
    }
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let inner = text.iter().take(1 + 251 + 1).take_while(|byte| is_inner(byte)).count();
    for dot in (1..=inner.min(252)).rev().filter(|dot| text.get(*dot) == Some(&b'.')) {
        let Some(end) = tld(text, dot + 1, reading) else { continue };
        if let Some(length) = behind_host(text, end) {
            return Some((length, end));
        }
    }
    None
}

/// The end of the domain at the top that begins at `begin`.
pub(super) fn tld(text: &[u8], begin: usize, reading: &Reading) -> Option<usize> {
    let rest = text.get(begin..)?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    let goes_on = rest.get(length) == Some(&b'.') && rest.get(length + 1).is_some_and(u8::is_ascii_alphanumeric);
    (length > 0 && !goes_on && reading.is_top(&rest[..length].to_ascii_lowercase())).then_some(begin + length)
}

/// Where an address ends whose host ends at `end`: behind a dot, a port, a path.
fn behind_host(text: &[u8], end: usize) -> Option<usize> {
    let path_end = |at: usize| match text.get(at) {
        None => Some(at),
        Some(byte) if is_end(*byte) => Some(at),
        Some(b'/') => run(&text[at + 1..], RUN_MAX, is_end).map(|length| at + 1 + length),
        Some(_) => None,
    };
    let port_end = |at: usize| {
        let rest = text.get(at..)?.strip_prefix(b":")?;
        let digits = rest.iter().take(5).take_while(|byte| byte.is_ascii_digit()).count();
        (digits > 0).then(|| path_end(at + 1 + digits)).flatten()
    };
    let behind = |at: usize| port_end(at).or_else(|| path_end(at));
    let dotted = (text.get(end) == Some(&b'.')).then(|| behind(end + 1)).flatten();
    dotted.or_else(|| behind(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<Uri> {
        let tlds = ["com", "org", "uk"].iter().map(|name| name.as_bytes().into()).collect();
        let reading = Reading { tlds, ..Reading::default() };
        let limits = MessageLimits::default();
        let mut uris = Uris::new(&reading, &limits);
        uris.text(&[line.as_bytes().into()]);
        uris.found
    }

    fn uris(line: &str) -> Vec<(String, Vec<&'static str>)> {
        let text = |uri: &Uri| String::from_utf8_lossy(&uri.raw).into_owned();
        found(line).iter().map(|uri| (text(uri), uri.kinds.iter().copied().collect())).collect()
    }

    fn hosts(line: &str) -> Vec<String> {
        let hosts = found(line).into_iter().flat_map(|uri| uri.hosts.into_keys());
        hosts.map(|host| String::from_utf8_lossy(&host).into_owned()).collect()
    }

    #[test]
    fn addresses_in_text_are_found_as_mail_readers_link_them() {
        for (line, expected) in [
            ("see http://www.a.com/x(y), or", "http://www.a.com/x(y"),
            ("(www.a.com)", "http://www.a.com"),
            ("write to x@a.org!", "mailto:x@a.org"),
            ("at a.com.", "http://a.com"),
            ("at a.com:80/b", "http://a.com:80/b"),
            ("mailto:x%2ey@a.com?subject=b", "mailto:x.y@a.com?subject=b"),
        ] {
            assert_eq!(uris(line).first().map(|(uri, _)| uri.as_str()), Some(expected), "{line}");
        }
        let blank = "http://a.com\u{a0}b".as_bytes();
        assert_eq!(run(blank, RUN_MAX, is_end), Some(blank.len() - 2), "no-break space");
        assert_eq!(run("x@b\u{2060}.c".as_bytes(), MAIL_MAX, is_mail_end), Some(3));
        for line in
            ["http://ev\u{2060}il.com/", "www.ev\u{2060}il.com", "http://evil.com\u{2060}", "http://evil%C2%AD.com"]
        {
            assert!(hosts(line).iter().any(|host| host.ends_with("evil.com")), "{line:?}");
        }
        assert_eq!(hosts("http://voil\u{e0}.com"), ["xn--voil-3na.com"]);
        for line in ["Vi@gra", "a.nowhere", "http://", "cid:image@a.com", "a.com.b"] {
            assert!(uris(line).is_empty(), "{line} {:?}", uris(line));
        }
        assert_eq!(uris("a.com")[0].1, ["parsed", "schemeless", "unlinked"]);
    }
}
