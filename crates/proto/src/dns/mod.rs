//! DNS messages (RFC 1035, 2308, 6891, 7766): reading and writing, and the small halves that a block list's server and
//! its client need. No resolver and no zone: what a question means is decided elsewhere.
//!
//! [`Query`] is the server's half: it borrows from the packet and allocates nothing. [`Writer`] writes a message with
//! compressed names up to a limit. [`Message`] is any message, owned. [`Request`] is the client's half: a question that
//! was sent, and whether a packet answers it. [`Frames`] cuts a TCP stream into messages.
//!
//! Bounds: a name has 255 bytes and each pointer in it points before the name that it is part of, so names end; records
//! are read as many as there are bytes for; nothing is allocated by a count on the wire.

mod message;
mod name;
mod query;
mod request;
mod stream;
mod writer;

pub use message::{Data, Message, Record, Soa};
pub use name::{Name, NameError};
pub use query::{Edns, Query, Question, Unanswerable};
pub use request::{Mismatch, Request};
pub use stream::{Frames, frame};
pub use writer::{Owner, Section, Writer};

/// Bytes of a message's header.
pub const HEADER_BYTES: usize = 12;

/// Bytes of a UDP packet without EDNS (RFC 1035 section 4.2.1).
pub const UDP_BYTES: usize = 512;

/// Types of records, as on the wire.
pub mod kind {
    /// An IPv4 address.
    pub const A: u16 = 1;
    /// An authoritative name server.
    pub const NS: u16 = 2;
    /// The name that this one is an alias of.
    pub const CNAME: u16 = 5;
    /// Where a zone's authority starts.
    pub const SOA: u16 = 6;
    /// A name of an address.
    pub const PTR: u16 = 12;
    /// A mail exchanger.
    pub const MX: u16 = 15;
    /// Text.
    pub const TXT: u16 = 16;
    /// An IPv6 address.
    pub const AAAA: u16 = 28;
    /// A server of a service.
    pub const SRV: u16 = 33;
    /// Certificates of a server (RFC 6698).
    pub const TLSA: u16 = 52;
    /// The pseudo record of EDNS.
    pub const OPT: u16 = 41;
    /// Incremental zone transfer (RFC 1995).
    pub const IXFR: u16 = 251;
    /// Zone transfer (RFC 5936).
    pub const AXFR: u16 = 252;
    /// All records of a name.
    pub const ANY: u16 = 255;
}

/// Classes, as on the wire.
pub mod class {
    /// The Internet.
    pub const IN: u16 = 1;
    /// Chaos, where servers tell their version.
    pub const CHAOS: u16 = 3;
    /// Any class.
    pub const ANY: u16 = 255;
}

/// Response codes (RFC 1035, 6891).
pub mod rcode {
    /// No error.
    pub const NOERROR: u16 = 0;
    /// The question could not be understood.
    pub const FORMERR: u16 = 1;
    /// The server cannot answer now.
    pub const SERVFAIL: u16 = 2;
    /// The name does not exist.
    pub const NXDOMAIN: u16 = 3;
    /// The server does not implement this kind of query.
    pub const NOTIMP: u16 = 4;
    /// This question is not answered.
    pub const REFUSED: u16 = 5;
    /// An unknown version of EDNS.
    pub const BADVERS: u16 = 16;
}

/// Operation codes.
pub mod opcode {
    /// A question.
    pub const QUERY: u8 = 0;
    /// A zone has changed (RFC 1996).
    pub const NOTIFY: u8 = 4;
}

/// Bits of the header's second word.
pub mod flag {
    /// The message is a response.
    pub const QR: u16 = 0x8000;
    /// The server is an authority of the name.
    pub const AA: u16 = 0x0400;
    /// The message did not fit.
    pub const TC: u16 = 0x0200;
    /// Recursion is desired.
    pub const RD: u16 = 0x0100;
    /// Recursion is available.
    pub const RA: u16 = 0x0080;
    /// The answer has been validated, as the server says; in a query, that one wants to know (RFC 6840 section 5.7).
    pub const AD: u16 = 0x0020;
}

/// A packet that is no DNS message. The reply is FORMERR at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// It ends too soon.
    Short,
    /// An invalid label or pointer, or a name that is too long or circular.
    Name,
    /// Data that does not fit its type.
    Data,
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Malformed::Short => "message ends too soon",
            Malformed::Name => "malformed name",
            Malformed::Data => "malformed record data",
        })
    }
}

impl core::error::Error for Malformed {}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

/// Fuzz body: any packet. What is read is written and read again alike; queries agree with messages; frames end.
pub fn fuzz_message(data: &[u8]) {
    let mut frames = Frames::new(1_024);
    let mut rest = data;
    while !rest.is_empty() {
        let taken = frames.feed(rest);
        rest = &rest[taken..];
        while frames.next().is_some() {}
        if frames.has_overflowed() {
            break;
        }
    }
    let query = Query::parse(data);
    let Ok(message) = Message::parse(data) else {
        return;
    };
    if let (Ok(query), Some(question)) = (&query, message.questions.first()) {
        assert_eq!(query.question.name, question.0.as_wire());
    }
    let mut bytes = alloc::vec::Vec::new();
    if message.write(&mut bytes, 65_535) {
        let again = Message::parse(&bytes).expect("what was written is read");
        assert_eq!(again, message);
    }
    for (name, ..) in message.questions.iter().take(4) {
        assert!(message.answers_of(name).count() <= message.answers.len());
    }
    let request = Request::new(message.id, Name::root(), kind::A, class::IN);
    let _ = request.read(data);
}
