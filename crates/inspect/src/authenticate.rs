//! Whether a mail is from whom it says: an observer that hashes the mail as it comes, and asks the DNS.
//!
//! Nothing of a body is kept, so a mail of any size is verified. Bounds: those of [`auth::Limits`]. What cannot be looked up is
//! a temporary error, from which nothing follows.

use auth::message::LineEnds;
use auth::{Check, Context, Limits, Results, dkim, dmarc, report, spf};
use flow::{Action, Answer, Ask, Authenticating, Authenticity, Evaluation, Flow, Observation, Published, Signature};
use rules::spam::authentic::Sender;

use crate::inquest::Authenticated;

/// A mail that is authenticated while it comes.
///
/// The order of calls: [`take`](Authentication::take) as it comes and [`finish`](Authentication::finish); meanwhile
/// [`ask`](Authentication::ask) until there is no more, and [`answer`](Authentication::answer); at the end
/// [`outcome`](Authentication::outcome), which is there when all answers are.
#[derive(Debug)]
pub struct Authentication {
    terms: Authenticating,
    hello: Box<str>,
    sender: Sender,
    check: Check,
}

impl Authentication {
    /// Nothing of it has come. `now` is in seconds since 1970.
    pub fn new(terms: Authenticating, flow: &Flow, now: i64) -> Authentication {
        let context = Context {
            client: terms.client,
            helo: flow.hello.clone(),
            sender: flow.sender.clone(),
            receiver: terms.authserv_id.clone(),
            now: u64::try_from(now).unwrap_or(0),
            ends: LineEnds::Crlf,
        };
        let envelope = Some(flow.sender.clone()).filter(|sender| !sender.is_empty());
        let sender = Sender { client: terms.client, helo: flow.hello.clone(), envelope };
        Authentication { terms, hello: flow.hello.clone(), sender, check: Check::new(context, Limits::default()) }
    }

    /// Takes more of it.
    pub fn take(&mut self, bytes: &[u8]) {
        self.check.feed(bytes);
    }

    /// It is complete.
    pub fn finish(&mut self) {
        self.check.finish();
    }

    /// The next question, if there is one now.
    pub fn ask(&mut self) -> Option<Ask> {
        self.check.ask()
    }

    /// Takes an answer.
    pub fn answer(&mut self, answer: Answer) {
        self.check.answer(answer);
    }

    /// All that was found, for whoever asks about the same sender.
    pub fn found(&mut self) -> Option<Authenticated> {
        let results = self.check.results()?.clone();
        Some(Authenticated { sender: self.sender.clone(), results })
    }

    /// The results, once the mail is complete and no question is open.
    pub fn outcome(&mut self) -> Option<Authenticity> {
        let questions = u32::try_from(self.check.questions()).unwrap_or(u32::MAX);
        let results = self.check.results()?;
        let (action, reason) = asked_for(&self.terms, results);
        let methods = report::methods(&self.hello, results);
        let forged = results.forged.iter().filter_map(|&index| u32::try_from(index).ok());
        Some(Authenticity {
            spf: results.mailfrom.outcome.name().into(),
            dkim: best(&results.dkim).into(),
            dmarc: results.dmarc.outcome.name().into(),
            arc: results.arc.outcome.name().into(),
            methods: methods.into_iter().take(Authenticity::METHODS_MAX).map(Into::into).collect(),
            forged: (!results.header_cut).then(|| forged.collect()),
            action,
            reason: reason.into(),
            questions,
            evaluation: evaluation(&self.terms, self.sender.envelope.is_none(), results).map(Box::new),
        })
    }
}

