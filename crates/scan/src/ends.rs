//! The ends of a part that the next part of a chain may follow, within a bound.

use std::collections::VecDeque;

/// The most runs of ends that are remembered at one gap of one chain.
pub(crate) const RUNS_MAX: usize = 64;

/// Runs of ends; each with the start of the chain that its first end belongs to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends(VecDeque<Run>);

#[derive(Debug, Clone, Copy)]
struct Run {
    first: u64,
    last: u64,
    start: u64,
}

impl Ends {
    /// Adds an end, to the newest run if it goes on from there; whether an older run had to go.
    pub(crate) fn push(&mut self, end: u64, start: u64) -> bool {
        self.push_among(RUNS_MAX, end, start)
    }

    /// As [`Ends::push`], with a bound of the caller's.
    pub(crate) fn push_among(&mut self, runs_max: usize, end: u64, start: u64) -> bool {
        if let Some(run) = self.0.back_mut() {
            let shifted = run.start.wrapping_add(end.wrapping_sub(run.first));
            let next = end == run.last.wrapping_add(1);
            if shifted == start && (next || (run.first..=run.last).contains(&end)) {
                run.last = run.last.max(end);
                return false;
            }
        }
        self.push_run(runs_max, end, start)
    }

    /// Adds an end as a run of its own.
    pub(crate) fn push_alone(&mut self, end: u64, start: u64) -> bool {
        self.push_run(RUNS_MAX, end, start)
    }

    fn push_run(&mut self, runs_max: usize, end: u64, start: u64) -> bool {
        self.0.push_back(Run { first: end, last: end, start });
        if self.0.len() > runs_max {
            self.0.pop_front();
            return true;
        }
        false
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        self.0.len()
    }

    /// Forgets runs that end before `oldest`.
    pub(crate) fn forget(&mut self, oldest: u64) {
        while self.0.front().is_some_and(|run| run.last < oldest) {
            self.0.pop_front();
        }
    }

    /// The starts of the chains that have an end from `low` to `high`, one for each run.
    pub(crate) fn between(&self, low: u64, high: u64) -> impl Iterator<Item = u64> {
        let fits = move |run: &&Run| run.first <= high && run.last >= low;
        let start = move |run: &Run| run.start.saturating_add(low.max(run.first) - run.first);
        self.0.iter().filter(fits).map(start)
    }

    /// Keeps nothing but the earliest end.
    pub(crate) fn keep_earliest(&mut self, end: u64, start: u64) {
        if self.0.front().is_none_or(|run| end < run.first) {
            self.0.clear();
            self.push_alone(end, start);
        }
    }

    /// Forgets runs whose chains start before `oldest`.
    pub(crate) fn forget_starts(&mut self, oldest: u64) {
        self.0.retain(|run| run.start >= oldest);
    }

    /// Every single end from `low` to `high`.
    pub(crate) fn within(&self, low: u64, high: u64) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(move |run| run.first.max(low)..=run.last.min(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_follow_each_other_are_one_run() {
        let mut ends = Ends::default();
        for end in 10..1000 {
            assert!(!ends.push(end, end - 2));
        }
        assert_eq!(ends.0.len(), 1);
        assert_eq!(ends.between(500, 600).collect::<Vec<_>>(), [498]);
        assert_eq!(ends.within(998, 2000).collect::<Vec<_>>(), [998, 999]);
    }

    #[test]
    fn what_passes_the_bound_is_said_to_be_lost() {
        let mut ends = Ends::default();
        let lost = (0..100).filter(|&end| ends.push(end * 3, 0)).count();
        assert_eq!(lost, 100 - RUNS_MAX);
    }
}
