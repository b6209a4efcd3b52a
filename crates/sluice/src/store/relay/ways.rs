//! How a host has to be known before it gets a mail: by records of a signed zone (RFC 7672), by the policy of the domain (RFC 8461), or
//! not at all. Where a host has records they hold, and the policy else; neither makes the other weaker.

use std::path::Path;
use std::sync::Arc;

use edge::settings::{Forward, ForwardTls, Target, Tls, Verify};
use edge::upstream::route::{Insecurity, Route};
use mailbox::Fate;

use super::reports::{Kind, Tally};
use super::sts::{self, Mode, Policies, Policy};
use crate::config::QueueSettings;
use crate::config::dns::DnsSettings;
use crate::resolver::signed::Signed;

/// The means by which hosts are known.
pub struct Secured {
    signed: Option<Signed>,
    /// Policies of domains.
    pub policies: Option<Policies>,
    /// The port of the hosts of policies.
    pub https_port: u16,
    /// To a host in TLS, whose certificate is for its name.
    pub verified: Arc<Route>,
    tls: Tls,
    tally: Option<Arc<Tally>>,
}

/// How one host has to be known.
pub struct Way {
    /// None: in TLS if it has that, whoever it is.
    pub route: Option<Arc<Route>>,
    /// A host that is not known so gets the mail all the same.
    pub is_testing: bool,
    /// The route proves who the host is.
    pub is_proven: bool,
    kind: Kind,
}

impl Way {
    /// To anybody, in TLS if the host has that.
    pub const OPEN: Way = Way { route: None, is_testing: false, is_proven: false, kind: Kind::Nothing };
}

impl Secured {
    /// As the settings say; policies are kept in this folder.
    ///
    /// # Errors
    /// When there is no TLS to be had, or nobody to ask.
    pub fn new(
        settings: &QueueSettings,
        dns: &DnsSettings,
        tls: &Tls,
        folder: Option<&Path>,
        tally: Option<Arc<Tally>>,
    ) -> Result<Secured, String> {
        let wait = std::time::Duration::from_millis(dns.query_ms);
        let signed = settings.dane.then(|| Ok::<_, String>(Signed::new(dns.servers()?, wait))).transpose()?;
        let target = |verify| Target { starttls: ForwardTls::Require, verify, ..Target::new(Forward::Original) };
        let by_name = settings.mta_sts.then(|| Route::new(&target(Verify::Name(None)), tls));
        let by_name = by_name.and_then(|route| {
            route.inspect_err(|error| tracing::warn!(error, "MTA-STS policies are not applied")).ok()
        });
        let policies = by_name.is_some().then(|| Policies::open(folder.map(|folder| folder.join("mta-sts"))));
        let verified = by_name.map_or_else(|| Route::new(&target(Verify::Nothing), tls), Ok)?;
        Ok(Secured {
            signed,
            policies,
            https_port: settings.https_port,
            verified: Arc::new(verified),
            tls: Tls { certificates: Vec::new(), ..tls.clone() },
            tally,
        })
    }

    /// How a host of a domain has to be known. `is_validated`: the records that have led to its addresses were.
    ///
    /// # Errors
    /// Why it cannot get a mail now.
    pub async fn way(
        &self,
        (host, domain): (&str, &str),
        port: u16,
        is_validated: bool,
        policy: Option<&Policy>,
    ) -> Result<Way, Fate> {
        if let Some(signed) = self.signed.as_ref().filter(|_| is_validated) {
            let found = signed.tlsa(host, port).await;
            let (records, name) = found.map_err(|_| {
                Fate::later((4, 7, 5), format!("the TLSA records of {host} cannot be looked up now (DANE)"))
            })?;
            let is_there = !records.is_empty();
            let usable: Vec<_> = records.into_iter().filter(edge::settings::Tlsa::is_usable).collect();
            let names = vec![name, host.to_owned(), domain.to_owned()];
            // With records of which none can be used a host is spoken to in TLS, whoever it is (RFC 7672, section 2.2).
            let is_proven = !usable.is_empty();
            let verify = if usable.is_empty() { Verify::Nothing } else { Verify::Dane(usable, names) };
            if is_there {
                let target = Target { starttls: ForwardTls::Require, verify, ..Target::new(Forward::Original) };
                let route = Route::new(&target, &self.tls).map_err(|error| Fate::later((4, 3, 5), error))?;
                return Ok(Way { route: Some(Arc::new(route)), is_testing: false, is_proven, kind: Kind::Tlsa });
            }
        }
        let Some(policy) = policy else { return Ok(Way::OPEN) };
        let is_testing = policy.mode == Mode::Testing;
        if policy.has(host) {
            return Ok(Way { route: Some(self.verified.clone()), is_testing, is_proven: true, kind: Kind::Sts });
        }
        let other = Insecurity {
            fault: edge::upstream::route::Fault::OtherName,
            why: format!("{host} is not a mail server of the MTA-STS policy of {domain}"),
        };
        let way = Way { is_testing, kind: Kind::Sts, ..Way::OPEN };
        self.count(domain, host, &way, Some(&other));
        if is_testing { Ok(way) } else { Err(Fate::later((4, 7, 5), other.why)) }
    }

    /// Counts for the report to a domain that its policy cannot be had; whether one of before holds.
    pub fn count_missing(&self, domain: &str, fault: &sts::Fault, has_policy: bool) {
        if let Some(tally) = &self.tally {
            let kind = if has_policy { Kind::Sts } else { Kind::Missing };
            tally.fail(domain, kind, (fault.kind, ""), &fault.why);
        }
    }

    /// Counts for the report to a domain that a host was as it has to be, or why not.
    pub fn count(&self, domain: &str, host: &str, way: &Way, fault: Option<&Insecurity>) {
        if let Some(tally) = &self.tally {
            tally.count(domain, host, way.kind, fault);
        }
    }
}
