//! Records that count only where they were validated: those that say which certificates a server has (RFC 6698).
//!
//! Whether an answer was validated is believed of a resolver on this machine alone ([`lookup`](super::lookup)).

use std::net::SocketAddr;
use std::time::Duration;

use edge::settings::Tlsa;
use flow::Security;
use proto::dns::{Data, Message, Name, kind, rcode};
use tokio::time::timeout;

use super::lookup::first;

/// Aliases that are followed.
const ALIASES_MAX: usize = 8;

/// Records of one name that are looked at: as many as an answer of 64 KiB has, since one that is left out may be the one that counts.
const RECORDS_MAX: usize = 2_000;

/// Resolvers, and how long one question may take.
#[derive(Debug, Clone)]
pub struct Signed {
    servers: Vec<SocketAddr>,
    wait: Duration,
}

/// Nobody can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable;

impl Signed {
    /// A resolver of these servers.
    pub fn new(servers: Vec<SocketAddr>, wait: Duration) -> Signed {
        Signed { servers, wait }
    }

    /// Whether the resolvers validate, by the name servers of the root.
    ///
    /// # Errors
    /// When none answers.
    pub async fn validates(&self) -> Result<bool, Unavailable> {
        let is_there = |message: &Message, _: &Name| (message.rcode() == rcode::NOERROR).then_some(());
        let root = Name::from_labels(std::iter::empty::<&[u8]>()).map_err(|_| Unavailable)?;
        self.ask(&root, kind::NS, is_there).await.map(|((), is_validated)| is_validated)
    }

    /// The records of a host at a port, and the name that they are of: that which the host is an alias of goes first (RFC 7672, section
    /// 2.2.2). Without any that was validated there are none.
    ///
    /// # Errors
    /// When nobody can say: whoever answers for a host may leave its records out.
    pub async fn tlsa(&self, host: &str, port: u16) -> Result<(Vec<Tlsa>, String), Unavailable> {
        let canonical = self.canonical(host).await?;
        if canonical != host {
            let records = self.records(&canonical, port).await?;
            if !records.is_empty() {
                return Ok((records, canonical));
            }
        }
        Ok((self.records(host, port).await?, host.to_owned()))
    }

    async fn records(&self, host: &str, port: u16) -> Result<Vec<Tlsa>, Unavailable> {
        let Some(name) = name(&format!("_{port}._tcp.{host}")) else { return Ok(Vec::new()) };
        let (records, is_validated) = self.ask(&name, kind::TLSA, read).await?;
        Ok(if is_validated { records } else { Vec::new() })
    }

    /// The name that a host is an alias of, as far as that was validated; its own if it is none.
    async fn canonical(&self, host: &str) -> Result<String, Unavailable> {
        let mut found = host.to_owned();
        for _ in 0..ALIASES_MAX {
            let Some(name) = name(&found) else { break };
            let (target, is_validated) = self.ask(&name, kind::CNAME, alias).await?;
            let Some(target) = target.filter(|_| is_validated) else { break };
            found = target;
        }
        Ok(found)
    }

    async fn ask<T>(
        &self,
        name: &Name,
        kind: u16,
        read: impl Fn(&Message, &Name) -> Option<T>,
    ) -> Result<(T, bool), Unavailable> {
        let found = timeout(self.wait, first(name, kind, &self.servers, read)).await.ok().flatten();
        found.map(|(found, security)| (found, security == Security::Secure)).ok_or(Unavailable)
    }
}

fn name(text: &str) -> Option<Name> {
    Name::from_labels(text.split('.').map(str::as_bytes)).ok()
}

/// The records of an answer; none where it says nothing.
fn read(message: &Message, name: &Name) -> Option<Vec<Tlsa>> {
    if !matches!(message.rcode(), rcode::NOERROR | rcode::NXDOMAIN) {
        return None;
    }
    let records = message.answers_of(name).filter(|record| record.kind == kind::TLSA).take(RECORDS_MAX);
    let read = |data: &Data| if let Data::Other(bytes) = data { Some(Tlsa::read(bytes)) } else { None };
    Some(records.filter_map(|record| read(&record.data)).collect())
}

/// The name that a name is an alias of.
fn alias(message: &Message, name: &Name) -> Option<Option<String>> {
    if !matches!(message.rcode(), rcode::NOERROR | rcode::NXDOMAIN) {
        return None;
    }
    let target = message.answers.iter().find_map(|record| match &record.data {
        Data::Cname(target) if record.name == *name => Some(target),
        _ => None,
    });
    let shown = |target: &Name| {
        let labels: Option<Vec<&str>> = target.labels().map(|label| std::str::from_utf8(label).ok()).collect();
        labels.map(|labels| labels.join(".").to_ascii_lowercase())
    };
    Some(target.and_then(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_set_of_records_is_read_whole() {
        let answer = |byte: u8| {
            let owner: &[u8] = b"\x03_25\x04_tcp\x02mx\x04test\0";
            [owner, &[0, 52, 0, 1, 0, 0, 0, 60, 0, 35, 3, 1, 1], &[byte; 32]].concat()
        };
        let answers: Vec<u8> = (0..61).flat_map(answer).collect();
        let bytes = [&[0, 1, 0x81, 0xa0, 0, 0, 0, 61, 0, 0, 0, 0][..], &answers].concat();
        let message = Message::parse(&bytes).unwrap();
        let found = read(&message, &name("_25._tcp.mx.test").unwrap()).unwrap();
        assert_eq!(found.len(), 61, "the last may be the one that counts");
    }
}
