//! Responses to queries.
//!
//! Where rbldnsd's answers and the standards differ, the answers are rbldnsd's, but for three points: a response that was
//! cut off says so (TC), since we can be asked again by TCP; a client that speaks EDNS hears it back (RFC 6891); and a
//! response to an operation that is not implemented names that operation.

use core::net::IpAddr;

use proto::dns::{Owner, Query, Section, Writer, class, flag, kind, rcode};

use crate::special::{self, Special};
use crate::zone::above;
use crate::zone::asked::Asked;
use crate::zone::dataset::{Access, Dataset, Sink};
use crate::zone::value::{Key, ValueId};
use crate::zone::{Zone, Zones, generic};

/// Maximum UDP response, whatever the client accepts.
pub const UDP_BYTES_MAX: usize = 2_048;

/// How many records an answer has at most.
const RECORDS_MAX: usize = 4_096;

/// Bytes of the OPT record in a response.
const OPT_BYTES: usize = 11;

/// Transport of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP: the response has to fit a packet.
    Udp,
    /// TCP.
    Tcp,
}

/// Action for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The query gets no response.
    Silent,
    /// The response is sent.
    Respond(Response),
    /// The client asks for all of a zone, by TCP: see [`crate::zone::Zones::zones`].
    Transfer(usize),
}

/// Kind of response, for metrics and rate limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// The response has answers.
    Positive,
    /// The name or its type has none.
    Negative,
    /// No answer: refused, not implemented, broken.
    Error,
}

/// Options of the host.
#[derive(Debug, Clone)]
pub struct Options {
    /// Answer to `version.bind`; `None` to refuse it.
    pub version: Option<String>,
    /// Whether positive answers name the zone's servers.
    pub full: bool,
    /// The largest UDP response.
    pub udp_bytes_max: usize,
    /// Whether prefixes are answered (`docs/engine/pbl-draft.md`).
    pub prefixes: bool,
    /// Whether AAAA of the lower or upper half of a /24 (`0.z.y.x`, `1.z.y.x`) is answered with a bitmap of it.
    pub prefixes_in_aaaa: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { version: None, full: true, udp_bytes_max: UDP_BYTES_MAX, prefixes: true, prefixes_in_aaaa: false }
    }
}

/// Buffers kept from one query to the next, so that nothing is allocated.
#[derive(Debug, Default)]
pub struct Scratch {
    name: Vec<u8>,
    found: Found,
    turn: usize,
}

/// The records found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    records: Vec<Record>,
    data: Vec<u8>,
    wanted: Wanted,
}

#[derive(Debug, Default, Clone, Copy)]
struct Wanted {
    a: bool,
    mx: bool,
    txt: bool,
}

#[derive(Debug, Clone, Copy)]
struct Record {
    kind: u16,
    ttl: u32,
    start: usize,
    end: usize,
}

impl Found {
    /// Begins anew, for records of a type.
    pub(crate) fn begin(&mut self, kind: u16) {
        let all = kind == kind::ANY;
        self.records.clear();
        self.data.clear();
        self.wanted = Wanted { a: all || kind == kind::A, mx: all || kind == kind::MX, txt: all || kind == kind::TXT };
    }

    fn push(&mut self, kind: u16, ttl: u32, start: usize) {
        let end = self.data.len();
        let data = &self.data[start..end];
        let same = |record: &Record| record.kind == kind && &self.data[record.start..record.end] == data;
        match self.records.iter().position(same) {
            Some(at) => {
                self.records[at].ttl = self.records[at].ttl.min(ttl);
                self.data.truncate(start);
            }
            None if self.records.len() >= RECORDS_MAX => self.data.truncate(start),
            None => self.records.push(Record { kind, ttl, start, end }),
        }
    }

    /// Returns whether nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The addresses found.
    fn addresses(&self) -> impl Iterator<Item = [u8; 4]> + '_ {
        let addresses = self.records.iter().filter(|record| record.kind == kind::A);
        addresses.filter_map(|record| self.data.get(record.start..record.end)?.try_into().ok())
    }

    /// Writes them as answers; `false` if something does not fit.
    pub(crate) fn write(&self, owner: Owner<'_>, writer: &mut Writer<'_>) -> bool {
        let mut whole = true;
        let ttls = [kind::A, kind::MX, kind::TXT].map(|kind| (kind, self.ttl(kind)));
        for record in &self.records {
            let data = &self.data[record.start..record.end];
            let ttl = ttls.iter().find(|(kind, _)| *kind == record.kind).map_or(0, |&(_, ttl)| ttl);
            whole &= writer.record(Section::Answer, owner, record.kind, class::IN, ttl, |writer| match record.kind {
                kind::MX => writer.bytes(&data[..2]) && writer.name(&data[2..]),
                _ => writer.bytes(data),
            });
        }
        whole
    }

    /// All records of a type live as long as the shortest.
    fn ttl(&self, kind: u16) -> u32 {
        let of_kind = self.records.iter().filter(|record| record.kind == kind);
        of_kind.map(|record| record.ttl).min().unwrap_or(0)
    }
}

