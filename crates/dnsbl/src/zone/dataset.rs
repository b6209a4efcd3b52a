//! Data sets: what a list of files says, read line by line, and what it answers for a name.

use std::sync::Arc;

use super::generic;
use super::ip4;
use super::ip6;
use super::names;
use super::reader::{Head, Line, Lines, line, words};
use super::value::{Key, Template, Value, ValueError, ValueId, Values, read, trim_start};

/// How many warnings about a data set are kept.
const WARNINGS_MAX: usize = 20;

/// How many `$DATASET` sections a combined data set has at most.
const SECTIONS_MAX: usize = 4_096;

/// What kind of data set files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// IPv4 ranges; all values of the longest of /32, /24, /16 and /8.
    Ip4Set,
    /// IPv4 networks; the longest counts.
    Ip4Trie,
    /// IPv4 addresses, all with one value.
    Ip4TrivialSet,
    /// IPv6 networks; the longest counts.
    Ip6Trie,
    /// IPv6 networks of 64 bits, all with one value, and addresses that are excluded.
    Ip6TrivialSet,
    /// Names.
    Names,
    /// Records.
    Generic,
    /// Several data sets with their subzones.
    Combined,
    /// What clients may see.
    Acl,
    /// Addresses and networks as threat feeds publish them.
    Feed,
}

impl Kind {
    /// The kind with this name, as zones are configured and `$DATASET` lines are written.
    pub fn from_name(name: &[u8]) -> Option<Kind> {
        Some(match name {
            b"ip4set" => Kind::Ip4Set,
            b"ip4trie" => Kind::Ip4Trie,
            b"ip4tset" => Kind::Ip4TrivialSet,
            b"ip6trie" => Kind::Ip6Trie,
            b"ip6tset" => Kind::Ip6TrivialSet,
            b"dnset" => Kind::Names,
            b"generic" => Kind::Generic,
            b"combined" => Kind::Combined,
            b"acl" => Kind::Acl,
            b"feed" => Kind::Feed,
            _ => return None,
        })
    }
}

/// What a client may see (the `acl` data set).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No answer at all.
    Ignore,
    /// REFUSED.
    Refuse,
    /// Nothing is listed.
    Empty,
    /// As usual.
    Pass,
    /// Everything is listed, with this value.
    Listed(ValueId),
}

/// A data set.
#[derive(Debug, Default)]
pub struct Dataset {
    /// What its special entries say.
    pub head: Head,
    /// What is listed.
    pub body: Body,
    /// The values of listings.
    pub values: Values,
    /// The value of the whole set, where listings have none of their own.
    pub whole: Option<ValueId>,
    /// When the youngest file was changed, in seconds since 1970.
    pub changed: u64,
}

/// What is listed.
#[derive(Debug)]
pub enum Body {
    /// `ip4set`, `ip4trie`, `ip4tset`.
    Ip4(ip4::Table),
    /// `ip6trie`.
    Ip6(ip6::Table),
    /// `ip6tset`: networks of 64 bits, and addresses that are excluded.
    Ip6Trivial {
        /// The upper halves of what is listed, sorted.
        networks: Vec<u64>,
        /// What is not, sorted.
        excluded: Vec<u128>,
    },
    /// `dnset`.
    Names(names::Table),
    /// `generic`.
    Generic(generic::Table),
    /// `combined`: data sets with their subzones.
    Combined(Vec<Section>),
    /// `acl`.
    Acl {
        /// By IPv4 address; values are numbers of actions.
        ip4: ip4::Table,
        /// By IPv6 address.
        ip6: ip6::Table,
        /// The actions.
        actions: Vec<Access>,
    },
    /// IPv4 and IPv6 networks together.
    Feed {
        /// IPv4.
        ip4: ip4::Table,
        /// IPv6.
        ip6: ip6::Table,
    },
}

impl Default for Body {
    fn default() -> Body {
        Body::Combined(Vec::new())
    }
}

/// A part of a combined data set.
#[derive(Debug)]
pub struct Section {
    /// Names relative to the zone, in wire form without root, in lower case; empty for the zone itself.
    pub subzones: Vec<Vec<u8>>,
    /// What is listed there.
    pub dataset: Arc<Dataset>,
}

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
    /// What is under way: the set itself, or the section of a combined one.
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
        self.lines.feed(input, |line| state.line(line));
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

/// A name in question, below a zone or subzone.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// In wire form without root, in lower case; empty for the zone itself.
    pub name: &'a [u8],
    /// The IPv4 address that it spells.
    pub ip4: Option<u32>,
    /// The IPv6 address that it spells.
    pub ip6: Option<u128>,
}

