//! Findings, and the verdict that follows from them.

use std::collections::BTreeSet;

use stream::Class;

use flow::{Action, Context, Policy, Spotted, Verdict};

/// Findings, and facts about the objects for the verdict.
///
/// One name is told once for each object, with the heaviest class that it was found with: an ambiguity that was read in
/// both ways and one of the same name that was not are two, and the second counts.
///
/// Bounds: `Verdict::FINDINGS_MAX` findings. When they are all taken, a new name takes the place of an echo or of a name
/// that is there of another object too; what is given up still asks for its action. Where all findings are asked for,
/// `Verdict::ALL_FINDINGS_MAX` of them, and none takes the place of another.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The parent of each object.
    pub parents: Vec<u32>,
    pub findings: Vec<Spotted>,
    pub more_findings: u32,
    pub more_action: Action,
    /// The objects of matches that are not told: each matters unless an allow list vouches for it.
    more_matches: BTreeSet<u32>,
    /// The objects of echoes that are not kept.
    more_echoes: BTreeSet<u32>,
    /// Objects that an allow list vouches for.
    pub allowed: Vec<u32>,
    pub unblankable: bool,
    pub bytes: u64,
    /// Whether all findings are asked for.
    lists_all: bool,
}

impl Ledger {
    /// An empty one; whether all findings are asked for.
    pub fn new(lists_all: bool) -> Ledger {
        Ledger { lists_all, ..Ledger::default() }
    }

    /// The number of a new object in `parent`.
    pub fn number(&mut self, parent: u32) -> u32 {
        self.parents.push(parent);
        u32::try_from(self.parents.len() - 1).expect("objects are limited")
    }

    /// Writes a finding down; whether it is new, or heavier than it was known to be.
    pub fn note(&mut self, spotted: &Spotted, policy: &Policy) -> bool {
        let is_same = |other: &Spotted| other.object == spotted.object && other.finding.name == spotted.finding.name;
        if let Some(at) = self.findings.iter().position(is_same) {
            return self.outweigh(at, spotted, policy);
        }
        // However much is malformed, matches are told by their names.
        let is_match = spotted.finding.class == Class::Match;
        let most = if self.lists_all { Verdict::ALL_FINDINGS_MAX } else { Verdict::FINDINGS_MAX };
        let room = if is_match { most } else { most / 2 };
        if self.findings.len() >= room && (self.lists_all || !self.make_room(spotted, policy)) {
            self.give_up(spotted, policy);
            return true;
        }
        self.findings.push(spotted.clone());
        true
    }

    /// Whether a known finding is heavier than it was, which it is from now on. What it asked for before it still asks.
    fn outweigh(&mut self, at: usize, spotted: &Spotted, policy: &Policy) -> bool {
        let known = self.findings[at].finding.class;
        let (lighter, heavier) = (known.min(spotted.finding.class), known.max(spotted.finding.class));
        if lighter != heavier && lighter != Class::Match {
            self.more_action = self.more_action.max(policy.by_class(lighter));
        }
        if spotted.finding.class <= known {
            return false;
        }
        self.findings[at] = spotted.clone();
        true
    }

    /// Makes room for a name that is not there yet; whether there is some.
    fn make_room(&mut self, spotted: &Spotted, policy: &Policy) -> bool {
        let names = |name: &str| self.findings.iter().filter(|other| other.finding.name == name).count();
        if names(&spotted.finding.name) > 0 || self.is_echo(spotted, &self.findings) {
            return false;
        }
        let is_match = spotted.finding.class == Class::Match;
        let echo = self.findings.iter().rposition(|other| is_match && self.is_echo(other, &self.findings));
        let repeated = || {
            self.findings.iter().rposition(|other| {
                let may_go = is_match || other.finding.class != Class::Match;
                may_go && names(&other.finding.name) > 1
            })
        };
        let Some(at) = echo.or_else(repeated) else { return false };
        let gone = self.findings.remove(at);
        self.give_up(&gone, policy);
        true
    }

    /// Counts a finding that is not kept.
    fn give_up(&mut self, spotted: &Spotted, policy: &Policy) {
        if self.is_echo(spotted, &self.findings) {
            self.more_echoes.insert(spotted.object);
            return;
        }
        self.more_findings += 1;
        if spotted.finding.class == Class::Match {
            self.more_matches.insert(spotted.object);
        } else {
            self.more_action = self.more_action.max(policy.action(&spotted.finding));
        }
    }

    pub fn verdict(mut self, context: &Context) -> Verdict {
        let mut findings = std::mem::take(&mut self.findings);
        findings.retain(|spotted| !self.is_allowed(spotted));
        // What an allow list took back is no reason to leave out the same name further out.
        let told: Vec<Spotted> = findings.iter().filter(|spotted| !self.is_echo(spotted, &findings)).cloned().collect();
        let echoes = self.more_echoes.iter().filter(|&&object| self.allowed.iter().any(|&id| self.lies_in(id, object)));
        let untold = self.more_matches.iter().chain(echoes).any(|&object| !self.is_vouched_for(object));
        let more = if untold { context.policy.of_any_match() } else { Action::Pass };
        let actions = told.iter().map(|spotted| context.policy.action(&spotted.finding));
        Verdict {
            action: actions.max().unwrap_or_default().max(self.more_action).max(more),
            blankable: !self.unblankable,
            findings: told,
            more_findings: self.more_findings,
            objects: self.parents.len() as u32,
            bytes: self.bytes,
            score: None,
            authenticity: None,
            page: None,
        }
    }