impl Sink for Found {
    fn listed(&mut self, dataset: &Dataset, value: ValueId, key: Key<'_>) {
        let Some(value) = dataset.values.get(value) else { return };
        let ttl = dataset.head.ttl();
        if self.wanted.a {
            let start = self.data.len();
            self.data.extend_from_slice(&value.address);
            self.push(kind::A, ttl, start);
        }
        if self.wanted.txt {
            let start = self.data.len();
            self.data.push(0);
            if dataset.head.substitutions.expand(value.template, &key, &mut self.data) {
                self.data[start] = u8::try_from(self.data.len() - start - 1).unwrap_or(u8::MAX);
                self.push(kind::TXT, ttl, start);
            } else {
                self.data.truncate(start);
            }
        }
    }

    fn record(&mut self, record: &generic::Record) {
        let wanted = match record.kind {
            kind::A => self.wanted.a,
            kind::MX => self.wanted.mx,
            _ => self.wanted.txt,
        };
        if wanted {
            let start = self.data.len();
            self.data.extend_from_slice(&record.data);
            self.push(record.kind, record.ttl, start);
        }
    }
}

/// Makes the response to `packet` in `out`. `now` is in seconds since 1970.
pub fn respond(
    zones: &Zones,
    options: &Options,
    packet: &[u8],
    from: (IpAddr, Transport),
    now: u64,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) -> Outcome {
    let Ok(query) = Query::parse(packet) else {
        return Outcome::Silent;
    };
    let (client, transport) = from;
    let limit = match (transport, query.edns) {
        (Transport::Tcp, _) => 65_535,
        (Transport::Udp, None) => proto::dns::UDP_BYTES,
        (Transport::Udp, Some(edns)) => {
            usize::from(edns.udp_bytes).clamp(proto::dns::UDP_BYTES, options.udp_bytes_max.max(proto::dns::UDP_BYTES))
        }
    };
    let kept = query.flags & (flag::RD | 0x7800);
    let reserve = if query.edns.is_some() { OPT_BYTES } else { 0 };
    let mut writer = Writer::new(out, limit - reserve, query.id, flag::QR | kept);
    writer.question(query.question.name, query.question.kind, query.question.class);
    let mut turn = Turn { zones, options, query, client, transport, now };
    let outcome = turn.answer(scratch, &mut writer);
    if let (Some(edns), Outcome::Respond(_)) = (query.edns, outcome) {
        writer.set_limit(limit);
        let version = if edns.version == 0 { 0 } else { 1 << 24 };
        let size = u16::try_from(options.udp_bytes_max).unwrap_or(u16::MAX);
        writer.record(Section::Additional, Owner::Name(&[0]), kind::OPT, size, version, |_| true);
    }
    outcome
}

/// One query.
struct Turn<'a> {
    zones: &'a Zones,
    options: &'a Options,
    query: Query<'a>,
    client: IpAddr,
    transport: Transport,
    now: u64,
}

