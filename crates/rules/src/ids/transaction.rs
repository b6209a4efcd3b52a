//! A transaction of a flow: buffers that rules look into together, and how far rules have matched in them.
//!
//! It holds at most two windows in bodies, four in whole buffers, and a bounded number of either.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use foldhash::fast::RandomState;

use super::body::{Body, Open, select};
use super::buffer::{Buffer, Buffers, Direction, Side};
use super::group::Kind;
use super::rule::{Rule, Section, Test};
use super::set::RuleSet;

/// A request and its response, a mail, a question: buffers that rules look at together.
#[derive(Debug, Default)]
pub struct Transaction {
    pub(super) values: Vec<(Buffer, Direction, Vec<u8>)>,
    /// The bytes of all of them.
    filled_bytes: usize,
    /// How many of them have selected rules.
    selected: usize,
    pub(super) bodies: Vec<Body>,
    /// How often what is known of each buffer has changed.
    changes: BTreeMap<Buffer, u64>,
    /// The buffers that are there, a bit each, as rules about either way see them.
    present: [Buffers; 2],
    /// Something has changed since rules were tried.
    pub(super) has_news: bool,
    pub(super) trial: Trial,
    pub(super) ended: [bool; 2],
    /// Bits that last as long as it does.
    pub(super) bits: BTreeSet<u32>,
    lost: u64,
}

/// A section by its rule and its place, and the side that it looks at.
type SectionKey = (u32, usize, Option<Direction>);

/// The state of rules that are being tried.
#[derive(Debug, Default)]
pub(super) struct Trial {
    pub pending: BTreeSet<u32>,
    /// Sections that have matched; those of a buffer that both sides have, on one side.
    matched: HashSet<SectionKey, RandomState>,
    /// Sections that have not, and of how many changes of their buffers.
    failed: HashMap<SectionKey, u64, RandomState>,
    /// Rules that have matched, each way for itself.
    pub fired: HashSet<(u32, Direction), RandomState>,
    /// Rules on the stream that have matched and match again where their text comes again: the bytes that had come.
    pub told: HashMap<u32, u64, RandomState>,
    /// Rules that ask for `xbits`, each way for itself, and how often their buffers had changed when they were tried last.
    asked: HashMap<(u32, Direction), u64, RandomState>,
}

impl Trial {
    fn key(rule: u32, at: usize, section: &Section, direction: Direction) -> SectionKey {
        (rule, at, (section.side() == Side::Both).then_some(direction))
    }

    /// Whether a section of a rule has matched.
    pub fn has_matched(&self, rule: u32, at: usize, section: &Section, direction: Direction) -> bool {
        self.matched.contains(&Trial::key(rule, at, section, direction))
    }

    /// Whether one of several sections of a rule has matched.
    pub fn has_begun(&self, number: u32, rule: &Rule, direction: Direction) -> bool {
        let mut sections = rule.sections.iter().enumerate();
        rule.sections.len() > 1 && sections.any(|(at, section)| self.has_matched(number, at, section, direction))
    }

    /// Keeps that a section of a rule has matched.
    pub fn put_matched(&mut self, rule: u32, at: usize, section: &Section, direction: Direction) {
        self.matched.insert(Trial::key(rule, at, section, direction));
    }

    /// Whether a section of a rule has not matched, and its buffer has not changed since.
    pub fn has_failed(&self, rule: u32, at: usize, section: &Section, direction: Direction, changes: u64) -> bool {
        self.failed.get(&Trial::key(rule, at, section, direction)) == Some(&changes)
    }

    /// Keeps that a section of a rule has not matched in its buffer after so many changes.
    pub fn put_failed(&mut self, rule: u32, at: usize, section: &Section, direction: Direction, changes: u64) {
        self.failed.insert(Trial::key(rule, at, section, direction), changes);
    }

    /// Whether a rule is to be tried. One that asks for `xbits` is tried once for the same buffers: what is set or toggled behind it
    /// counts for the next transaction.
    pub fn is_due(&mut self, number: u32, rule: &Rule, direction: Direction, transaction: &Transaction) -> bool {
        let asks = rule.bits.iter().any(|bits| bits.is_xbits && bits.verb.is_test());
        if !asks || rule.sections.is_empty() || rule.sections.iter().any(|section| section.buffer == Buffer::Payload) {
            return true;
        }
        let may_be_absent = rule.sections.iter().any(Section::may_be_absent);
        let ends = may_be_absent && transaction.ended[usize::from(direction == Direction::ToClient)];
        let changes = |section: &Section| transaction.changes.get(&section.buffer).copied().unwrap_or(0);
        let changes = rule.sections.iter().map(changes).fold(u64::from(ends), u64::saturating_add);
        self.asked.insert((number, direction), changes) != Some(changes)
    }

