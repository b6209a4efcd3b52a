//! The mail servers of the world (RFC 5321, section 5; RFC 7505): which hosts a domain has, and at which addresses they are tried.
//!
//! Hosts are tried in the order of their preference, those of one preference in an order that differs from mail to mail, and the
//! addresses of a host with those of IPv6 first. One that cannot be reached costs a few seconds; each host that does not take a mail
//! is followed by the next at once. We are never asked: of hosts that are as good as we are, or worse, none is, and no address of this
//! machine unless it is named.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use edge::message::asking::Resolver;
use edge::settings::{Forward, Network, Scheme, Target, Tls, is_local};
use edge::upstream::route::Route;
use edge::upstream::smtp_hop::Leases;
use flow::{Ask, Outcome, Question, Record, RecordKind};
use mailbox::{Fate, Health, Outgoing, Report};
use proto::smtp::Protocol;
use tokio::sync::mpsc::unbounded_channel;

use super::session::{Host, Sent};
use crate::config::QueueSettings;

/// Hosts of a domain that are tried.
const HOSTS_MAX: usize = 20;

/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 8;

/// Sessions of one attempt in which a host was asked for something: those that cannot be reached do not count.
const SESSIONS_MAX: usize = 5;

/// How long further hosts are tried.
const HOSTS_WAIT: Duration = Duration::from_secs(600);

/// The world.
pub struct World {
    resolver: Arc<dyn Resolver>,
    hostname: String,
    port: u16,
    /// Networks of this machine and this link that are reached.
    destinations: Vec<Network>,
    route: Route,
}

/// Why a domain has no hosts.
struct NoHosts(Fate, Health);

impl World {
    /// Hosts are found by this resolver.
    ///
    /// # Errors
    /// When there is no TLS to be had.
    pub fn new(resolver: Arc<dyn Resolver>, hostname: &str, settings: &QueueSettings) -> Result<World, String> {
        let target = Target::new(Forward::Original);
        let route = Route::new(&target, &Tls::default())?;
        let (hostname, destinations) = (hostname.to_ascii_lowercase(), settings.destinations.clone());
        Ok(World { resolver, hostname, port: settings.port, destinations, route })
    }

    /// Sends a mail to the hosts of its destination.
    pub async fn send(&self, mail: &Outgoing, hostname: &str, leases: &Leases) -> Report {
        let hosts = match self.hosts(&mail.destination).await {
            Ok(hosts) => hosts,
            Err(NoHosts(fate, health)) => return Report::all(mail.recipients.len(), &fate, health),
        };
        let (mut sent, began) = (Sent::new(mail.recipients.len()), Instant::now());
        let mut nowhere = Some(Fate::never((5, 4, 4), "none of its hosts has an address"));
        for host in hosts.into_iter().take(HOSTS_MAX) {
            let addresses = self.addresses(&host).await.unwrap_or_else(|()| {
                let why = format!("the address of {host} cannot be looked up now");
                sent.wait_for(&Fate::later((4, 4, 3), why));
                nowhere = None;
                Vec::new()
            });
            for address in addresses.into_iter().take(ADDRESSES_MAX) {
                if !self.leads_to(address) {
                    nowhere = nowhere.map(|_| Fate::never((5, 4, 6), format!("{host} is this machine: {address}")));
                    continue;
                }
                nowhere = None;
                if sent.is_over() || sent.sessions >= SESSIONS_MAX || began.elapsed() > HOSTS_WAIT {
                    return sent.report();
                }
                let address = SocketAddr::new(address, self.port).to_string();
                let forward = Forward::Server { scheme: Scheme::Smtp, address: address.clone() };
                let route = self.route.towards(&forward, None).for_name(&host);
                let host = Host { name: host.clone(), address, protocol: Protocol::Smtp };
                sent.try_host(&host, &route, mail, hostname, leases).await;
            }
        }
        match nowhere {
            Some(fate) => Report::all(mail.recipients.len(), &fate, Health::Unknown),
            None => sent.report(),
        }
    }