/// The evaluation of DMARC for reports to the author's domain.
fn evaluation(terms: &Authenticating, is_null: bool, results: &Results) -> Option<Evaluation> {
    let (dmarc, spf) = (&results.dmarc, &results.mailfrom);
    let (record, client) = (dmarc.record.as_ref()?, terms.client?);
    let (disposition, reason) = applied(terms, dmarc);
    let mut signatures: Vec<&dkim::Report> = results.dkim.iter().filter(|one| !one.domain.is_empty()).collect();
    signatures.sort_by_key(|one| (one.outcome != dkim::Outcome::Pass, one.domain != dmarc.domain));
    let signature = |one: &dkim::Report| Signature {
        domain: one.domain.clone(),
        selector: one.selector.clone(),
        result: one.outcome.name().into(),
    };
    Some(Evaluation {
        policy_domain: dmarc.policy_domain.clone(),
        published: Published {
            p: record.policy.name().into(),
            sp: record.subdomains.name().into(),
            np: record.missing.name().into(),
            strict_dkim: record.strict_dkim,
            strict_spf: record.strict_spf,
            testing: record.testing,
        },
        observation: Observation {
            client,
            disposition: disposition.into(),
            reason: reason.into(),
            dkim_aligned: dmarc.dkim_aligned,
            spf_aligned: dmarc.spf_aligned,
            header_from: dmarc.domain.clone(),
            envelope_from: if is_null { Box::default() } else { spf.domain.clone() },
            spf_domain: spf.domain.clone(),
            spf: spf.outcome.name().into(),
            signatures: signatures.into_iter().take(Observation::SIGNATURES_MAX).map(signature).collect(),
        },
    })
}

/// What a policy comes to here, as reports say it, and why that is not what was published.
fn applied(terms: &Authenticating, dmarc: &dmarc::Report) -> (&'static str, &'static str) {
    let published = dmarc.policy.unwrap_or(dmarc::Policy::None);
    let is_enforced = published != dmarc::Policy::None;
    let Some(requested) = dmarc.disposition else {
        return match dmarc.outcome {
            dmarc::Outcome::Pass if is_enforced => ("pass", ""),
            dmarc::Outcome::TempError if is_enforced => ("none", "other"),
            _ => ("none", ""),
        };
    };
    let disposition = match by_author(terms, dmarc) {
        Action::Pass => dmarc::Policy::None,
        Action::Tag | Action::Blank | Action::Quarantine => dmarc::Policy::Quarantine,
        Action::Reject => dmarc::Policy::Reject,
    };
    let reason = match disposition {
        policy if policy == published => "",
        policy if policy == requested && dmarc.testing => "policy_test_mode",
        _ => "local_policy",
    };
    (disposition.name(), reason)
}

/// Action for the author's policy.
const fn by_author(terms: &Authenticating, dmarc: &dmarc::Report) -> Action {
    match dmarc.disposition {
        Some(dmarc::Policy::Reject) => terms.on_dmarc_reject,
        Some(dmarc::Policy::Quarantine) => terms.on_dmarc_quarantine,
        Some(dmarc::Policy::None) | None => Action::Pass,
    }
}

/// The best of all signatures: one that passes is enough.
fn best(reports: &[dkim::Report]) -> &'static str {
    const ORDER: [dkim::Outcome; 6] = [
        dkim::Outcome::Pass,
        dkim::Outcome::TempError,
        dkim::Outcome::Fail,
        dkim::Outcome::Policy,
        dkim::Outcome::PermError,
        dkim::Outcome::Neutral,
    ];
    let has = |wanted: &dkim::Outcome| reports.iter().any(|report| report.outcome == *wanted);
    ORDER.into_iter().find(has).map_or("none", dkim::Outcome::name)
}

