//! Decides logical signatures, at the end of the stream and in turns.

use super::{Context, Counted, Follower, Hit, PLACED_MAX};
use crate::run::rule::{Content, RuleState};
use crate::table::content::Asks;
use crate::table::rules::Rule;

/// So many signatures are looked at in one turn at the end of a stream.
const DECIDED_AT_ONCE: usize = 256;

/// Work for each, in fuel.
const WORK_OF_ONE: u64 = 64;

/// How long a member of a macro group, or a subsignature before one, may be to be found beside the other in any case.
pub(super) const MEMBER_BYTES_MAX: u64 = 1 << 16;

impl Follower {
    /// The stream has ended after `size` bytes: places what could not be placed before. [`Follower::decide`] does the rest.
    pub(crate) fn finish(&mut self, context: Context<'_>, content: &mut Content<'_>, hits: &mut Vec<Hit>) {
        let size = content.size();
        let mut placed = Vec::new();
        for (&number, state) in &self.chains {
            let chain = &context.table.chains[number as usize];
            // What was placed mid-stream has nothing here.
            for places in context.table.location(chain).at_end(context.layout, size) {
                if matches!(context.table.asks(chain.signature), Asks::Nothing) {
                    let first = state.complete.first_within(*places.start(), *places.end());
                    placed.extend(first.map(|start| (number, start)));
                    continue;
                }
                let mut starts = state.complete.within(*places.start(), *places.end());
                placed.extend(starts.by_ref().take(PLACED_MAX).map(|start| (number, start)));
                self.lost += u64::from(starts.next().is_some());
            }
        }
        placed.sort_unstable();
        for (number, start) in placed {
            let chain = context.table.chains[number as usize];
            if !self.told.contains(&chain.signature) {
                let counted = Counted { signature: chain.signature, sub: chain.sub, start, known: size };
                self.count(context, counted, hits);
            }
        }
        if let Some(hash) = content.picture().filter(|_| context.table.knows_pictures()) {
            for (signature, sub) in context.table.pictures(hash) {
                if !self.told.contains(&signature) {
                    self.count(context, Counted { signature, sub, start: 0, known: size }, hits);
                }
            }
        }
        let mut due: Vec<u32> = self.rules.keys().copied().collect();
        due.extend(&*context.table.hold_untouched);
        due.sort_unstable();
        due.dedup();
        due.retain(|signature| !self.told.contains(signature));
        self.due = due.into();
    }

    /// Decides whether a signature holds, unless it has to be searched for.
    fn decide_one(&mut self, context: Context<'_>, signature: u32, content: &mut Content<'_>, hits: &mut Vec<Hit>) {
        let Some(Rule { logic, .. }) = context.table.rule(signature) else { return };
        if !logic.lies_in(context.containers) || !logic.fits(content.size(), context.layout) {
            return;
        }
        let untouched;
        let state = match self.rules.get(&signature) {
            Some(state) => state,
            None => {
                untouched = RuleState::new(logic, 0);
                &untouched
            }
        };
        let (first, mut ending) = (state.first(), state.ending(logic));
        if !logic.expressions.is_empty() {
            self.ending.push_back((signature, first, Box::new(ending)));
        } else if ending.turn(logic, context.layout, content) == Some(true) {
            self.tell(signature, first, content.size(), hits);
        }
    }

    /// Goes on with deciding what could only be decided at the end; whether it has to go on.
    pub(crate) fn decide(&mut self, context: Context<'_>, content: &mut Content<'_>, hits: &mut Vec<Hit>) -> bool {
        if !self.due.is_empty() {
            for _ in 0..DECIDED_AT_ONCE.min(self.due.len()) {
                let Some(signature) = self.due.pop_front() else { break };
                content.work(WORK_OF_ONE);
                self.decide_one(context, signature, content, hits);
            }
            return true;
        }
        let Some((signature, first, mut ending)) = self.ending.pop_front() else { return false };
        let Some(Rule { logic, .. }) = context.table.rule(signature) else { return true };
        content.work(1);
        match ending.turn(logic, context.layout, content) {
            None => self.ending.push_front((signature, first, ending)),
            Some(true) => self.tell(signature, first, content.size(), hits),
            Some(false) => {}
        }
        true
    }
}
