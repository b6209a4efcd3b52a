//! Questions of a check, asked of resolvers: UDP, and TCP where an answer does not fit.
//!
//! Each packet has a port and an id of its own, and the name's letters in mixed case, which have to come back. Resolvers are
//! asked in turn, each twice. Whether an answer was validated is believed of a resolver on this machine alone.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ::auth::Check;
use ::dnsbl::client::Transmit;
use flow::{Answer, Ask, Outcome, Record, RecordKind, Security};
use proto::dns::{self, Data, Message, Name, Request, class, flag, kind, rcode};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::dnsbl::ask::exchange;

/// How long one packet's answer is waited for.
const ANSWER_WAIT: Duration = Duration::from_secs(3);

/// How often each resolver is asked.
const ROUNDS: usize = 2;

/// Packets under way.
const EXCHANGES_MAX: usize = 32;

/// Answers all that a check asks, as far as it can be until time is up.
///
/// # Errors
/// When the operating system has no event loop for us.
pub fn answer(check: &mut Check, resolvers: &[SocketAddr], wait: Duration) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let deadline = Instant::now() + wait;
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < EXCHANGES_MAX {
                let Some(ask) = check.ask() else { break };
                under_way.spawn(look_up(ask, resolvers.to_vec()));
            }
            match timeout_at(deadline, under_way.join_next()).await {
                Ok(Some(Ok(answer))) => check.answer(answer),
                Ok(Some(Err(_))) => {}
                Ok(None) => break,
                Err(_) => {
                    check.give_up();
                    break;
                }
            }
        }
        Ok(())
    })
}

async fn look_up(ask: Ask, resolvers: Vec<SocketAddr>) -> Answer {
    let Some(request) = request(&ask) else {
        return Answer { id: ask.id, outcome: Outcome::NoName, security: Security::Unknown };
    };
    for resolver in resolvers.iter().cycle().take(resolvers.len() * ROUNDS) {
        let Some(message) = exchanged(*resolver, &request).await else { continue };
        let Some(outcome) = outcome(&message, &request.name, ask.question.kind) else { continue };
        let is_believed = resolver.ip().is_loopback() && message.flags & flag::AD != 0;
        let security = if is_believed { Security::Secure } else { Security::Unknown };
        return Answer { id: ask.id, outcome, security };
    }
    Answer { id: ask.id, outcome: Outcome::Unavailable, security: Security::Unknown }
}

fn request(ask: &Ask) -> Option<Request> {
    let name = Name::from_labels(ask.question.name.split('.').map(str::as_bytes)).ok()?;
    let random = RandomState::new().hash_one((&ask.question.name, ask.id));
    let id = (random >> 48) as u16;
    Some(Request::new(id, name, wire_kind(ask.question.kind), class::IN).with_mixed_case(random))
}

const fn wire_kind(kind: RecordKind) -> u16 {
    match kind {
        RecordKind::A => kind::A,
        RecordKind::Aaaa => kind::AAAA,
        RecordKind::Mx => kind::MX,
        RecordKind::Ptr => kind::PTR,
        RecordKind::Txt => kind::TXT,
    }
}

async fn exchanged(resolver: SocketAddr, request: &Request) -> Option<Message> {
    let mut packet = request.packet();
    // The second word: we want to know whether it was validated.
    *packet.get_mut(3)? |= flag::AD as u8;
    for tcp in [false, true] {
        let transmit = Transmit { resolver: 0, tcp, packet: packet.clone() };
        let answer = timeout(ANSWER_WAIT, exchange(resolver, &transmit)).await.ok()?.ok()?;
        // A UDP packet that is cut may end within a record.
        let is_cut = answer.get(2).is_some_and(|&flags| u16::from(flags) << 8 & flag::TC != 0);
        if !is_cut || tcp {
            return request.read(&answer).ok();
        }
    }
    None
}

/// What a message says; none where its server could not say.
fn outcome(message: &Message, name: &Name, wanted: RecordKind) -> Option<Outcome> {
    let is_missing = match message.rcode() {
        rcode::NOERROR => false,
        rcode::NXDOMAIN => true,
        _ => return None,
    };
    let of_kind = message.answers_of(name).filter(|record| record.kind == wire_kind(wanted));
    let records: Vec<Record> = of_kind.filter_map(read).collect();
    Some(match (records.is_empty(), is_missing) {
        (false, _) => Outcome::Records(records),
        (true, true) => Outcome::NoName,
        (true, false) => Outcome::NoData,
    })
}

fn read(record: &dns::Record) -> Option<Record> {
    Some(match &record.data {
        Data::A(address) => Record::A(*address),
        Data::Aaaa(address) => Record::Aaaa(*address),
        Data::Mx(preference, host) => Record::Mx(*preference, plain(host)?),
        Data::Ptr(name) => Record::Ptr(plain(name)?),
        Data::Txt(_) => Record::Txt(record.text()?.into()),
        _ => return None,
    })
}

/// A name as questions have it; none that cannot be one, such as the root, which is the exchanger of those who take no mail.
fn plain(name: &Name) -> Option<Box<str>> {
    let labels: Option<Vec<&str>> = name.labels().map(|label| core::str::from_utf8(label).ok()).collect();
    let labels = labels.filter(|labels| labels.iter().all(|label| !label.contains('.')))?;
    Some(labels.join(".").to_ascii_lowercase().into())
}
