//! Header values for rules: a field by its name, or a text made of several, with modifiers.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::address::mailboxes;
use super::field::{Fold, decoded, unfolded};
use super::perl::{is_blank, is_word_byte, trim};
use super::{Field, Message, Reading, host, uri};
use crate::spam::map::HashMap;
use crate::spam::syntax::field::{Field as Request, Modifier};

/// As many bytes of all fields together are given.
const HEADER_BYTES_MAX: usize = 65_536;

impl Message {
    /// The texts that a header rule looks at: of a field of the mail by its name, or `ALL`, `ToCc`, `MESSAGEID`. What needs
    /// the path of the mail (`ALL-TRUSTED`, `EnvelopeFrom`, `X-Spam-Relays-...`) is not known here and gives nothing.
    pub fn get(&self, request: &Request, reading: &Reading) -> Vec<Vec<u8>> {
        let has = |modifier: Modifier| request.modifiers.contains(&modifier);
        let name = request.name.as_bytes();
        let raw = has(Modifier::Raw);
        let texts = match name {
            b"ALL" if raw => return raw_lines(self.full_header()),
            b"ALL" => return self.all_lines(),
            b"MESSAGEID" => {
                let names: [&[u8]; 4] =
                    [b"x-message-id", b"resent-message-id", b"x-original-message-id", b"message-id"];
                names.iter().flat_map(|name| self.texts(name, raw, true)).collect()
            }
            _ if name.eq_ignore_ascii_case(b"tocc") => {
                [&b"to"[..], b"cc"].iter().flat_map(|name| self.texts(name, raw, true)).collect()
            }
            _ => self.texts(name, raw || has(Modifier::Addr) || has(Modifier::Name), false),
        };
        taken(texts, has, usize::MAX, reading)
    }

    /// The values of the fields of that name; undecoded ones unfolded where that is asked for.
    fn texts(&self, name: &[u8], raw: bool, is_unfolded: bool) -> Vec<Vec<u8>> {
        let fields = self.fields().iter().filter(|field| field.is(name));
        fields
            .map(|field| match (raw, is_unfolded) {
                (true, true) => unfolded(&field.raw, Fold::OfRule),
                (true, false) => field.raw.to_vec(),
                (false, _) => field.line(),
            })
            .collect()
    }

    /// All fields, a line each, up to a bound: those of a name whose first comes first are counted first.
    fn all_lines(&self) -> Vec<Vec<u8>> {
        let fields = self.fields();
        let line = |field: &Field| [&field.name, &b": "[..], &field.value, b"\n"].concat();
        let size = |field: &Field| field.name.len() + field.value.len() + 3;
        if fields.iter().map(size).sum::<usize>() <= HEADER_BYTES_MAX {
            return fields.iter().map(line).collect();
        }
        let mut first = HashMap::default();
        for (at, field) in fields.iter().enumerate() {
            first.entry(field.name.to_ascii_lowercase()).or_insert(at);
        }
        let place = |at: &usize| (first.get(&fields[*at].name.to_ascii_lowercase()).copied(), *at);
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_cached_key(place);
        let mut total = 0;
        order.retain(|at| {
            total += size(&fields[*at]);
            total <= HEADER_BYTES_MAX
        });
        order.sort_unstable();
        order.into_iter().map(|at| line(&fields[at])).collect()
    }
}

/// Applies modifiers to texts: to all, or to the first or last; at most so many addresses or display names.
pub(crate) fn taken(
    mut texts: Vec<Vec<u8>>,
    has: impl Fn(Modifier) -> bool,
    addresses_max: usize,
    reading: &Reading,
) -> Vec<Vec<u8>> {
    let (address, phrase) = (has(Modifier::Addr), has(Modifier::Name));
    if has(Modifier::First) {
        texts.truncate(1);
    } else if has(Modifier::Last) {
        texts.drain(..texts.len().saturating_sub(1));
    }
    if address {
        let addresses = texts.iter().flat_map(|text| mailboxes(text)).filter_map(|mailbox| mailbox.address);
        texts = addresses.take(addresses_max).collect();
    } else if phrase {
        let phrases = texts.iter().flat_map(|text| mailboxes(text)).filter_map(|mailbox| mailbox.phrase);
        let shown = phrases.map(|phrase| if has(Modifier::Raw) { phrase } else { shown(&phrase) });
        texts = shown.take(addresses_max).collect();
    }
    let by_domain = has(Modifier::Domain);
    if by_domain || has(Modifier::Host) {
        let hosts = texts.iter().filter_map(|text| if address { behind_sign(text) } else { host(text, reading) });
        return hosts
            .map(|host| if by_domain { reading.registered(&host::ascii(&host).to_ascii_lowercase()) } else { host })
            .collect();
    }
    if has(Modifier::Ip) || has(Modifier::Revip) {
        let addresses = texts.iter().filter_map(|text| address_in(text));
        return addresses.filter_map(|text| if has(Modifier::Revip) { reversed(&text) } else { Some(text) }).collect();
    }
    texts
}

