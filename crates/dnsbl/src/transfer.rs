//! Zone transfers (AXFR, RFC 5936), for secondaries of other software.
//!
//! A zone of networks becomes a zone of names: `*.2.0.192` stands for a /24. An existing name hides the wildcards above
//! it, so each name with others below it gets its own wildcard for inherited values, and an excluded name has only a
//! record of an unused type. Known wrongs of the form, not of the data: a text that names the listed address names the
//! network's first one, and names that only lead to others exist.

use std::collections::BTreeMap;

use proto::dns::{Owner, Query, Section, Writer, class, flag, kind, rcode};

use crate::answer::Found;
use crate::zone::Zone;
use crate::zone::asked::Asked;
use crate::zone::dataset::{Body, Dataset};

/// How long a message becomes.
const MESSAGE_BYTES_MAX: usize = 16_384;

/// How many names a zone may have; a larger one is refused.
const NAMES_MAX: usize = 4_000_000;

/// The type of the record that makes an excluded name exist (for private use, RFC 6895).
const KIND_EXCLUDED: u16 = 65_399;

/// Refuses a transfer.
pub fn refuse(query: &Query<'_>, out: &mut Vec<u8>) {
    let mut writer =
        Writer::new(out, MESSAGE_BYTES_MAX, query.id, flag::QR | (query.flags & flag::RD) | rcode::REFUSED);
    writer.question(query.question.name, query.question.kind, query.question.class);
}

/// A zone on its way, message by message.
pub struct Transfer<'a> {
    zone: &'a Zone,
    id: u16,
    question: Vec<u8>,
    names: Vec<(Vec<u8>, Form)>,
    stage: Stage,
}

/// Form of a name, without subzone in wire form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Itself.
    Plain,
    /// A wildcard above so many octets of addresses.
    Octets(u8),
    /// A wildcard above so many nibbles of addresses.
    Nibbles(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    /// The next name.
    Names(usize),
    Tail,
    Done,
}

impl<'a> Transfer<'a> {
    /// Prepares a transfer; `None` if the zone has too many names. That takes its time.
    pub fn new(zone: &'a Zone, query: &Query<'_>) -> Option<Transfer<'a>> {
        let names = names(zone)?;
        Some(Transfer { zone, id: query.id, question: query.question.name.to_vec(), names, stage: Stage::Head })
    }

    /// Writes the next message to `out`; `false` at the end.
    pub fn next(&mut self, out: &mut Vec<u8>) -> bool {
        if self.stage == Stage::Done {
            return false;
        }
        let mut writer = Writer::new(out, MESSAGE_BYTES_MAX, self.id, flag::QR | flag::AA);
        writer.question(&self.question, kind::AXFR, class::IN);
        if self.stage == Stage::Head {
            self.soa(&mut writer);
            let name = self.zone.name.as_wire();
            if let Some((ttl, servers)) = &self.zone.servers {
                for server in servers {
                    writer.record(Section::Answer, Owner::Name(name), kind::NS, class::IN, *ttl, |writer| {
                        writer.name(server.as_wire())
                    });
                }
            }
            self.stage = Stage::Names(0);
        }
        while let Stage::Names(index) = self.stage {
            let Some((name, form)) = self.names.get(index) else {
                self.stage = Stage::Tail;
                break;
            };
            let len = writer.len();
            let count = writer.count(Section::Answer);
            if !self.name(name, *form, &mut writer) {
                writer.rewind(len);
                writer.set_count(Section::Answer, count);
                if count == 0 {
                    // More than a message holds: it is left out.
                    self.stage = Stage::Names(index + 1);
                    continue;
                }
                return true;
            }
            self.stage = Stage::Names(index + 1);
        }
        if self.stage == Stage::Tail && self.soa(&mut writer) {
            self.stage = Stage::Done;
        }
        true
    }

    fn soa(&self, writer: &mut Writer<'_>) -> bool {
        let Some((ttl, soa)) = &self.zone.soa else { return true };
        let name = Owner::Name(self.zone.name.as_wire());
        writer.record(Section::Answer, name, kind::SOA, class::IN, *ttl, |writer| writer.soa(soa))
    }

    /// Writes the records of a name; `false` if they do not fit.
    fn name(&self, name: &[u8], form: Form, writer: &mut Writer<'_>) -> bool {
        let wire = [name, self.zone.name.as_wire()].concat();
        let Some(asked) = self.asked(name, form).filter(|_| wire.len() <= 255) else {
            return true;
        };
        let mut found = Found::default();
        found.begin(kind::ANY);
        self.zone.find(&Asked::new(&asked), &mut found);
        let owner = Owner::Name(&wire);
        if found.is_empty() && form == Form::Plain && !name.is_empty() {
            return writer.record(Section::Answer, owner, KIND_EXCLUDED, class::IN, 0, |_| true);
        }
        found.write(owner, writer)
    }

    /// Returns the name to look up on behalf of a name. A wildcard stands for the addresses below it without a name or
    /// wildcard of their own, which are all alike; `None` if there are none.
    fn asked(&self, name: &[u8], form: Form) -> Option<Vec<u8>> {
        let (count, whole, base) = match form {
            Form::Plain => return Some(name.to_vec()),
            Form::Octets(count) => (count, 4, 256),
            Form::Nibbles(count) => (count, 32, 16),
        };
        let rest = name.strip_prefix(WILD)?;
        let free = (0..base).find_map(|digit| {
            let digit = if base == 16 { format!("{digit:x}") } else { digit.to_string() };
            let child = [&label(&digit), rest].concat();
            let known = if count + 1 == whole { child.clone() } else { [WILD, &child].concat() };
            self.names.binary_search_by(|(name, _)| name.cmp(&known)).is_err().then_some(child)
        })?;
        let zeros = label("0").repeat(usize::from(whole - count - 1));
        Some([zeros, free].concat())
    }
}

