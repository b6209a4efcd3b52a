//! Whole messages, owned: for the client, for zone transfers and for tests.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::writer::{Owner, Section, Writer};
use super::{HEADER_BYTES, Malformed, Name, class, kind, u16_at, u32_at};

/// How many aliases are followed within a message.
const ALIASES_MAX: usize = 8;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// Query identifier, repeated in the response.
    pub id: u16,
    /// The header's second word: see [`super::flag`].
    pub flags: u16,
    /// Name, type and class.
    pub questions: Vec<(Name, u16, u16)>,
    /// Answer section.
    pub answers: Vec<Record>,
    /// Authority section.
    pub authorities: Vec<Record>,
    /// Additional section, OPT included.
    pub additionals: Vec<Record>,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Owner name.
    pub name: Name,
    /// Its type: see [`super::kind`].
    pub kind: u16,
    /// Its class; the sender's size of packets in OPT.
    pub class: u16,
    /// How long it may be kept, in seconds; further flags in OPT.
    pub ttl: u32,
    /// Record data.
    pub data: Data,
}

/// Record data, by type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// A name server.
    Ns(Name),
    /// The name that this one is an alias of.
    Cname(Name),
    /// A name of an address.
    Ptr(Name),
    /// Preference and name of a mail exchanger.
    Mx(u16, Name),
    /// The start of a zone.
    Soa(Soa),
    /// Strings of up to 255 bytes, one behind the other with their lengths, as on the wire.
    Txt(Vec<u8>),
    /// Anything else, as on the wire.
    Other(Vec<u8>),
}

/// The start of a zone (RFC 1035 section 3.3.13). Times in seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Soa {
    /// The primary name server.
    pub origin: Name,
    /// The mailbox of who is in charge.
    pub person: Name,
    /// Version of the zone, in serial number arithmetic.
    pub serial: u32,
    /// When a secondary looks again.
    pub refresh: u32,
    /// When it looks again after a failure.
    pub retry: u32,
    /// When it gives up.
    pub expire: u32,
    /// How long a negative answer may be kept.
    pub minimum: u32,
}

impl Message {
    /// Reads a message. Bytes behind the last record are passed over.
    ///
    /// # Errors
    /// What is cut off or does not fit its type.
    pub fn parse(bytes: &[u8]) -> Result<Message, Malformed> {
        let count = |at| u16_at(bytes, at).ok_or(Malformed::Short);
        let mut message = Message { id: count(0)?, flags: count(2)?, ..Message::default() };
        let counts = [count(4)?, count(6)?, count(8)?, count(10)?];
        let mut at = HEADER_BYTES;
        for _ in 0..counts[0] {
            let (name, next) = Name::read(bytes, at)?;
            let kind = u16_at(bytes, next).ok_or(Malformed::Short)?;
            let class = u16_at(bytes, next + 2).ok_or(Malformed::Short)?;
            message.questions.push((name, kind, class));
            at = next + 4;
        }
        let sections = [&mut message.answers, &mut message.authorities, &mut message.additionals];
        for (section, &count) in sections.into_iter().zip(&counts[1..]) {
            for _ in 0..count {
                let (record, next) = Record::read(bytes, at)?;
                section.push(record);
                at = next;
            }
        }
        Ok(message)
    }

    /// The answers about a name: its own, or those of the name that it is an alias of in this message (RFC 1034 section
    /// 3.6.2). Of class IN alone. No more than eight aliases are followed, so those that run in a circle end.
    pub fn answers_of<'m>(&'m self, name: &'m Name) -> impl Iterator<Item = &'m Record> {
        let of_class = || self.answers.iter().filter(|record| record.class == class::IN);
        let mut owner = name;
        for _ in 0..ALIASES_MAX {
            let alias = of_class().find_map(|record| match &record.data {
                Data::Cname(target) if record.name == *owner => Some(target),
                _ => None,
            });
            match alias {
                Some(target) => owner = target,
                None => break,
            }
        }
        of_class().filter(move |record| record.name == *owner)
    }

    /// The response code, with the bits that OPT adds.
    pub fn rcode(&self) -> u16 {
        let opt = self.additionals.iter().find(|record| record.kind == kind::OPT);
        let high = opt.map_or(0, |record| (record.ttl >> 20) & 0xff0);
        (self.flags & 15) | u16::try_from(high).unwrap_or(0)
    }

    /// Writes the message to `out`, which is emptied. Returns whether it fits into `bytes_max`; what does not is left
    /// out.
    pub fn write(&self, out: &mut Vec<u8>, bytes_max: usize) -> bool {
        let mut writer = Writer::new(out, bytes_max, self.id, self.flags);
        let mut fits = true;
        for (name, kind, class) in &self.questions {
            fits &= writer.question(name.as_wire(), *kind, *class);
        }
        let sections = [
            (Section::Answer, &self.answers),
            (Section::Authority, &self.authorities),
            (Section::Additional, &self.additionals),
        ];
        for (section, records) in sections {
            for record in records {
                fits &= record.write(&mut writer, section);
            }
        }
        fits
    }
}

