//! Names to ask for, and the meaning of answers.

use proto::dns::{Data, Message, Name, kind};

use super::ADDRESSES_MAX;
use super::cache::{Key, Known};

/// The name and type that a question has.
pub(super) fn question_of(key: Key, zone: &Name) -> Option<(Name, u16)> {
    let front = match key {
        Key::Capability => "_pbl".to_owned(),
        Key::Prefix4(prefix) => format!("{}.{}.{}.p4", prefix & 255, prefix >> 8 & 255, prefix >> 16 & 255),
        Key::Prefix6(prefix) => nibbles(u128::from(prefix), 12) + ".p6",
        Key::Address4(address) => {
            let [a, b, c, d] = address.to_be_bytes();
            format!("{d}.{c}.{b}.{a}")
        }
        Key::Address6(address) => nibbles(address, 32),
    };
    let kind = if matches!(key, Key::Address4(_) | Key::Address6(_)) { kind::A } else { kind::TXT };
    let labels = front.split('.').map(str::as_bytes).chain(zone.labels());
    Some((Name::from_labels(labels).ok()?, kind))
}

fn nibbles(value: u128, count: u32) -> String {
    (0..count).map(|at| format!("{:x}", value >> (4 * at) & 15)).collect::<Vec<_>>().join(".")
}

/// The addresses that answer the question.
pub(super) fn addresses(message: &Message) -> Vec<[u8; 4]> {
    let answers = message.questions.first().into_iter().flat_map(|(name, ..)| message.answers_of(name));
    let addresses = answers.filter_map(|record| match record.data {
        Data::A(address) => Some(address.octets()),
        _ => None,
    });
    addresses.take(ADDRESSES_MAX).collect()
}

/// The text that answers the question.
pub(super) fn text(message: &Message) -> Option<Vec<u8>> {
    let (name, ..) = message.questions.first()?;
    message.answers_of(name).find_map(proto::dns::Record::text)
}

/// Reads a capability record (the draft's section 3).
pub(super) fn capability(text: &[u8]) -> Known {
    let mut words = text.split(|&byte| byte == b' ');
    let is_ours = words.next() == Some(b"v=pbl1");
    let has = |word: &[u8]| is_ours && words.clone().any(|each| each == word);
    Known::Capability { ip4: has(b"p4=24"), ip6: has(b"p6=48") }
}

/// How long an answer may be kept, in seconds: its records' shortest time, or the zone's for negative answers.
pub(super) fn lifetime(message: &Message) -> u32 {
    let answers = message.answers.iter().map(|record| record.ttl).min();
    answers.unwrap_or_else(|| {
        let soa = message.authorities.iter().find_map(|record| match &record.data {
            Data::Soa(soa) => Some(record.ttl.min(soa.minimum)),
            _ => None,
        });
        // Without a word about it not for long, but long enough for one client.
        soa.unwrap_or(10)
    })
}
