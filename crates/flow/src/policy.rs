//! From findings to what is to be done.

use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use stream::{Class, Finding};

use crate::Glob;

/// The treatment of content in which something was found. Ordered by weight: of several, the heaviest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum Action {
    /// Deliver unchanged.
    #[default]
    Pass,
    /// Deliver, marked by a header field.
    Tag,
    /// Deliver with the part overwritten.
    Blank,
    /// Keep a copy aside and do not deliver.
    Quarantine,
    /// Refuse.
    Reject,
}

impl Action {
    /// The action in lower case, as it stands in configuration and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Pass => "pass",
            Action::Tag => "tag",
            Action::Blank => "blank",
            Action::Quarantine => "quarantine",
            Action::Reject => "reject",
        }
    }
}

/// Findings that do not stop content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Spared {
    /// None.
    #[default]
    Nothing,
    /// Faults of content that cannot be inspected.
    Faults,
    /// Faults, and malware.
    Malware,
}

/// The action for matches of some signatures, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureRule {
    /// Patterns for the whole name, as it is reported.
    pub names: Vec<Glob>,
    /// The action.
    pub action: Action,
}

/// The action for each class of findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// A signature matched.
    pub on_infected: Action,
    /// In place of that for some signatures: the first that means a name decides.
    pub signatures: Arc<[SignatureRule]>,
    /// A rule of the operator stands against it.
    pub on_forbidden: Action,
    /// A limit was reached, so that not everything was inspected.
    pub on_limit: Action,
    /// Two readers could disagree and only one reading was inspected.
    pub on_ambiguous: Action,
    /// Content of a format without a reader.
    pub on_unopened: Action,
    /// Content that needs a key.
    pub on_encrypted: Action,
    /// Content that has its reader fetch more from elsewhere.
    pub on_external: Action,
    /// All was inspected, except by signatures that need more of one object than is kept.
    pub on_partial: Action,
    /// Broken or cut-off content.
    pub on_malformed: Action,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            on_infected: Action::Reject,
            signatures: Arc::default(),
            on_forbidden: Action::Reject,
            on_limit: Action::Reject,
            on_ambiguous: Action::Reject,
            on_unopened: Action::Reject,
            on_encrypted: Action::Pass,
            on_external: Action::Pass,
            on_partial: Action::Pass,
            on_malformed: Action::Pass,
        }
    }
}

impl Policy {
    /// The same, with nothing worse than a mark for what is spared.
    pub fn sparing(&self, what: Spared) -> Policy {
        let at_least = |least: Spared, action: Action| if what >= least { action.min(Action::Tag) } else { action };
        let spared = |action| at_least(Spared::Faults, action);
        let of_match = |action| at_least(Spared::Malware, action);
        let signatures =
            self.signatures.iter().map(|rule| SignatureRule { action: of_match(rule.action), ..rule.clone() });
        Policy {
            on_infected: of_match(self.on_infected),
            signatures: signatures.collect(),
            on_forbidden: self.on_forbidden,
            on_limit: spared(self.on_limit),
            on_ambiguous: spared(self.on_ambiguous),
            on_unopened: spared(self.on_unopened),
            on_encrypted: spared(self.on_encrypted),
            on_external: spared(self.on_external),
            on_partial: spared(self.on_partial),
            on_malformed: spared(self.on_malformed),
        }
    }

    /// Whether content is either passed as it is or refused, whatever is found.
    pub fn only_rejects(&self) -> bool {
        self.actions().all(|action| matches!(action, Action::Pass | Action::Reject))
    }

    /// Whether all content goes on, as it is or overwritten, whatever is found.
    pub fn only_blanks(&self) -> bool {
        self.actions().all(|action| matches!(action, Action::Pass | Action::Blank))
    }

    /// Whether some finding asks for this.
    pub fn asks_for(&self, asked: Action) -> bool {
        self.actions().any(|action| action == asked)
    }

