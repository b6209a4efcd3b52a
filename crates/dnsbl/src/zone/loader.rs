//! Reads the files of a data set, line by line, as rbldnsd(8) describes them. A line that is wrong is passed over, and counted.

use std::sync::Arc;

use super::dataset::{Access, Body, Dataset, Kind, Section};
use super::generic;
use super::ip4;
use super::ip6;
use super::names;
use super::reader::{Head, Line, Lines, line, words};
use super::value::{Template, Value, ValueError, ValueId, Values, read, trim_start};

/// How many warnings about a data set are kept.
const WARNINGS_MAX: usize = 20;

/// How many `$DATASET` sections a combined data set has at most.
const SECTIONS_MAX: usize = 4_096;

/// Why a data set cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// A combined data set whose sections make no sense: file, line, why.
    Section(String, u64, &'static str),
    /// The data was made at a time that has not come yet.
    Future,
}

impl core::fmt::Display for LoadError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            LoadError::Section(file, number, why) => write!(f, "{file}:{number}: {why}"),
            LoadError::Future => f.write_str("its $TIMESTAMP is in the future"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Reads the files of a data set: [`begin`](Loader::begin), [`feed`](Loader::feed) and [`end`](Loader::end) for each, then
/// [`finish`](Loader::finish).
#[derive(Debug)]
pub struct Loader {
    state: State,
    lines: Lines,
}

#[derive(Debug)]
struct State {
    kind: Kind,
    /// Data set in progress: the set itself, or the section of a combined one.
    builder: Builder,
    /// The common part and the sections that are read.
    combined: Option<Combined>,
    file: String,
    number: u64,
    changed: u64,
    warnings: Vec<String>,
    warning_count: usize,
    failed: Option<LoadError>,
}

#[derive(Debug, Default)]
struct Combined {
    head: Head,
    sections: Vec<Section>,
    /// Subzones of the section under way; `None` before the first.
    open: Option<Vec<Vec<u8>>>,
    /// Whether the section under way takes no more entries: it began in an earlier file. Special entries are still its.
    is_stale: bool,
}

impl Loader {
    /// For files of a kind.
    pub fn new(kind: Kind) -> Loader {
        let combined = (kind == Kind::Combined).then(Combined::default);
        let state = State {
            kind,
            builder: Builder::new(kind, Head::default()),
            combined,
            file: String::new(),
            number: 0,
            changed: 0,
            warnings: Vec::new(),
            warning_count: 0,
            failed: None,
        };
        Loader { state, lines: Lines::default() }
    }

    /// Begins a file that was changed at `changed`, in seconds since 1970.
    pub fn begin(&mut self, file: &str, changed: u64) {
        self.state.file = file.to_owned();
        self.state.number = 0;
        self.state.changed = self.state.changed.max(changed);
        self.state.builder.default = Scope::default();
        if let Some(combined) = &mut self.state.combined {
            combined.is_stale = !matches!(self.state.builder.parts, Parts::Generic(_));
        }
    }

    /// Takes bytes of the file.
    pub fn feed(&mut self, input: &[u8]) {
        let state = &mut self.state;
        let mut rest = input;
        while !rest.is_empty() {
            if self.lines.is_at_start() {
                rest = &rest[state.plain_lines(rest)..];
            }
            rest = self.lines.feed(rest, |line| state.line(line));
        }
    }

    /// Ends the file. A last line without an end counts.
    pub fn end(&mut self) {
        let state = &mut self.state;
        self.lines.end(|line| state.line(line));
    }

    /// The data set, and what is wrong with its files: the first warnings, and how many there are.
    ///
    /// # Errors
    /// What makes the whole of it unusable at `now`, in seconds since 1970.
    pub fn finish(mut self, now: u64) -> Result<(Dataset, Vec<String>, usize), LoadError> {
        self.state.end_section();
        let state = self.state;
        if let Some(error) = state.failed {
            return Err(error);
        }
        let mut dataset = match state.combined {
            None => state.builder.finish(),
            Some(combined) => {
                Dataset { head: combined.head, body: Body::Combined(combined.sections), ..Dataset::default() }
            }
        };
        dataset.changed = state.changed;
        if dataset.head.made.is_some_and(|made| made > now) {
            return Err(LoadError::Future);
        }
        Ok((dataset, state.warnings, state.warning_count))
    }
}

impl State {
    /// Takes the lines that are nothing but an IPv4 address, up to the first that is not: most lines of most lists. Returns
    /// how many bytes they are.
    fn plain_lines(&mut self, input: &[u8]) -> usize {
        if self.failed.is_some() || self.is_before_sections() {
            return 0;
        }
        let (taken, count) = self.builder.plain_lines(input);
        self.number += count;
        taken
    }

    fn line(&mut self, bytes: &[u8]) {
        self.number += 1;
        if self.failed.is_some() {
            return;
        }
        match line(bytes) {
            Line::Empty => {}
            Line::Special(entry) => self.special(entry),
            Line::Entry(_) if self.is_before_sections() => self.fail("an entry before the first $DATASET"),
            Line::Entry(entry) => {
                if let Err(why) = self.builder.entry(entry) {
                    self.warn(why);
                }
            }
        }
    }

    const fn is_before_sections(&self) -> bool {
        matches!(&self.combined, Some(combined) if combined.open.is_none() || combined.is_stale)
    }

    fn special(&mut self, entry: &[u8]) {
        const DATASET: &[u8] = b"DATASET";
        let is_dataset = entry.len() > DATASET.len() && entry[..DATASET.len()].eq_ignore_ascii_case(DATASET);
        if is_dataset && self.combined.is_some() {
            return self.begin_section(&entry[DATASET.len()..]);
        }
        let read = match &mut self.combined {
            None => self.builder.special(self.kind, entry),
            Some(combined) if combined.open.is_none() => combined.head.read(entry),
            Some(combined) => read_in_section(&mut self.builder.dataset.head, &mut combined.head, entry),
        };
        if !read {
            self.warn("a special entry that is malformed or unknown");
        }
    }

    fn begin_section(&mut self, text: &[u8]) {
        self.end_section();
        let mut words = words(text);
        let kind_name = words.next().unwrap_or_default();
        let kind_name = kind_name.split(|&byte| byte == b':').next().unwrap_or_default();
        let kind = Kind::from_name(kind_name).filter(|kind| !matches!(kind, Kind::Combined | Kind::Acl));
        let Some(kind) = kind else {
            return self.fail("no data set of this kind can be part of a combined one");
        };
        let mut subzones = Vec::new();
        for word in words {
            match (word, names::read(word)) {
                (b"@", _) => subzones.push(Vec::new()),
                (_, Some(name)) => subzones.push(name),
                _ => return self.fail("a subzone that is no name"),
            }
        }
        if subzones.is_empty() {
            self.warn("a data set without subzones");
        }
        let Some(combined) = &mut self.combined else { return };
        if combined.sections.len() >= SECTIONS_MAX {
            return self.fail("too many data sets in one");
        }
        let head = Head { soa: None, servers: None, ..combined.head.clone() };
        combined.open = Some(subzones);
        combined.is_stale = false;
        self.builder = Builder::new(kind, head);
    }

    fn end_section(&mut self) {
        let Some(combined) = &mut self.combined else { return };
        if let Some(subzones) = combined.open.take() {
            let empty = Builder::new(Kind::Ip4Set, Head::default());
            let mut dataset = core::mem::replace(&mut self.builder, empty).finish();
            dataset.changed = self.changed;
            combined.sections.push(Section { subzones, dataset: Arc::new(dataset) });
        }
    }

    fn fail(&mut self, why: &'static str) {
        self.failed.get_or_insert(LoadError::Section(self.file.clone(), self.number, why));
    }

    fn warn(&mut self, why: &str) {
        self.warning_count += 1;
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(format!("{}:{}: {why}", self.file, self.number));
        }
    }
}

