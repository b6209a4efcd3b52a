//! The `generic` data set: records of a few types, written much as in a master file.

use super::above::Ancestors;
use super::asked::Asked;
use super::names;
use super::reader::{time, words};
use super::value::{number, trim_start};
use proto::dns::kind;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Owner name: in wire form without its root, in lower case, relative to the zone.
    pub name: Vec<u8>,
    /// A, MX or TXT.
    pub kind: u16,
    /// In seconds.
    pub ttl: u32,
    /// Data, in wire form but for names, which are whole: TXT with its length, MX with its preference.
    pub data: Vec<u8>,
}

/// Records, sorted by name and type; among equals as in the file.
#[derive(Debug, Default)]
pub struct Table {
    records: Vec<Record>,
    /// The IPv4 addresses that names spell, sorted.
    ip4: Vec<u32>,
    /// The IPv6 addresses that names spell, sorted.
    ip6: Vec<u128>,
    ancestors: Ancestors,
}

impl Table {
    /// Sorts.
    pub fn new(mut records: Vec<Record>) -> Table {
        records.sort_by(|a, b| a.name.cmp(&b.name).then(a.kind.cmp(&b.kind)));
        let spelled = || records.iter().map(|record| Asked::new(&record.name));
        let mut ip4: Vec<u32> = spelled().filter(|asked| asked.ip6.is_none()).filter_map(|asked| asked.ip4).collect();
        let mut ip6: Vec<u128> = spelled().filter_map(|asked| asked.ip6).collect();
        ip4.sort_unstable();
        ip6.sort_unstable();
        let ancestors = Ancestors::new(records.iter().map(|record| (record.name.as_slice(), false)));
        Table { records, ip4, ip6, ancestors }
    }

    /// The addresses from `first` to `last` that names spell.
    pub fn spelled4(&self, first: u32, last: u32) -> &[u32] {
        let start = self.ip4.partition_point(|&address| address < first);
        let end = self.ip4.partition_point(|&address| address <= last);
        self.ip4.get(start..end).unwrap_or_default()
    }

    /// Whether a name spells an address of `range`.
    pub fn spells6(&self, range: core::ops::Range<u128>) -> bool {
        let start = self.ip6.partition_point(|&address| address < range.start);
        self.ip6.get(start).is_some_and(|address| range.contains(address))
    }

    /// The records of a name.
    pub fn find(&self, name: &[u8]) -> &[Record] {
        let start = self.records.partition_point(|record| record.name.as_slice() < name);
        let count = self.records[start..].partition_point(|record| record.name == name);
        &self.records[start..start + count]
    }

    /// Whether names below a name have records.
    pub fn is_above(&self, name: &[u8]) -> bool {
        self.ancestors.has(name)
    }

    /// All records.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// How many bytes it takes, about.
    pub fn memory_bytes(&self) -> usize {
        let each = |record: &Record| size_of::<Record>() + record.name.capacity() + record.data.capacity();
        self.records.iter().map(each).sum::<usize>()
            + 4 * self.ip4.capacity()
            + 16 * self.ip6.capacity()
            + self.ancestors.memory_bytes()
    }
}

/// Parses a line: name, optional time to live, optional `IN`, type, data. `ttl` is the default, also for 0.
pub fn read(line: &[u8], ttl: u32) -> Option<Record> {
    let (name, rest) = word(line)?;
    let name = match name {
        b"@" => Vec::new(),
        _ => names::read(name)?,
    };
    let (mut next, mut rest) = word(rest)?;
    let mut own_ttl = ttl;
    if next.first().is_some_and(u8::is_ascii_digit) {
        own_ttl = match time(next)? {
            0 => ttl,
            given => given,
        };
        (next, rest) = word(rest)?;
    }
    if next.eq_ignore_ascii_case(b"IN") {
        (next, rest) = word(rest)?;
    }
    let rest = trim_start(rest);
    if rest.is_empty() {
        return None;
    }
    let (kind, data) = match &next.to_ascii_uppercase()[..] {
        b"A" => (kind::A, address(rest)?.to_vec()),
        b"MX" => (kind::MX, exchanger(rest)?),
        b"TXT" => (kind::TXT, text(rest)),
        _ => return None,
    };
    Some(Record { name, kind, ttl: own_ttl, data })
}

/// Splits off the next word.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = trim_start(text);
    let len = text.iter().take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
    (len > 0).then(|| text.split_at(len))
}

/// Parses an address of up to four numbers: the last one is the last octet. The rest is ignored.
fn address(text: &[u8]) -> Option<[u8; 4]> {
    let mut parts = Vec::new();
    let mut rest = text;
    while parts.len() < 4 {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        parts.push(number(&rest[..digits])?);
        match rest.get(digits) {
            Some(b'.') => rest = &rest[digits + 1..],
            _ => break,
        }
    }
    let mut address = [0; 4];
    let (last, upper) = parts.split_last()?;
    address[..upper.len()].copy_from_slice(upper);
    address[3] = *last;
    Some(address)
}

fn exchanger(text: &[u8]) -> Option<Vec<u8>> {
    let words: Vec<&[u8]> = words(text).collect();
    let &[preference, host] = &words[..] else {
        return None;
    };
    let preference: u16 = core::str::from_utf8(preference).ok()?.parse().ok()?;
    let host = names::read_keeping_case(host)?;
    Some([&preference.to_be_bytes()[..], &host, &[0]].concat())
}

/// A string, one pair of quotation marks around it removed.
fn text(text: &[u8]) -> Vec<u8> {
    let quoted = text.len() > 1 && text.starts_with(b"\"") && text.ends_with(b"\"");
    let text = if quoted { &text[1..text.len() - 1] } else { text };
    let text = &text[..text.len().min(255)];
    [&[u8::try_from(text.len()).unwrap_or(255)][..], text].concat()
}
