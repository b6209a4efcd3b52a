//! `check_host()` (RFC 7208 section 4).

use core::net::IpAddr;

use flow::{Record as Answered, RecordKind};

use super::macros::{Letter, MacroString};
use super::record::{self, Directive, Mechanism, Prefixes, Record};
use super::{Outcome, Query, Report};
use crate::domain;
use crate::inquiry::{Found, Inquiry, Pending};

/// Terms of one check that ask the DNS (section 4.6.4).
const LOOKUPS_MAX: u32 = 10;

/// Maximum number of terms whose names do not exist.
const VOIDS_MAX: u32 = 2;

/// Mail exchangers of one term, and names of the client.
const HOSTS_MAX: usize = 10;

/// The longest explanation.
const EXPLANATION_BYTES_MAX: usize = 1_024;

/// Checks whether a client may send in the name of a sender: the domain of the envelope's sender, or of the client's
/// own name for the null sender.
///
/// # Errors
/// Answers are missing.
pub fn check(query: &Query<'_>, inquiry: &mut Inquiry) -> Result<Report, Pending> {
    let (local, name) = match query.sender {
        "" => ("postmaster", query.helo),
        sender => sender.rsplit_once('@').unwrap_or(("postmaster", sender)),
    };
    let local = if local.is_empty() { "postmaster" } else { local };
    let sender: Box<str> = format!("{local}@{name}").into();
    let Some(domain) = domain::normalised(name).filter(|domain| may_have_policy(domain)) else {
        return Ok(Report { reason: "no domain to check".into(), sender, ..Report::default() });
    };
    let mut check = Check { query, inquiry, local, sender_domain: name, lookups: 0, voids: 0, reason: "".into() };
    let (outcome, explanation) = match check.host(&domain) {
        Ok(Decision { outcome, explained_by }) => match (outcome, explained_by) {
            (Outcome::Fail, Some((by, text))) => (outcome, check.explanation(&by, &text)?),
            _ => (outcome, None),
        },
        Err(Stop::Pending) => return Err(Pending),
        Err(Stop::Outcome(outcome, reason)) => {
            check.reason = reason;
            (outcome, None)
        }
    };
    let Check { lookups, reason, .. } = check;
    Ok(Report { outcome, domain, sender, reason, explanation, lookups })
}

/// A name of two labels at least that is no address (section 4.3).
fn may_have_policy(domain: &str) -> bool {
    domain.contains('.') && !domain.starts_with('[') && domain.bytes().all(|byte| !byte.is_ascii_control())
}

/// Decision of a record, and the domain whose string explains a failure.
struct Decision {
    outcome: Outcome,
    explained_by: Option<(Box<str>, MacroString)>,
}

/// Early end of a check.
enum Stop {
    Pending,
    Outcome(Outcome, Box<str>),
}

impl From<Pending> for Stop {
    fn from(_: Pending) -> Stop {
        Stop::Pending
    }
}

fn temporary(name: &str) -> Stop {
    Stop::Outcome(Outcome::TempError, format!("{name} cannot be looked up").into())
}

fn permanent(reason: impl Into<Box<str>>) -> Stop {
    Stop::Outcome(Outcome::PermError, reason.into())
}

struct Check<'a> {
    query: &'a Query<'a>,
    inquiry: &'a mut Inquiry,
    local: &'a str,
    sender_domain: &'a str,
    lookups: u32,
    voids: u32,
    reason: Box<str>,
}

