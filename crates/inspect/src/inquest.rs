//! Questions of spam rules to the network about one mail: lists in the DNS, and authentication of its sender.
//!
//! An [`Inquest`] is begun when the mail is complete. Its questions go out ([`Inquest::ask`]), answers come in any order
//! ([`Inquest::answer`]), and when it is [settled](Inquest::is_settled) the rules can be asked. Bounds: those of
//! [`network::Limits`](rules::spam::network::Limits) and [`auth::Limits`]. What cannot be looked up lists nobody and
//! authenticates nobody.
//!
//! Who has sent the mail is what its header says that the site's own servers have seen, as in SpamAssassin. If that is what the
//! door has told too, the mail is not authenticated twice.

use auth::message::LineEnds;
use auth::{Check, Context, Limits, Results, arc, dkim, dmarc, spf};
use flow::{Answer, Ask};
use rules::spam::authentic::{Authentic, Dmarc, Sender, Signature, Spf};
use rules::spam::message::Message;
use rules::spam::network::Inquiry;
use rules::spam::run::Engine;

/// The number of the first question of a check of ours, and of the first of the rules. Those of the mail's own authentication
/// are below.
const CHECK_ID: u32 = 1 << 20;
const RULES_ID: u32 = 1 << 21;

/// Results of authentication, with the checked sender.
#[derive(Debug, Clone)]
pub struct Authenticated {
    /// The checked sender.
    pub sender: Sender,
    /// The results.
    pub results: Results,
}

/// Questions of rules about one mail.
#[derive(Debug)]
pub struct Inquest {
    inquiry: Inquiry,
    /// The check of the sender, until it has results.
    check: Option<Box<Check>>,
}

impl Inquest {
    /// Begins with a mail: as the rules see it, and its bytes without what was put in front of it. `receiver` is our name,
    /// `now` is in seconds since 1970, and `found` is what is known of its sender already.
    pub fn new(
        engine: &Engine,
        mail: &Message,
        bytes: &[u8],
        receiver: &str,
        now: i64,
        found: Option<&Authenticated>,
    ) -> Inquest {
        let inquiry = engine.inquire(mail, now);
        let mut inquest = Inquest { inquiry, check: None };
        match found.filter(|found| is_same(&found.sender, inquest.inquiry.sender())) {
            Some(found) => inquest.learn(engine, &found.results),
            None => {
                inquest.check = Some(Box::new(check(inquest.inquiry.sender(), bytes, receiver, now)));
                inquest.advance(engine);
            }
        }
        inquest
    }

    /// The next question, if there is one now.
    pub fn ask(&mut self) -> Option<Ask> {
        if let Some(ask) = self.check.as_mut().and_then(|check| check.ask()) {
            return Some(Ask { id: CHECK_ID.checked_add(ask.id)?, ..ask });
        }
        let ask = self.inquiry.ask()?;
        Some(Ask { id: RULES_ID.checked_add(ask.id)?, ..ask })
    }

    /// Takes an answer; one to anything else is passed over.
    pub fn answer(&mut self, engine: &Engine, answer: Answer) {
        if let Some(id) = answer.id.checked_sub(RULES_ID) {
            return engine.answer(&mut self.inquiry, Answer { id, ..answer });
        }
        let Some(id) = answer.id.checked_sub(CHECK_ID) else { return };
        self.check.iter_mut().for_each(|check| check.answer(Answer { id, ..answer.clone() }));
        self.advance(engine);
    }

    /// Whether all is known.
    pub fn is_settled(&self) -> bool {
        self.check.is_none() && self.inquiry.is_settled()
    }

    /// Whether it is known who has sent the mail.
    pub fn is_authenticated(&self) -> bool {
        self.check.is_none()
    }

    /// Answers to the questions of the rules.
    pub fn inquiry(&self) -> &Inquiry {
        &self.inquiry
    }

