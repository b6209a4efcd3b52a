//! Reports of TLS to the domains that want them (RFC 8460): what was counted in a day, as JSON in a mail.
//!
//! Counted are hosts with a policy, by DANE or MTA-STS, and policies that are announced and cannot be had. Who wants a report says so at `_smtp._tls.DOMAIN`; only addresses of mail are followed.
//! Bounds: [`DOMAINS_MAX`] domains, [`FAILURES_MAX`] failures of each; what is counted is lost with the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use edge::message::asking::Resolver;
use edge::upstream::route::{Fault, Insecurity};
use flow::{Ask, Outcome, Question, Record, RecordKind};
use mailbox::Site;
use mailbox::queue::Untaken;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::mpsc::unbounded_channel;

use crate::store::day;
use crate::store::letter::Letter;

/// Domains that are counted.
const DOMAINS_MAX: usize = 10_000;

/// Kinds of failures of one domain.
const FAILURES_MAX: usize = 100;

/// Addresses that one report goes to.
const ADDRESSES_MAX: usize = 5;

/// Kinds of policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// DANE: TLSA records of a signed zone.
    Tlsa,
    /// By a policy of the domain.
    Sts,
    /// A policy of the domain that cannot be had.
    Missing,
    /// None.
    Nothing,
}

/// Counts of one day.
#[derive(Debug, Default)]
pub struct Tally(Mutex<BTreeMap<(String, Kind), Counts>>);

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Counts {
    successes: u64,
    /// By kind, as reports have it, and host: how many, and the words of the first.
    failures: BTreeMap<(&'static str, String), (u64, String)>,
}

impl Tally {
    /// A session with a host of a domain was as it has to be, or why not.
    pub fn count(&self, domain: &str, host: &str, kind: Kind, fault: Option<&Insecurity>) {
        match fault {
            _ if kind == Kind::Nothing => {}
            Some(Insecurity { fault, why }) => self.fail(domain, kind, (result(*fault, kind), host), why),
            None => self.note(domain, kind, |counts| counts.successes += 1),
        }
    }

    /// A failure with a host, or with none yet.
    pub fn fail(&self, domain: &str, kind: Kind, (result, host): (&'static str, &str), why: &str) {
        self.note(domain, kind, |counts| {
            let key = (result, host.to_owned());
            if counts.failures.len() < FAILURES_MAX || counts.failures.contains_key(&key) {
                counts.failures.entry(key).or_insert_with(|| (0, why.to_owned())).0 += 1;
            }
        });
    }

    fn note(&self, domain: &str, kind: Kind, count: impl FnOnce(&mut Counts)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (domain.to_owned(), kind);
        if all.len() < DOMAINS_MAX || all.contains_key(&key) {
            count(all.entry(key).or_default());
        }
    }

    fn take(&self) -> BTreeMap<String, Vec<(Kind, Counts)>> {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut by_domain: BTreeMap<String, Vec<(Kind, Counts)>> = BTreeMap::new();
        for ((domain, kind), counts) in all {
            by_domain.entry(domain).or_default().push((kind, counts));
        }
        by_domain
    }
}

/// Sends reports once a day.
pub struct Reports {
    /// Counts of the day.
    pub tally: Arc<Tally>,
    resolver: Arc<dyn Resolver>,
    /// Sender of reports, and contact for questions.
    contact: String,
}

impl Reports {
    /// From this address.
    pub fn new(resolver: Arc<dyn Resolver>, contact: &str) -> Reports {
        Reports { tally: Arc::default(), resolver, contact: contact.into() }
    }

    /// Sends reports at the end of each day of UTC, until it is dropped.
    pub async fn serve(&self, site: Arc<Site>) {
        let mut today = day::today();
        loop {
            tokio::time::sleep(day::LOOK_EVERY).await;
            let past = std::mem::replace(&mut today, day::today());
            if today > past {
                self.send(&site, past * day::SECONDS).await;
            }
        }
    }

    /// Sends what was counted in the day that began then.
    pub async fn send(&self, site: &Site, began: u64) {
        for (domain, counts) in self.tally.take() {
            let addresses = self.addresses(&domain).await;
            if addresses.is_empty() {
                continue;
            }
            let report = Report { domain: &domain, contact: &self.contact, hostname: &site.hostname, began };
            if let Err(error) = report.send(site, &addresses, &counts).await {
                tracing::warn!(domain, ?error, "a report of TLS is not sent");
            }
        }
    }

    async fn addresses(&self, domain: &str) -> Vec<String> {
        let (tell, mut told) = unbounded_channel();
        let question = Question { name: format!("_smtp._tls.{domain}").into(), kind: RecordKind::Txt };
        self.resolver.look_up(Ask { id: 0, question, list: Box::default() }, &tell);
        drop(tell);
        let Some(Outcome::Records(records)) = told.recv().await.map(|answer| answer.outcome) else { return Vec::new() };
        let text = |record| if let Record::Txt(text) = record { Some(text) } else { None };
        addresses(&records.into_iter().filter_map(text).collect::<Vec<_>>())
    }
}

/// The addresses of a record (section 3): of one record alone.
fn addresses(texts: &[Box<[u8]>]) -> Vec<String> {
    let records = texts.iter().filter_map(|text| std::str::from_utf8(text).ok());
    let records: Vec<&str> = records.filter(|text| text.trim_start().starts_with("v=TLSRPTv1")).collect();
    let [record] = records.as_slice() else { return Vec::new() };
    let uris = record.split(';').filter_map(|field| field.split_once('=')).find(|(key, _)| key.trim() == "rua");
    let uris = uris.map(|(_, uris)| uris.split(',')).into_iter().flatten();
    let address = |uri: &str| {
        let address = uri.trim().strip_prefix("mailto:")?.split('?').next()?;
        let is_plain = address.contains('@') && !address.contains('%') && address.is_ascii();
        (is_plain && address.parse::<proto::smtp::Path>().is_ok()).then(|| address.to_owned())
    };
    uris.filter_map(address).take(ADDRESSES_MAX).collect()
}

/// A report to a domain.
struct Report<'a> {
    domain: &'a str,
    contact: &'a str,
    hostname: &'a str,
    /// The day, seconds since 1970.
    began: u64,
}

impl Report<'_> {
    fn id(&self) -> String {
        format!("{}.{}@{}", self.began, self.domain, self.hostname)
    }

    /// The report (section 4).
    fn json(&self, counts: &[(Kind, Counts)]) -> Value {
        let failure = |((result, host), (count, why)): (&(&str, String), &(u64, String))| {
            let mut failure =
                json!({ "result-type": result, "failed-session-count": count, "failure-reason-code": why });
            if !host.is_empty() {
                failure["receiving-mx-hostname"] = json!(host);
            }
            failure
        };
        let policy = |(kind, counts): &(Kind, Counts)| {
            let failed: u64 = counts.failures.values().map(|(count, _)| count).sum();
            let details: Vec<Value> = counts.failures.iter().map(failure).collect();
            let name = match kind {
                Kind::Tlsa => "tlsa",
                Kind::Sts => "sts",
                Kind::Missing | Kind::Nothing => "no-policy-found",
            };
            json!({
                "policy": { "policy-type": name, "policy-domain": self.domain },
                "summary": { "total-successful-session-count": counts.successes, "total-failure-session-count": failed },
                "failure-details": details,
            })
        };
        json!({
            "organization-name": self.hostname,
            "date-range": { "start-datetime": date(self.began), "end-datetime": date(self.began + day::SECONDS - 1) },
            "contact-info": self.contact, "report-id": self.id(),
            "policies": counts.iter().map(policy).collect::<Vec<_>>(),
        })
    }

    /// Sends it (section 5.3). It arrives whatever is wrong with the TLS that it reports of (section 3).
    async fn send(&self, site: &Site, to: &[String], counts: &[(Kind, Counts)]) -> Result<(), Untaken> {
        let Report { domain, contact, hostname, began } = self;
        let (id, end, json) = (self.id(), began + day::SECONDS - 1, self.json(counts).to_string());
        let letter = Letter {
            from: contact,
            to,
            id: &id,
            subject: &format!("Report Domain: {domain} Submitter: {hostname} Report-ID: <{id}>"),
            fields: &format!("TLS-Required: No\r\nTLS-Report-Domain: {domain}\r\nTLS-Report-Submitter: {hostname}\r\n"),
            kind: "multipart/report; report-type=\"tlsrpt\"",
            words: &format!("A report of TLS with the mail servers of {domain}."),
            media_type: "application/tlsrpt+gzip",
            name: &format!("{hostname}!{domain}!{began}!{end}.json.gz"),
            content: json.as_bytes(),
        };
        letter.send(site, "tls-reports", letter.write()).await
    }
}

