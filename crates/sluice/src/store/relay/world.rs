//! The mail servers of the world (RFC 5321, section 5; RFC 7505): which hosts a domain has, and at which addresses they are tried.
//!
//! Hosts are tried in the order of their preference, those of one preference in an order that differs from mail to mail, and the
//! addresses of a host with those of IPv6 first. One that cannot be reached costs a few seconds; each host that does not take a mail
//! is followed by the next at once. We are never asked: of hosts that are as good as we are, or worse, none is, and no address of this
//! machine unless it is named.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use edge::message::asking::Resolver;
use edge::net::guarded::is_own;
use edge::settings::{Forward, Network, Scheme, Target, Tls, is_local};
use edge::upstream::route::Route;
use edge::upstream::smtp_hop::Leases;
use flow::{Ask, Outcome, Question, Record, RecordKind, Security};
use mailbox::{Fate, Health, NAMES_US, Outgoing, Report};
use proto::smtp::Protocol;
use tokio::sync::mpsc::unbounded_channel;

use super::session::{Host, Sent};
use super::sts::{self, Fault, Policy};
use super::ways::{Secured, Way};
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
    /// To a host in TLS if it has that, whoever it is.
    route: Route,
    secured: Secured,
}

/// The hosts of a domain.
struct Hosts {
    /// Their names, the best first.
    names: Vec<String>,
    /// Whether the records that name them were validated.
    are_validated: bool,
}

/// Why a domain has no hosts.
struct NoHosts(Fate, Health);

impl World {
    /// Hosts are found by this resolver, and are known as these ways say.
    ///
    /// # Errors
    /// When there is no TLS to be had.
    pub fn new(
        resolver: Arc<dyn Resolver>,
        hostname: &str,
        settings: &QueueSettings,
        secured: Secured,
    ) -> Result<World, String> {
        let target = Target::new(Forward::Original);
        let route = Route::new(&target, &Tls::default())?;
        let (hostname, destinations) = (hostname.to_ascii_lowercase(), settings.destinations.clone());
        Ok(World { resolver, hostname, port: settings.port, destinations, route, secured })
    }

    /// Sends a mail to the hosts of its destination.
    pub async fn send(&self, mail: &Outgoing, hostname: &str, leases: &Leases) -> Report {
        let hosts = match self.hosts(&mail.destination).await {
            Ok(hosts) => hosts,
            Err(NoHosts(fate, health)) => return Report::all(mail.recipients.len(), &fate, health),
        };
        let policy = if mail.needs_no_tls { None } else { self.policy(&mail.destination).await };
        let (mut sent, began) = (Sent::new(mail.recipients.len()), Instant::now());
        let mut nowhere = Some(Fate::never((5, 4, 4), "none of its hosts has an address"));
        for host in hosts.names.iter().take(HOSTS_MAX) {
            let (addresses, are_validated) = self.addresses(host).await.unwrap_or_else(|()| {
                let why = format!("the address of {host} cannot be looked up now");
                sent.wait_for(&Fate::later((4, 4, 3), why));
                nowhere = None;
                (Vec::new(), false)
            });
            if addresses.is_empty() {
                continue;
            }
            let names = (host.as_str(), mail.destination.as_str());
            let are_validated = hosts.are_validated && are_validated && !mail.needs_no_tls;
            let way = match self.secured.way(names, self.port, are_validated, policy.as_ref()).await {
                Ok(way) => way,
                Err(fate) => {
                    sent.wait_for(&fate);
                    nowhere = None;
                    continue;
                }
            };
            for address in addresses.into_iter().take(ADDRESSES_MAX) {
                if !self.leads_to(address) {
                    nowhere = nowhere.map(|_| Fate::never((5, 4, 6), format!("{host} is this machine: {address}")));
                    continue;
                }
                nowhere = None;
                if sent.is_over() || sent.sessions >= SESSIONS_MAX || began.elapsed() > HOSTS_WAIT {
                    return sent.report();
                }
                let to = Towards { host, address: SocketAddr::new(address, self.port).to_string(), way: &way };
                self.try_address(to, &mut sent, mail, hostname, leases).await;
            }
        }
        match nowhere {
            Some(fate) => Report::all(mail.recipients.len(), &fate, Health::Unknown),
            None => sent.report(),
        }
    }

    /// Tries one address of a host; one that is not as a policy in testing says, once more without it.
    async fn try_address(&self, to: Towards<'_>, sent: &mut Sent, mail: &Outgoing, hostname: &str, leases: &Leases) {
        let Towards { host: name, address, way } = to;
        let forward = Forward::Server { scheme: Scheme::Smtp, address: address.clone() };
        let (login, is_in_clear, is_proven) = (None, false, way.is_proven);
        let host = Host { name: name.to_owned(), address, protocol: Protocol::Smtp, login, is_in_clear, is_proven };
        if let Some(route) = &way.route {
            let (route, sessions) = (route.towards(&forward, None).for_name(name), sent.sessions);
            sent.try_host(&host, &route, mail, hostname, leases).await;
            let fault = route.facts.insecurity();
            // Of a host that could not be reached nothing is known.
            if fault.is_some() || sent.sessions > sessions {
                self.secured.count(&mail.destination, name, way, fault.as_ref());
            }
            if fault.is_none() || !way.is_testing || mail.mail.require_tls {
                return;
            }
            tracing::warn!(host = name, domain = mail.destination, "server fails its MTA-STS policy (testing)");
        }
        let route = self.route.towards(&forward, None).for_name(name);
        sent.try_host(&host, &route, mail, hostname, leases).await;
    }

