//! Questions of an inspection to the DNS, and their answers: the door's host looks them up.
//!
//! Questions have numbers and are asked many at once; answers come in any order, each once. Whoever asks keeps the bounds:
//! how many questions one mail is worth. Whoever answers keeps the time: what is not there when it is up is
//! [`Outcome::Unavailable`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// A question, under a number that its answer repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Unique among those who ask together.
    pub id: u32,
    /// The question.
    pub question: Question,
    /// The list whose zone is asked; empty where it is none. Whoever looks things up may leave a list alone that answers nobody.
    pub list: Box<str>,
}

/// A question to the DNS.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Question {
    /// A domain name: labels joined by dots, without the last one, ASCII letters in lower case. Nothing is escaped, so no
    /// label holds a dot. Each label has 1 to 63 bytes, the name at most 253.
    pub name: Box<str>,
    /// The type of the records.
    pub kind: RecordKind,
}

/// Types of records that inspections ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RecordKind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Mail exchangers.
    Mx,
    /// Name servers.
    Ns,
    /// The names of an address.
    Ptr,
    /// Text.
    Txt,
    /// Servers of a service (RFC 2782).
    Srv,
    /// Certificates of a server (RFC 6698).
    Tlsa,
}

impl RecordKind {
    /// As zone files and logs name it.
    pub const fn name(self) -> &'static str {
        match self {
            RecordKind::A => "A",
            RecordKind::Aaaa => "AAAA",
            RecordKind::Mx => "MX",
            RecordKind::Ns => "NS",
            RecordKind::Ptr => "PTR",
            RecordKind::Txt => "TXT",
            RecordKind::Srv => "SRV",
            RecordKind::Tlsa => "TLSA",
        }
    }
}

/// The answer to an [`Ask`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the question.
    pub id: u32,
    /// The outcome.
    pub outcome: Outcome,
    /// DNSSEC status of the answer.
    pub security: Security,
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Records, in the order of the answer; aliases have been followed.
    Records(Vec<Record>),
    /// The name exists and has none of the kind.
    NoData,
    /// The name does not exist, nor anything below it (RFC 8020).
    NoName,
    /// Nobody could say in time, or what was said cannot be believed.
    Unavailable,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// The name of a mail exchanger and its preference.
    Mx(u16, Box<str>),
    /// The name of a name server.
    Ns(Box<str>),
    /// A name of an address.
    Ptr(Box<str>),
    /// The strings of a text record, joined.
    Txt(Box<[u8]>),
    /// The port and the name of a server.
    Srv(u16, Box<str>),
    /// Usage, selector, matching type, and what is matched, as in the packet.
    Tlsa(Box<[u8]>),
}

/// The DNSSEC status of an answer. A bogus answer is none: [`Outcome::Unavailable`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Security {
    /// Not looked up.
    #[default]
    Unknown,
    /// The zone is not signed.
    Insecure,
    /// It was validated, here or by a resolver that is trusted.
    Secure,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;

    #[test]
    fn questions_and_answers_have_a_byte_form() {
        let ask = Ask {
            id: 7,
            question: Question { name: "a.example".into(), kind: RecordKind::Mx },
            list: "example".into(),
        };
        assert_eq!(wire::read::<Ask>(&wire::write(&ask, Vec::new())), Ok(ask));
        let records = [
            Record::A([192, 0, 2, 1].into()),
            Record::Aaaa(Ipv6Addr::LOCALHOST),
            Record::Mx(10, "mx.example".into()),
            Record::Ns("ns.example".into()),
            Record::Ptr("a.example".into()),
            Record::Txt(b"v=spf1 \xff".as_slice().into()),
        ];
        let outcomes = [Outcome::Records(records.into()), Outcome::NoData, Outcome::NoName, Outcome::Unavailable];
        for (outcome, security) in outcomes.into_iter().zip([Security::Secure, Security::Insecure, Security::Unknown]) {
            let answer = Answer { id: 7, outcome, security };
            assert_eq!(wire::read::<Answer>(&wire::write(&answer, Vec::new())), Ok(answer));
        }
    }
}
