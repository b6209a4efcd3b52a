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
        if self.findings.len() < Verdict::FINDINGS_MAX {
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
