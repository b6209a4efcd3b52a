//! Searches within bounds: what a mail may cost, and what a search came to.

mod limits;
mod pooled;
mod ready;

use std::ops::Range;

use pattern::expression::{Progress, Search};
use stream::Fuel;

pub use limits::RunLimits;
pub(crate) use pooled::Pooled;
pub(crate) use ready::{Kept, Ready, SHARE_COMMON};

/// Remaining budget of a mail.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    rule_steps_max: u64,
    rule_left: u64,
}

/// A search that was given up: whether there is a match is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Budget {
    pub(crate) fn new(limits: &RunLimits) -> Budget {
        Budget { left: limits.steps_max, rule_steps_max: limits.rule_steps_max, rule_left: limits.rule_steps_max }
    }

    /// The next rule has a budget of its own, within that of the mail.
    pub(crate) fn next_rule(&mut self) {
        self.rule_left = self.rule_steps_max;
    }

    /// Takes steps that something else than a search has taken; whether there were as many.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        let steps = steps as u64;
        if steps > self.left.min(self.rule_left) {
            return Err(Exhausted);
        }
        self.left -= steps;
        self.rule_left -= steps;
        Ok(())
    }

    /// The first match at or behind `from`.
    pub(crate) fn find(
        &mut self,
        search: &mut Search,
        haystack: &[u8],
        from: usize,
    ) -> Result<Option<Range<usize>>, Exhausted> {
        self.find_within(search, haystack, from..usize::MAX)
    }

    /// The first match at or behind the start of `place`, behind the end of which none ends.
    pub(crate) fn find_within(
        &mut self,
        search: &mut Search,
        haystack: &[u8],
        place: Range<usize>,
    ) -> Result<Option<Range<usize>>, Exhausted> {
        let given = self.left.min(self.rule_left);
        let mut fuel = Fuel::new(given);
        search.restart_within(place);
        let progress = search.run(haystack, &mut fuel);
        let used = given - fuel.left();
        self.left = self.left.saturating_sub(used);
        self.rule_left = self.rule_left.saturating_sub(used);
        match progress {
            Progress::Match(span) => Ok(Some(span)),
            Progress::None => Ok(None),
            Progress::Tired | Progress::Exhausted => Err(Exhausted),
        }
    }
}