/// The label of a wildcard.
const WILD: &[u8] = b"\x01*";

/// All names of a zone that have records; `None` if there are too many.
fn names(zone: &Zone) -> Option<Vec<(Vec<u8>, Form)>> {
    let mut names = BTreeMap::from([(Vec::new(), Form::Plain)]);
    for dataset in &zone.datasets {
        match &dataset.body {
            Body::Combined(sections) => {
                for section in sections {
                    for subzone in &section.subzones {
                        collect(&section.dataset, subzone, &mut names)?;
                    }
                }
            }
            _ => collect(dataset, &[], &mut names)?,
        }
    }
    Some(names.into_iter().collect())
}

fn collect(dataset: &Dataset, subzone: &[u8], names: &mut BTreeMap<Vec<u8>, Form>) -> Option<()> {
    let mut add = |name: Vec<u8>, form: Form| {
        names.insert([&name[..], subzone].concat(), form);
    };
    match &dataset.body {
        Body::Ip4(table) => table.for_each(|address, bits, _| octet_names(address, bits, &mut add)),
        Body::Feed { ip4, ip6 } => {
            ip4.for_each(|address, bits, _| octet_names(address, bits, &mut add));
            ip6.for_each(|address, bits, _| nibble_names(address, bits, &mut add));
        }
        Body::Ip6(table) => table.for_each(|address, bits, _| nibble_names(address, bits, &mut add)),
        Body::Ip6Trivial { networks, excluded } => {
            networks.iter().for_each(|&network| nibble_names(u128::from(network) << 64, 64, &mut add));
            excluded.iter().for_each(|&address| nibble_names(address, 128, &mut add));
        }
        Body::Names(table) => table.for_each(|name, wild, _| {
            let wild = if wild { WILD } else { &[] };
            add([wild, name].concat(), Form::Plain);
        }),
        Body::Generic(table) => table.records().iter().for_each(|record| add(record.name.clone(), Form::Plain)),
        Body::Combined(_) | Body::Acl { .. } => {}
    }
    (names.len() <= NAMES_MAX).then_some(())
}

/// The names that stand for a network: of itself or of the smaller ones that end at an octet, and of those around them.
fn octet_names(address: u32, bits: u8, add: &mut impl FnMut(Vec<u8>, Form)) {
    let octets = bits.div_ceil(8).max(1);
    let step = 1_u64 << (32 - 8 * u32::from(octets));
    for index in 0..1_u32 << (8 * octets - bits) {
        let first = u64::from(address) + u64::from(index) * step;
        let [a, b, c, d] = u32::try_from(first).unwrap_or(u32::MAX).to_be_bytes();
        let name = |count: u8| {
            [a, b, c, d][..usize::from(count)]
                .iter()
                .rev()
                .flat_map(|octet| label(&octet.to_string()))
                .collect::<Vec<u8>>()
        };
        if octets == 4 {
            add(name(4), Form::Plain);
        }
        for count in 1..=octets.min(3) {
            add([WILD, &name(count)].concat(), Form::Octets(count));
        }
    }
}

fn nibble_names(address: u128, bits: u8, add: &mut impl FnMut(Vec<u8>, Form)) {
    let nibbles = bits.div_ceil(4).max(1);
    let name = |address: u128, count: u8| {
        (0..count)
            .rev()
            .flat_map(|at| label(&format!("{:x}", address >> (124 - 4 * u32::from(at)) & 15)))
            .collect::<Vec<u8>>()
    };
    for index in 0..1_u128 << (4 * nibbles - bits) {
        let first = address + (index << (128 - 4 * u32::from(nibbles)));
        if nibbles == 32 {
            add(name(first, 32), Form::Plain);
        }
        for count in 1..=nibbles.min(31) {
            add([WILD, &name(first, count)].concat(), Form::Nibbles(count));
        }
    }
}

fn label(text: &str) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap_or(1)][..], text.as_bytes()].concat()
}