/// Within a section, SOA, name servers and times of the data are those of the zone; the rest is the section's.
fn read_in_section(own: &mut Head, common: &mut Head, entry: &[u8]) -> bool {
    let keyword_len = entry.iter().take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
    match &entry[..keyword_len].to_ascii_uppercase()[..] {
        b"SOA" | b"NS" | b"TIMESTAMP" => common.read(entry),
        // Counts for the section, and for those behind it.
        b"MAXRANGE4" => own.read(entry) && common.read(entry),
        _ => own.read(entry),
    }
}

/// The default value in scope: what the last line that began with a colon said.
#[derive(Debug, Clone)]
struct Scope {
    address: [u8; 4],
    template: Option<(Vec<u8>, bool)>,
    action: Option<Access>,
}

impl Default for Scope {
    fn default() -> Scope {
        Scope { address: [127, 0, 0, 2], template: None, action: None }
    }
}

impl Scope {
    fn value(&self) -> Value<'_> {
        let template = self.template.as_ref().map(|(bytes, alone)| Template { bytes, alone: *alone });
        Value { address: self.address, template }
    }
}

/// One data set while its lines are read.
#[derive(Debug)]
struct Builder {
    dataset: Dataset,
    default: Scope,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    Ip4 { kind: Kind, networks: ip4::Builder },
    Ip6(ip6::Builder),
    Ip6Trivial { networks: Vec<u64>, excluded: Vec<u128> },
    Names(names::Builder),
    Generic(Vec<generic::Record>),
    Acl { ip4: ip4::Builder, ip6: ip6::Builder, actions: Vec<Access> },
    Feed { ip4: ip4::Builder, ip6: ip6::Builder },
    Nothing,
}

