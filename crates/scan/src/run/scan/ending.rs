//! The end of an object: hashes, places that were open, rules, the searches that wait, and the conclusion, in phases.

use std::collections::BTreeMap;

use digest::Batch;
use stream::ReadAt;

use super::{LOST, Scan, Side, UNSEARCHED, digests_of};
use crate::run::condition::{self, Facts};
use crate::run::executable::Executable;
use crate::run::rule::{Content, Known};
use crate::table::database::Name;
use crate::yara;

/// Work at the end of an object, in this order, each in turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Match the bytes held for the layout of an executable.
    Hold,
    /// A picture is decoded.
    Picture,
    /// And hashed.
    Hash,
    /// Bodies are placed, and what needs no search is decided.
    Place,
    /// Regular expressions are searched.
    Search,
    /// YARA's rules are decided.
    Rules,
    /// Digests, signers.
    Conclude,
    Over,
}

impl Phase {
    const fn next(self) -> Phase {
        match self {
            Phase::Hold => Phase::Picture,
            Phase::Picture => Phase::Hash,
            Phase::Hash => Phase::Place,
            Phase::Place => Phase::Search,
            Phase::Search => Phase::Rules,
            Phase::Rules => Phase::Conclude,
            Phase::Conclude | Phase::Over => Phase::Over,
        }
    }
}

/// An object that has ended.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    pub(super) phase: Phase,
    /// Whether the digests have been waited for.
    pub(super) waited: bool,
    pub(super) known: Known,
    /// How far the rules of YARA are decided.
    pub(super) rules: Verdicts,
    /// Count of work that was given up because a bound was reached.
    pub(super) lost: u64,
}

impl Ending {
    pub(super) fn new() -> Ending {
        Ending { phase: Phase::Hold, waited: false, known: Known::default(), rules: Verdicts::new(), lost: 0 }
    }
}

/// How far the rules of each layer that has some are decided.
type Verdicts = BTreeMap<usize, condition::Verdicts>;

impl Scan {
    /// A turn of deciding YARA's rules; whether there are more to decide.
    fn decide_rules(&mut self, ending: &mut Verdicts, content: &mut Content<'_>) -> bool {
        let recent = self.recent.take();
        let tail = recent.as_ref().map_or((content.size(), &[][..]), |recent| recent.last());
        let layout = self.executable.as_ref().and_then(Executable::layout_for_rules);
        let none = yara::Tables::default();
        let tables = self.executable.as_ref().map_or(&none, Executable::tables);
        let (mut named, mut more) = (Vec::new(), false);
        for (layer, (follower, database)) in self.yara.iter_mut().zip(self.database.layers()).enumerate() {
            let (Some(follower), Some(table)) = (follower, &database.yara) else {
                continue;
            };
            let verdicts = ending.entry(layer).or_insert_with(|| {
                follower.finish(table);
                condition::Verdicts::default()
            });
            let (found, called, size) = (&follower.found, &self.called, content.size());
            let facts = Facts { table, found, called, layout, tables, size, tail };
            let (held, undecided) = verdicts.turn(facts, content);
            let name = |rule: u32| Name { layer, number: table.rules[rule as usize].name };
            named.extend(held.into_iter().map(|held| (name(held.rule), held.offset)));
            more |= undecided;
        }
        self.recent = recent;
        named.into_iter().for_each(|(name, offset)| self.tell(name, offset));
        more
    }

    /// Count of work given up in following and deciding YARA's rules.
    fn lost_of_rules(&self, ending: &Verdicts) -> u64 {
        let followed: u64 = self.yara.iter().flatten().map(|follower| follower.lost()).sum();
        followed + ending.values().map(condition::Verdicts::lost).sum::<u64>()
    }

    /// The stream has ended: a turn of what is still to be decided, and how much work that was.
    pub(super) fn end(&mut self, ending: &mut Ending, batch: &mut Batch, kept: &dyn ReadAt) -> u64 {
        let (size, allowance) = (self.position, self.allowance.clone());
        let mut content = Content::new(kept, size, &mut ending.known, &allowance);
        match ending.phase {
            Phase::Hold => self.end_hold(batch),
            Phase::Picture if self.pictured => content.decode_picture(),
            Phase::Hash => content.hash_picture(),
            Phase::Picture | Phase::Over => {}
            Phase::Place => ending.lost += self.place(&mut content),
            Phase::Search if self.search(&mut content) => return content.searched(),
            Phase::Search => {}
            Phase::Rules if self.decide_rules(&mut ending.rules, &mut content) => return content.searched(),
            Phase::Rules => ending.lost += self.lost_of_rules(&ending.rules),
            Phase::Conclude => ending.lost += self.conclude(&content, batch),
        }
        ending.phase = ending.phase.next();
        let searched = content.searched();
        if ending.phase == Phase::Over {
            self.told.extend((ending.lost > 0).then_some(LOST));
            self.told.extend(ending.known.is_lost().then_some(UNSEARCHED));
        }
        searched
    }

    fn end_hold(&mut self, batch: &mut Batch) {
        if let Some(running) = &mut self.running {
            running.drop_unwanted(batch, self.position, digests_of(&self.database));
            running.close(batch);
        }
        if let Some(executable) = &mut self.executable {
            let held = executable.end(&self.database, batch);
            self.look(&held);
        }
        if let Some(executable) = &mut self.executable {
            executable.settle();
        }
    }

    /// How much was given up.
    fn place(&mut self, content: &mut Content<'_>) -> u64 {
        let mut lost = 0;
        let recent = self.recent.take();
        self.each_side(|side, context| {
            let Side { state, follower, hits } = side;
            let patterns = &context.table.patterns;
            patterns.finish(state, &mut |found| follower.on_match(context, found, hits));
            if let Some((before, passed)) = recent.as_ref().map(|recent| recent.view()) {
                follower.supply(before, passed);
            }
            follower.finish(context, content, hits);
            lost += state.lost() + follower.lost();
        });
        self.recent = recent;
        lost
    }

    /// A turn of one search; whether there is more to search.
    fn search(&mut self, content: &mut Content<'_>) -> bool {
        let mut more = false;
        self.each_side(|side, context| {
            more = more || side.follower.decide(context, content, &mut side.hits);
        });
        more
    }

    /// How much was given up.
    fn conclude(&mut self, content: &Content<'_>, batch: &mut Batch) -> u64 {
        let (size, mut lost) = (content.size(), 0);
        if let Some(mut running) = self.running.take() {
            let sums = running.finish(batch, size);
            lost += u64::from(sums.is_none());
            let sums = sums.unwrap_or_default();
            for name in self.database.matching(|layer| &layer.hashes, &sums) {
                self.tell(name, 0);
            }
            let allowed = self.database.matching(|layer| &layer.allowed, &sums);
            self.allowed = allowed.into_iter().any(|name| self.database.name(name).is_some());
        }
        if let Some(mut executable) = self.executable.take() {
            let signature = executable.signature(&self.database);
            signature.told.into_iter().for_each(|name| self.tell(name, 0));
            self.allowed |= signature.trusted;
            let (found, missed) = executable.matching(&self.database, batch);
            found.into_iter().for_each(|(name, offset)| self.tell(name, offset));
            lost += missed + u64::from(signature.lost);
        }
        lost
    }
}
