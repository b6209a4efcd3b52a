//! From findings to what is to be done.

use serde::{Deserialize, Serialize};
use stream::Class;

/// What is done with content in which something was found. Ordered by weight: of several, the heaviest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum Action {
    /// Nothing.
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

/// Which action each class of findings asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// A signature matched.
    pub on_infected: Action,
    /// A rule of the operator stands against it.
    pub on_forbidden: Action,
    /// A limit was reached, so that not everything was inspected.
    pub on_limit: Action,
    /// Two readers could disagree and only one reading was inspected.
    pub on_ambiguous: Action,
    /// Content that needs a key.
    pub on_encrypted: Action,
    /// Content that has its reader fetch more from elsewhere.
    pub on_external: Action,
    /// All was inspected, but for what asks for more of one object than is kept.
    pub on_partial: Action,
    /// Broken or cut-off content.
    pub on_malformed: Action,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            on_infected: Action::Reject,
            on_forbidden: Action::Reject,
            on_limit: Action::Reject,
            on_ambiguous: Action::Reject,
            on_encrypted: Action::Pass,
            on_external: Action::Pass,
            on_partial: Action::Pass,
            on_malformed: Action::Pass,
        }
    }
}

impl Policy {
    /// Whether content is either passed as it is or refused, whatever is found.
    pub fn only_rejects(&self) -> bool {
        self.actions().iter().all(|action| matches!(action, Action::Pass | Action::Reject))
    }

    /// Whether all content goes on, as it is or overwritten, whatever is found.
    pub fn only_blanks(&self) -> bool {
        self.actions().iter().all(|action| matches!(action, Action::Pass | Action::Blank))
    }

    /// All that can be asked for.
    pub const fn actions(&self) -> [Action; 8] {
        [
            self.on_infected,
            self.on_forbidden,
            self.on_limit,
            self.on_ambiguous,
            self.on_encrypted,
            self.on_external,
            self.on_partial,
            self.on_malformed,
        ]
    }

    /// The action for one class.
    pub const fn action(&self, class: Class) -> Action {
        match class {
            Class::Match => self.on_infected,
            Class::Forbidden => self.on_forbidden,
            Class::Limit => self.on_limit,
            Class::Ambiguous => self.on_ambiguous,
            Class::Encrypted => self.on_encrypted,
            Class::External => self.on_external,
            Class::Partial => self.on_partial,
            Class::Malformed | Class::Truncated => self.on_malformed,
            // Nothing was left out: it is told, and asks for nothing.
            Class::TwoReadings => Action::Pass,
        }
    }
}
