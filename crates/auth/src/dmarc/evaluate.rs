//! The policy that applies, and whether anything that was authenticated is the author's (RFC 9989 sections 4.4, 4.10, 5.3).

use flow::{Outcome as Answered, RecordKind};

use super::walk::{self, Stop};
use super::{Outcome, Policy, Record, Report};
use crate::author::Author;
use crate::domain;
use crate::inquiry::{Inquiry, Pending};
use crate::{dkim, spf};

/// Authenticated identifiers, and identifiers that could not be checked.
#[derive(Debug, Clone, Copy)]
pub struct Identifiers<'a> {
    /// Identifier of the envelope's sender.
    pub spf: &'a spf::Report,
    /// All signatures.
    pub dkim: &'a [dkim::Report],
}

/// Evaluates DMARC for a mail.
///
/// # Errors
/// There are further questions.
pub fn check(author: &Author, identifiers: Identifiers<'_>, inquiry: &mut Inquiry) -> Result<Report, Pending> {
    let domain = match author {
        Author::Domain(domain) => &**domain,
        Author::Unclear(reason) => {
            let reason = (*reason).into();
            return Ok(Report { outcome: Outcome::PermError, reason, ..Report::default() });
        }
    };
    let report = Report { domain: domain.into(), ..Report::default() };
    let outcome = policy(domain, inquiry).and_then(|applied| match applied {
        None => Ok(Report { reason: "no policy".into(), ..report.clone() }),
        Some(Applied { record: Record { is_usable: false, .. }, .. }) => {
            Ok(Report { reason: "policy cannot be understood".into(), ..report.clone() })
        }
        Some(applied) => judge(domain, &applied, identifiers, report.clone(), inquiry),
    });
    match outcome {
        Ok(report) => Ok(report),
        Err(Stop::Pending) => Err(Pending),
        Err(Stop::Unavailable) => {
            Ok(Report { outcome: Outcome::TempError, reason: "policy cannot be looked up".into(), ..report })
        }
    }
}

/// A record that applies.
struct Applied {
    /// Domain of the record.
    domain: Box<str>,
    record: Record,
    policy: Policy,
}

/// The record of the author's domain, else of its organization, else of the suffix (section 4.10.1).
fn policy(domain: &str, inquiry: &mut Inquiry) -> Result<Option<Applied>, Stop> {
    if let Some(record) = walk::record_at(domain, inquiry)? {
        return Ok(Some(Applied { domain: domain.into(), policy: record.policy, record }));
    }
    let records = walk::records(domain, inquiry)?;
    let organization = walk::organization(domain, &records);
    let found = records.iter().find(|(name, _)| *name == organization).or(records.last());
    let Some((name, record)) = found else { return Ok(None) };
    let is_missing = record.missing != record.subdomains && !exists(domain, inquiry)?;
    let policy = if is_missing { record.missing } else { record.subdomains };
    Ok(Some(Applied { domain: (*name).into(), policy, record: record.clone() }))
}

/// Whether a name exists, in the meaning of RFC 8020.
fn exists(domain: &str, inquiry: &mut Inquiry) -> Result<bool, Stop> {
    Ok(*inquiry.look(domain, RecordKind::A)?.outcome != Answered::NoName)
}

fn judge(
    domain: &str,
    applied: &Applied,
    identifiers: Identifiers<'_>,
    report: Report,
    inquiry: &mut Inquiry,
) -> Result<Report, Stop> {
    let Applied { domain: policy_domain, record, policy } = applied;
    let mut tree = Tree { domain, inquiry };
    let spf = identifiers.spf;
    let spf = aligned(&mut tree, record.strict_spf, [(&*spf.domain, standing_of_spf(spf.outcome))])?;
    let signers = identifiers.dkim.iter().map(|report| (&*report.domain, standing_of_dkim(report.outcome)));
    let dkim = aligned(&mut tree, record.strict_dkim, signers)?;
    let outcome = match (spf, dkim) {
        (Standing::Passed, _) | (_, Standing::Passed) => Outcome::Pass,
        (Standing::Unsure, _) | (_, Standing::Unsure) => Outcome::TempError,
        _ => Outcome::Fail,
    };
    let disposition = if record.testing { policy.weakened() } else { *policy };
    Ok(Report {
        outcome,
        reason: if outcome == Outcome::TempError { "an identifier cannot be looked up".into() } else { "".into() },
        policy_domain: policy_domain.clone(),
        policy: Some(*policy),
        disposition: (outcome == Outcome::Fail).then_some(disposition),
        testing: record.testing,
        spf_aligned: spf == Standing::Passed,
        dkim_aligned: dkim == Standing::Passed,
        record: Some(record.clone()),
        ..report
    })
}

/// Whether something was authenticated; and, of several, the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Not,
    /// It could not be looked up.
    Unsure,
    Passed,
}

fn standing_of_spf(outcome: spf::Outcome) -> Standing {
    match outcome {
        spf::Outcome::Pass => Standing::Passed,
        spf::Outcome::TempError => Standing::Unsure,
        _ => Standing::Not,
    }
}

fn standing_of_dkim(outcome: dkim::Outcome) -> Standing {
    match outcome {
        dkim::Outcome::Pass => Standing::Passed,
        dkim::Outcome::TempError => Standing::Unsure,
        _ => Standing::Not,
    }
}

/// Returns the best standing of the identifiers that align with the author.
fn aligned<'a>(
    tree: &mut Tree<'_>,
    strict: bool,
    identifiers: impl IntoIterator<Item = (&'a str, Standing)>,
) -> Result<Standing, Stop> {
    let mut best = Standing::Not;
    for (identifier, standing) in identifiers {
        if standing <= best {
            continue;
        }
        match tree.holds(identifier, strict) {
            Ok(true) => best = standing,
            Ok(false) => {}
            Err(Stop::Unavailable) => best = best.max(Standing::Unsure),
            Err(Stop::Pending) => return Err(Stop::Pending),
        }
    }
    Ok(best)
}

/// The author's place in the tree of names.
struct Tree<'a> {
    domain: &'a str,
    inquiry: &'a mut Inquiry,
}

impl Tree<'_> {
    /// Whether an identifier is the author's domain, or of the same organization.
    fn holds(&mut self, identifier: &str, strict: bool) -> Result<bool, Stop> {
        if identifier == self.domain {
            return Ok(true);
        }
        if strict {
            return Ok(false);
        }
        let records = walk::records(self.domain, self.inquiry)?;
        let organization = walk::organization(self.domain, &records);
        // An identifier outside of the author's organization is not looked up: the names of a forger may never be
        // answered, and would turn a failure into a temporary error.
        if !domain::is_within(identifier, organization) {
            return Ok(false);
        }
        let theirs = walk::records(identifier, self.inquiry)?;
        Ok(walk::organization(identifier, &theirs) == organization)
    }
}