impl Turn<'_> {
    fn answer(&mut self, scratch: &mut Scratch, writer: &mut Writer<'_>) -> Outcome {
        let question = self.query.question;
        if !self.query.is_plain() {
            return error(writer, rcode::NOTIMP);
        }
        if self.query.edns.is_some_and(|edns| edns.version != 0) {
            // The upper bits of BADVERS stand in OPT.
            return error(writer, rcode::BADVERS & 15);
        }
        match question.class {
            class::IN => writer.set_flags(flag::AA),
            class::ANY => {}
            class::CHAOS => return self.version(writer),
            _ => return error(writer, rcode::REFUSED),
        }
        let transfer = matches!(question.kind, kind::AXFR | kind::IXFR) && self.transport == Transport::Tcp;
        if question.kind >= 250 && question.kind != kind::ANY && !transfer {
            return error(writer, rcode::NOTIMP);
        }
        scratch.name.clear();
        scratch.name.extend(question.name.iter().map(u8::to_ascii_lowercase));
        let name = core::mem::take(&mut scratch.name);
        let outcome = match self.zones.find(&name) {
            None => error(writer, rcode::REFUSED),
            Some((zone, below)) if transfer => self.transfer(zone, below, writer),
            Some((zone, below)) => self.in_zone(zone, below, scratch, writer),
        };
        scratch.name = name;
        outcome
    }

    fn version(&self, writer: &mut Writer<'_>) -> Outcome {
        let question = self.query.question;
        let names = [&b"\x07version\x04bind\0"[..], b"\x07version\x06server\0"];
        let asked = names.iter().any(|name| question.name.eq_ignore_ascii_case(name));
        let Some(version) = self.options.version.as_deref().filter(|_| asked && question.kind == kind::TXT) else {
            return error(writer, rcode::REFUSED);
        };
        let len = u8::try_from(version.len()).unwrap_or(u8::MAX);
        let text = &version.as_bytes()[..usize::from(len)];
        writer.record(Section::Answer, Owner::At(12), kind::TXT, class::CHAOS, 0, |writer| {
            writer.bytes(&[len]) && writer.bytes(text)
        });
        Outcome::Respond(Response::Positive)
    }

    fn transfer(&self, zone: &Zone, below: &[u8], writer: &mut Writer<'_>) -> Outcome {
        let index = self.zones.zones().iter().position(|each| core::ptr::eq(each, zone));
        match index {
            Some(index) if below.is_empty() && zone.soa.is_some() && zone.is_served(self.now) => {
                Outcome::Transfer(index)
            }
            _ => error(writer, rcode::REFUSED),
        }
    }

    fn in_zone(&self, zone: &Zone, below: &[u8], scratch: &mut Scratch, writer: &mut Writer<'_>) -> Outcome {
        let access = self.zones.access(zone, self.client);
        match access {
            Some((Access::Ignore, _)) => return Outcome::Silent,
            Some((Access::Refuse, _)) => return error(writer, rcode::REFUSED),
            _ => {}
        }
        if !zone.is_served(self.now) {
            return error(writer, rcode::SERVFAIL);
        }
        let base = Owner::At(12 + u16::try_from(below.len()).unwrap_or(0));
        let kind = self.query.question.kind;
        let at_base = below.is_empty();
        let refused = match kind {
            kind::SOA => zone.soa.is_none(),
            kind::NS => zone.servers.is_none(),
            kind::ANY => zone.soa.is_none() || zone.servers.is_none(),
            _ => false,
        };
        if at_base && refused {
            return error(writer, rcode::REFUSED);
        }
        scratch.turn = scratch.turn.wrapping_add(1);
        if let Some(response) = self.special(zone, access, below, scratch, writer) {
            return Outcome::Respond(response);
        }
        scratch.found.begin(kind);
        let asked = Asked::new(below);
        let exists = self.look_up(zone, access, &asked, &mut scratch.found);
        let mut whole = true;
        if at_base && matches!(kind, kind::SOA | kind::ANY) {
            whole &= write_soa(zone, Section::Answer, base, writer);
        }
        if at_base && matches!(kind, kind::NS | kind::ANY) {
            whole &= write_servers(zone, Section::Answer, base, scratch.turn, writer);
        }
        whole &= scratch.found.write(Owner::At(12), writer);
        if !whole {
            writer.truncate();
        } else if writer.count(Section::Answer) == 0 {
            if !exists && !self.is_above(zone, access, &asked) {
                writer.set_rcode(rcode::NXDOMAIN);
            }
            write_soa(zone, Section::Authority, base, writer);
            return Outcome::Respond(Response::Negative);
        } else if self.options.full {
            write_authority(zone, base, scratch.turn, writer);
        }
        Outcome::Respond(Response::Positive)
    }

    /// Answers queries about prefixes; `None` for any other name.
    fn special(
        &self,
        zone: &Zone,
        access: Option<(Access, &Dataset)>,
        below: &[u8],
        scratch: &mut Scratch,
        writer: &mut Writer<'_>,
    ) -> Option<Response> {
        let kind = self.query.question.kind;
        let base = Owner::At(12 + u16::try_from(below.len()).unwrap_or(0));
        let question = special::read(below)?;
        match question {
            Special::Half { .. } if !self.options.prefixes_in_aaaa || kind != kind::AAAA => return None,
            Special::Capability { .. } | Special::Ip4 { .. } | Special::Ip6 { .. } if !self.options.prefixes => {
                return None;
            }
            _ => {}
        }
        let mut find = |name: &[u8]| {
            scratch.found.begin(kind::A);
            self.look_up(zone, access, &Asked::new(name), &mut scratch.found);
            (scratch.found.addresses().collect(), scratch.found.ttl(kind::A))
        };
        let (data, ttl) = match question {
            Special::Capability { subzone } => special::capability(zone, subzone)?,
            Special::Ip4 { first, subzone } => special::ip4(zone, first, subzone, &mut find)?,
            Special::Ip6 { first, subzone } => special::ip6(zone, first, subzone, &mut find)?,
            Special::Half { first, subzone } => special::half(zone, first, subzone, &mut find)?,
        };
        let text_kind = if matches!(question, Special::Half { .. }) { kind::AAAA } else { kind::TXT };
        if !data.is_empty() && (kind == text_kind || kind == kind::ANY) {
            writer.record(Section::Answer, Owner::At(12), text_kind, class::IN, ttl, |writer| writer.bytes(&data));
            return Some(Response::Positive);
        }
        if data.is_empty() {
            writer.set_rcode(rcode::NXDOMAIN);
        }
        write_soa(zone, Section::Authority, base, writer);
        Some(Response::Negative)
    }

    /// Whether names below a name exist, as far as the client may know it.
    fn is_above(&self, zone: &Zone, access: Option<(Access, &Dataset)>, asked: &Asked<'_>) -> bool {
        let is_above = |asked: &Asked<'_>| match access {
            Some((Access::Empty, _)) => zone.is_above_fixed(asked),
            Some((Access::Listed(_), _)) => zone.is_above_listable(asked) || zone.is_above_fixed(asked),
            _ => zone.is_above(asked),
        };
        let of_prefixes = || {
            let name = above::of_prefixes(asked.name).filter(|_| self.options.prefixes)?;
            let asked = Asked::new(&name);
            Some(zone.is_fixed(&asked) || is_above(&asked))
        };
        is_above(asked) || of_prefixes().unwrap_or(false)
    }

    /// Collects the records of a name, as far as the client may see them. Returns whether the name exists.
    fn look_up(&self, zone: &Zone, access: Option<(Access, &Dataset)>, asked: &Asked<'_>, found: &mut Found) -> bool {
        match access {
            Some((Access::Empty, _)) => zone.is_fixed(asked),
            Some((Access::Listed(value), list)) => {
                let listable = zone.is_listable(asked);
                if listable {
                    let key = match self.client.to_canonical() {
                        IpAddr::V4(address) => Key::Ip4(address.to_bits()),
                        IpAddr::V6(address) => Key::Ip6(address.to_bits()),
                    };
                    found.listed(list, value, key);
                }
                listable || zone.is_fixed(asked)
            }
            _ => zone.find(asked, found),
        }
    }
}