/// Why an entry is passed over.
type Why = &'static str;

const ADDRESS: Why = "not an address";
const HOST_PART: Why = "bits behind the prefix are set";
const TOO_LARGE: Why = "a range larger than $MAXRANGE4 allows";
const VALUE: Why = "not an A value";
const TRAILING: Why = "something behind the A value";
const NAME: Why = "not a domain name";
const TOO_MANY: Why = "too many entries";

impl Builder {
    fn new(kind: Kind, head: Head) -> Builder {
        let parts = match kind {
            Kind::Ip4Set | Kind::Ip4Trie | Kind::Ip4TrivialSet => {
                Parts::Ip4 { kind, networks: ip4::Builder::default() }
            }
            Kind::Ip6Trie => Parts::Ip6(ip6::Builder::default()),
            Kind::Ip6TrivialSet => Parts::Ip6Trivial { networks: Vec::new(), excluded: Vec::new() },
            Kind::Names => Parts::Names(names::Builder::default()),
            Kind::Generic => Parts::Generic(Vec::new()),
            Kind::Acl => Parts::Acl { ip4: ip4::Builder::default(), ip6: ip6::Builder::default(), actions: Vec::new() },
            Kind::Feed => Parts::Feed { ip4: ip4::Builder::default(), ip6: ip6::Builder::default() },
            Kind::Combined => Parts::Nothing,
        };
        Builder { dataset: Dataset { head, ..Dataset::default() }, default: Scope::default(), parts }
    }

    fn special(&mut self, kind: Kind, entry: &[u8]) -> bool {
        let zone_only = [&b"SOA"[..], b"NS"]
            .iter()
            .any(|keyword| entry.len() >= keyword.len() && entry[..keyword.len()].eq_ignore_ascii_case(keyword));
        !(kind == Kind::Acl && zone_only) && self.dataset.head.read(entry)
    }

    fn entry(&mut self, entry: &[u8]) -> Result<(), Why> {
        match (&mut self.parts, entry) {
            (Parts::Generic(records), _) => {
                let record = generic::read(entry, self.dataset.head.ttl()).ok_or("not a record")?;
                records.push(record);
                Ok(())
            }
            (Parts::Ip6Trivial { .. } | Parts::Ip6(_), [b':', b':', ..]) => self.listing(entry),
            (Parts::Acl { .. }, [b':', b':', ..]) => self.client(entry),
            (_, [b':', ..]) => self.set_default(entry),
            (Parts::Acl { .. }, _) => self.client(entry),
            (Parts::Feed { .. }, _) => self.feed_line(entry),
            _ => self.listing(entry),
        }
    }

    /// As many addresses alone on their lines as there are: how many bytes, and how many lines.
    fn plain_lines(&mut self, input: &[u8]) -> (usize, u64) {
        let Parts::Ip4 { kind, networks } = &mut self.parts else { return (0, 0) };
        let Some(mut line) = ip4::plain_line(input) else { return (0, 0) };
        let value = match kind {
            Kind::Ip4TrivialSet => Ok(ValueId(1)),
            _ => keep(&mut self.dataset.values, &self.default, &[]),
        };
        let Ok(value) = value else { return (0, 0) };
        let (mut taken, mut count) = (0, 0);
        loop {
            let (address, len) = line;
            networks.add(address, 32, value);
            (taken, count) = (taken + len, count + 1);
            match ip4::plain_line(&input[taken..]) {
                Some(next) => line = next,
                None => return (taken, count),
            }
        }
    }

