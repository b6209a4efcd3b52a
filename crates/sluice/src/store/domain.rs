//! `sluice domain`: the records of the DNS by which others find the mail server of a domain and believe its mail.
//!
//! Records are those of what this program does: where mail comes in (MX), who sends (SPF), what signs (DKIM), what is asked of those who
//! see neither (DMARC), who hears of failures of TLS (TLS-RPT, RFC 8460), the key of the certificate (TLSA, RFC 7672), the doors of clients
//! (SRV, RFC 6186, 8314, 8620 and 5804), and the names at which the webmail answers programs.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::Duration;

use edge::net::dane::record_of;
use edge::settings::{Address, Certificate, Tlsa};
use flow::{Answer, Ask, Outcome, Question, Record, RecordKind};
use mailbox::discovery::{CONFIGURATION_HOST, Discovery};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::discovery;
use super::dkim::{self, keys::Keys};
use crate::audit::trail::Trail;
use crate::cli::{self, DomainCommand};
use crate::cluster::documents::Documents;
use crate::config::{Config, StoreSettings};
use crate::output::Failure;
use crate::process::privileges::{self, Place};
use crate::resolver::source::{Asks, Source};

/// The policy of DMARC that is proposed: what fails is put aside, and reports come to the postmaster.
const DMARC: &str = "v=DMARC1; p=quarantine; rua=mailto:postmaster@";

/// Who hears of failures of TLS.
const TLS_REPORTS: &str = "v=TLSRPTv1; rua=mailto:postmaster@";

/// A record that the domain has to have, or may have.
struct Wanted {
    name: String,
    data: Data,
    is_optional: bool,
}

/// The data of a record.
enum Data {
    Mx(String),
    /// A text; only as much of it counts as the tag in front says.
    Txt(String),
    Srv {
        port: u16,
        host: String,
    },
    Tlsa(Tlsa),
    /// Another name of this host: any address.
    Alias(String),
    /// Any address.
    Host,
}

/// Does what the command line says.
pub fn run(args: &cli::Domain) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    let config = Config::read(&args.config)?;
    let settings = config.store.as_ref().ok_or_else(|| format!("{}: no table [store]", args.config.display()))?;
    let site = Site::of(&config, settings);
    let trail = Trail::of(&config)?;
    let documents = Documents::of(&config)?;
    let place = Place::enter(&settings.dkim())?;
    match &args.command {
        DomainCommand::Add { domain } => {
            let keys = trail.change("added domain", domain, || dkim::keys_of(&place, documents.as_ref(), domain))?;
            let all = records(domain, &site, &keys);
            all.iter().for_each(|record| println!("{}", shown(record, args.json, None)));
            Ok(ExitCode::SUCCESS)
        }
        DomainCommand::Check { domain, resolvers, zone, timeout } => {
            let keys = Keys::read(&place.way()).map_err(|error| format!("{}: {error}", place.path().display()))?;
            let all = records(domain, &site, &keys);
            let resolvers = if resolvers.is_empty() { &config.dns.servers } else { resolvers };
            let source = Source::new(zone.as_deref(), resolvers, Duration::from_secs(*timeout))?;
            let states = states(&all, &source)?;
            for (record, state) in all.iter().zip(&states) {
                println!("{}", shown(record, args.json, Some(state)));
            }
            Ok(ExitCode::from(u8::from(!states.iter().all(State::is_well))))
        }
    }
}

/// The records of a domain as objects: name, type and data. With `source` also what the DNS has of them.
///
/// # Errors
/// When nobody can be asked.
pub fn objects(domain: &str, site: &Site<'_>, keys: &Keys, source: Option<&Source>) -> Result<Vec<Value>, Failure> {
    let all = records(domain, site, keys);
    let Some(source) = source else { return Ok(all.iter().map(|record| object(record, None)).collect()) };
    let states = states(&all, source)?;
    Ok(all.iter().zip(&states).map(|(record, state)| object(record, Some(state))).collect())
}