/// Fields as they came, folded, one text each.
fn raw_lines(header: &[u8]) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = Vec::new();
    for line in header.split_inclusive(|byte| *byte == b'\n') {
        let is_more = matches!(line.first(), Some(b' ' | b'\t'));
        match out.last_mut() {
            Some(last) if is_more => last.extend_from_slice(line),
            _ if is_more => {}
            _ => out.push(line.to_vec()),
        }
    }
    // An empty line at the end is no field.
    out.retain(|text| text.ends_with(b"\n") && text.len() > 1);
    out
}

/// A display name as it is shown: decoded, blanks made one, one pair of quotes taken off.
fn shown(phrase: &[u8]) -> Vec<u8> {
    let text = decoded(phrase, b"");
    if trim(&text).is_empty() {
        return text;
    }
    let words: Vec<&[u8]> = text.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty()).collect();
    let text = words.join(&b' ');
    match text.strip_prefix(b"'").and_then(|text| text.strip_suffix(b"'")) {
        Some(inner) => inner.to_vec(),
        None => text,
    }
}

/// Text after the last `@` that is not at the end.
fn behind_sign(text: &[u8]) -> Option<Vec<u8>> {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let signs = (0..line.len()).rev().filter(|at| line[*at] == b'@');
    for at in signs {
        let length = line[at + 1..].iter().take_while(|byte| !is_blank(**byte)).count();
        if length > 0 {
            return Some(line[at + 1..at + 1 + length].to_vec());
        }
    }
    None
}

const HOST_BYTES_MAX: usize = 251;

/// A host in a text: behind the last `@`, else the first that is sound.
fn host(text: &[u8], reading: &Reading) -> Option<Vec<u8>> {
    let is_sound = |host: &[u8]| host::is_host(&host::ascii(host).to_ascii_lowercase());
    let signs = (0..text.len()).rev().filter(|at| text[*at] == b'@');
    let last = signs.into_iter().find_map(|at| host_at(text, at + 1, reading));
    if let Some(host) = last.filter(|host| is_sound(host)) {
        return Some(host.to_vec());
    }
    let mut at = 0;
    while at < text.len() {
        let Some(host) = host_at(text, at, reading) else {
            at += 1;
            continue;
        };
        if is_sound(host) {
            return Some(host.to_vec());
        }
        at += host.len();
    }
    None
}

/// The longest run at a place that ends with a known domain.
fn host_at<'a>(text: &'a [u8], begin: usize, reading: &Reading) -> Option<&'a [u8]> {
    let stops = |byte: Option<&u8>| byte.is_some_and(|byte| b"._-".contains(byte));
    if begin > 0 && stops(text.get(begin - 1)) {
        return None;
    }
    let run = text[begin..].iter().take(HOST_BYTES_MAX + 1).take_while(|byte| !is_blank(**byte)).count();
    let dots = (1..run).rev().filter(|dot| text[begin + dot] == b'.');
    dots.into_iter().find_map(|dot| {
        let end = uri::tld(text, begin + dot + 1, reading)?;
        (!stops(text.get(end))).then(|| &text[begin..end])
    })
}

/// The first IP address in a text.
fn address_in(text: &[u8]) -> Option<Vec<u8>> {
    (0..text.len()).find_map(|at| {
        let before = at.checked_sub(1).map(|at| text[at]);
        let is_edge = before.is_some_and(is_word_byte) != is_word_byte(text[at]);
        (is_edge && before != Some(b'.')).then(|| address_at(text, at, before)).flatten()
    })
}

fn address_at(text: &[u8], at: usize, before: Option<u8>) -> Option<Vec<u8>> {
    let run = |from: usize, fits: fn(&u8) -> bool| {
        let length = text[from..].iter().take(60).take_while(|byte| fits(byte)).count();
        &text[from..from + length]
    };
    let goes_on = |end: usize| text.get(end) == Some(&b'.') || text.get(end).is_some_and(|byte| is_word_byte(*byte));
    let digits = run(at, |byte| byte.is_ascii_digit() || *byte == b'.');
    // A dot at its end keeps it from being one.
    let v4 = std::str::from_utf8(digits).ok().filter(|text| text.parse::<Ipv4Addr>().is_ok());
    if v4.is_some() && before != Some(b':') && !goes_on(at + digits.len()) {
        return Some(digits.to_vec());
    }
    let prefix = if super::perl::begins(&text[at..], b"ipv6:") { 5 } else { 0 };
    if prefix == 0 && before.is_some_and(|byte| byte.is_ascii_hexdigit() || byte == b':') {
        return None;
    }
    let v6 = run(at + prefix, |byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    let end = at + prefix + v6.len();
    let is_v6 = std::str::from_utf8(v6).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    (is_v6 && !goes_on(end)).then(|| text[at..end].to_vec())
}

/// An IP address as the DNS asks for it.
fn reversed(address: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(address).ok()?;
    if let Ok(v4) = text.parse::<Ipv4Addr>() {
        let [a, b, c, d] = v4.octets();
        return Some(format!("{d}.{c}.{b}.{a}").into_bytes());
    }
    let v6: Ipv6Addr = text.parse().ok()?;
    let digits: Vec<String> =
        v6.octets().iter().rev().flat_map(|octet| [octet & 15, octet >> 4]).map(|digit| format!("{digit:x}")).collect();
    Some(digits.join(".").into_bytes())
}