    /// All that can be asked for.
    pub fn actions(&self) -> impl Iterator<Item = Action> {
        let other = [
            self.on_forbidden,
            self.on_limit,
            self.on_ambiguous,
            self.on_unopened,
            self.on_encrypted,
            self.on_external,
            self.on_partial,
            self.on_malformed,
        ];
        self.of_matches().chain(other)
    }

    fn of_matches(&self) -> impl Iterator<Item = Action> {
        self.signatures.iter().map(|rule| rule.action).chain([self.on_infected])
    }

    /// The heaviest action that a match may ask for.
    pub fn of_any_match(&self) -> Action {
        self.of_matches().max().unwrap_or_default()
    }

    /// The action for a finding.
    pub fn action(&self, finding: &Finding) -> Action {
        if finding.class != Class::Match || self.signatures.is_empty() {
            return self.by_class(finding.class);
        }
        let name = finding.name.to_lowercase();
        let ruled = self.signatures.iter().find(|rule| rule.names.iter().any(|glob| glob.matches(&name)));
        ruled.map_or(self.on_infected, |rule| rule.action)
    }

    /// The action for one class, whatever it is called.
    pub const fn by_class(&self, class: Class) -> Action {
        match class {
            Class::Match => self.on_infected,
            Class::Forbidden => self.on_forbidden,
            // The rule itself says that it blocks.
            Class::Intrusion => Action::Reject,
            Class::Limit => self.on_limit,
            Class::Ambiguous => self.on_ambiguous,
            Class::Unopened => self.on_unopened,
            Class::Encrypted => self.on_encrypted,
            Class::External => self.on_external,
            Class::Partial => self.on_partial,
            Class::Malformed | Class::Truncated => self.on_malformed,
            // Nothing was left out: it is told, and asks for nothing.
            Class::TwoReadings => Action::Pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(names: &[&str], action: Action) -> SignatureRule {
        SignatureRule { names: names.iter().map(|name| Glob::new(name)).collect(), action }
    }

    #[test]
    fn a_policy_spares_faults_and_malware_but_no_rule_of_the_operator() {
        let signatures = [rule(&["pua.*"], Action::Quarantine)];
        let policy = Policy { signatures: signatures.into(), on_encrypted: Action::Reject, ..Policy::default() };
        let of = |policy: &Policy| {
            let classes = [Class::Limit, Class::Encrypted, Class::Malformed, Class::Forbidden, Class::Intrusion];
            let all = classes.map(|class| policy.action(&Finding::new(class, "X", 0))).into_iter();
            let names = ["PUA.Tool", "Eicar"].map(|name| policy.action(&Finding::new(Class::Match, name, 0)));
            all.chain(names).collect::<Vec<_>>()
        };
        use Action::{Pass, Quarantine, Reject, Tag};
        assert_eq!(of(&policy), [Reject, Reject, Pass, Reject, Reject, Quarantine, Reject]);
        assert_eq!(of(&policy.sparing(Spared::Faults)), [Tag, Tag, Pass, Reject, Reject, Quarantine, Reject]);
        assert_eq!(of(&policy.sparing(Spared::Malware)), [Tag, Tag, Pass, Reject, Reject, Tag, Tag]);
    }

    #[test]
    fn the_first_rule_that_means_a_signature_decides() {
        let signatures = [rule(&["pua.safe*"], Action::Pass), rule(&["PUA.*", "Heuristics.*"], Action::Tag)];
        let policy = Policy { signatures: signatures.into(), ..Policy::default() };
        let of = |class, name: &'static str| policy.action(&Finding::new(class, name, 0));
        assert_eq!(of(Class::Match, "PUA.Safe.Tool"), Action::Pass);
        assert_eq!(of(Class::Match, "PUA.Win.Tool"), Action::Tag);
        assert_eq!(of(Class::Match, "Win.Trojan.PUA.x"), Action::Reject, "a pattern is for the whole name");
        assert_eq!(
            of(Class::Limit, "Heuristics.Limits.Exceeded.Time"),
            Action::Reject,
            "other classes go by their own"
        );
        assert_eq!(policy.of_any_match(), Action::Reject);
        assert!(policy.asks_for(Action::Tag) && !policy.only_rejects());
    }
}