/// Looks records up.
fn states(all: &[Wanted], source: &Source) -> Result<Vec<State>, Failure> {
    let mut check = Check::new(all);
    source.settle(&mut check)?;
    Ok(all.iter().zip(&check.found).map(|(record, found)| state(record, found)).collect())
}

/// What the records of a domain are made of, besides its keys.
pub struct Site<'c> {
    hostname: &'c str,
    settings: &'c StoreSettings,
    doors: Discovery,
    /// The record of the certificate that mail servers are shown.
    certificate: Option<Tlsa>,
}

impl<'c> Site<'c> {
    /// Of a configuration. Certificates by ACME have other keys each time, so that no record is made of them, nor of one that cannot be
    /// read.
    pub fn of(config: &'c Config, settings: &'c StoreSettings) -> Site<'c> {
        let certificate = config.tls.certificates.iter().find_map(|certificate| match certificate {
            Certificate::Files { chain, .. } => record_of(chain, &config.hostname).ok().flatten(),
            Certificate::Acme { .. } => None,
        });
        Site { hostname: &config.hostname, settings, doors: discovery::of(config), certificate }
    }
}

/// The records of a domain.
fn records(domain: &str, site: &Site<'_>, keys: &Keys) -> Vec<Wanted> {
    let Site { hostname, settings, doors, certificate } = site;
    let domain = domain.to_owned();
    let record = |name: String, data| Wanted { name, data, is_optional: false };
    let optional = |name: String, data| Wanted { name, data, is_optional: true };
    let mut all = vec![
        record(domain.clone(), Data::Mx((*hostname).to_owned())),
        record((*hostname).to_owned(), Data::Host),
        record(domain.clone(), Data::Txt("v=spf1 mx -all".into())),
    ];
    let own = keys.all().iter().filter(|key| key.domain == domain);
    all.extend(own.map(|key| record(key.record_name().trim_end_matches('.').into(), Data::Txt(key.record()))));
    all.push(record(format!("_dmarc.{domain}"), Data::Txt(format!("{DMARC}{domain}"))));
    all.push(optional(format!("_smtp._tls.{domain}"), Data::Txt(format!("{TLS_REPORTS}{domain}"))));
    all.extend(certificate.iter().map(|tlsa| optional(format!("_25._tcp.{hostname}"), Data::Tlsa(tlsa.clone()))));
    // In the clear for others than this machine.
    let open = |addresses: &[Address]| {
        let mut all = addresses.iter().filter_map(Address::tcp).filter(|address| !address.ip().is_loopback());
        all.next().map(|address| address.port())
    };
    let services = [
        ("_imap", open(&settings.imap)),
        ("_imaps", doors.imaps),
        ("_pop3", open(&settings.pop3)),
        ("_pop3s", doors.pop3s),
        ("_submissions", doors.submissions),
        ("_submission", doors.submission),
        ("_sieve", open(&settings.sieve)),
        ("_jmap", doors.webmails),
    ];
    for (service, port) in services {
        let srv = |port| record(format!("{service}._tcp.{domain}"), Data::Srv { port, host: (*hostname).to_owned() });
        all.extend(port.map(srv));
    }
    let alias = |name: &str| record(format!("{name}.{domain}"), Data::Alias((*hostname).to_owned()));
    if let Some(told) = doors.configuration(&domain, hostname).filter(|_| doors.webmails.is_some()) {
        let digest = text::base64::encode(&Sha256::digest(told.as_bytes()));
        let host = CONFIGURATION_HOST.trim_end_matches('.');
        all.push(Wanted { is_optional: true, ..alias(host) });
        all.push(optional(format!("_{host}.{domain}"), Data::Txt(format!("v=UAAC1; a=sha256; d={digest}"))));
    }
    if !settings.webmails.is_empty() {
        all.extend(["autoconfig", "autodiscover"].map(alias));
    }
    if let Some(policy) = settings.mta_sts_policy.text(hostname) {
        let id = text::hex::encode(&Sha256::digest(policy.as_bytes())[..8]);
        all.push(record(format!("_mta-sts.{domain}"), Data::Txt(format!("v=STSv1; id={id};"))));
        all.push(alias("mta-sts"));
    }
    all
}

