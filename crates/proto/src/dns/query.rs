//! The server's half: a query, borrowed from its packet.

use super::name::skip_uncompressed;
use super::{HEADER_BYTES, flag, kind, opcode, u16_at, u32_at};

/// A query that can be answered, if only with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// Query identifier, repeated in the response.
    pub id: u16,
    /// The header's second word.
    pub flags: u16,
    /// The question.
    pub question: Question<'a>,
    /// EDNS options of the client.
    pub edns: Option<Edns>,
}

/// A question: name, type and class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question<'a> {
    /// The name, in wire form as it came, its root included.
    pub name: &'a [u8],
    /// The type.
    pub kind: u16,
    /// The class.
    pub class: u16,
    /// Name, type and class as they came.
    pub raw: &'a [u8],
}

/// EDNS options of a client (RFC 6891).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edns {
    /// The version, of which 0 alone is known.
    pub version: u8,
    /// How long a UDP packet it takes. Less than 512 counts as 512.
    pub udp_bytes: u16,
    /// Whether it wants DNSSEC.
    pub dnssec: bool,
}

/// Why a packet gets no answer at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswerable {
    /// It is a response: to answer one would be to talk to oneself.
    Response,
    /// Not exactly one question, or one that cannot be read.
    Malformed,
}

impl<'a> Query<'a> {
    /// Reads a packet. Questions are not compressed; records behind the question are passed over in search of OPT, and
    /// where they are malformed there is none.
    ///
    /// # Errors
    /// What nobody has to answer.
    pub fn parse(packet: &'a [u8]) -> Result<Query<'a>, Unanswerable> {
        let word = |at| u16_at(packet, at).ok_or(Unanswerable::Malformed);
        let (id, flags) = (word(0)?, word(2)?);
        if flags & flag::QR != 0 {
            return Err(Unanswerable::Response);
        }
        let rest = packet.get(HEADER_BYTES..).ok_or(Unanswerable::Malformed)?;
        if word(4)? != 1 {
            return Err(Unanswerable::Malformed);
        }
        let len = skip_uncompressed(rest).map_err(|_| Unanswerable::Malformed)?;
        let raw = rest.get(..len + 4).ok_or(Unanswerable::Malformed)?;
        let kind = u16_at(raw, len).ok_or(Unanswerable::Malformed)?;
        let class = u16_at(raw, len + 2).ok_or(Unanswerable::Malformed)?;
        let question = Question { name: &raw[..len], kind, class, raw };
        let records = [word(6)?, word(8)?, word(10)?];
        let edns = find_edns(&rest[raw.len()..], records);
        Ok(Query { id, flags, question, edns })
    }

    /// Its operation code.
    pub const fn opcode(&self) -> u8 {
        ((self.flags >> 11) & 15) as u8
    }

    /// Whether it is a plain question: the operation QUERY, and no bits that only responses have.
    pub const fn is_plain(&self) -> bool {
        self.opcode() == opcode::QUERY && self.flags & (flag::AA | flag::TC) == 0
    }
}

/// The first OPT record behind the question.
fn find_edns(bytes: &[u8], counts: [u16; 3]) -> Option<Edns> {
    let count = counts.iter().map(|&count| u32::from(count)).sum::<u32>();
    let mut rest = bytes;
    for _ in 0..count {
        let len = skip_name(rest)?;
        let record = u16_at(rest, len)?;
        let data = usize::from(u16_at(rest, len + 8)?);
        if record == kind::OPT && len == 1 {
            let flags = u32_at(rest, len + 4)?;
            let [_, version, high, _] = flags.to_be_bytes();
            return Some(Edns { version, udp_bytes: u16_at(rest, len + 2)?, dnssec: high & 0x80 != 0 });
        }
        rest = rest.get(len + 10 + data..)?;
    }
    None
}

/// How many bytes a name has that may end in a pointer, which is not followed.
fn skip_name(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            len @ 1..=0x3f => at += usize::from(len) + 1,
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
}
