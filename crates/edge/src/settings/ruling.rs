//! Rulings: the settings of a listener as one of its rules makes them.

use std::path::PathBuf;
use std::sync::Arc;

use flow::{Action, Policy, Rule, Spared};

use super::authentication::{Authentication, AuthenticationSettings};
use super::content::Content;
use super::listener::Listener;
use super::policy::Attachment;
use super::refusal::Refusal;
use super::spam::{Spam, SpamSettings};

/// Settings for a mail: the listener's as one of its rules makes them. Made once, when the configuration is loaded.
#[derive(Debug, Clone)]
pub struct Ruling {
    /// Action for each class of findings.
    pub policy: Policy,
    /// How attachments are treated.
    pub attachments: Arc<[Rule]>,
    /// The largest mail, in bytes; 0 means any.
    pub message_bytes_max: u64,
    /// Action in place of `tag` when the header has been sent already.
    pub on_late_tag: Action,
    /// Reason that a client is given when its mail is refused.
    pub refusal: Refusal,
    /// Whether mails that go on have a field that says they were inspected.
    pub virus_scanned: bool,
    /// Where mails are kept aside, if some may have to be.
    pub quarantine: Option<PathBuf>,
    /// Score settings; none where mails are not scored.
    pub spam: Option<Spam>,
    /// Authentication settings; none where mails are not authenticated.
    pub authentication: Option<Authentication>,
}

/// The rulings of a listener: without a rule, and under each of its rules.
#[derive(Debug, Clone)]
pub struct Rulings {
    all: Arc<[Arc<Ruling>]>,
    /// The first of them, with faults and malware spared.
    sparing: [Arc<Ruling>; 2],
}

impl Rulings {
    /// Rulings of a listener, with all attachments that there are, and the settings for scores and authentication.
    pub fn new(
        listener: &Listener,
        attachments: &[Attachment],
        spam: Option<&SpamSettings>,
        authentication: Option<&AuthenticationSettings>,
    ) -> Rulings {
        let spam = spam.filter(|_| listener.protocol().is_scored());
        let ruling = |rule| {
            let content = listener.under(rule);
            let authentication = listener.authenticates(&content, authentication);
            Arc::new(Ruling::new(&content, attachments, content.scores(spam), authentication))
        };
        let all: Arc<[_]> = std::iter::once(None).chain((0..listener.rules().len()).map(Some)).map(ruling).collect();
        let sparing = [Spared::Faults, Spared::Malware].map(|spared| {
            let ruling = Ruling::clone(&all[0]);
            Arc::new(Ruling { policy: ruling.policy.sparing(spared), ..ruling })
        });
        Rulings { all, sparing }
    }

    /// Ruling under a rule.
    pub fn under(&self, rule: Option<usize>) -> Arc<Ruling> {
        let index = rule.map_or(0, |rule| rule + 1);
        self.all.get(index).unwrap_or(&self.all[0]).clone()
    }

    /// Ruling without a rule for content that some findings do not stop.
    pub fn sparing(&self, spared: Spared) -> Arc<Ruling> {
        let [faults, malware] = &self.sparing;
        match spared {
            Spared::Nothing => self.under(None),
            Spared::Faults => faults.clone(),
            Spared::Malware => malware.clone(),
        }
    }
}

impl Ruling {
    /// Ruling for a mail that is delivered already, and only learned: no action is taken.
    pub fn to_learn(spam: Spam) -> Ruling {
        Ruling {
            policy: Policy::default(),
            attachments: Arc::default(),
            message_bytes_max: 0,
            on_late_tag: Action::Pass,
            refusal: Refusal::Id,
            virus_scanned: false,
            quarantine: None,
            spam: Some(spam),
            authentication: None,
        }
    }

    fn new(
        content: &Content,
        attachments: &[Attachment],
        spam: Option<Spam>,
        authentication: Option<Authentication>,
    ) -> Ruling {
        let keeps = content.asks_for(Action::Quarantine)
            || spam.as_ref().is_some_and(|spam| spam.asks_for(Action::Quarantine))
            || authentication.as_ref().is_some_and(|authentication| authentication.asks_for(Action::Quarantine));
        Ruling {
            policy: content.policy.clone(),
            attachments: content.ways(attachments),
            message_bytes_max: content.message_bytes_max,
            on_late_tag: content.on_late_tag,
            refusal: content.refusal.clone(),
            virus_scanned: content.virus_scanned,
            quarantine: content.quarantine.clone().filter(|_| keeps),
            spam,
            authentication,
        }
    }
}