/// The state of a record.
enum State {
    Right,
    Missing,
    /// Missing, and it may be.
    Optional,
    Other(String),
    Unknown,
}

/// Questions about records, and what was answered.
struct Check {
    open: VecDeque<(u32, Question)>,
    found: Vec<Vec<Outcome>>,
}

impl Check {
    fn new(all: &[Wanted]) -> Check {
        let mut open = VecDeque::new();
        for (record, id) in all.iter().zip(0u32..) {
            let kinds: &[RecordKind] = match record.data {
                Data::Mx(_) => &[RecordKind::Mx],
                Data::Txt(_) => &[RecordKind::Txt],
                Data::Host | Data::Alias(_) => &[RecordKind::A, RecordKind::Aaaa],
                Data::Srv { .. } => &[RecordKind::Srv],
                Data::Tlsa(_) => &[RecordKind::Tlsa],
            };
            open.extend(kinds.iter().map(|&kind| (id, Question { name: record.name.as_str().into(), kind })));
        }
        Check { open, found: all.iter().map(|_| Vec::new()).collect() }
    }
}

impl Asks for Check {
    fn ask(&mut self) -> Option<Ask> {
        let (id, question) = self.open.pop_front()?;
        Some(Ask { id, question, list: Box::default() })
    }

    fn answer(&mut self, answer: Answer) {
        if let Some(found) = self.found.get_mut(answer.id as usize) {
            found.push(answer.outcome);
        }
    }
}

fn state(record: &Wanted, found: &[Outcome]) -> State {
    match compared(record, found) {
        State::Missing if record.is_optional => State::Optional,
        state => state,
    }
}

fn compared(record: &Wanted, found: &[Outcome]) -> State {
    let mut all = Vec::new();
    for outcome in found {
        match outcome {
            Outcome::Records(records) => all.extend(records),
            Outcome::Unavailable => return State::Unknown,
            Outcome::NoName | Outcome::NoData => {}
        }
    }
    match &record.data {
        Data::Srv { port, host } => {
            let servers: Vec<(u16, &str)> = all.iter().filter_map(|record| srv(record)).collect();
            let is_right = servers.iter().any(|(found, name)| found == port && name.eq_ignore_ascii_case(host));
            let servers: Vec<String> = servers.iter().map(|(port, name)| format!("{name}:{port}")).collect();
            judged(is_right, servers.iter().map(String::as_str).collect())
        }
        Data::Tlsa(wanted) => {
            let found: Vec<Tlsa> = all.iter().filter_map(|record| tlsa(record)).collect();
            let lines: Vec<String> = found.iter().map(tlsa_data).collect();
            judged(found.contains(wanted), lines.iter().map(String::as_str).collect())
        }
        Data::Host | Data::Alias(_) => {
            if all.is_empty() {
                State::Missing
            } else {
                State::Right
            }
        }
        Data::Mx(host) => {
            let hosts: Vec<&str> = all.iter().filter_map(|record| mx(record)).collect();
            judged(hosts.iter().any(|found| found.eq_ignore_ascii_case(host)), hosts)
        }
        Data::Txt(text) => {
            // A name has texts of others as well: those of the same kind begin alike.
            let tag = text.split([' ', ';']).next().unwrap_or_default();
            let texts = all.iter().filter_map(|record| txt(record)).filter(|found| found.starts_with(tag));
            let texts: Vec<&str> = texts.collect();
            let is_right = match tag {
                "v=DKIM1" => texts.iter().any(|found| key(found) == key(text)),
                // Whoever has a policy has thought about it.
                "v=DMARC1" | "v=TLSRPTv1" => texts.len() == 1,
                "v=UAAC1" => texts.contains(&text.as_str()),
                "v=STSv1" => texts.len() == 1 && texts.iter().all(|found| id(found) == id(text)),
                _ => texts.len() == 1 && texts.iter().all(|found| names_us(found)),
            };
            judged(is_right, texts)
        }
    }
}

