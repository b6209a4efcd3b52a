//! The client's half: a question that was sent, and whether a packet answers it.
//!
//! A forged answer has to guess the source port (the host's), the id, and, where the name's letters are mixed in case
//! ("0x20"), these too: they have to come back as they went out.

use alloc::vec::Vec;

use super::writer::{Owner, Section, Writer};
use super::{Malformed, Message, Name, flag, kind, opcode, rcode};

/// How long a UDP answer we take: what passes any network unfragmented.
const UDP_BYTES: u16 = 1_232;

/// A question under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Identifier that the response has to repeat.
    pub id: u16,
    /// The name as it is sent, its case included.
    pub name: Name,
    /// The type.
    pub kind: u16,
    /// The class.
    pub class: u16,
}

/// Why a packet does not answer a request. It is to be passed over, and the wait goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// It cannot be read.
    Malformed(Malformed),
    /// It is no response, or one to another operation or id.
    Header,
    /// It answers another question.
    Question,
    /// It spells the name in other cases: the server does not keep them, or somebody guesses.
    Case,
}

impl Request {
    /// A question to send.
    pub const fn new(id: u16, name: Name, kind: u16, class: u16) -> Request {
        Request { id, name, kind, class }
    }

    /// The same with letters in upper case where `seed` has a bit.
    #[must_use]
    pub fn with_mixed_case(mut self, seed: u64) -> Request {
        let mut bits = seed;
        let mut wire = self.name.as_wire().to_vec();
        let mut at = 0;
        while let Some(&len) = wire.get(at).filter(|&&len| len > 0) {
            let end = at + 1 + usize::from(len);
            for byte in wire.get_mut(at + 1..end).unwrap_or_default() {
                if byte.is_ascii_alphabetic() {
                    if bits & 1 == 1 {
                        byte.make_ascii_uppercase();
                    }
                    bits = bits.rotate_right(1);
                }
            }
            at = end;
        }
        if let Ok(name) = Name::from_wire(&wire) {
            self.name = name;
        }
        self
    }

    /// The packet to send: recursion desired, EDNS with 1,232 bytes.
    pub fn packet(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.begin(&mut out).record(Section::Additional, Owner::Name(&[0]), kind::OPT, UDP_BYTES, 0, |_| true);
        out
    }

    /// The same without EDNS, for a server that refuses it (RFC 6891 section 7).
    pub fn plain_packet(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.begin(&mut out);
        out
    }

    fn begin<'a>(&self, out: &'a mut Vec<u8>) -> Writer<'a> {
        let mut writer = Writer::new(out, 512, self.id, flag::RD);
        writer.question(self.name.as_wire(), self.kind, self.class);
        writer
    }

    /// Whether a packet says that the server cannot read the request: often without the question.
    pub fn is_unreadable(&self, packet: &[u8]) -> bool {
        let Some(&[high, low, flags, code, ..]) = packet.first_chunk::<12>() else { return false };
        let is_response = u16::from(flags) << 8 & flag::QR != 0;
        [high, low] == self.id.to_be_bytes() && is_response && u16::from(code & 15) == rcode::FORMERR
    }

    /// Reads a packet that may be the response.
    ///
    /// # Errors
    /// Why it is none; the wait goes on.
    pub fn read(&self, packet: &[u8]) -> Result<Message, Mismatch> {
        let message = Message::parse(packet).map_err(Mismatch::Malformed)?;
        let operation = (message.flags >> 11) & 15;
        if message.flags & flag::QR == 0 || operation != u16::from(opcode::QUERY) || message.id != self.id {
            return Err(Mismatch::Header);
        }
        match &message.questions[..] {
            [(name, kind, class)]
                if name.as_wire() == self.name.as_wire() && *kind == self.kind && *class == self.class =>
            {
                Ok(message)
            }
            [(name, kind, class)]
                if name.as_wire().eq_ignore_ascii_case(self.name.as_wire())
                    && *kind == self.kind
                    && *class == self.class =>
            {
                Err(Mismatch::Case)
            }
            _ => Err(Mismatch::Question),
        }
    }
}