    /// The policy of a domain.
    async fn policy(&self, domain: &str) -> Option<Policy> {
        let policies = self.secured.policies.as_ref().filter(|_| !domain.starts_with('['))?;
        let id = async {
            match self.look_up(&format!("_mta-sts.{domain}"), RecordKind::Txt).await.0 {
                Outcome::Records(records) => {
                    let text = |record| if let Record::Txt(text) = record { Some(text) } else { None };
                    sts::id_of(&records.into_iter().filter_map(text).collect::<Vec<_>>())
                }
                _ => None,
            }
        };
        let host = format!("mta-sts.{domain}");
        let fetch = || async {
            let found = self
                .addresses(&host)
                .await
                .map_err(|()| Fault::unfetched(format!("{host} cannot be looked up now")))?
                .0;
            let reached = found.into_iter().filter(|address| self.leads_to(*address)).take(ADDRESSES_MAX);
            let addresses = reached.map(|address| SocketAddr::new(address, self.secured.https_port).to_string());
            sts::fetch(&host, &addresses.collect::<Vec<_>>(), &self.secured.verified).await
        };
        let policy = policies.of(domain, now(), id, fetch).await;
        if let Some(fault) = policies.fault(domain) {
            self.secured.count_missing(domain, &fault, policy.is_some());
        }
        policy
    }

    /// Whether an address is another machine's, or named.
    fn leads_to(&self, address: IpAddr) -> bool {
        let is_far = !is_local(address.to_canonical()) && !is_own(address);
        is_far || self.destinations.iter().any(|network| network.holds(address))
    }

    /// The hosts of a domain, the best first.
    async fn hosts(&self, domain: &str) -> Result<Hosts, NoHosts> {
        if domain.starts_with('[') {
            return Ok(Hosts { names: vec![domain.to_owned()], are_validated: false });
        }
        let never = |status, why: &str| NoHosts(Fate::never(status, format!("{domain} {why}")), Health::Unknown);
        let (outcome, are_validated) = self.look_up(domain, RecordKind::Mx).await;
        let records = match outcome {
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
            return Err(never((5, 4, 6), NAMES_US));
        }
        Ok(Hosts { names: in_order(hosts), are_validated })
    }

    /// The addresses of a host, those of IPv6 first, and whether they were validated; an error if it cannot be looked up now.
    async fn addresses(&self, host: &str) -> Result<(Vec<IpAddr>, bool), ()> {
        // An exchanger that is spelt as an address is none (RFC 5321, section 5.1), and mail gets there.
        let literal = host.trim_matches(['[', ']']);
        let literal =
            literal.get(..5).filter(|tag| tag.eq_ignore_ascii_case("ipv6:")).map_or(literal, |_| &literal[5..]);
        if let Ok(address) = literal.parse::<IpAddr>() {
            return Ok((vec![address], false));
        }
        let ((six, is_six), (four, is_four)) =
            tokio::join!(self.look_up(host, RecordKind::Aaaa), self.look_up(host, RecordKind::A));
        let is_away = [&six, &four].into_iter().any(|outcome| *outcome == Outcome::Unavailable);
        // An answer that is kept back says nothing: else whoever does so would turn off DANE.
        let is_validated = |outcome: &Outcome, is_secure| is_secure || *outcome == Outcome::Unavailable;
        let are_validated = is_validated(&six, is_six) && is_validated(&four, is_four);
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
        if found.is_empty() && is_away { Err(()) } else { Ok((found, are_validated)) }
    }

    /// Looks a name up; whether the answer was validated.
    async fn look_up(&self, name: &str, kind: RecordKind) -> (Outcome, bool) {
        let (tell, mut told) = unbounded_channel();
        let question = Question { name: name.to_ascii_lowercase().into(), kind };
        self.resolver.look_up(Ask { id: 0, question, list: Box::default() }, &tell);
        drop(tell);
        let answer = told.recv().await;
        answer.map_or((Outcome::Unavailable, false), |answer| (answer.outcome, answer.security == Security::Secure))
    }
}

/// An address of a host that is tried, and how the host has to be known.
struct Towards<'a> {
    host: &'a str,
    address: String,
    way: &'a Way,
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
}

/// By preference; those of one in an order that differs from call to call.
fn in_order(mut hosts: Vec<(u16, String)>) -> Vec<String> {
    let random = RandomState::new();
    hosts.sort_by_cached_key(|(preference, name)| (*preference, random.hash_one(name)));
    let mut seen = BTreeSet::new();
    hosts.into_iter().map(|(_, name)| name).filter(|name| seen.insert(name.clone())).collect()
}