fn error(writer: &mut Writer<'_>, rcode: u16) -> Outcome {
    writer.clear_flags(flag::AA);
    writer.set_rcode(rcode);
    Outcome::Respond(Response::Error)
}

fn write_soa(zone: &Zone, section: Section, base: Owner<'_>, writer: &mut Writer<'_>) -> bool {
    let Some((ttl, soa)) = &zone.soa else { return true };
    // How long a negative answer is known stands in the SOA itself.
    let ttl = if section == Section::Authority { soa.minimum } else { *ttl };
    writer.record(section, base, kind::SOA, class::IN, ttl, |writer| writer.soa(soa))
}

fn write_servers(zone: &Zone, section: Section, base: Owner<'_>, turn: usize, writer: &mut Writer<'_>) -> bool {
    let Some((ttl, servers)) = &zone.servers else { return true };
    let first = turn % servers.len().max(1);
    let (front, back) = servers.split_at(first);
    back.iter().chain(front).fold(true, |whole, server| {
        whole & writer.record(section, base, kind::NS, class::IN, *ttl, |writer| writer.name(server.as_wire()))
    })
}

/// The zone's servers and their addresses: all of each, or none.
fn write_authority(zone: &Zone, base: Owner<'_>, turn: usize, writer: &mut Writer<'_>) {
    let start = writer.len();
    if !write_servers(zone, Section::Authority, base, turn, writer) {
        writer.rewind(start);
        writer.set_count(Section::Authority, 0);
        return;
    }
    let start = writer.len();
    let whole = zone.glue.iter().all(|glue| {
        let owner = Owner::Name(glue.server.as_wire());
        writer.record(Section::Additional, owner, kind::A, class::IN, glue.ttl, |writer| writer.bytes(&glue.address))
    });
    if !whole {
        writer.rewind(start);
        writer.set_count(Section::Additional, 0);
    }
}
