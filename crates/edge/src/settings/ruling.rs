//! What holds for a mail: the settings of a listener as one of its rules makes them.

use std::path::PathBuf;
use std::sync::Arc;

use flow::{Action, Policy, Rule};

use super::listener::Listener;
use super::policy::{Attachment, Parties};
use super::refusal::Refusal;

/// What holds for a mail: a listener's settings as one of its rules makes them. Made once, when the configuration is loaded.
#[derive(Debug)]
pub struct Ruling {
    /// What each class of findings asks for.
    pub policy: Policy,
    /// How attachments are treated.
    pub attachments: Arc<[Rule]>,
    /// The largest mail, in bytes; 0 means any.
    pub message_bytes_max: u64,
    /// What becomes of `tag` when the header has been sent already.
    pub on_late_tag: Action,
    /// What a client learns of why its mail is refused.
    pub refusal: Refusal,
    /// Where mails are kept aside, if some may have to be.
    pub quarantine: Option<PathBuf>,
}

/// The rulings of a listener: without a rule, and under each of its rules.
#[derive(Debug, Clone)]
pub struct Rulings(Arc<[Arc<Ruling>]>);

impl Rulings {
    /// Those of a listener, with all attachments that there are.
    pub fn new(listener: &Listener, attachments: &[Attachment]) -> Rulings {
        let rules = std::iter::once(None).chain((0..listener.rules.len()).map(Some));
        Rulings(rules.map(|rule| Arc::new(Ruling::new(&listener.under(rule), attachments))).collect())
    }

    /// What holds under a rule.
    pub fn under(&self, rule: Option<usize>) -> Arc<Ruling> {
        let index = rule.map_or(0, |rule| rule + 1);
        self.0.get(index).unwrap_or(&self.0[0]).clone()
    }
}

impl Ruling {
    fn new(listener: &Listener, attachments: &[Attachment]) -> Ruling {
        let quarantine = listener.quarantine.clone().filter(|_| listener.asks_for(Action::Quarantine));
        Ruling {
            policy: listener.policy(),
            attachments: listener.ways(attachments),
            message_bytes_max: listener.message_bytes_max,
            on_late_tag: listener.on_late_tag,
            refusal: listener.refusal(),
            quarantine,
        }
    }
}

impl Listener {
    /// The number of the rule that means a mail, if one does.
    pub fn rule_for(&self, parties: &Parties<'_>) -> Option<usize> {
        self.rules.iter().position(|rule| rule.means(parties))
    }

    /// The listener as a rule makes it.
    pub fn under(&self, rule: Option<usize>) -> Listener {
        let mut listener = self.clone();
        let Some(rule) = rule.and_then(|index| self.rules.get(index)) else { return listener };
        for (own, ruled) in [
            (&mut listener.on_infected, rule.on_infected),
            (&mut listener.on_forbidden, rule.on_forbidden),
            (&mut listener.on_limit, rule.on_limit),
            (&mut listener.on_ambiguous, rule.on_ambiguous),
        ] {
            *own = ruled.or(*own);
        }
        listener.on_encrypted = rule.on_encrypted.unwrap_or(self.on_encrypted);
        listener.on_external = rule.on_external.unwrap_or(self.on_external);
        listener.on_partial = rule.on_partial.unwrap_or(self.on_partial);
        listener.on_malformed = rule.on_malformed.unwrap_or(self.on_malformed);
        listener.message_bytes_max = match (rule.message_bytes_max.unwrap_or(0), self.message_bytes_max) {
            (0, own) => own,
            (ruled, 0) => ruled,
            (ruled, own) => ruled.min(own),
        };
        if let Some(attachments) = &rule.attachments {
            listener.attachments.clone_from(attachments);
        }
        listener
    }

    /// The ways that its attachments take, in their order.
    pub fn ways(&self, attachments: &[Attachment]) -> Arc<[Rule]> {
        let named = |name: &String| attachments.iter().find(|attachment| attachment.name == *name);
        self.attachments.iter().filter_map(named).map(Attachment::rule).collect()
    }

    /// Whether some mail of it may have to be kept aside.
    pub fn quarantines(&self) -> bool {
        let rules = std::iter::once(None).chain((0..self.rules.len()).map(Some));
        rules.into_iter().any(|rule| self.under(rule).asks_for(Action::Quarantine))
    }
}