impl Check<'_> {
    /// Follows the policy of a domain. The recursion is bounded by the ten look-ups.
    fn host(&mut self, domain: &str) -> Result<Decision, Stop> {
        let Some(record) = self.record(domain)? else {
            self.reason = format!("{domain} has no policy").into();
            return Ok(Decision { outcome: Outcome::None, explained_by: None });
        };
        for directive in &record.directives {
            if self.matches(&directive.mechanism, domain)? {
                return Ok(self.decide(directive, domain, record.explanation));
            }
        }
        if let Some(redirect) = &record.redirect {
            self.count_lookup()?;
            let target = self.target(redirect, domain)?.ok_or_else(|| permanent("redirect to no domain"))?;
            let decision = self.host(&target)?;
            return match decision.outcome {
                Outcome::None => Err(permanent(format!("redirect to {target}, which has no policy"))),
                _ => Ok(decision),
            };
        }
        self.reason = format!("no term of {domain} matches").into();
        Ok(Decision { outcome: Outcome::Neutral, explained_by: None })
    }

    fn decide(&mut self, directive: &Directive, domain: &str, explanation: Option<MacroString>) -> Decision {
        self.reason = format!("{} of {domain}", directive.text).into();
        Decision {
            outcome: directive.outcome,
            explained_by: explanation.map(|explanation| (domain.into(), explanation)),
        }
    }

    /// The one record of a domain.
    fn record(&mut self, domain: &str) -> Result<Option<Record>, Stop> {
        let found = self.inquiry.look(domain, RecordKind::Txt)?;
        if *found.outcome == flow::Outcome::Unavailable {
            return Err(temporary(domain));
        }
        let mut records = found.texts().filter(|text| record::is_spf(text));
        let Some(text) = records.next() else { return Ok(None) };
        if records.next().is_some() {
            return Err(permanent(format!("{domain} has several policies")));
        }
        Record::parse(text).map(Some).map_err(|error| permanent(format!("policy of {domain}: {error}")))
    }

    fn matches(&mut self, mechanism: &Mechanism, domain: &str) -> Result<bool, Stop> {
        match mechanism {
            Mechanism::All => Ok(true),
            Mechanism::Ip(network, bits) => Ok(is_in_network(self.query.client, *network, *bits)),
            Mechanism::Include(target) => self.includes(target, domain),
            Mechanism::A(target, prefixes) => {
                self.count_lookup()?;
                let Some(target) = self.target_or(target.as_ref(), domain)? else { return Ok(false) };
                let found = self.find(&target, self.address_kind())?;
                self.count_void(&found)?;
                Ok(self.is_among(&found, *prefixes))
            }
            Mechanism::Mx(target, prefixes) => self.is_exchanger(target.as_ref(), *prefixes, domain),
            Mechanism::Ptr(target) => {
                self.count_lookup()?;
                let Some(target) = self.target_or(target.as_ref(), domain)? else { return Ok(false) };
                let names = self.validated_names(true)?;
                Ok(names.iter().any(|name| domain::is_within(name, &target)))
            }
            Mechanism::Exists(target) => {
                self.count_lookup()?;
                let Some(target) = self.target(target, domain)? else { return Ok(false) };
                let found = self.find(&target, RecordKind::A)?;
                self.count_void(&found)?;
                Ok(!found.records().is_empty())
            }
        }
    }

    /// Section 5.2: a failure there is no match here.
    fn includes(&mut self, target: &MacroString, domain: &str) -> Result<bool, Stop> {
        self.count_lookup()?;
        let target = self.target(target, domain)?.ok_or_else(|| permanent("include of no domain"))?;
        match self.host(&target)?.outcome {
            Outcome::Pass => Ok(true),
            Outcome::None => Err(permanent(format!("include of {target}, which has no policy"))),
            _ => Ok(false),
        }
    }

    fn is_exchanger(&mut self, target: Option<&MacroString>, prefixes: Prefixes, domain: &str) -> Result<bool, Stop> {
        self.count_lookup()?;
        let Some(target) = self.target_or(target, domain)? else { return Ok(false) };
        let found = self.find(&target, RecordKind::Mx)?;
        self.count_void(&found)?;
        let hosts: Vec<&str> = found.records().iter().filter_map(exchanger).collect();
        let asked = &hosts[..hosts.len().min(HOSTS_MAX)];
        self.ask_all(asked);
        for host in asked {
            let found = self.find(host, self.address_kind())?;
            if self.is_among(&found, prefixes) {
                return Ok(true);
            }
        }
        match hosts.len() > HOSTS_MAX {
            true => Err(permanent(format!("{target} has more than {HOSTS_MAX} mail exchangers"))),
            false => Ok(false),
        }
    }

    /// Asks for the addresses of all hosts at once.
    fn ask_all(&mut self, hosts: &[&str]) {
        for host in hosts {
            let _ = self.inquiry.look(host, self.address_kind());
        }
    }

    fn find(&mut self, name: &str, kind: RecordKind) -> Result<Found, Stop> {
        let found = self.inquiry.look(name, kind)?;
        match *found.outcome {
            flow::Outcome::Unavailable => Err(temporary(name)),
            _ => Ok(found),
        }
    }

    /// Returns the client's names that have its address (section 5.5), of its first ten. Names that cannot be looked up
    /// are left out.
    fn validated_names(&mut self, counted: bool) -> Result<Vec<Box<str>>, Stop> {
        let found = self.inquiry.look(&reverse_name(self.query.client), RecordKind::Ptr)?;
        if counted {
            self.count_void(&found)?;
        }
        let names: Vec<&str> = found.records().iter().filter_map(pointer).take(HOSTS_MAX).collect();
        self.ask_all(&names);
        let mut validated = Vec::new();
        for name in names {
            let found = self.inquiry.look(name, self.address_kind())?;
            if self.is_among(&found, Prefixes { ip4: 32, ip6: 128 }) {
                validated.extend(domain::normalised(name));
            }
        }
        Ok(validated)
    }

    fn is_among(&self, found: &Found, prefixes: Prefixes) -> bool {
        found.records().iter().any(|record| match *record {
            Answered::A(address) => is_in_network(self.query.client, address.into(), prefixes.ip4),
            Answered::Aaaa(address) => is_in_network(self.query.client, address.into(), prefixes.ip6),
            _ => false,
        })
    }

    fn address_kind(&self) -> RecordKind {
        match self.query.client.to_canonical() {
            IpAddr::V4(_) => RecordKind::A,
            IpAddr::V6(_) => RecordKind::Aaaa,
        }
    }

    fn count_lookup(&mut self) -> Result<(), Stop> {
        self.lookups += 1;
        match self.lookups > LOOKUPS_MAX {
            true => Err(permanent(format!("more than {LOOKUPS_MAX} terms ask the DNS"))),
            false => Ok(()),
        }
    }

    fn count_void(&mut self, found: &Found) -> Result<(), Stop> {
        let is_void = matches!(*found.outcome, flow::Outcome::NoData | flow::Outcome::NoName);
        self.voids += u32::from(is_void);
        match self.voids > VOIDS_MAX {
            true => Err(permanent(format!("more than {VOIDS_MAX} terms ask in vain"))),
            false => Ok(()),
        }
    }

    fn target_or(&mut self, target: Option<&MacroString>, domain: &str) -> Result<Option<Box<str>>, Stop> {
        target.map_or_else(|| Ok(Some(domain.into())), |target| self.target(target, domain))
    }

    /// The name that a string expands to, cut on the left where it is too long (section 7.3); none if it is no name.
    fn target(&mut self, target: &MacroString, domain: &str) -> Result<Option<Box<str>>, Stop> {
        let Some(name) = target.expand(|letter| self.value(letter, domain))? else { return Ok(None) };
        let mut name = name.strip_suffix('.').unwrap_or(&name);
        while name.len() > domain::BYTES_MAX {
            let Some(parent) = domain::parent(name) else { break };
            name = parent;
        }
        Ok(domain::normalised(name))
    }

    fn value(&mut self, letter: Letter, domain: &str) -> Result<String, Stop> {
        Ok(match letter {
            Letter::Sender => format!("{}@{}", self.local, self.sender_domain),
            Letter::LocalPart => self.local.into(),
            Letter::SenderDomain => self.sender_domain.into(),
            Letter::Domain => domain.into(),
            Letter::Address => dotted(self.query.client),
            Letter::ValidatedName => self.validated_name(domain)?,
            Letter::Family => if self.query.client.to_canonical().is_ipv4() { "in-addr" } else { "ip6" }.into(),
            Letter::Helo => self.query.helo.into(),
            Letter::ReadableAddress => self.query.client.to_canonical().to_string(),
            Letter::Receiver if self.query.receiver.is_empty() => "unknown".into(),
            Letter::Receiver => self.query.receiver.into(),
            Letter::Time => self.query.now.to_string(),
        })
    }

    /// The domain itself if it is a name of the client, else one below it, else any (section 7.3).
    fn validated_name(&mut self, domain: &str) -> Result<String, Stop> {
        let names = self.validated_names(false)?;
        let equal = names.iter().find(|name| ***name == *domain);
        let name = equal.or_else(|| names.iter().find(|name| domain::is_within(name, domain))).or(names.first());
        Ok(name.map_or_else(|| "unknown".into(), |name| name.to_string()))
    }

    /// Owner's text for failing clients (section 6.2); `None` if anything is wrong with it.
    fn explanation(&mut self, domain: &str, at: &MacroString) -> Result<Option<Box<str>>, Pending> {
        let expanded = match self.explain(domain, at) {
            Err(Stop::Pending) => return Err(Pending),
            Err(Stop::Outcome(..)) => None,
            Ok(expanded) => expanded,
        };
        Ok(expanded.filter(|text| text.len() <= EXPLANATION_BYTES_MAX && is_plain(text)).map(String::into))
    }

    fn explain(&mut self, domain: &str, at: &MacroString) -> Result<Option<String>, Stop> {
        let Some(name) = self.target(at, domain)? else { return Ok(None) };
        let found = self.find(&name, RecordKind::Txt)?;
        let texts: Vec<&[u8]> = found.texts().collect();
        let [text] = texts[..] else { return Ok(None) };
        let text = core::str::from_utf8(text).ok().and_then(MacroString::parse_explanation);
        match text {
            Some(text) => text.expand(|letter| self.value(letter, domain)),
            None => Ok(None),
        }
    }
}

