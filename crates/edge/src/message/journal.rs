//! Records about a mail at every door: metrics, log fields, and the facts kept with it in the quarantine.

use std::net::IpAddr;

use flow::{Action, Verdict};

use crate::message::authenticity;
use crate::message::passage::{Means, Passage};
use crate::message::spam;
use crate::message::trace;
use crate::metrics::{Count, Metrics};
use crate::quarantine::{Envelope, Facts};

/// Counts a mail by what was done with it; `taken` is false where it is to come again.
pub fn count(metrics: &Metrics, passage: &Passage, action: Action, taken: bool) {
    metrics.messages_total.add(1);
    metrics.content_bytes_total.add(passage.received());
    metrics.inspect_seconds.add(passage.inspect_time().as_micros() as u64);
    metrics.messages_streamed_total.add(u64::from(passage.is_streamed()));
    let counted = match action {
        Action::Reject => &metrics.messages_rejected_total,
        _ if !taken => &metrics.messages_deferred_total,
        Action::Quarantine => &metrics.messages_quarantined_total,
        Action::Blank => &metrics.messages_blanked_total,
        Action::Tag => &metrics.messages_tagged_total,
        Action::Pass => &metrics.messages_passed_total,
    };
    counted.add(1);
}

/// Counts what rules say of a mail that is over.
pub fn count_score(metrics: &Metrics, passage: &Passage, verdict: &Verdict) {
    if passage.ruling().spam.is_none() {
        return;
    }
    let Some(score) = &verdict.score else { return metrics.spam_unscored_total.add(1) };
    metrics.spam_scored_total.add(1);
    metrics.spam_found_total.add(u64::from(score.is_spam()));
    metrics.spam_seconds.add(score.micros);
}

/// Counts what is known of who has sent a mail that is over.
pub fn count_sender(means: &Means, verdict: &Verdict) {
    let Some(found) = &verdict.authenticity else { return };
    let metrics = &means.metrics;
    if let Some((evaluations, evaluation)) = means.evaluations.as_ref().zip(found.evaluation.as_ref()) {
        evaluations.count(evaluation);
    }
    let count = |counted: &Count, is_so: bool| counted.add(u64::from(is_so));
    metrics.authenticated_total.add(1);
    count(&metrics.authentication_spf_failed_total, &*found.spf == "fail");
    count(&metrics.authentication_dkim_passed_total, &*found.dkim == "pass");
    count(&metrics.authentication_dmarc_passed_total, &*found.dmarc == "pass");
    count(&metrics.authentication_dmarc_failed_total, &*found.dmarc == "fail");
    let is_unsure = [&found.spf, &found.dkim, &found.dmarc, &found.arc].iter().any(|result| &***result == "temperror");
    count(&metrics.authentication_unsure_total, is_unsure);
}

/// Findings, in one line.
pub fn found(verdict: &Verdict) -> String {
    verdict.findings.iter().map(trace::describe).collect::<Vec<_>>().join("; ")
}

/// The facts of a mail that came in at `listener` and was meant for `hop`; its envelope or its mailbox comes to them.
pub fn facts(id: &str, client: IpAddr, (listener, hop): (String, String), verdict: &Verdict) -> Facts {
    Facts {
        format: crate::quarantine::FORMAT,
        id: id.into(),
        date: crate::quarantine::now(),
        client,
        hello: String::new(),
        inside: false,
        account: None,
        listener,
        hop,
        mailbox: None,
        envelope: Envelope::default(),
        trace: String::new(),
        found: kept_for(verdict),
        releases: Vec::new(),
        trained: Vec::new(),
    }
}

/// Why a mail is kept aside: what was found, what its sender's policy asks for, and its score where it is spam.
fn kept_for(verdict: &Verdict) -> Vec<String> {
    let score = verdict.score.as_ref().filter(|score| score.is_spam()).map(spam::reason);
    verdict.findings.iter().map(trace::describe).chain(authenticity::reason(verdict)).chain(score).collect()
}