    /// Whether a match lies in an object that an allow list vouches for.
    fn is_allowed(&self, spotted: &Spotted) -> bool {
        spotted.finding.class == Class::Match && self.is_vouched_for(spotted.object)
    }

    fn is_vouched_for(&self, object: u32) -> bool {
        self.allowed.iter().any(|&id| self.lies_in(object, id))
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
    use std::borrow::Cow;

    use super::*;
    use stream::Finding;

    fn note(ledger: &mut Ledger, object: u32, class: Class, name: impl Into<Cow<'static, str>>) -> bool {
        let finding = Finding { class, name: name.into(), offset: 0 };
        ledger.note(&Spotted { finding, path: [].into(), object }, &Policy::default())
    }

    fn verdict(ledger: Ledger) -> Verdict {
        ledger.verdict(&Context::default())
    }

    fn count(findings: &[Spotted], name: &str) -> usize {
        findings.iter().filter(|spotted| spotted.finding.name == name).count()
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
        assert_eq!(ledger.more_findings as usize, 100 - Verdict::FINDINGS_MAX / 2);
        let verdict = verdict(ledger);
        let told = (count(&verdict.findings, "Sample"), count(&verdict.findings, "Bad"));
        assert_eq!(told, (1, Verdict::FINDINGS_MAX / 2), "an echo is not told");
    }

    #[test]
    fn of_one_name_the_heavier_class_counts_in_either_order() {
        for classes in [[Class::TwoReadings, Class::Ambiguous], [Class::Ambiguous, Class::TwoReadings]] {
            let mut ledger = Ledger::default();
            let object = ledger.number(0);
            let heavier = classes[1] > classes[0];
            assert!(note(&mut ledger, object, classes[0], "Same"));
            assert_eq!(note(&mut ledger, object, classes[1], "Same"), heavier, "{classes:?}");
            let verdict = verdict(ledger);
            assert_eq!((verdict.findings.len(), verdict.findings[0].finding.class), (1, Class::Ambiguous));
            assert_eq!(verdict.action, Action::Reject, "{classes:?}");
        }
    }

    #[test]
    fn a_lighter_class_with_a_heavier_action_is_not_forgotten() {
        let policy = Policy { on_ambiguous: Action::Pass, on_malformed: Action::Quarantine, ..Policy::default() };
        for classes in [[Class::Malformed, Class::Ambiguous], [Class::Ambiguous, Class::Malformed]] {
            let mut ledger = Ledger::default();
            let object = ledger.number(0);
            for class in classes {
                let finding = Finding { class, name: "Same".into(), offset: 0 };
                ledger.note(&Spotted { finding, path: [].into(), object }, &policy);
            }
            let verdict = ledger.verdict(&Context { policy: policy.clone(), ..Context::default() });
            assert_eq!(verdict.action, Action::Quarantine, "{classes:?}");
        }
    }

    #[test]
    fn no_name_is_lost_to_another_that_is_told_of_many_objects() {
        let mut ledger = Ledger::default();
        let root = ledger.number(0);
        for _ in 0..Verdict::FINDINGS_MAX + 10 {
            let member = ledger.number(root);
            note(&mut ledger, member, Class::Match, "Usual");
        }
        for number in 0..10 {
            let member = ledger.number(root);
            assert!(note(&mut ledger, member, Class::Match, format!("Rare{number}")));
        }
        let verdict = verdict(ledger);
        assert!((0..10).all(|number| count(&verdict.findings, &format!("Rare{number}")) == 1));
        assert_eq!(count(&verdict.findings, "Usual"), Verdict::FINDINGS_MAX - 10);
        assert_eq!(verdict.more_findings, 20);
    }

    #[test]
    fn all_findings_are_listed_up_to_their_bound() {
        let mut ledger = Ledger::new(true);
        let root = ledger.number(0);
        for number in 0..Verdict::ALL_FINDINGS_MAX + 10 {
            note(&mut ledger, root, Class::Match, format!("Sample{number}"));
        }
        let verdict = verdict(ledger);
        assert_eq!((verdict.findings.len(), verdict.more_findings), (Verdict::ALL_FINDINGS_MAX, 10));
        assert_eq!(verdict.action, Action::Reject);
    }

    #[test]
    fn an_allowed_member_does_not_hide_what_its_container_holds() {
        for inner_first in [true, false] {
            let mut ledger = Ledger::default();
            let container = ledger.number(0);
            let member = ledger.number(container);
            let order = if inner_first { [member, container] } else { [container, member] };
            for object in order {
                note(&mut ledger, object, Class::Match, "Sample");
            }
            ledger.allowed.push(member);
            let verdict = verdict(ledger);
            let objects: Vec<u32> = verdict.findings.iter().map(|spotted| spotted.object).collect();
            assert_eq!((objects, verdict.action), (vec![container], Action::Reject), "{inner_first}");
        }
    }

    #[test]
    fn matches_beyond_the_bound_count_only_where_nobody_vouches() {
        for (allowed, action) in [(true, Action::Pass), (false, Action::Reject)] {
            let mut ledger = Ledger::default();
            let root = ledger.number(0);
            let container = ledger.number(root);
            for number in 0..Verdict::FINDINGS_MAX + 10 {
                note(&mut ledger, container, Class::Match, format!("Sample{number}"));
            }
            ledger.allowed.extend(allowed.then_some(container));
            assert_eq!(verdict(ledger).action, action);
        }
    }
}