impl<'a> Asked<'a> {
    /// Reads what addresses a name spells.
    pub fn new(name: &'a [u8]) -> Asked<'a> {
        let ip6 = nibbles(name);
        let ip4 = ip6.map_or_else(|| octets(name), embedded);
        Asked { name, ip4, ip6 }
    }
}

/// Four labels of one to three digits, the last octet first.
fn octets(name: &[u8]) -> Option<u32> {
    let (mut address, mut rest) = (0_u32, name);
    for index in 0..4 {
        let (&len, behind) = rest.split_first()?;
        let label = behind.get(..usize::from(len)).filter(|label| label.len() <= 3)?;
        address |= u32::from(super::value::number(label)?) << (8 * index);
        rest = &behind[label.len()..];
    }
    rest.is_empty().then_some(address)
}

/// 32 labels of a hexadecimal digit each, the last one first.
fn nibbles(name: &[u8]) -> Option<u128> {
    if name.len() != 64 {
        return None;
    }
    name.chunks_exact(2).rev().try_fold(0_u128, |address, label| {
        let digit = char::from(label[1]).to_digit(16).filter(|_| label[0] == 1)?;
        Some(address << 4 | u128::from(digit))
    })
}

/// The IPv4 address in an IPv6 address: mapped (`::ffff:0:0/96`), or of 6to4 (`2002::/16`).
const fn embedded(address: u128) -> Option<u32> {
    if address >> 32 == 0xffff {
        return Some(address as u32);
    }
    if address >> 112 == 0x2002 { Some((address >> 80) as u32) } else { None }
}

/// Whether an address is an IPv4 address in IPv6's clothes.
pub const fn is_mapped(address: u128) -> bool {
    address >> 32 == 0xffff
}

/// What a data set says of a name.
pub trait Sink {
    /// A listing.
    fn listed(&mut self, dataset: &Dataset, value: ValueId, key: Key<'_>);
    /// A record of a `generic` data set.
    fn record(&mut self, record: &generic::Record);
}

impl Dataset {
    /// Tells `sink` all about a name. Returns whether the name exists.
    pub fn find(&self, asked: &Asked<'_>, sink: &mut impl Sink) -> bool {
        match &self.body {
            Body::Ip4(table) => self.find_ip4(table, asked, sink),
            Body::Ip6(table) => self.find_ip6(table, asked, sink),
            Body::Ip6Trivial { networks, excluded } => {
                let Some(address) = asked.ip6 else { return false };
                let upper = (address >> 64) as u64;
                let listed = networks.binary_search(&upper).is_ok() && excluded.binary_search(&address).is_err();
                if let (true, Some(value)) = (listed, self.whole) {
                    sink.listed(self, value, Key::Ip6(address));
                }
                listed
            }
            Body::Names(table) => {
                let Some((name, values)) = table.find(asked.name) else { return false };
                tell(values, |value| sink.listed(self, value, Key::Name(name)))
            }
            Body::Generic(table) => {
                let records = table.find(asked.name);
                records.iter().for_each(|record| sink.record(record));
                !records.is_empty()
            }
            Body::Feed { ip4, ip6 } => self.find_ip4(ip4, asked, sink) || self.find_ip6(ip6, asked, sink),
            Body::Combined(_) | Body::Acl { .. } => false,
        }
    }

    fn find_ip4(&self, table: &ip4::Table, asked: &Asked<'_>, sink: &mut impl Sink) -> bool {
        let Some(address) = asked.ip4 else { return false };
        tell(table.find(address), |value| sink.listed(self, value, Key::Ip4(address)))
    }

    fn find_ip6(&self, table: &ip6::Table, asked: &Asked<'_>, sink: &mut impl Sink) -> bool {
        let Some(address) = asked.ip6 else { return false };
        tell(table.find(address).into_iter(), |value| sink.listed(self, value, Key::Ip6(address)))
    }

    /// Whether names in it are found as addresses of a family: IPv4, IPv6.
    pub const fn families(&self) -> (bool, bool) {
        match &self.body {
            Body::Ip4(_) => (true, false),
            Body::Ip6(_) | Body::Ip6Trivial { .. } => (false, true),
            Body::Feed { .. } => (true, true),
            _ => (false, false),
        }
    }

    /// What a client may see: of an `acl` alone.
    pub fn access(&self, client: core::net::IpAddr) -> Option<Access> {
        let Body::Acl { ip4, ip6, actions } = &self.body else {
            return None;
        };
        let number = match client.to_canonical() {
            core::net::IpAddr::V4(address) => ip4.find(address.to_bits()).next(),
            core::net::IpAddr::V6(address) => ip6.find(address.to_bits()),
        };
        actions.get(usize::try_from(number?.0.checked_sub(1)?).ok()?).copied()
    }

    /// How many listings it has.
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Ip4(table) => table.count(),
            Body::Ip6(table) => table.count(),
            Body::Ip6Trivial { networks, excluded } => networks.len() + excluded.len(),
            Body::Names(table) => table.count(),
            Body::Generic(table) => table.records().len(),
            Body::Combined(sections) => sections.iter().map(|section| section.dataset.len()).sum(),
            Body::Acl { ip4, ip6, .. } | Body::Feed { ip4, ip6 } => ip4.count() + ip6.count(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes it takes, about.
    pub fn memory_bytes(&self) -> usize {
        let body = match &self.body {
            Body::Ip4(table) => table.memory_bytes(),
            Body::Ip6(table) => table.memory_bytes(),
            Body::Ip6Trivial { networks, excluded } => networks.capacity() * 8 + excluded.capacity() * 16,
            Body::Names(table) => table.memory_bytes(),
            Body::Generic(table) => table.memory_bytes(),
            Body::Combined(sections) => sections.iter().map(|section| section.dataset.memory_bytes()).sum(),
            Body::Acl { ip4, ip6, .. } | Body::Feed { ip4, ip6 } => ip4.memory_bytes() + ip6.memory_bytes(),
        };
        body + self.values.memory_bytes()
    }
}

/// Passes values on, unless one says that nothing is listed. Returns whether there is any.
fn tell(values: impl Iterator<Item = ValueId>, mut each: impl FnMut(ValueId)) -> bool {
    let mut any = false;
    for value in values {
        if value == ValueId::EXCLUDED {
            return false;
        }
        any = true;
        each(value);
    }
    any
}