impl Record {
    fn read(bytes: &[u8], at: usize) -> Result<(Record, usize), Malformed> {
        let (name, at) = Name::read(bytes, at)?;
        let kind = u16_at(bytes, at).ok_or(Malformed::Short)?;
        let class = u16_at(bytes, at + 2).ok_or(Malformed::Short)?;
        let ttl = u32_at(bytes, at + 4).ok_or(Malformed::Short)?;
        let len = usize::from(u16_at(bytes, at + 8).ok_or(Malformed::Short)?);
        let start = at + 10;
        let end = start + len;
        if end > bytes.len() {
            return Err(Malformed::Short);
        }
        let data = Data::read(bytes, start, end, kind)?;
        Ok((Record { name, kind, class, ttl, data }, end))
    }

    /// Writes the record; `false` if it does not fit.
    pub fn write(&self, writer: &mut Writer<'_>, section: Section) -> bool {
        let owner = Owner::Name(self.name.as_wire());
        writer.record(section, owner, self.kind, self.class, self.ttl, |writer| match &self.data {
            Data::A(address) => writer.bytes(&address.octets()),
            Data::Aaaa(address) => writer.bytes(&address.octets()),
            Data::Ns(name) | Data::Cname(name) | Data::Ptr(name) => writer.name(name.as_wire()),
            Data::Mx(preference, name) => writer.bytes(&preference.to_be_bytes()) && writer.name(name.as_wire()),
            Data::Soa(soa) => writer.soa(soa),
            Data::Txt(bytes) | Data::Other(bytes) => writer.bytes(bytes),
        })
    }

    /// The bytes of a TXT record, its strings joined.
    pub fn text(&self) -> Option<Vec<u8>> {
        let Data::Txt(strings) = &self.data else {
            return None;
        };
        let mut text = Vec::new();
        let mut rest = &strings[..];
        while let Some((&len, behind)) = rest.split_first() {
            let (string, behind) = behind.split_at_checked(usize::from(len))?;
            text.extend_from_slice(string);
            rest = behind;
        }
        Some(text)
    }
}

impl Data {
    fn read(bytes: &[u8], start: usize, end: usize, kind: u16) -> Result<Data, Malformed> {
        let raw = bytes.get(start..end).ok_or(Malformed::Short)?;
        let name_to_end = |at: usize| match Name::read(bytes, at)? {
            (name, next) if next == end => Ok(name),
            _ => Err(Malformed::Data),
        };
        Ok(match kind {
            kind::A => Data::A(<[u8; 4]>::try_from(raw).map_err(|_| Malformed::Data)?.into()),
            kind::AAAA => Data::Aaaa(<[u8; 16]>::try_from(raw).map_err(|_| Malformed::Data)?.into()),
            kind::NS => Data::Ns(name_to_end(start)?),
            kind::CNAME => Data::Cname(name_to_end(start)?),
            kind::PTR => Data::Ptr(name_to_end(start)?),
            kind::MX => Data::Mx(u16_at(raw, 0).ok_or(Malformed::Data)?, name_to_end(start + 2)?),
            kind::SOA => Data::Soa(Soa::read(bytes, start, end)?),
            kind::TXT if strings_fit(raw) => Data::Txt(raw.to_vec()),
            kind::TXT => return Err(Malformed::Data),
            _ => Data::Other(raw.to_vec()),
        })
    }
}

/// Whether bytes are strings with their lengths, one at least.
fn strings_fit(raw: &[u8]) -> bool {
    let mut rest = raw;
    while let Some((&len, behind)) = rest.split_first() {
        match behind.get(usize::from(len)..) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    !raw.is_empty()
}

impl Writer<'_> {
    /// Writes what a SOA says. For a record's data.
    pub fn soa(&mut self, soa: &Soa) -> bool {
        let words = [soa.serial, soa.refresh, soa.retry, soa.expire, soa.minimum];
        self.name(soa.origin.as_wire())
            && self.name(soa.person.as_wire())
            && words.iter().all(|word| self.bytes(&word.to_be_bytes()))
    }
}

impl Soa {
    fn read(bytes: &[u8], start: usize, end: usize) -> Result<Soa, Malformed> {
        let (origin, at) = Name::read(bytes, start)?;
        let (person, at) = Name::read(bytes, at)?;
        if at.checked_add(20) != Some(end) {
            return Err(Malformed::Data);
        }
        let word = |index: usize| u32_at(bytes, at + 4 * index).ok_or(Malformed::Short);
        Ok(Soa {
            origin,
            person,
            serial: word(0)?,
            refresh: word(1)?,
            retry: word(2)?,
            expire: word(3)?,
            minimum: word(4)?,
        })
    }
}