    fn set_default(&mut self, entry: &[u8]) -> Result<(), Why> {
        if let Parts::Acl { .. } = self.parts
            && let Some(action) = action(entry)
        {
            self.default.action = Some(action);
            return Ok(());
        }
        let initial = Scope::default();
        let value = read(entry, initial.value()).map_err(why)?;
        let template = value.template.map(|template| (template.bytes.to_vec(), template.alone));
        let (address, value) = (value.address, self.dataset.values.keep(value).ok_or(TOO_MANY)?);
        // Where listings have no value of their own, the first default counts for all.
        self.dataset.whole.get_or_insert(value);
        self.default = Scope { address, template, action: Some(Access::Listed(value)) };
        Ok(())
    }

    /// An entry of what is listed, or with `!` of what is not.
    fn listing(&mut self, entry: &[u8]) -> Result<(), Why> {
        let (excluded, entry) = match entry {
            [b'!', rest @ ..] => (true, trim_start(rest)),
            _ => (false, entry),
        };
        let Builder { dataset, default, parts } = self;
        let mut value = |text: &[u8]| match excluded {
            true => Ok(ValueId::EXCLUDED),
            false => keep(&mut dataset.values, default, text),
        };
        match parts {
            Parts::Ip4 { kind: Kind::Ip4TrivialSet, networks } => {
                let (address, _) = ip4::read_address(entry).filter(|_| !excluded).ok_or(ADDRESS)?;
                // The first value that is kept is the whole set's.
                networks.add(address, 32, ValueId(1));
            }
            Parts::Ip4 { kind, networks } => {
                let forms = ip4::Forms { ranges: *kind == Kind::Ip4Set, everything: *kind == Kind::Ip4Trie };
                let (range, len) = ip4::read(entry, forms).map_err(range_why)?;
                let size = u64::from(range.last - range.first) + 1;
                if dataset.head.range_max.is_some_and(|max| size > max) {
                    return Err(TOO_LARGE);
                }
                let value = value(&entry[len..])?;
                match (range.bits, *kind) {
                    (Some(bits), Kind::Ip4Trie) => networks.add(range.first, bits, value),
                    _ => networks.add_range(range.first, range.last, value),
                }
            }
            Parts::Ip6(networks) => {
                let (written, len) = ip6::read(entry, true).map_err(|error| match error {
                    ip6::ReadError::Address => ADDRESS,
                    ip6::ReadError::HostPart => HOST_PART,
                })?;
                let value = value(&entry[len..])?;
                networks.add(written.address, written.bits, value);
            }
            Parts::Ip6Trivial { networks, excluded: exclusions } => {
                let (written, _) = ip6::read(entry, false).map_err(|_| ADDRESS)?;
                match (excluded, written.bits) {
                    (true, 128) => exclusions.push(written.address),
                    (false, 64) => networks.push((written.address >> 64) as u64),
                    _ => return Err("listed are networks of 64 bits, excluded whole addresses"),
                }
            }
            Parts::Names(table) => {
                let len = entry.iter().take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
                let (name, rest) = entry.split_at(len);
                let (name, plain, wild) = match name {
                    [b'.', rest @ ..] => (rest, true, true),
                    [b'*', b'.', rest @ ..] => (rest, false, true),
                    _ => (name, true, false),
                };
                let name = names::read(name).ok_or(NAME)?;
                let value = value(trim_start(rest))?;
                let added = (!plain || table.add(&name, false, value)) && (!wild || table.add(&name, true, value));
                added.then_some(()).ok_or(TOO_MANY)?;
            }
            _ => return Err(ADDRESS),
        }
        Ok(())
    }

    /// An entry of an `acl`: networks of clients, and what they may see.
    fn client(&mut self, entry: &[u8]) -> Result<(), Why> {
        let forms = ip4::Forms { ranges: false, everything: true };
        let four = ip4::read(entry, forms);
        let six = ip6::read(entry, true);
        let len = match (&four, &six) {
            (Ok((_, len)), _) | (Err(_), Ok((_, len))) => *len,
            _ => return Err(ADDRESS),
        };
        let text = trim_start(&entry[len..]);
        let access = match action(text) {
            Some(action) => action,
            None if text.is_empty() || matches!(text[0], b'#' | b';') => self.default.action.unwrap_or(Access::Ignore),
            None => Access::Listed(keep(&mut self.dataset.values, &self.default, text)?),
        };
        let Parts::Acl { ip4, ip6, actions } = &mut self.parts else {
            return Err(ADDRESS);
        };
        actions.push(access);
        let number = ValueId(u32::try_from(actions.len()).map_err(|_| TOO_MANY)?);
        match (four, six) {
            (Ok((range, _)), _) => ip4.add(range.first, range.bits.unwrap_or(32), number),
            (_, Ok((written, _))) => ip6.add(written.address, written.bits, number),
            _ => {}
        }
        Ok(())
    }