/// Action for the results, with its reason. Uncertain results ask for nothing.
fn asked_for(terms: &Authenticating, results: &Results) -> (Action, String) {
    let dmarc = &results.dmarc;
    let by_author = by_author(terms, dmarc);
    // A mail that was forwarded fails, and its author's signature says that it is none the worse for that.
    let is_spf_fail = results.mailfrom.outcome == spf::Outcome::Fail && dmarc.outcome != dmarc::Outcome::Pass;
    let by_sender = if is_spf_fail { terms.on_spf_fail } else { Action::Pass };
    match by_author.max(by_sender) {
        Action::Pass => (Action::Pass, String::new()),
        action if action == by_author => (action, format!("DMARC policy of {}", dmarc.policy_domain)),
        action => (action, format!("SPF policy of {}", results.mailfrom.domain)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use flow::{Outcome, Record, RecordKind, Security};

    use super::*;

    const MAIL: &[u8] = b"From: a@author.example\r\nAuthentication-Results: mx.test; dmarc=pass\r\n\r\nbody\r\n";

    fn terms() -> Authenticating {
        Authenticating {
            authserv_id: "mx.test".into(),
            client: Some(IpAddr::from([192, 0, 2, 9])),
            on_spf_fail: Action::Quarantine,
            on_dmarc_reject: Action::Reject,
            on_dmarc_quarantine: Action::Quarantine,
        }
    }

    /// Authenticates the mail with these text records; nothing else exists in the DNS.
    fn authenticate(texts: &[(&str, Option<&str>)]) -> Authenticity {
        let flow = Flow { hello: "client.example".into(), sender: "b@sender.example".into(), ..Flow::default() };
        let mut mail = Authentication::new(terms(), &flow, 1_700_000_000);
        MAIL.chunks(7).for_each(|piece| mail.take(piece));
        mail.finish();
        for _ in 0..1_000 {
            if let Some(outcome) = mail.outcome() {
                return outcome;
            }
            let ask = mail.ask().expect("it asks, or it is done");
            let text = texts.iter().find(|(name, _)| *name == &*ask.question.name);
            let outcome = match text.filter(|_| ask.question.kind == RecordKind::Txt) {
                Some((_, Some(text))) => Outcome::Records(vec![Record::Txt(text.as_bytes().into())]),
                Some((_, None)) => Outcome::Unavailable,
                None => Outcome::NoName,
            };
            mail.answer(Answer { id: ask.id, outcome, security: Security::Unknown });
        }
        panic!("it does not end");
    }

    #[test]
    fn policies_ask_for_what_the_terms_say_and_the_heavier_counts() {
        let (spf, dmarc) = (("sender.example", Some("v=spf1 -all")), "_dmarc.author.example");
        let told = |texts: &[(&str, Option<&str>)]| {
            let told = authenticate(texts);
            (told.action, told.reason.to_string(), [told.spf, told.dmarc].map(String::from))
        };
        let results = |spf: &str, dmarc: &str| [spf.to_string(), dmarc.to_string()];
        assert_eq!(told(&[]), (Action::Pass, String::new(), results("none", "none")));
        let (action, reason, results_of) = told(&[spf]);
        assert_eq!((action, &*reason), (Action::Quarantine, "SPF policy of sender.example"));
        assert_eq!(results_of, results("fail", "none"));
        let both = told(&[spf, (dmarc, Some("v=DMARC1; p=reject"))]);
        assert_eq!(both, (Action::Reject, "DMARC policy of author.example".into(), results("fail", "fail")));
        let passes = [("sender.example", Some("v=spf1 +all")), (dmarc, Some("v=DMARC1; p=reject"))];
        for (texts, wanted) in [
            (&[spf, (dmarc, Some("v=DMARC1; p=reject"))][..], ("reject", "")),
            (&[(dmarc, Some("v=DMARC1; p=reject; t=y"))], ("quarantine", "policy_test_mode")),
            (&[(dmarc, Some("v=DMARC1; p=none"))], ("none", "")),
            (&passes, ("reject", "")),
        ] {
            let evaluation = authenticate(texts).evaluation.unwrap();
            let Observation { disposition, reason, header_from, spf_domain, .. } = &evaluation.observation;
            assert_eq!((&**disposition, &**reason), wanted, "{texts:?}");
            assert_eq!((&**header_from, &**spf_domain), ("author.example", "sender.example"));
            assert_eq!(&*evaluation.policy_domain, "author.example");
        }
        assert_eq!(authenticate(&[spf]).evaluation, None, "no policy");
        let tried = told(&[(dmarc, Some("v=DMARC1; p=none"))]);
        assert_eq!((tried.0, tried.2), (Action::Pass, results("none", "fail")));
    }

    #[test]
    fn what_cannot_be_looked_up_asks_for_nothing() {
        let told = authenticate(&[("sender.example", None), ("_dmarc.author.example", None)]);
        assert_eq!((told.action, &*told.spf, &*told.dmarc), (Action::Pass, "temperror", "temperror"));
        assert_eq!(told.forged, Some(vec![0]));
        assert!(told.methods.iter().any(|method| method.starts_with("dkim=none")), "{:?}", told.methods);
    }
}
