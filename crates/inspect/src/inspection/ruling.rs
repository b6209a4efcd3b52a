//! Rules about objects.

use std::borrow::Cow;

use flow::{Out, Rule, Spotted, Way};
use stream::{Class, FileType, Finding, Kind};

use super::Inspection;
use crate::node::{Node, Seed};

impl Inspection {
    /// The rule for an object; the object that is fed has none.
    pub(super) fn rule(&self, node: &Node, file_type: FileType) -> Option<&Rule> {
        node.source?;
        self.context.rules.iter().find(|rule| rule.matches(&node.object, file_type))
    }

    /// Reports a mail or multipart within a mail whose name a rule forbids. Rules without names are for objects with content.
    pub(super) fn forbid_container(&mut self, seed: &Seed) {
        if !matches!(seed.object.kind, Kind::Multipart | Kind::Message) {
            return;
        }
        let mut rules = self.context.rules.iter().filter(|rule| !rule.names.is_empty());
        let rule = rules.find(|rule| rule.matches(&seed.object, FileType::Mail));
        let Some(rule) = rule.filter(|rule| rule.way == Way::Forbid) else { return };
        let finding = Finding { class: Class::Forbidden, name: forbids(&rule.label), offset: 0 };
        self.ledger.unblankable |= self.context.policy.action(&finding) == flow::Action::Blank;
        let spotted = Spotted { finding, path: seed.path.clone(), object: seed.id };
        if self.ledger.note(&spotted, &self.context.policy) {
            self.out.push_back(Out::Finding(spotted));
        }
    }
}

/// Name of the finding that a rule forbids an object.
pub(super) fn forbids(label: &str) -> Cow<'static, str> {
    format!("Policy.Forbidden.{label}").into()
}
