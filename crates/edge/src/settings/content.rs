//! Treatment of the mails of a listener: the action for each class of findings, and the quarantine.

use std::path::PathBuf;
use std::sync::Arc;

use flow::{Action, Policy, Rule};
use serde::Deserialize;

use super::action::{action, some_action};
use super::authentication::{Authentication, AuthenticationSettings, AuthenticationTerms};
use super::keys::{Fault, Keys};

use super::policy::{Attachment, MailRule, SignatureTerms, signatures};
use super::protocol::Protocol;
use super::refusal::Refusal;
use super::size::size;
use super::spam::{Spam, SpamSettings, SpamTerms};

/// The keys, as they are written.
#[derive(Debug, Deserialize)]
struct Written {
    #[serde(default, deserialize_with = "some_action")]
    on_infected: Option<Action>,
    #[serde(default, rename = "signature")]
    signatures: Vec<SignatureTerms>,
    #[serde(default, deserialize_with = "some_action")]
    on_forbidden: Option<Action>,
    #[serde(default, deserialize_with = "some_action")]
    on_limit: Option<Action>,
    #[serde(default, deserialize_with = "some_action")]
    on_ambiguous: Option<Action>,
    #[serde(default, deserialize_with = "some_action")]
    on_unopened: Option<Action>,
    #[serde(default, deserialize_with = "action")]
    on_encrypted: Action,
    #[serde(default, deserialize_with = "action")]
    on_external: Action,
    #[serde(default, deserialize_with = "action")]
    on_partial: Action,
    #[serde(default, deserialize_with = "action")]
    on_malformed: Action,
    #[serde(default = "reject", deserialize_with = "action")]
    on_late_tag: Action,
    quarantine: Option<PathBuf>,
    #[serde(default)]
    attachments: Vec<String>,
    #[serde(default, deserialize_with = "size")]
    message_bytes_max: u64,
    refusal: Option<Refusal>,
    #[serde(default)]
    virus_scanned: bool,
    spam: Option<SpamTerms>,
    authentication: Option<AuthenticationTerms>,
}

fn reject() -> Action {
    Action::Reject
}

/// Treatment of mails; the default depends on the protocol.
#[derive(Debug, Clone)]
pub struct Content {
    /// Action for each class of findings.
    pub policy: Policy,
    /// Action in place of `tag` when the header has been sent already: `reject` or `pass`.
    pub on_late_tag: Action,
    /// The folder for `quarantine`.
    pub quarantine: Option<PathBuf>,
    /// Names of `[[attachment]]` tables that apply, in this order.
    pub attachments: Vec<String>,
    /// The largest mail, in bytes; 0 means any.
    pub message_bytes_max: u64,
    /// Reason that a client is given when its mail is refused.
    pub refusal: Refusal,
    /// Whether mails that go on have a field that says they were inspected.
    pub virus_scanned: bool,
    /// Score settings of the listener, and of the rule.
    pub spam: Option<SpamTerms>,
    /// See [`Content::spam`].
    pub ruled_spam: Option<SpamTerms>,
    /// Authentication settings of the listener, and of the rule.
    pub authentication: Option<AuthenticationTerms>,
    /// See [`Content::authentication`].
    pub ruled_authentication: Option<AuthenticationTerms>,
}

impl Content {
    /// Takes its keys.
    pub(super) fn read(keys: &mut Keys<'_>, protocol: Protocol) -> Result<Content, Fault> {
        let written: Written = keys.take()?;
        // Who reads a mailbox or a page has not sent what is in it, and has to know; and the size of a message cannot change.
        let (usual, refusal) = match protocol.announces_sizes() {
            true => (Action::Blank, Refusal::Name),
            false if matches!(protocol, Protocol::Http | Protocol::Icap) => (Action::Reject, Refusal::Name),
            false => (Action::Reject, Refusal::Id),
        };
        // Who asks for a score is told a score.
        let usual = if protocol == Protocol::Spamd { Action::Pass } else { usual };
        // Such files are everyday downloads: packs of git, images of disks.
        let unopened = if matches!(protocol, Protocol::Http | Protocol::Icap) { Action::Pass } else { usual };
        let policy = Policy {
            on_infected: written.on_infected.unwrap_or(usual),
            signatures: signatures(&written.signatures),
            on_forbidden: written.on_forbidden.unwrap_or(usual),
            on_limit: written.on_limit.unwrap_or(usual),
            on_ambiguous: written.on_ambiguous.unwrap_or(usual),
            on_unopened: written.on_unopened.unwrap_or(unopened),
            on_encrypted: written.on_encrypted,
            on_external: written.on_external,
            on_partial: written.on_partial,
            on_malformed: written.on_malformed,
        };
        Ok(Content {
            policy,
            on_late_tag: written.on_late_tag,
            quarantine: written.quarantine,
            attachments: written.attachments,
            message_bytes_max: written.message_bytes_max,
            refusal: written.refusal.unwrap_or(refusal),
            virus_scanned: written.virus_scanned,
            spam: written.spam,
            ruled_spam: None,
            authentication: written.authentication,
            ruled_authentication: None,
        })
    }

    /// Treatment of mails to which a rule applies.
    pub fn under(&self, rule: &MailRule) -> Content {
        let own = &self.policy;
        let signatures = rule.signatures.as_deref().map(signatures);
        let policy = Policy {
            on_infected: rule.on_infected.unwrap_or(own.on_infected),
            signatures: signatures.unwrap_or_else(|| own.signatures.clone()),
            on_forbidden: rule.on_forbidden.unwrap_or(own.on_forbidden),
            on_limit: rule.on_limit.unwrap_or(own.on_limit),
            on_ambiguous: rule.on_ambiguous.unwrap_or(own.on_ambiguous),
            on_unopened: rule.on_unopened.unwrap_or(own.on_unopened),
            on_encrypted: rule.on_encrypted.unwrap_or(own.on_encrypted),
            on_external: rule.on_external.unwrap_or(own.on_external),
            on_partial: rule.on_partial.unwrap_or(own.on_partial),
            on_malformed: rule.on_malformed.unwrap_or(own.on_malformed),
        };
        let message_bytes_max = match (rule.message_bytes_max.unwrap_or(0), self.message_bytes_max) {
            (0, own) => own,
            (ruled, 0) => ruled,
            (ruled, own) => ruled.min(own),
        };
        let attachments = rule.attachments.as_ref().unwrap_or(&self.attachments).clone();
        Content {
            policy,
            message_bytes_max,
            attachments,
            ruled_spam: rule.spam.clone(),
            ruled_authentication: rule.authentication.clone(),
            ..self.clone()
        }
    }

    /// The ways that its attachments take, in their order.
    pub fn ways(&self, attachments: &[Attachment]) -> Arc<[Rule]> {
        let named = |name: &String| attachments.iter().find(|attachment| attachment.name == *name);
        self.attachments.iter().filter_map(named).map(Attachment::rule).collect()
    }

    /// Score settings in force; none where mails are not scored.
    pub fn scores(&self, global: Option<&SpamSettings>) -> Option<Spam> {
        global?.under([self.ruled_spam.as_ref(), self.spam.as_ref()])
    }

    /// Authentication settings in force; none where mails are not authenticated.
    pub fn authenticates(&self, global: Option<&AuthenticationSettings>, usual: bool) -> Option<Authentication> {
        global?.under([self.ruled_authentication.as_ref(), self.authentication.as_ref()], usual)
    }

    /// Whether some finding asks for this.
    pub fn asks_for(&self, action: Action) -> bool {
        self.policy.asks_for(action)
    }
}
