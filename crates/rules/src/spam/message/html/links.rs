//! Addresses in attributes and texts, made absolute and kept once each.

use text::html::reference::{Place, decode};
use text::lenient::Attributes;

use super::elements::misspelt;
use super::{Builder, Link, URI_BYTES_MAX, contains, value};
use crate::spam::message::perl::{self, begins, bytes, is_space};
use crate::spam::message::target;

impl Builder {
    /// The addresses that a tag has.
    pub(super) fn links(&mut self, name: &'static str, attributes: &mut Attributes) {
        let get = |attributes: &Attributes, name: &str| value(attributes, name).map(str::to_owned);
        match name {
            "body" | "table" | "tr" | "td" => {
                if let Some(uri) = get(attributes, "background") {
                    self.link(name, &uri);
                }
            }
            "a" | "area" | "link" => {
                misspelt(attributes, "href", self.is_wide);
                if let Some((_, uri)) = attributes.iter_mut().find(|(name, _)| name == "href") {
                    *uri = uri.replace('\u{feff}', "");
                    let uri = uri.clone();
                    self.link(name, &uri);
                }
                if let Some(uri) = get(attributes, "data-saferedirecturl") {
                    self.link(name, &uri);
                }
            }
            "img" | "frame" | "iframe" | "embed" | "script" | "bgsound" => {
                misspelt(attributes, "src", self.is_wide);
                if let Some(uri) = get(attributes, "src") {
                    self.link(name, &uri);
                }
            }
            "form" => {
                if let Some(uri) = get(attributes, "action") {
                    self.link(name, &uri);
                }
            }
            "base" => self.base(get(attributes, "href")),
            "meta" => {
                let refresh = get(attributes, "http-equiv").is_some_and(|text| contains(&text, "refresh"));
                if let Some(uri) = get(attributes, "content").filter(|_| refresh).as_deref().and_then(refresh_uri) {
                    self.link(name, &uri);
                }
            }
            _ => {}
        }
    }

    fn base(&mut self, uri: Option<String>) {
        let Some(uri) = uri.filter(|uri| !uri.is_empty() && uri != "0") else { return };
        let uri = self.canonical(&uri);
        self.link_bytes("base", uri.clone());
        if let Some(base) = target::base(&uri) {
            self.base = base;
        }
    }

    /// An address as bytes, without blanks around it, cut where it is too long.
    pub(super) fn canonical(&mut self, uri: &str) -> Vec<u8> {
        let held = self.held(uri);
        let is_gap = |c| is_space(c, held.is_wide) || c == '\u{a0}';
        let text = held.characters.trim_matches(is_gap);
        let (end, is_long) = match text.char_indices().nth(URI_BYTES_MAX) {
            Some((end, _)) => (end, true),
            None => (text.len(), false),
        };
        self.out.has_long_uri |= is_long;
        bytes(&text[..end], held.is_wide).into_owned()
    }

    fn link(&mut self, name: &'static str, uri: &str) {
        let as_browsers = spelling_of_browsers(uri);
        let uri = self.canonical(uri);
        self.link_bytes(name, uri);
        if let Some(other) = as_browsers {
            let other = self.canonical(&other);
            self.link_bytes(name, other);
        }
    }

    fn link_bytes(&mut self, name: &'static str, uri: Vec<u8>) {
        if uri.is_empty() {
            return;
        }
        let is_whole =
            ["data:", "mailto:", "file:", "cid:", "tel:"].iter().any(|scheme| begins(&uri, scheme.as_bytes()));
        let uri = if is_whole { uri } else { target::resolved(&self.base, &uri) };
        if !uri.is_empty()
            && let Some(link) = self.entry(uri)
        {
            link.kinds.insert(name);
        }
    }

    pub(super) fn entry(&mut self, uri: Vec<u8>) -> Option<&mut Link> {
        if !self.links.contains_key(&uri) {
            if self.out.links.len() >= self.links_max {
                self.out.is_cut = true;
                return None;
            }
            self.links.insert(uri.clone(), self.out.links.len());
            self.out.links.push(Link { uri: uri.clone(), ..Link::default() });
        }
        let at = *self.links.get(&uri)?;
        self.out.links.get_mut(at)
    }
}

/// An address as browsers read it, where that differs from Perl's reading in its scheme or host: all names of references count, and
/// tabs and line ends do not (URL standard, 4.4).
fn spelling_of_browsers(uri: &str) -> Option<String> {
    if !uri.contains(['&', '\t', '\n', '\r']) {
        return None;
    }
    let decoded = decode(uri.as_bytes(), Place::Value);
    let other: String =
        String::from_utf8_lossy(&decoded).chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let is_gap = |c: char| c <= ' ';
    (front(uri.trim_matches(is_gap)) != front(other.trim_matches(is_gap))).then_some(other)
}

/// An address up to the end of its host.
fn front(uri: &str) -> &str {
    const SEPARATORS: [char; 4] = ['/', '\\', '?', '#'];
    let scheme = uri.find(SEPARATORS).unwrap_or(uri.len());
    let Some(colon) = uri[..scheme].find(':') else { return &uri[..scheme] };
    let behind = uri[colon + 1..].trim_start_matches(['/', '\\', '\t', '\n', '\r']);
    let end = behind.find(SEPARATORS).unwrap_or(behind.len());
    &uri[..uri.len() - behind.len() + end]
}

/// The address that a page says comes next: `5; url=http://a/`.
fn refresh_uri(content: &str) -> Option<String> {
    let bytes = content.as_bytes();
    let (mut from, mut found) = (0, None);
    while let Some(at) = perl::find(bytes, b"url", from) {
        from = at + 1;
        let is_apart = at == 0 || !perl::is_word_byte(bytes[at - 1]);
        let rest = content[at + 3..].trim_start();
        if let (true, Some(rest)) = (is_apart, rest.strip_prefix('=')) {
            found = Some(rest.trim_start());
        }
    }
    let uri = found?;
    Some(uri.find(';').map_or(uri, |at| uri[..at].trim_end()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_schemes_are_read_as_browsers_read_them_too() {
        for (uri, wanted) in [
            ("https://ev&ZeroWidthSpace;il.example.com/p", "https://ev\u{200b}il.example.com/p"),
            ("https://ev&NoBreak;il.example.com", "https://ev\u{2060}il.example.com"),
            ("ht\ttps://evil.example.com/p", "https://evil.example.com/p"),
            ("ht&Tab;tp&NewLine;s:&sol;/evil.example.com/p", "https://evil.example.com/p"),
            ("https&colon;//evil.example.com/p", "https://evil.example.com/p"),
            ("https:/\n/ev\ril.example.com/p", "https://evil.example.com/p"),
        ] {
            assert_eq!(spelling_of_browsers(uri).as_deref(), Some(wanted), "{uri:?}");
        }
        for uri in [
            "https://a.example/p?a=1&b=2&NoBreak;",
            " https://a.example/a\nb ",
            "a?b&c",
            "",
            "&",
            "mailto:a@b.example?subject=a\tb",
        ] {
            assert_eq!(spelling_of_browsers(uri), None, "{uri:?}");
        }
    }
}
