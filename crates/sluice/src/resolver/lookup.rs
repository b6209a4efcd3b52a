//! One question, asked of resolvers: by UDP, and by TCP where an answer does not fit or cannot be told from forged ones.
//!
//! Each packet leaves from a port of its own, with an id and a mixture of cases of its own, which have to come back; whatever
//! else arrives is passed over. Servers are asked in turn: twice by UDP, then by TCP. One that says that it cannot answer is
//! not asked again. Whether an answer was validated is believed of a resolver on this machine alone.
//!
//! Bounds: the time of the question; of TCP, one message. Aliases are followed within a message, eight at the most; those that
//! run in a circle make it unavailable.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use flow::{Outcome, Question, Record, RecordKind, Security};
use proto::dns::{self, Data, Message, Mismatch, Name, Request, class, flag, kind, rcode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// How long one packet's answer is waited for.
const PACKET_WAIT: Duration = Duration::from_millis(1_500);

/// How each server is asked.
const ROUNDS: [Way; 3] = [Way::Udp, Way::Udp, Way::Tcp];

/// The longest answer by UDP that is read.
const UDP_BYTES_MAX: usize = 4_096;

/// Packets that answer nothing before it is asked by TCP, whose answers nobody else can send.
const STRAYS_MAX: usize = 16;

/// How long it is believed that there is nothing, where nobody says how long, in seconds.
const NOTHING_SECONDS: u32 = 60;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Udp,
    Tcp,
}

/// Answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Outcome of the lookup.
    pub outcome: Outcome,
    /// DNSSEC status.
    pub security: Security,
    /// How long it may be kept, in seconds.
    pub seconds: u32,
}

impl Found {
    /// Nobody could say, or what was said cannot be believed.
    pub fn unavailable() -> Found {
        Found { outcome: Outcome::Unavailable, security: Security::Unknown, seconds: 0 }
    }
}

/// Looks something up, for so long.
pub async fn look_up(question: &Question, servers: &[SocketAddr], wait: Duration) -> Found {
    timeout(wait, asked(question, servers)).await.unwrap_or_else(|_| Found::unavailable())
}

async fn asked(question: &Question, servers: &[SocketAddr]) -> Found {
    let Ok(name) = Name::from_labels(question.name.split('.').map(str::as_bytes)) else {
        // There is no such name that could be asked for.
        return Found { outcome: Outcome::NoName, ..Found::unavailable() };
    };
    let read = |message: &Message, name: &Name| found(message, name, question.kind);
    match first(&name, wire_kind(question.kind), servers, read).await {
        Some((found, Security::Secure)) => Found { security: Security::Secure, ..found },
        Some((found, _)) => found,
        None => Found::unavailable(),
    }
}

/// The first answer that `read` can make something of, and whether it was validated; none if nobody can say.
pub(super) async fn first<T>(
    name: &Name,
    wanted: u16,
    servers: &[SocketAddr],
    read: impl Fn(&Message, &Name) -> Option<T>,
) -> Option<(T, Security)> {
    let mut unable = vec![false; servers.len()];
    for way in ROUNDS {
        for (&server, unable) in servers.iter().zip(&mut unable).filter(|(_, unable)| !**unable) {
            let request = request(name.clone(), wanted, way);
            let Ok(Ok(message)) = timeout(PACKET_WAIT, exchanged(server, &request, way)).await else { continue };
            let is_validated = server.ip().is_loopback() && message.flags & flag::AD != 0;
            match read(&message, &request.name) {
                Some(found) => return Some((found, if is_validated { Security::Secure } else { Security::Unknown })),
                None => *unable = true,
            }
        }
    }
    None
}

/// By TCP nobody else can answer, and a server that does not keep the cases can be understood.
fn request(name: Name, wanted: u16, way: Way) -> Request {
    let random = RandomState::new().hash_one(name.as_wire());
    let request = Request::new((random >> 48) as u16, name, wanted, class::IN);
    if way == Way::Udp { request.with_mixed_case(random) } else { request }
}