    /// Whether an address is another machine's, or named.
    fn leads_to(&self, address: IpAddr) -> bool {
        let is_far = !is_local(address.to_canonical()) && !is_own(address);
        is_far || self.destinations.iter().any(|network| network.holds(address))
    }

    /// The hosts of a domain, the best first.
    async fn hosts(&self, domain: &str) -> Result<Vec<String>, NoHosts> {
        if domain.starts_with('[') {
            return Ok(vec![domain.to_owned()]);
        }
        let never = |status, why: &str| NoHosts(Fate::never(status, format!("{domain} {why}")), Health::Unknown);
        let records = match self.look_up(domain, RecordKind::Mx).await {
            Outcome::Records(records) => records,
            Outcome::NoName => return Err(never((5, 1, 2), "does not exist")),
            // Without an exchanger the domain is its own (RFC 5321, section 5.1).
            Outcome::NoData => vec![Record::Mx(0, domain.into())],
            Outcome::Unavailable => {
                let fate = Fate::later((4, 4, 3), format!("the hosts of {domain} cannot be looked up now"));
                return Err(NoHosts(fate, Health::Ill));
            }
        };
        let mx = |record: Record| match record {
            Record::Mx(preference, name) => Some((preference, name.trim_end_matches('.').to_ascii_lowercase())),
            _ => None,
        };
        let mut hosts: Vec<(u16, String)> = records.into_iter().filter_map(mx).collect();
        if hosts.iter().all(|(_, name)| name.is_empty()) {
            return Err(never((5, 1, 10), "takes no mail (null MX)"));
        }
        hosts.retain(|(_, name)| !name.is_empty());
        let ours = hosts.iter().filter(|(_, name)| *name == self.hostname).map(|(preference, _)| *preference).min();
        hosts.retain(|(preference, _)| ours.is_none_or(|ours| *preference < ours));
        if hosts.is_empty() {
            return Err(never((5, 4, 6), "is to be delivered here, and nobody has it here"));
        }
        Ok(in_order(hosts))
    }

    /// The addresses of a host, those of IPv6 first; an error if it cannot be looked up now.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ()> {
        // An exchanger that is spelt as an address is none (RFC 5321, section 5.1), and mail gets there.
        let literal = host.trim_matches(['[', ']']);
        let literal =
            literal.get(..5).filter(|tag| tag.eq_ignore_ascii_case("ipv6:")).map_or(literal, |_| &literal[5..]);
        if let Ok(address) = literal.parse::<IpAddr>() {
            return Ok(vec![address]);
        }
        let (six, four) = tokio::join!(self.look_up(host, RecordKind::Aaaa), self.look_up(host, RecordKind::A));
        let is_away = [&six, &four].into_iter().any(|outcome| *outcome == Outcome::Unavailable);
        let mut found = Vec::new();
        for record in [six, four].into_iter().filter_map(|outcome| match outcome {
            Outcome::Records(records) => Some(records),
            _ => None,
        }) {
            found.extend(record.iter().filter_map(|record| match record {
                Record::Aaaa(address) => Some(IpAddr::from(*address)),
                Record::A(address) => Some(IpAddr::from(*address)),
                _ => None,
            }));
        }
        if found.is_empty() && is_away { Err(()) } else { Ok(found) }
    }

    async fn look_up(&self, name: &str, kind: RecordKind) -> Outcome {
        let (tell, mut told) = unbounded_channel();
        let question = Question { name: name.to_ascii_lowercase().into(), kind };
        self.resolver.look_up(Ask { id: 0, question, list: Box::default() }, &tell);
        drop(tell);
        told.recv().await.map_or(Outcome::Unavailable, |answer| answer.outcome)
    }
}

/// Whether an address is one of this machine's: sockets can be bound to those alone.
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// By preference; those of one in an order that differs from call to call.
fn in_order(mut hosts: Vec<(u16, String)>) -> Vec<String> {
    let random = RandomState::new();
    hosts.sort_by_cached_key(|(preference, name)| (*preference, random.hash_one(name)));
    let mut seen = BTreeSet::new();
    hosts.into_iter().map(|(_, name)| name).filter(|name| seen.insert(name.clone())).collect()
}