    /// A line of a feed: an address or network among other fields.
    fn feed_line(&mut self, entry: &[u8]) -> Result<(), Why> {
        let Parts::Feed { ip4, ip6 } = &mut self.parts else {
            return Err(ADDRESS);
        };
        let value = keep(&mut self.dataset.values, &self.default, &[])?;
        match crate::feed::read(entry).ok_or(ADDRESS)? {
            crate::feed::Network::Ip4(first, last) => {
                let size = u64::from(last - first) + 1;
                if self.dataset.head.range_max.is_some_and(|max| size > max) {
                    return Err(TOO_LARGE);
                }
                ip4.add_range(first, last, value);
            }
            crate::feed::Network::Ip6(address, bits) => ip6.add(address, bits, value),
        }
        Ok(())
    }

    fn finish(self) -> Dataset {
        let Builder { mut dataset, parts, default } = self;
        if dataset.whole.is_none() {
            dataset.whole = dataset.values.keep(Scope::default().value());
        }
        drop(default);
        dataset.body = match parts {
            Parts::Ip4 { kind, networks } => Body::Ip4(networks.finish(kind == Kind::Ip4Set)),
            Parts::Ip6(networks) => Body::Ip6(networks.finish()),
            Parts::Ip6Trivial { mut networks, mut excluded } => {
                networks.sort_unstable();
                networks.dedup();
                networks.shrink_to_fit();
                excluded.sort_unstable();
                excluded.dedup();
                excluded.shrink_to_fit();
                Body::Ip6Trivial { networks, excluded }
            }
            Parts::Names(names) => Body::Names(names.finish()),
            Parts::Generic(records) => Body::Generic(generic::Table::new(records)),
            Parts::Acl { ip4, ip6, actions } => Body::Acl { ip4: ip4.finish(false), ip6: ip6.finish(), actions },
            Parts::Feed { ip4, ip6 } => Body::Feed { ip4: ip4.finish(true), ip6: ip6.finish() },
            Parts::Nothing => Body::default(),
        };
        dataset.values.shrink();
        dataset
    }
}

fn keep(values: &mut Values, default: &Scope, text: &[u8]) -> Result<ValueId, Why> {
    let value = read(trim_start(text), default.value()).map_err(why)?;
    values.keep(value).ok_or(TOO_MANY)
}

const fn why(error: ValueError) -> Why {
    match error {
        ValueError::Address => VALUE,
        ValueError::Trailing => TRAILING,
    }
}

const fn range_why(error: ip4::RangeError) -> Why {
    match error {
        ip4::RangeError::Address => ADDRESS,
        ip4::RangeError::HostPart => HOST_PART,
    }
}

/// The words of an `acl`.
fn action(text: &[u8]) -> Option<Access> {
    Some(match &text.to_ascii_lowercase()[..] {
        b":ignore" => Access::Ignore,
        b":refuse" => Access::Refuse,
        b":empty" => Access::Empty,
        b":pass" => Access::Pass,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_have_the_value_in_scope_and_a_number_however_they_are_cut() {
        let text = "1.2.3.4\nwrong\n5.6.7.8\n:3:x\n!1.2.3.4\n1.2.3.5\n1.2.3.6 :4:y\n1.2.3.7\n1.2.3.999\n9.9.9.9";
        for piece in 1..text.len() {
            let mut loader = Loader::new(Kind::Ip4Set);
            loader.begin("list", 1);
            text.as_bytes().chunks(piece).for_each(|piece| loader.feed(piece));
            loader.end();
            let (dataset, warnings, _) = loader.finish(1).unwrap();
            assert_eq!(warnings, ["list:2: not an address", "list:9: not an address"]);
            let Body::Ip4(table) = &dataset.body else { panic!("another kind") };
            let value = |last: u8| {
                let id = table.find(u32::from_be_bytes([1, 2, 3, last])).next()?;
                dataset.values.get(id).map(|value| value.address[3])
            };
            assert_eq!([4, 5, 6, 7, 8].map(value), [None, Some(3), Some(4), Some(3), None], "in pieces of {piece}");
            assert_eq!(dataset.len(), 6);
        }
    }
}