const fn wire_kind(kind: RecordKind) -> u16 {
    match kind {
        RecordKind::A => kind::A,
        RecordKind::Aaaa => kind::AAAA,
        RecordKind::Mx => kind::MX,
        RecordKind::Ns => kind::NS,
        RecordKind::Ptr => kind::PTR,
        RecordKind::Txt => kind::TXT,
        RecordKind::Srv => kind::SRV,
        RecordKind::Tlsa => kind::TLSA,
    }
}

/// Sends a request and waits for what answers it.
async fn exchanged(server: SocketAddr, request: &Request, way: Way) -> io::Result<Message> {
    let mut packet = request.packet();
    // The second word: we want to know whether it was validated.
    if let Some(flags) = packet.get_mut(3) {
        *flags |= flag::AD as u8;
    }
    if way == Way::Udp
        && let Some(message) = by_udp(server, request, &packet).await?
    {
        return Ok(message);
    }
    by_tcp(server, request, &packet).await
}

/// The answer; none where it does not fit, or too much comes that answers nothing.
async fn by_udp(server: SocketAddr, request: &Request, packet: &[u8]) -> io::Result<Option<Message>> {
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(packet).await?;
    let mut bytes = vec![0; UDP_BYTES_MAX];
    // A server may refuse EDNS (RFC 6891 section 7).
    let mut is_plain = false;
    for _ in 0..STRAYS_MAX {
        let len = socket.recv(&mut bytes).await?;
        let answer = bytes.get(..len).unwrap_or_default();
        if answer.get(..2) != packet.get(..2) {
            continue;
        }
        if !is_plain && request.is_unreadable(answer) {
            is_plain = true;
            socket.send(&request.plain_packet()).await?;
            continue;
        }
        // A packet that is cut may end within a record.
        if answer.get(2).is_some_and(|&flags| u16::from(flags) << 8 & flag::TC != 0) {
            return Ok(None);
        }
        match request.read(answer) {
            Ok(message) => return Ok(Some(message)),
            // A server that does not keep the cases is not waited for: the last round is by TCP.
            Err(Mismatch::Case) => return Err(io::ErrorKind::InvalidData.into()),
            Err(_) => {}
        }
    }
    Ok(None)
}

async fn by_tcp(server: SocketAddr, request: &Request, packet: &[u8]) -> io::Result<Message> {
    let mut stream = TcpStream::connect(server).await?;
    let mut answer = answer_by_tcp(&mut stream, packet).await?;
    if request.is_unreadable(&answer) {
        answer = answer_by_tcp(&mut stream, &request.plain_packet()).await?;
    }
    request.read(&answer).map_err(|_| io::ErrorKind::InvalidData.into())
}