fn judged(is_right: bool, found: Vec<&str>) -> State {
    match (is_right, found.is_empty()) {
        (true, _) => State::Right,
        (false, true) => State::Missing,
        (false, false) => State::Other(found.join(" | ")),
    }
}

fn mx(record: &Record) -> Option<&str> {
    if let Record::Mx(_, host) = record { Some(host.trim_end_matches('.')) } else { None }
}

fn srv(record: &Record) -> Option<(u16, &str)> {
    if let Record::Srv(port, host) = record { Some((*port, host.trim_end_matches('.'))) } else { None }
}

fn tlsa(record: &Record) -> Option<Tlsa> {
    if let Record::Tlsa(bytes) = record { Some(Tlsa::read(bytes)) } else { None }
}

fn tlsa_data(Tlsa { usage, selector, matching, data }: &Tlsa) -> String {
    format!("{usage} {selector} {matching} {}", text::hex::encode(data))
}

/// The mark of a policy of MTA-STS.
fn id(text: &str) -> Option<&str> {
    text.split(';').find_map(|tag| tag.trim().strip_prefix("id="))
}

fn txt(record: &Record) -> Option<&str> {
    if let Record::Txt(text) = record { std::str::from_utf8(text).ok() } else { None }
}

/// The public key of a record of DKIM.
fn key(text: &str) -> Option<String> {
    let tag = text.split(';').find_map(|tag| tag.trim().strip_prefix("p="))?;
    Some(tag.chars().filter(|character| !character.is_whitespace()).collect())
}

/// Whether a record of SPF lets the mail servers of the domain send. One with addresses may mean them: `sluice auth check` knows.
fn names_us(text: &str) -> bool {
    let means_hosts =
        |term: &str| ["mx", "a", "ip4:", "ip6:", "include:", "redirect="].iter().any(|way| term.starts_with(way));
    text.split(' ').skip(1).any(|term| means_hosts(term.trim_start_matches('+')))
}

/// A record as a line, or an object; with what was found where it was looked up.
fn shown(record: &Wanted, as_json: bool, state: Option<&State>) -> String {
    if as_json {
        return object(record, state).to_string();
    }
    let (kind, data) = data(record);
    // What the addresses are is not ours to say.
    let comment = if matches!(record.data, Data::Host) { "; " } else { "" };
    let line = format!("{comment}{}. IN {kind} {data}", record.name);
    match (state.map(State::word), state.and_then(State::found)) {
        (None, _) => line,
        (Some(word), None) => format!("{word:9} {line}"),
        (Some(word), Some(found)) => format!("{word:9} {line}\n          found: {}", text::hazard::line(found)),
    }
}

fn object(record: &Wanted, state: Option<&State>) -> Value {
    let (kind, data) = data(record);
    let (word, found) = (state.map(State::word), state.and_then(State::found));
    json!({ "name": record.name, "type": kind, "data": data, "state": word, "found": found })
}

/// The type of a record, and its data as a zone has it.
fn data(record: &Wanted) -> (&'static str, String) {
    match &record.data {
        Data::Mx(host) => ("MX", format!("10 {host}.")),
        Data::Txt(text) => ("TXT", dkim::keys::strings(text)),
        Data::Srv { port, host } => ("SRV", format!("0 1 {port} {host}.")),
        Data::Tlsa(tlsa) => ("TLSA", tlsa_data(tlsa)),
        Data::Alias(host) => ("CNAME", format!("{host}.")),
        Data::Host => ("A", "the addresses of this server, and AAAA".into()),
    }
}

impl State {
    const fn word(&self) -> &'static str {
        match self {
            State::Right => "right",
            State::Missing => "missing",
            State::Optional => "optional",
            State::Other(_) => "other",
            State::Unknown => "no answer",
        }
    }

    /// Whether nothing needs to be done.
    const fn is_well(&self) -> bool {
        matches!(self, State::Right | State::Optional)
    }

    /// The data that the DNS has in the place of ours.
    fn found(&self) -> Option<&str> {
        if let State::Other(found) = self { Some(found) } else { None }
    }
}