/// Kinds of failures as reports have them (section 4.3).
fn result(fault: Fault, kind: Kind) -> &'static str {
    match (fault, kind) {
        (Fault::NoStartTls, _) => "starttls-not-supported",
        (Fault::Expired, _) => "certificate-expired",
        (Fault::OtherName, _) => "certificate-host-mismatch",
        (Fault::Untrusted, Kind::Tlsa) => "validation-failure",
        (Fault::Untrusted, _) => "certificate-not-trusted",
        (Fault::Other, _) => "validation-failure",
    }
}

fn date(seconds: u64) -> String {
    let when = i64::try_from(seconds).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    when.and_then(|when| when.format(&Rfc3339).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_addresses_of_mail() {
        let of = |text: &str| addresses(&[text.as_bytes().into()]);
        assert_eq!(
            of("v=TLSRPTv1; rua=mailto:a@example.org,https://x/y,mailto:b@example.org?x=y"),
            ["a@example.org", "b@example.org"]
        );
        for nothing in
            ["v=TLSRPTv1", "rua=mailto:a@b", "v=TLSRPTv1;rua=mailto:a%40b", "v=TLSRPTv1;rua=mailto:a@b\r\nX: y"]
        {
            assert!(of(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn what_was_counted_stands_in_the_report() {
        let tally = Tally::default();
        let fault = |fault| Insecurity { fault, why: "expired \"yesterday\"".into() };
        tally.count("example.org", "mx.example.org", Kind::Sts, None);
        tally.count("example.org", "mx.example.org", Kind::Sts, Some(&fault(Fault::Expired)));
        tally.count("example.org", "mx.example.org", Kind::Sts, Some(&fault(Fault::Expired)));
        tally.count("example.net", "mx.example.net", Kind::Nothing, None);
        tally.fail("example.org", Kind::Missing, ("sts-policy-fetch-error", ""), "the status is \"404\"");
        let counts = tally.take();
        assert_eq!((counts.len(), tally.take().len()), (1, 0));
        let report =
            Report { domain: "example.org", contact: "tls@mx.test", hostname: "mx.test", began: 1_767_225_600 };
        let report = report.json(&counts["example.org"]);
        assert_eq!(report["date-range"]["start-datetime"], "2026-01-01T00:00:00Z");
        let policy = &report["policies"][0];
        assert_eq!(policy["policy"]["policy-type"], "sts");
        assert_eq!(policy["summary"], json!({ "total-successful-session-count": 1, "total-failure-session-count": 2 }));
        assert_eq!(policy["failure-details"][0]["result-type"], "certificate-expired");
        let missing = &report["policies"][1];
        assert_eq!(missing["policy"]["policy-type"], "no-policy-found");
        let wanted = json!([{
            "result-type": "sts-policy-fetch-error", "failed-session-count": 1, "failure-reason-code": "the status is \"404\"",
        }]);
        assert_eq!(missing["failure-details"], wanted);
    }
}