async fn answer_by_tcp(stream: &mut TcpStream, packet: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(&dns::frame(packet).ok_or(io::ErrorKind::InvalidInput)?).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// Reads an answer; none if the server failed or the message is inconsistent.
fn found(message: &Message, name: &Name, wanted: RecordKind) -> Option<Found> {
    let is_missing = match message.rcode() {
        rcode::NOERROR => false,
        rcode::NXDOMAIN => true,
        _ => return None,
    };
    let of_name: Vec<&dns::Record> = message.answers_of(name).collect();
    let records: Vec<Record> =
        of_name.iter().filter(|record| record.kind == wire_kind(wanted)).filter_map(|record| read(record)).collect();
    let is_circle = of_name.iter().any(|record| record.kind == kind::CNAME);
    if records.is_empty() && is_circle {
        return None;
    }
    let (outcome, seconds) = match (records.is_empty(), is_missing) {
        (false, _) => (Outcome::Records(records), message.answers.iter().map(|record| record.ttl).min()),
        (true, true) => (Outcome::NoName, nothing_seconds(message)),
        (true, false) => (Outcome::NoData, nothing_seconds(message)),
    };
    Some(Found { outcome, security: Security::Unknown, seconds: seconds.unwrap_or(NOTHING_SECONDS) })
}

/// How long it may be kept that there is nothing (RFC 2308 section 5).
fn nothing_seconds(message: &Message) -> Option<u32> {
    message.authorities.iter().find_map(|record| match &record.data {
        Data::Soa(soa) => Some(record.ttl.min(soa.minimum)),
        _ => None,
    })
}

fn read(record: &dns::Record) -> Option<Record> {
    Some(match &record.data {
        Data::A(address) => Record::A(*address),
        Data::Aaaa(address) => Record::Aaaa(*address),
        Data::Mx(preference, host) => Record::Mx(*preference, plain(host)?),
        Data::Ns(name) => Record::Ns(plain(name)?),
        Data::Ptr(name) => Record::Ptr(plain(name)?),
        Data::Txt(_) => Record::Txt(record.text()?.into()),
        // Priority, weight, port, and a name that is not compressed (RFC 2782).
        Data::Other(raw) if record.kind == kind::SRV => {
            let port = raw.get(4..6).and_then(|port| port.try_into().ok()).map(u16::from_be_bytes)?;
            Record::Srv(port, plain(&Name::read(raw, 6).ok()?.0)?)
        }
        Data::Other(raw) if record.kind == kind::TLSA => Record::Tlsa(raw.as_slice().into()),
        _ => return None,
    })
}

/// A name as questions have it; none that cannot be one, such as the root, which is the exchanger of those who take no mail.
fn plain(name: &Name) -> Option<Box<str>> {
    let labels: Option<Vec<&str>> = name.labels().map(|label| core::str::from_utf8(label).ok()).collect();
    let labels = labels.filter(|labels| labels.iter().all(|label| !label.contains('.')))?;
    Some(labels.join(".").to_ascii_lowercase().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers EDNS by FORMERR: the header alone, or with the question.
    async fn without_edns(has_question: bool) -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut bytes = [0; 512];
            while let Ok((len, client)) = socket.recv_from(&mut bytes).await {
                let has_edns = bytes[11] != 0;
                let mut reply = bytes[..len].to_vec();
                reply[2] |= 0x80;
                if has_edns {
                    reply[3] = 1;
                    reply.truncate(if has_question { len - 11 } else { 12 });
                    reply[5] = u8::from(has_question);
                    reply[11] = 0;
                } else {
                    reply[7] = 1;
                    reply.extend(b"\xc0\x0c\0\x10\0\x01\0\0\0\x3c\0\x02\x01x");
                }
                let _ = socket.send_to(&reply, client).await;
            }
        });
        address
    }

    #[tokio::test]
    async fn a_server_that_refuses_edns_is_asked_without_it() {
        for has_question in [false, true] {
            let server = without_edns(has_question).await;
            let question = Question { name: "a.test".into(), kind: RecordKind::Txt };
            let found = look_up(&question, &[server], Duration::from_secs(1)).await;
            assert_eq!(found.outcome, Outcome::Records(vec![Record::Txt((*b"x").into())]), "{has_question}");
        }
    }

    #[tokio::test]
    async fn a_server_that_does_not_keep_cases_is_asked_by_tcp_at_once() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let by_tcp = tokio::net::TcpListener::bind(address).await.unwrap();
        let answer = |packet: &[u8]| {
            let mut reply = packet[..packet.len() - 11].to_ascii_lowercase();
            (reply[0], reply[1], reply[2], reply[7], reply[11]) = (packet[0], packet[1], packet[2] | 0x80, 1, 0);
            reply.extend(b"\xc0\x0c\0\x10\0\x01\0\0\0\x3c\0\x02\x01x");
            reply
        };
        tokio::spawn(async move {
            let mut bytes = [0; 512];
            while let Ok((len, client)) = socket.recv_from(&mut bytes).await {
                let _ = socket.send_to(&answer(&bytes[..len]), client).await;
            }
        });
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = by_tcp.accept().await {
                let mut packet = vec![0; usize::from(stream.read_u16().await.unwrap())];
                stream.read_exact(&mut packet).await.unwrap();
                stream.write_all(&dns::frame(&answer(&packet)).unwrap()).await.unwrap();
            }
        });
        let question = Question { name: "a-name-with-letters-enough.test".into(), kind: RecordKind::Txt };
        let found = look_up(&question, &[address], Duration::from_secs(1)).await;
        assert_eq!(found.outcome, Outcome::Records(vec![Record::Txt((*b"x").into())]));
    }
}
