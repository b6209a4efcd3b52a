//! What has been found, and the verdict that follows from it.

use stream::Class;

use crate::{Action, Context, Spotted, Verdict};

/// What has been found, and what the verdict needs to know of the objects.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The parent of each object.
    pub parents: Vec<u32>,
    pub findings: Vec<Spotted>,
    pub more_findings: u32,
    pub more_action: Action,
    /// Objects that an allow list vouches for.
    pub allowed: Vec<u32>,
    pub unblankable: bool,
    pub bytes: u64,
}

impl Ledger {
    /// The number of a new object in `parent`.
    pub fn number(&mut self, parent: u32) -> u32 {
        self.parents.push(parent);
        u32::try_from(self.parents.len() - 1).expect("objects are limited")
    }

    /// Writes a finding down; whether it is new.
    pub fn note(&mut self, spotted: &Spotted, action: Action) -> bool {
        let known = |other: &Spotted| other.object == spotted.object && other.finding.name == spotted.finding.name;
        if self.findings.iter().any(known) {
            return false;
        }
        if self.is_echo(spotted, &self.findings) {
            return true;
        }
        // However much is malformed, matches are told by their names.
        let is_match = spotted.finding.class == Class::Match;
        let room = if is_match { Verdict::FINDINGS_MAX } else { Verdict::FINDINGS_MAX / 2 };
        if self.findings.len() < room {
            self.findings.push(spotted.clone());
        } else {
            self.more_findings += 1;
            self.more_action = self.more_action.max(action);
        }
        true
    }

    pub fn verdict(mut self, context: &Context) -> Verdict {
        let findings = std::mem::take(&mut self.findings);
        let kept = |spotted: &&Spotted| !self.is_allowed(spotted) && !self.is_echo(spotted, &findings);
        let findings: Vec<Spotted> = findings.iter().filter(kept).cloned().collect();
        let actions = findings.iter().map(|spotted| context.policy.action(spotted.finding.class));
        Verdict {
            action: actions.max().unwrap_or_default().max(self.more_action),
            blankable: !self.unblankable,
            findings,
            more_findings: self.more_findings,
            objects: self.parents.len() as u32,
            bytes: self.bytes,
        }
    }

    /// Whether a match lies in an object that an allow list vouches for.
    fn is_allowed(&self, spotted: &Spotted) -> bool {
        spotted.finding.class == Class::Match && self.allowed.iter().any(|&id| self.lies_in(spotted.object, id))
    }

    /// Whether the same signature matched in an object within this one: the inner one is told.
    fn is_echo(&self, spotted: &Spotted, all: &[Spotted]) -> bool {
        let same = |other: &&Spotted| other.finding.name == spotted.finding.name && other.object != spotted.object;
        spotted.finding.class == Class::Match
            && all.iter().filter(same).any(|other| self.lies_in(other.object, spotted.object))
    }

    fn lies_in(&self, mut object: u32, ancestor: u32) -> bool {
        while object > ancestor {
            object = self.parents[object as usize];
        }
        object == ancestor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::Finding;

    fn note(ledger: &mut Ledger, object: u32, class: Class, name: &'static str) -> bool {
        let finding = Finding::new(class, name, 0);
        ledger.note(&Spotted { finding, path: [].into(), object }, Action::Tag)
    }

    #[test]
    fn matches_are_told_however_much_is_malformed() {
        let mut ledger = Ledger::default();
        let outer = ledger.number(0);
        for _ in 0..100 {
            let object = ledger.number(outer);
            assert!(note(&mut ledger, object, Class::Malformed, "Bad"));
        }
        let inner = ledger.number(outer);
        for (object, new) in [(inner, true), (inner, false), (outer, true)] {
            assert_eq!(note(&mut ledger, object, Class::Match, "Sample"), new);
        }
        let told = |name: &str| ledger.findings.iter().filter(|spotted| spotted.finding.name == name).count();
        assert_eq!((told("Sample"), told("Bad")), (1, Verdict::FINDINGS_MAX / 2), "an echo takes no room");
        assert_eq!(ledger.more_findings as usize, 100 - Verdict::FINDINGS_MAX / 2);
    }
}