    /// Looks whether it is known who has sent the mail.
    fn advance(&mut self, engine: &Engine) {
        let results = self.check.as_mut().and_then(|check| check.results().cloned());
        if let Some(results) = results {
            self.check = None;
            self.learn(engine, &results);
        }
    }

    fn learn(&mut self, engine: &Engine, results: &Results) {
        let authentic = authentic(results, self.inquiry.sender());
        engine.lists().learn(&mut self.inquiry, authentic);
    }
}

/// Whether SPF is asked the same.
fn is_same(one: &Sender, other: &Sender) -> bool {
    let envelope = |sender: &Sender| sender.envelope.as_deref().unwrap_or_default().to_ascii_lowercase();
    one.client == other.client && one.helo.eq_ignore_ascii_case(&other.helo) && envelope(one) == envelope(other)
}

fn check(sender: &Sender, bytes: &[u8], receiver: &str, now: i64) -> Check {
    // As the first line ends, so do all.
    let first = bytes.iter().position(|&byte| byte == b'\n');
    let is_wire = first.is_some_and(|at| bytes.get(..at).is_some_and(|line| line.ends_with(b"\r")));
    let context = Context {
        client: sender.client,
        helo: sender.helo.clone(),
        sender: sender.envelope.clone().unwrap_or_default(),
        receiver: receiver.into(),
        now: u64::try_from(now).unwrap_or(0),
        ends: if is_wire { LineEnds::Crlf } else { LineEnds::Any },
    };
    let mut check = Check::new(context, Limits::default());
    check.feed(bytes);
    check.finish();
    check
}

/// Results in the form for rules.
fn authentic(results: &Results, sender: &Sender) -> Authentic {
    let has_client = sender.client.is_some();
    Authentic {
        spf: Some(spf_of(results.mailfrom.outcome)).filter(|_| has_client && sender.envelope.is_some()),
        helo: Some(spf_of(results.helo.outcome)).filter(|_| has_client && sender.has_helo()),
        signatures: results.dkim.iter().map(signature_of).collect(),
        has_chain: results.arc.outcome != arc::Outcome::None,
        is_chain_valid: results.arc.outcome == arc::Outcome::Pass,
        dmarc: dmarc_of(&results.dmarc).filter(|_| has_client),
    }
}

fn spf_of(outcome: spf::Outcome) -> Spf {
    match outcome {
        spf::Outcome::None => Spf::None,
        spf::Outcome::Neutral => Spf::Neutral,
        spf::Outcome::Pass => Spf::Pass,
        spf::Outcome::Fail => Spf::Fail,
        spf::Outcome::SoftFail => Spf::SoftFail,
        spf::Outcome::TempError => Spf::TempError,
        spf::Outcome::PermError => Spf::PermError,
    }
}

fn signature_of(report: &dkim::Report) -> Signature {
    Signature {
        domain: report.domain.clone(),
        identity: report.identity.clone(),
        selector: report.selector.clone(),
        is_valid: report.outcome == dkim::Outcome::Pass,
        is_unavailable: report.outcome == dkim::Outcome::TempError,
        key_bits: report.key_bits,
        is_testing: report.testing,
    }
}

fn dmarc_of(report: &dmarc::Report) -> Option<Dmarc> {
    match (report.outcome, report.disposition) {
        (dmarc::Outcome::None, _) if report.domain.is_empty() => None,
        (dmarc::Outcome::None, _) => Some(Dmarc::Missing),
        (dmarc::Outcome::Pass, _) => Some(Dmarc::Pass),
        (dmarc::Outcome::Fail, Some(dmarc::Policy::Reject)) => Some(Dmarc::Reject),
        (dmarc::Outcome::Fail, Some(dmarc::Policy::Quarantine)) => Some(Dmarc::Quarantine),
        (dmarc::Outcome::Fail, _) => Some(Dmarc::None),
        (dmarc::Outcome::TempError | dmarc::Outcome::PermError, _) => None,
    }
}