/// Whether a text may be in a reply: one line of ASCII.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn exchanger(record: &Answered) -> Option<&str> {
    match record {
        Answered::Mx(_, name) => Some(name),
        _ => None,
    }
}

fn pointer(record: &Answered) -> Option<&str> {
    match record {
        Answered::Ptr(name) => Some(name),
        _ => None,
    }
}

fn is_in_network(client: IpAddr, network: IpAddr, bits: u8) -> bool {
    let differing = match (client.to_canonical(), network) {
        (IpAddr::V4(client), IpAddr::V4(network)) => (client.to_bits() ^ network.to_bits()).leading_zeros(),
        (IpAddr::V6(client), IpAddr::V6(network)) => (client.to_bits() ^ network.to_bits()).leading_zeros(),
        _ => return false,
    };
    differing >= u32::from(bits)
}

/// The address in dots, nibbles for IPv6.
fn dotted(client: IpAddr) -> String {
    match client.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let digits: Vec<String> = address
                .octets()
                .iter()
                .flat_map(|byte| [byte >> 4, byte & 15])
                .map(|nibble| format!("{nibble:x}"))
                .collect();
            digits.join(".")
        }
    }
}

/// Where the names of an address are.
fn reverse_name(client: IpAddr) -> String {
    let dotted = dotted(client);
    let labels: Vec<&str> = dotted.rsplit('.').collect();
    let zone = if client.to_canonical().is_ipv4() { "in-addr" } else { "ip6" };
    format!("{}.{zone}.arpa", labels.join("."))
}