    /// Forgets which sections of a rule have matched.
    pub fn forget(&mut self, rule: u32) {
        self.matched.retain(|(matched, ..)| *matched != rule);
    }
}

impl Transaction {
    /// An empty one.
    pub fn new() -> Transaction {
        Transaction::default()
    }

    /// Fills a buffer as a whole, if a rule looks at it. Those beyond the bounds are counted and not looked at.
    pub fn fill(&mut self, rules: &RuleSet, direction: Direction, buffer: Buffer, bytes: &[u8]) {
        if rules.reads & buffer.bit() == 0 {
            return;
        }
        let held = self.filled_bytes.saturating_add(bytes.len());
        if self.values.len() >= rules.limits.buffers_max || held > 4 * rules.limits.window_bytes {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        self.filled_bytes = held;
        self.values.push((buffer, direction, bytes.to_vec()));
        self.note_change(buffer, direction);
    }

    /// Fills the digests of a file.
    pub(super) fn fill_digests(&mut self, rules: &RuleSet, direction: Direction, digests: Vec<Vec<u8>>) {
        digests.iter().for_each(|digest| self.fill(rules, direction, Buffer::FileDigest, digest));
    }

    /// Notes that more is known of a buffer: sections that have not matched in it may match.
    pub(super) fn note_change(&mut self, buffer: Buffer, direction: Direction) {
        let changes = self.changes.entry(buffer).or_default();
        *changes = changes.saturating_add(1);
        self.has_news = true;
        let is_of_one_way = buffer.side() != Side::Both;
        for way in [Direction::ToServer, Direction::ToClient] {
            if is_of_one_way || way == direction {
                self.present[usize::from(way == Direction::ToClient)] |= buffer.bit();
            }
        }
    }

    /// Notes the same of the buffers of a content.
    pub(super) fn note_change_of(&mut self, open: Open, direction: Direction) {
        self.note_change(open.buffer, direction);
        if let Some(also) = open.also {
            self.note_change(also, direction);
        }
    }

    /// The buffers that rules about bytes that go this way may find something in, a bit each.
    pub(super) fn present(&self, direction: Direction) -> Buffers {
        self.present[usize::from(direction == Direction::ToClient)]
    }

    /// How often the buffer of a section has changed; none where it looks at more than what is in the buffer.
    pub(super) fn changes_for(&self, section: &Section) -> Option<u64> {
        let is_alone = section.buffer != Buffer::Payload && section.tests.iter().all(Test::is_of_buffer);
        is_alone.then(|| self.changes.get(&section.buffer).copied().unwrap_or(0))
    }

    /// Bytes of content that it holds.
    pub fn held_bytes(&self) -> usize {
        self.filled_bytes + self.bodies.iter().map(|body| body.bytes.len()).sum::<usize>()
    }

    /// How many buffers were not looked at because there were too many.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn select(&mut self, rules: &RuleSet) {
        for (buffer, direction, bytes) in &self.values[self.selected..] {
            let groups = rules.groups.of(*buffer, Kind::any(*buffer, *direction));
            select(groups.map(|(_, group)| group), bytes, &mut self.trial.pending);
        }
        self.selected = self.values.len();
    }

    /// Forgets bodies that have ended, the oldest first, where they take too much.
    pub(super) fn shrink(&mut self, rules: &RuleSet) {
        let held = |bodies: &[Body]| bodies.iter().map(|body| body.bytes.len()).sum::<usize>();
        while held(&self.bodies) > 2 * rules.limits.window_bytes || self.bodies.len() > rules.limits.buffers_max {
            let Some(at) = self.bodies.iter().position(|body| body.is_ended) else { return };
            self.bodies.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::super::set::Loader;
    use super::*;

    #[test]
    fn a_buffer_at_which_no_rule_looks_is_not_held() {
        let mut loader = Loader::new(Limits::default());
        loader.file("r", b"alert http any any -> any any (http.uri; content:\"/a\"; http.cookie; bsize:3; sid:1;)");
        let (rules, mut transaction) = (loader.finish(), Transaction::new());
        for buffer in [Buffer::Uri, Buffer::Accept, Buffer::Cookie, Buffer::HeaderNames] {
            transaction.fill(&rules, Direction::ToServer, buffer, b"text");
        }
        assert_eq!((transaction.held_bytes(), transaction.lost()), (8, 0));
    }
}
