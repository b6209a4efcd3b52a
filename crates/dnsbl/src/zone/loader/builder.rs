//! Builds one data set, or one section of a combined one, from its entries.

use crate::zone::dataset::{Access, Body, Dataset, Kind};
use crate::zone::generic;
use crate::zone::ip4;
use crate::zone::ip6;
use crate::zone::names;
use crate::zone::reader::Head;
use crate::zone::value::{Template, Value, ValueError, ValueId, Values, read, trim_start};

/// The default value in scope: what the last line that began with a colon said.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) address: [u8; 4],
    pub(super) template: Option<(Vec<u8>, bool)>,
    pub(super) action: Option<Access>,
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
pub(super) struct Builder {
    pub(super) dataset: Dataset,
    pub(super) default: Scope,
    pub(super) parts: Parts,
}

#[derive(Debug)]
pub(super) enum Parts {
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

const HOST_PART: Why = "host bits are set";

const TOO_LARGE: Why = "a range larger than $MAXRANGE4 allows";

const VALUE: Why = "not an A value";

const TRAILING: Why = "something behind the A value";

const NAME: Why = "not a domain name";

const TOO_MANY: Why = "too many entries";

impl Builder {
    pub(super) fn new(kind: Kind, head: Head) -> Builder {
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

    pub(super) fn special(&mut self, kind: Kind, entry: &[u8]) -> bool {
        let zone_only = [&b"SOA"[..], b"NS"]
            .iter()
            .any(|keyword| entry.len() >= keyword.len() && entry[..keyword.len()].eq_ignore_ascii_case(keyword));
        !(kind == Kind::Acl && zone_only) && self.dataset.head.read(entry)
    }

    pub(super) fn entry(&mut self, entry: &[u8]) -> Result<(), Why> {
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
    pub(super) fn plain_lines(&mut self, input: &[u8]) -> (usize, u64) {
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

    pub(super) fn finish(self) -> Dataset {
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

pub(super) const fn why(error: ValueError) -> Why {
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
